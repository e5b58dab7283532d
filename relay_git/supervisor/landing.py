"""The end of a session's life: land its work on the user's branch, or drop it.

Promise: landing is tried in memory first and leaves a printed way back; a conflict or a hook that refuses leaves the
user's branch, index and files as they were. Landing takes all that the session holds or refuses. Dropping deletes
nothing that no other ref reaches, unless forced; the journal stays, and keeps the commits, unless it is to be purged.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from relay_git.contract.lifecycle import RESTS, Event
from relay_git.errors import RelayError, RepoError, UserError, printable
from relay_git.git import include, links, submodule, worktree
from relay_git.git.repo import Repo
from relay_git.git.run import Git
from relay_git.git.store import ZERO, Oid, RefUpdate
from relay_git.ledger import journal, notes
from relay_git.session import SessionId
from relay_git.supervisor import halfway, handoff, recover
from relay_git.supervisor.halfway import How, Intent, Landed
from relay_git.supervisor.process import Mark, end_tree
from relay_git.supervisor.run import Run, Surroundings


def land(run: Run, how: How) -> Landed:
    """Bring the session's commits to the branch that the user stands on."""
    repo, store, session = run.around.repo, run.around.store, run.session
    _at_rest(run, f"git relay handoff {session}")
    git = _user_tree(repo)
    _refuse_other_s(repo, session)
    if (done := halfway.settle(run, git)) is not None:
        return done
    branch = git.text("symbolic-ref", "--quiet", "--short", "HEAD", ok=(0, 1))
    before, base = repo.resolve("HEAD"), Oid(run.tip.entry.base_commit)
    if not branch or before is None:
        raise UserError(
            "your work tree is on no branch (detached HEAD), so there is nothing to land on", hint="git switch BRANCH"
        )
    _clean(git)
    run.note(*links.bring_back(repo, session))
    stand = _stand(run)
    if stand.operation:
        raise RepoError(
            "a merge or rebase stands half-done in the session's worktree", hint=f"git -C {run.worktree} status"
        )
    work = store.ref(worktree.branch_of(session))
    if work is None:
        raise RepoError(f"the session's branch relay/{session} is gone", hint=f"git relay show {session}")
    _refuse_astray(run, git, stand, work, before)
    if _reaches(git, work, before) or _is_landed(run, git, work, before):
        return Landed(branch, before, before)
    tree, here = _no_conflict(git, before, work, session), store.commit(before)
    if how is How.SQUASH and here is not None and here.tree == tree:
        run.record(Event.LANDED, reason=f"{how} on {branch}: {before[:12]} has it all", snapshot=work, landed=before)
        return Landed(branch, before, before)
    _nothing_in_the_way(git, before, tree)
    intent = Intent(how, str(repo.work_tree), branch, before, base, work, Oid(tree))
    for loss in stand.losses:
        run.around.teller.say(f"note: {loss}")
    _carry_out(run, git, intent)
    after = repo.resolve("HEAD") or before
    halfway.record(run, intent, after)
    return Landed(branch, before, after)


def _carry_out(run: Run, git: Git, intent: Intent) -> None:
    """Have git bring the work, or leave all as it was and say why."""
    before = intent.before
    halfway.intend(run, intent)
    try:
        _bring(git, intent.how, intent.base, intent.work, run)
    except KeyboardInterrupt:
        halfway.settle(run, git)
        raise
    except RelayError as error:
        halfway.take_back(git, intent.how)
        halfway.forget(run)
        now = run.around.repo.resolve("HEAD")
        if now != before:
            raise RepoError(
                f"{error}; HEAD has moved to {now or 'no commit'} meanwhile, and was left there",
                hint=f"git log -3; it was at {before}",
            ) from error
        raise type(error)(f"{error}; your branch {intent.branch} is as it was", hint=error.hint) from error


