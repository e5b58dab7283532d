"""Landing: a session's work comes to the branch that the user stands on.

Promise: it is tried in memory first and leaves a printed way back; a conflict or a hook that refuses leaves the user's
branch, index and files as they were. Landing takes all that the session holds or refuses.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from filelock import FileLock, Timeout

from relay_git.contract.lifecycle import Event
from relay_git.errors import RelayError, RepoError, UserError, printable
from relay_git.git import links, worktree
from relay_git.git.repo import Repo, make_private
from relay_git.git.run import Git
from relay_git.git.store import Oid
from relay_git.ledger import journal
from relay_git.session import SessionId
from relay_git.supervisor import committed, halfway, stand
from relay_git.supervisor.halfway import How, Intent, Landed
from relay_git.supervisor.run import Run


def land(run: Run, how: How) -> Landed:
    """Bring the session's commits to the branch that the user stands on."""
    stand.at_rest(run, f"git relay handoff {run.session}")
    git = _user_tree(run.around.repo)
    with _alone(run.around.repo):
        return _land(run, git, how)


@contextmanager
def _alone(repo: Repo) -> Iterator[None]:
    """Be the only landing in this work tree, of whichever session."""
    name = hashlib.sha256(os.fsencode(repo.git_dir)).hexdigest()[:12]
    file = repo.lock_file(f"landing-{name}")
    make_private(file.parent)
    try:
        with FileLock(file, timeout=0, mode=0o600):
            yield
    except Timeout as error:
        raise UserError(
            "another landing is at work in this work tree", hint="wait for its end, then land again"
        ) from error


def _land(run: Run, git: Git, how: How) -> Landed:
    repo, store, session = run.around.repo, run.around.store, run.session
    _refuse_other_s(repo, session)
    if (done := halfway.settle(run, git)) is not None:
        return done
    branch = git.text("symbolic-ref", "--quiet", "--short", "HEAD", ok=(0, 1))
    before, base = repo.resolve("HEAD"), Oid(run.tip.entry.base_commit)
    if not branch or before is None:
        raise UserError(
            "your work tree is on no branch (detached HEAD), so there is nothing to land on",
            hint="git switch BRANCH; in the middle of a rebase: git rebase --continue, or --abort, first",
        )
    if operation := worktree.operation_in(repo.git_dir):
        raise UserError(
            f"a {operation} of yours stands half-done in your work tree", hint="git status; finish or abort it first"
        )
    _clean(git)
    run.note(*links.bring_back(repo, session))
    found = stand.of(run)
    if found.operation:
        raise RepoError(
            "a merge or rebase stands half-done in the session's worktree", hint=f"git -C {run.worktree} status"
        )
    work = store.ref(worktree.branch_of(session))
    if work is None:
        raise RepoError(f"the session's branch relay/{session} is gone", hint=f"git relay show {session}")
    _refuse_astray(run, git, found, work, before)
    if stand.reaches(git, work, before) or _is_landed(run, git, work, before):
        return Landed(branch, before, before)
    tree, here = _no_conflict(git, before, work, session), store.commit(before)
    if how is How.SQUASH and here is not None and here.tree == tree:
        run.record(Event.LANDED, reason=f"{how} on {branch}: {before[:12]} has it all", snapshot=work, landed=before)
        return Landed(branch, before, before)
    _nothing_in_the_way(git, before, tree)
    _nothing_hidden(git, before, tree)
    intent = Intent(how, str(repo.work_tree), branch, before, base, work, Oid(tree))
    for said in (*found.losses, *_leaked(run, how, work, before)):
        run.around.teller.say(f"note: {said}")
    _carry_out(run, git, intent)
    after = repo.resolve("HEAD") or before
    halfway.record(run, intent, after)
    return Landed(branch, before, after)


def _leaked(run: Run, how: How, work: Oid, before: Oid) -> list[str]:
    """What looks like a key in what comes: a squash leaves the history behind."""
    around, history = run.around, how is not How.SQUASH
    found = committed.keys(around.store, around.repo.git(), work, [before], around.redaction, history=history)
    return committed.in_short(found)


def _carry_out(run: Run, git: Git, intent: Intent) -> None:
    """Have git bring the work, or leave all as it was and say why."""
    before = intent.before
    halfway.intend(run, intent)
    try:
        _bring(git, intent.how, intent.base, intent.work, run)
        if run.around.repo.resolve("HEAD") == before:
            raise RepoError("git ended well and made no commit", hint="git config --get-regexp 'branch.*mergeoptions'")
    except KeyboardInterrupt:
        halfway.settle(run, git)
        raise
    except RelayError as error:
        if made := halfway.take_back(git, intent.how):
            run.around.teller.say(f"note: what a hook made of the files that came is kept: git stash apply {made}")
        halfway.forget(run)
        now = run.around.repo.resolve("HEAD")
        if now != before:
            raise RepoError(
                f"{error}; HEAD has moved to {now or 'no commit'} meanwhile, and was left there",
                hint=f"git log -3; it was at {before}",
            ) from error
        raise type(error)(f"{error}; your branch {intent.branch} is as it was", hint=error.hint) from error


