"""The end of a session's life: land its work on the user's branch, or drop it.

Promise: landing is tried in memory first and leaves a printed way back; a conflict or a hook that refuses leaves the
user's branch, index and files as they were. Dropping deletes nothing that no other ref reaches, unless forced.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from relay_git.contract.lifecycle import RESTS, Event
from relay_git.errors import RelayError, RepoError, UserError, printable
from relay_git.git import worktree
from relay_git.git.repo import Repo
from relay_git.git.run import Git
from relay_git.git.store import ZERO, Oid, RefUpdate
from relay_git.ledger import journal, notes
from relay_git.session import SessionId
from relay_git.supervisor import handoff
from relay_git.supervisor.run import Run


class How(StrEnum):
    """How the work comes to the user's branch."""

    MERGE = "merge"
    SQUASH = "squash"
    REBASE = "rebase"


@dataclass(frozen=True, slots=True)
class Landed:
    """The user's branch before and after; equal where there was nothing to land."""

    branch: str
    before: Oid
    after: Oid


def land(run: Run, how: How) -> Landed:
    """Bring the session's commits to the branch that the user stands on."""
    repo, store, session = run.around.repo, run.around.store, run.session
    _at_rest(run)
    git = _user_tree(repo)
    branch = git.text("symbolic-ref", "--quiet", "--short", "HEAD", ok=(0, 1))
    before, base = repo.resolve("HEAD"), Oid(run.tip.entry.base_commit)
    if not branch or before is None:
        raise UserError(
            "your work tree is on no branch (detached HEAD), so there is nothing to land on", hint="git switch BRANCH"
        )
    _clean(git)
    if run.worktree.exists() and handoff.take_snapshot(run).operation:
        raise RepoError(
            "a merge or rebase stands half-done in the session's worktree", hint=f"git -C {run.worktree} status"
        )
    work = store.ref(worktree.branch_of(session))
    if work is None:
        raise RepoError(f"the session's branch relay/{session} is gone", hint=f"git relay show {session}")
    if _reaches(git, work, before):
        return Landed(branch, before, before)
    _nothing_in_the_way(git, before, _no_conflict(git, before, work, session))
    try:
        _bring(git, how, base, work, run)
    except RelayError as error:
        _take_back(git, how)
        now = repo.resolve("HEAD")
        if now != before:
            raise RepoError(
                f"{error}; HEAD has moved to {now or 'no commit'} meanwhile, and was left there",
                hint=f"git log -3; it was at {before}",
            ) from error
        raise type(error)(f"{error}; your branch {branch} is as it was", hint=error.hint) from error
    after = repo.resolve("HEAD") or before
    run.record(Event.LANDED, reason=f"{how} on {branch}: {before[:12]} to {after[:12]}")
    return Landed(branch, before, after)


def drop(run: Run, *, force: bool) -> tuple[str, ...]:
    """Take the session's worktree and branch away, with `force` its journal and notes too; says what went."""
    repo, store, session = run.around.repo, run.around.store, run.session
    _at_rest(run)
    if run.tip.entry.event is Event.DROPPED and not force:
        raise UserError(
            f"the session {session} is dropped already; its history is kept", hint=f"git relay drop --force {session}"
        )
    if repo.work_tree is not None and repo.work_tree == run.worktree:
        raise UserError("you stand in the worktree that is to be dropped", hint=f"cd {repo.home}")
    if not force:
        _refuse_loss(run)
    gone = [f"worktree {run.worktree}"]
    worktree.remove(repo, session)
    doomed = [worktree.branch_of(session)]
    if force:
        doomed += [journal.ref_of(session), notes.ref_of(session)]
    updates = [RefUpdate(name, ZERO, now) for name in doomed if (now := store.ref(name)) is not None]
    if not force:
        run.record(Event.DROPPED, reason="dropped by the user")
    store.move(updates, "relay: drop")
    gone += [f"{u.name} (was {u.old})" for u in updates]
    for folder in (repo.spool_dir(session), repo.log_dir(session)):
        shutil.rmtree(folder, ignore_errors=True)
    return tuple(gone)


def _at_rest(run: Run) -> None:
    if run.state not in RESTS:
        raise UserError(
            f"the session {run.session} is {run.state}", hint=f"git relay handoff {run.session}, or git relay status"
        )