def drop(run: Run, *, force: bool, purge: bool) -> tuple[str, ...]:
    """Take the session's worktree and branch away, with `purge` its journal and notes too; says what went.

    Without `purge` the journal keeps every commit of the session; `force` then gives up only files that are in none.
    """
    repo, session = run.around.repo, run.session
    dropped = run.tip.entry.event is Event.DROPPED
    cut_off = dropped and not purge and _is_left(run)
    if dropped and not purge and not cut_off:
        raise UserError(
            f"the session {session} is dropped already; its history is kept", hint=f"git relay drop --purge {session}"
        )
    if repo.git_dir == repo.worktree_git_dir(session) or repo.work_tree == run.worktree:
        raise UserError("you stand in the worktree that is to be dropped", hint=f"cd {repo.home}")
    if not cut_off:
        run.note(*links.bring_back(repo, session))
    if not force and not cut_off:
        _at_rest(run, f"git relay drop --force {session}")
        _refuse_loss(run, purge=purge)
    elif run.state not in RESTS:
        handoff.fence(run, None)  # its supervisor is gone, but an agent of it may still be at work
    if not purge and not dropped:
        # Before anything goes: HEAD of the worktree may be all that names a commit.
        run.record(Event.DROPPED, reason="dropped by the user", snapshot=_kept(run), pid=0, pid_started=0, supervisor=0)
    gone = [f"worktree {run.worktree}"] if os.path.lexists(run.worktree) else []
    for place in worktree.remove(repo, session):
        run.around.teller.say(f"note: a repository with commits of its own was in the worktree; it is kept in {place}")
    return (*gone, *_take_refs(run.around, session, purge=purge))


def _is_left(run: Run) -> bool:
    """Whether a drop was cut off: something of the session still lies about."""
    repo, session = run.around.repo, run.session
    places = (run.worktree, repo.worktree_git_dir(session), repo.spool_dir(session), repo.log_dir(session))
    left = any(os.path.lexists(place) for place in places)
    return left or run.around.store.ref(worktree.branch_of(session)) is not None


def raze(around: Surroundings, session: SessionId) -> tuple[str, ...]:
    """Take a session away whose journal cannot be read, with all that there is of it; says what went."""
    left = end_tree(Mark(session, around.repo.relay_dir), 0, around.settings.term_grace)
    if left:
        raise RepoError(f"processes of {session} cannot be ended (pid {', '.join(map(str, left))})", hint="end them")
    worktree.remove(around.repo, session)
    gone = [f"worktree {around.repo.session_dir(session)}", *_take_refs(around, session, purge=True)]
    for name in (worktree.branch_of(session), journal.ref_of(session), notes.ref_of(session)):
        broken = around.repo.common_dir / name  # git itself deletes no ref that it cannot read
        if broken.is_file():
            broken.unlink()
            gone.append(f"{name} (was broken)")
    return tuple(gone)


def _take_refs(around: Surroundings, session: SessionId, *, purge: bool) -> list[str]:
    repo, store = around.repo, around.store
    doomed = [worktree.branch_of(session)]
    if purge:
        doomed += [journal.ref_of(session), notes.ref_of(session)]
    updates = [RefUpdate(name, ZERO, now) for name in doomed if (now := store.ref(name)) is not None]
    store.move(updates, "relay: drop")
    recover.clear_spool(repo, session)
    return [f"{u.name} (was {u.old})" for u in updates]


def _kept(run: Run) -> str:
    """The commit that the journal is to keep of a dropped session: its branch, and what HEAD of its worktree names."""
    repo, store = run.around.repo, run.around.store
    found = (store.ref(worktree.branch_of(run.session)), _head(run), Oid(run.tip.entry.snapshot))
    ends: list[Oid] = []
    with contextlib.suppress(RelayError):  # of a broken session is kept what can be read
        for end in found:
            known = end is not None and store.commit(end) is not None
            if end is not None and known and not any(_reaches(repo.git(), end, e) for e in ends):
                ends = [end, *(e for e in ends if not _reaches(repo.git(), e, end))]
        if len(ends) > 1 and (first := store.commit(ends[0])) is not None:
            when = int(run.around.now().timestamp())
            return store.write_commit(first.tree, ends, f"relay: all that {run.session} held when dropped", when)
    return ends[0] if ends else ""


