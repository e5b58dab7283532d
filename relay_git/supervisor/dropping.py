"""Dropping: a session's worktree and branch are taken away.

Promise: nothing is deleted that no other ref reaches, unless forced; the journal stays, and keeps the commits, unless
it is to be purged.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from pathlib import Path

from relay_git.contract.lifecycle import RESTS, Event
from relay_git.errors import RelayError, RepoError, UserError, printable
from relay_git.git import include, links, loose, worktree
from relay_git.git.store import ZERO, Oid, RefUpdate
from relay_git.ledger import journal, notes
from relay_git.session import SessionId
from relay_git.supervisor import handoff, recover, stand
from relay_git.supervisor.process import Mark, end_tree
from relay_git.supervisor.run import Run, Surroundings


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
        stand.at_rest(run, f"git relay drop --force {session}")
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
    """The commit that the journal is to keep of a dropped session: of its branch and of its worktree's git dir."""
    repo, store = run.around.repo, run.around.store
    stood = (store.ref(worktree.branch_of(run.session)), stand.head_of(run), Oid(run.tip.entry.snapshot))
    found = (*stood, *loose.commits(repo, run.session))
    ends: list[Oid] = []
    with contextlib.suppress(RelayError):  # of a broken session is kept what can be read
        for end in found:
            known = end is not None and store.commit(end) is not None
            if end is not None and known and not any(stand.reaches(repo.git(), end, e) for e in ends):
                ends = [end, *(e for e in ends if not stand.reaches(repo.git(), e, end))]
        if len(ends) > 1 and (first := store.commit(ends[0])) is not None:
            when = int(run.around.now().timestamp())
            return store.write_commit(first.tree, ends, f"relay: all that {run.session} held when dropped", when)
    return ends[0] if ends else ""


def _refuse_loss(run: Run, *, purge: bool) -> None:
    name = run.session
    force = f"git relay drop --force{' --purge' if purge else ''} {name}"
    if run.worktree.is_dir():
        _refuse_loose_files(run, force)
    ends = set() if run.tip.entry.event is Event.DROPPED else set(stand.of(run).commits)
    if run.tip.entry.event is Event.DROPPED and run.tip.snapshot is not None:
        ends.add(run.tip.snapshot)
    own = set(loose.commits(run.around.repo, name))
    ends |= own
    tip = run.around.store.ref(worktree.branch_of(name))
    landed = None if purge else stand.landed(run)
    for end in sorted(ends | ({tip} if tip is not None else set()), key=lambda end: end != tip):
        if stand.reached_elsewhere(run.around.repo, end) or (
            landed and stand.reaches(run.around.repo.git(), end, landed)
        ):
            continue
        if end == tip:
            raise UserError(
                f"the work on relay/{name} is on no other branch yet", hint=f"git relay land {name}, or: {force}"
            )
        way = f"git branch {name}-{end[:7]} {end}" if end in own else f"git merge {end}"
        raise UserError(f"{name} holds the commit {end[:12]}, which is on no branch yet", hint=f"{way}, or: {force}")


def _refuse_loose_files(run: Run, force: str) -> None:
    repo, name, place = run.around.repo, run.session, run.worktree
    try:
        # No git is run in the repositories within, by a configuration that an agent may have written.
        top, within = loose.look(repo, name)
        ignored = tuple(path for path in top.ignored if not include.is_as_yours(repo, name, path))
    except (RelayError, OSError) as error:
        raise stand.unreadable(run, error) from error
    if top.changed and not _is_in_a_commit(run):
        raise UserError(
            f"the worktree of {name} holds uncommitted work ({_some(top.changed)})",
            hint=f"git -C {place} status -u, or: {force}",
        )
    if top.hidden:
        raise UserError(
            f"the worktree of {name} holds uncommitted work that an index bit hides ({_some(top.hidden)})",
            hint=f"git -C {place} update-index --no-{top.bits[0]} {_quoted(top.hidden[0])}, or: {force}",
        )
    if within:
        raise UserError(
            f"{_some(tuple(found.place for found in within))} in the worktree of {name} holds uncommitted work"
            + f" ({_some((*within[0].changed, *within[0].ignored)) or 'git cannot tell'})",
            hint=f"{_look_into(place, within[0].place)}, or: {force}",
        )
    if ignored:
        raise UserError(
            f"the worktree of {name} holds ignored files that no commit has ({_some(ignored)})",
            hint=f"move them away, or: {force}",
        )


def _is_in_a_commit(run: Run) -> bool:
    """Whether what HEAD of the worktree lacks is in a commit that lasts, as where it stands on another branch."""
    git = run.around.repo.session_git(run.session)
    if git.text("symbolic-ref", "--quiet", "HEAD", ok=(0, 1)) == worktree.branch_of(run.session):
        return False
    now = stand.of(run)
    return not now.loose and not now.losses


def _look_into(worktree: Path, within: str) -> str:
    place = _quoted(str(worktree / within))
    return f"git -C {place} status -u --ignored" if (worktree / within / ".git").exists() else f"ls -A {place}"


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(map(printable, names[:5])) + (", …" if len(names) > 5 else "")


def _quoted(name: str) -> str:
    return shlex.quote(printable(name))