def _user_tree(repo: Repo) -> Git:
    if repo.work_tree is None:
        raise UserError("landing needs a work tree to land in", hint="run it in your clone's work tree")
    if repo.stands_in_session:
        raise UserError("you stand in a session's worktree", hint=f"cd {repo.home}")
    return repo.git(safe=False)  # the user asked for it, so the user's own hooks run


def _clean(git: Git) -> None:
    changed = git.run("status", "--porcelain", "-z", "--untracked-files=no").split(b"\0")
    if any(changed):
        raise UserError("your work tree has uncommitted changes", hint="git stash, or commit them, then land again")


def _reaches(git: Git, commit: Oid, head: Oid) -> bool:
    return git.result("merge-base", "--is-ancestor", commit, head).returncode == 0


def _no_conflict(git: Git, head: Oid, work: Oid, session: SessionId) -> str:
    """The tree that the merge would have; raises RepoError where it has conflicts."""
    done = git.result("merge-tree", "--write-tree", "--name-only", "-z", "--no-messages", head, work)
    if done.returncode == 0:
        return done.stdout.split(b"\0")[0].decode().strip()
    paths = [printable(os.fsdecode(p)) for p in done.stdout.split(b"\0")[1:] if p]
    raise RepoError(
        f"the work conflicts with your branch in {', '.join(paths[:5]) or 'some files'}; nothing was changed",
        hint=f"git merge relay/{session}   (and resolve; git merge --abort takes it back)",
    )


def _nothing_in_the_way(git: Git, head: Oid, tree: str) -> None:
    """Refuse where an untracked file lies at a path that comes: git would stop, or overwrite what it ignores."""
    out = git.run("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=A", head, tree)
    top = Path(git.text("rev-parse", "--show-toplevel"))
    paths = [p for p in map(os.fsdecode, out.split(b"\0")) if p and os.path.lexists(top / p)]
    if paths:
        raise UserError(
            f"files of yours that git does not track are in the way: {', '.join(map(printable, paths[:5]))}",
            hint="move them away, then land again",
        )


def _bring(git: Git, how: How, base: Oid, work: Oid, run: Run) -> None:
    title = f"{run.tip.entry.title}\n\nRelay-Session: {run.session}"
    match how:
        case How.MERGE:
            git.run("merge", "--quiet", "--no-ff", "-m", title, work)
        case How.SQUASH:
            git.run("merge", "--quiet", "--squash", work)
            git.run("commit", "--quiet", "-m", title)
        case How.REBASE:
            if git.run("rev-list", "--merges", f"{base}..{work}").strip():
                raise UserError(
                    "the session's history holds merges, which cannot be replayed one by one",
                    hint="git relay land --merge",
                )
            git.run("cherry-pick", "--allow-empty", "--keep-redundant-commits", f"{base}..{work}")


def _take_back(git: Git, how: How) -> None:
    """End what stands half-done. Only git's own --abort moves HEAD, and only over picks that it made itself."""
    if how is How.REBASE:
        git.result("cherry-pick", "--abort")
    git.result("merge", "--abort")
    # The tree was clean before, so what differs from HEAD now is only what landing put there.
    git.run("reset", "--quiet", "--merge")


def _refuse_loss(run: Run) -> None:
    repo, store, session = run.around.repo, run.around.store, run.session
    force = f"git relay drop --force {session}"
    branch = worktree.branch_of(session)
    if run.worktree.exists():
        git = repo.session_git(session)
        if any(git.run("status", "--porcelain", "-z").split(b"\0")):
            raise UserError(
                f"the worktree of {session} holds uncommitted work", hint=f"git -C {run.worktree} status, or: {force}"
            )
        ignored = worktree.ignored_files(repo, session)
        if ignored:
            shown = ", ".join(map(printable, ignored[:5])) + (", …" if len(ignored) > 5 else "")
            raise UserError(
                f"the worktree of {session} holds ignored files that no commit has ({shown})",
                hint=f"move them away, or: {force}",
            )
    tip = store.ref(branch)
    if tip is not None and not _reached_elsewhere(repo, tip):
        raise UserError(
            f"the work on relay/{session} is on no other branch yet", hint=f"git relay land {session}, or: {force}"
        )


def _reached_elsewhere(repo: Repo, tip: Oid) -> bool:
    names = repo.git().run("for-each-ref", "--format=%(refname)", "--contains", tip).decode().split("\n")
    return any(n and not n.startswith(("refs/heads/relay/", "refs/relay/", "refs/notes/")) for n in names)