def _at_rest(run: Run, way: str) -> None:
    if run.state not in RESTS:
        raise UserError(f"the session {run.session} is {run.state}", hint=f"{way}, or git relay status")


def _user_tree(repo: Repo) -> Git:
    if repo.work_tree is None:
        raise UserError("landing needs a work tree to land in", hint="run it in your clone's work tree")
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


@dataclass(frozen=True, slots=True)
class _Stand:
    """Where a session's work stands: the commits that hold it, and HEAD in words where it is not on its own branch.

    `loose` where files of it are in none of these commits nor in any other that lasts.
    """

    commits: tuple[Oid, ...]
    where: str
    loose: bool
    operation: str = ""
    losses: tuple[str, ...] = ()


def _stand(run: Run) -> _Stand:
    entry, store = run.tip.entry, run.around.store
    aside = (Oid(entry.snapshot),) if entry.stands and entry.snapshot else ()
    if not run.worktree.is_dir():
        head = _head(run)
        return _Stand((head, *aside) if head else (Oid(entry.snapshot),) if entry.snapshot else (), entry.stands, False)
    try:
        if not run.around.repo.worktree_git_dir(run.session).is_dir():
            raise RepoError("its git dir is gone")
        taken = handoff.take_snapshot(run)
    except (RelayError, OSError) as error:
        raise _unreadable(run, error) from error
    where = taken.elsewhere(run.session)
    end, recorded = taken.commit, store.commit(Oid(entry.snapshot))
    if taken.commit == taken.head or (not where and store.ref(worktree.branch_of(run.session)) == taken.commit):
        return _Stand((end, *aside), where or entry.stands, False, taken.operation, taken.losses)
    if recorded is not None and recorded.tree == taken.tree and taken.head in recorded.parents:
        return _Stand((recorded.oid,), where, bool(taken.losses), taken.operation, taken.losses)
    return _Stand((end, *aside), where, True, taken.operation, taken.losses)