def _user_tree(repo: Repo) -> Git:
    if repo.work_tree is None:
        raise UserError("landing needs a work tree to land in", hint="git worktree list; cd to one, GIT_DIR unset")
    if repo.stands_in_session:
        raise UserError("you stand in a session's worktree", hint=f"cd {repo.home}")
    return repo.git(safe=False)  # the user asked for it, so the user's own hooks run


def _refuse_other_s(repo: Repo, session: SessionId) -> None:
    """Half of another session's landing may lie in the tree, and only that session knows which half."""
    for file in sorted(repo.relay_dir.glob(f"spool/*/{halfway.FILE}")):
        other = file.parent.name
        if other != session:
            raise UserError(f"a landing of {other} was cut off before", hint=f"git relay land {other}")


def _clean(git: Git) -> None:
    changed = git.run("status", "--porcelain", "-z", "--untracked-files=no").split(b"\0")
    if any(changed):
        raise UserError("your work tree has uncommitted changes", hint="git stash, or commit them, then land again")


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
    top, coming = Path(git.text("rev-parse", "--show-toplevel")), [p for p in map(os.fsdecode, out.split(b"\0")) if p]
    there = {p for p in coming if os.path.lexists(top / p)}
    # A file, or a link to a folder, where a folder comes: git takes one that it ignores away without a word.
    above = {str(folder) for p in coming for folder in PurePosixPath(p).parents if folder.name}
    blocked = {p for p in above if (top / p).is_symlink() or (os.path.lexists(top / p) and not (top / p).is_dir())}
    tracked = set(map(os.fsdecode, git.run("ls-files", "-z", "--full-name", ":/").split(b"\0"))) if blocked else set()
    if paths := sorted(there | (blocked - tracked)):
        raise UserError(
            f"files of yours that git does not track are in the way: {', '.join(map(printable, paths[:5]))}",
            hint="move them away, then land again",
        )


def _nothing_hidden(git: Git, head: Oid, tree: str) -> None:
    """Refuse where a file that comes is one that git was told to take for unchanged: it would set it back."""
    marked = [
        line[2:] for line in git.run("ls-files", "-v", "-z", "--full-name", ":/").split(b"\0") if line[:1].islower()
    ]
    if not marked:
        return
    coming = set(git.run("diff-tree", "-r", "-z", "--name-only", "--no-renames", head, tree).split(b"\0"))
    if paths := [printable(os.fsdecode(path)) for path in marked if path in coming]:
        raise UserError(
            f"files that come are marked as unchanged in your index: {', '.join(paths[:5])}",
            hint=f"git update-index --no-assume-unchanged {paths[0]}; commit or stash what is in it, then land again",
        )


def _bring(git: Git, how: How, base: Oid, work: Oid, run: Run) -> None:
    title = f"{run.tip.entry.title}\n\nRelay-Session: {run.session}"
    match how:
        case How.MERGE:
            git.run("merge", "--quiet", "--no-ff", "--commit", "-m", title, work)
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


def _refuse_astray(run: Run, git: Git, found: stand.Stand, work: Oid, before: Oid) -> None:
    """Refuse to land a branch that lacks what the worktree holds, and say how to bring it over without a loss."""
    name = run.session
    lost = [c for c in found.commits if not stand.reaches(git, c, work) and not stand.reaches(git, c, before)]
    if not lost:
        return
    where = found.where or "a commit of its own"
    if found.loose:
        raise RepoError(
            f"the worktree of {name} stands on {where} and holds uncommitted work that is not on relay/{name}",
            hint=f"git -C {run.worktree} status; commit it there, then land again",
        )
    forward = found.where and run.worktree.is_dir() and stand.reaches(git, work, lost[0])
    raise RepoError(
        f"the work of {name} stands on {where} at {lost[0][:12]}, not on relay/{name}; nothing was changed",
        hint=stand.bring_over(name, lost[0], forward=bool(forward)),
    )


def _is_landed(run: Run, git: Git, work: Oid, head: Oid) -> bool:
    """Whether this branch has what was landed as other commits: a second time it would be there twice."""
    told = (recorded.entry for recorded in journal.back_from(run.around.store, run.tip))
    return any(e.landed and e.snapshot == work and stand.reaches(git, Oid(e.landed), head) for e in told)