def _head(run: Run) -> Oid | None:
    """What HEAD of the session's worktree names, also where its folder is gone."""
    repo = run.around.repo
    git_dir = repo.worktree_git_dir(run.session)
    if not git_dir.is_dir():
        return None
    git = Git(repo.common_dir, git_dir=git_dir, common_dir=repo.common_dir)
    done = git.result("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    return Oid(done.stdout.decode("ascii", "replace").strip()) if done.returncode == 0 else None


def _unreadable(run: Run, error: Exception) -> RepoError:
    name = run.session
    return RepoError(
        f"git cannot read the worktree of {name} ({error})",
        hint=f"git merge relay/{name} takes what is committed; git relay drop --force {name} gives up the rest",
    )


def _refuse_astray(run: Run, git: Git, stand: _Stand, work: Oid, before: Oid) -> None:
    """Refuse to land a branch that lacks what the worktree holds, and say how to bring it over without a loss."""
    name = run.session
    lost = [c for c in stand.commits if not _reaches(git, c, work) and not _reaches(git, c, before)]
    if not lost:
        return
    where = stand.where or "a commit of its own"
    if stand.loose:
        raise RepoError(
            f"the worktree of {name} stands on {where} and holds uncommitted work that is not on relay/{name}",
            hint=f"git -C {run.worktree} status; commit it there, then land again",
        )
    forward = stand.where and run.worktree.is_dir() and _reaches(git, work, lost[0])
    raise RepoError(
        f"the work of {name} stands on {where} at {lost[0][:12]}, not on relay/{name}; nothing was changed",
        hint=_bring_over(name, lost[0], forward=bool(forward)),
    )


def _bring_over(name: SessionId, commit: Oid, *, forward: bool) -> str:
    return f"{f'git branch -f relay/{name}' if forward else 'git merge'} {commit} && git relay land {name}"


def way(run: Run) -> str:
    """The command that takes the work of a session that is done, also where it stands on another branch."""
    entry, tip = run.tip.entry, run.around.store.ref(worktree.branch_of(run.session))
    if not entry.stands or tip == entry.snapshot:
        return f"git relay land {run.session}"
    end = Oid(entry.snapshot)
    return _bring_over(run.session, end, forward=tip is not None and _reaches(run.around.repo.git(), tip, end))


def _refuse_loss(run: Run, *, purge: bool) -> None:
    name = run.session
    force = f"git relay drop --force{' --purge' if purge else ''} {name}"
    if run.worktree.is_dir():
        _refuse_loose_files(run, force)
    ends = set() if run.tip.entry.event is Event.DROPPED else set(_stand(run).commits)
    if run.tip.entry.event is Event.DROPPED and run.tip.snapshot is not None:
        ends.add(run.tip.snapshot)
    tip = run.around.store.ref(worktree.branch_of(name))
    landed = None if purge else _landed(run)
    for end in sorted(ends | ({tip} if tip is not None else set()), key=lambda end: end != tip):
        if _reached_elsewhere(run.around.repo, end) or (landed and _reaches(run.around.repo.git(), end, landed)):
            continue
        if end == tip:
            raise UserError(
                f"the work on relay/{name} is on no other branch yet", hint=f"git relay land {name}, or: {force}"
            )
        raise UserError(
            f"{name} holds the commit {end[:12]}, which is on no branch yet", hint=f"git merge {end}, or: {force}"
        )


def _refuse_loose_files(run: Run, force: str) -> None:
    repo, name = run.around.repo, run.session
    try:
        # No git is run in the repositories within, by a configuration that an agent may have written.
        look = ("status", "--porcelain", "-z", "--ignore-submodules=dirty")
        changed = any(repo.session_git(name).run(*look).split(b"\0"))
        within = submodule.unsaved(repo, name)
        found = worktree.ignored_files(repo, name)
        ignored = tuple(path for path in found if not include.is_as_yours(repo, name, path))
    except (RelayError, OSError) as error:
        raise _unreadable(run, error) from error
    own = repo.session_git(name).text("symbolic-ref", "--quiet", "HEAD", ok=(0, 1)) == worktree.branch_of(name)
    if changed and (own or _stand(run).loose):
        raise UserError(
            f"the worktree of {name} holds uncommitted work", hint=f"git -C {run.worktree} status, or: {force}"
        )
    if within:
        raise UserError(
            f"{', '.join(map(printable, within))} in the worktree of {name} holds uncommitted work",
            hint=f"git -C {run.worktree / within[0]} status, or: {force}",
        )
    if ignored:
        shown = ", ".join(map(printable, ignored[:5])) + (", …" if len(ignored) > 5 else "")
        raise UserError(
            f"the worktree of {name} holds ignored files that no commit has ({shown})",
            hint=f"move them away, or: {force}",
        )


def _is_landed(run: Run, git: Git, work: Oid, head: Oid) -> bool:
    """Whether this branch has what was landed as other commits: a second time it would be there twice."""
    told = (recorded.entry for recorded in journal.back_from(run.around.store, run.tip))
    return any(e.landed and e.snapshot == work and _reaches(git, Oid(e.landed), head) for e in told)


def _landed(run: Run) -> Oid | None:
    """What of the session was landed, if the commit that it became is still reached; the journal keeps the original."""
    for recorded in journal.back_from(run.around.store, run.tip):
        entry = recorded.entry
        if entry.event is Event.LANDED and entry.landed:
            return recorded.snapshot if _reached_elsewhere(run.around.repo, Oid(entry.landed)) else None
    return None


def _reached_elsewhere(repo: Repo, tip: Oid) -> bool:
    done = repo.git().result("for-each-ref", "--format=%(refname)", "--contains", tip)
    names = done.stdout.decode("utf-8", "replace").split("\n") if done.returncode == 0 else []
    return any(n and not n.startswith(("refs/heads/relay/", "refs/relay/", "refs/notes/")) for n in names)
