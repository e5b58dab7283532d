"""Where the work of a session stands: on its own branch, elsewhere, uncommitted, or landed already.

Promise: every commit that holds work of a session is found, also where its worktree is gone or its HEAD is on another
branch; what cannot be read is an error that says what is safe, never an answer that nothing is there.
"""

from __future__ import annotations

from dataclasses import dataclass

from relay_git.contract.lifecycle import RESTS, Event
from relay_git.errors import RelayError, RepoError, UserError
from relay_git.git import worktree
from relay_git.git.repo import Repo
from relay_git.git.run import Git
from relay_git.git.store import Oid
from relay_git.ledger import journal
from relay_git.session import SessionId
from relay_git.supervisor import handoff
from relay_git.supervisor.run import Run


@dataclass(frozen=True, slots=True)
class Stand:
    """Where a session's work stands: the commits that hold it, and HEAD in words where it is not on its own branch.

    `loose` where files of it are in none of these commits nor in any other that lasts.
    """

    commits: tuple[Oid, ...]
    where: str
    loose: bool
    operation: str = ""
    losses: tuple[str, ...] = ()


def of(run: Run) -> Stand:
    """Where the session's work stands now; raises RepoError where git cannot read its worktree."""
    entry, store = run.tip.entry, run.around.store
    aside = (Oid(entry.snapshot),) if entry.stands and entry.snapshot else ()
    if not run.worktree.is_dir():
        head = head_of(run)
        return Stand((head, *aside) if head else (Oid(entry.snapshot),) if entry.snapshot else (), entry.stands, False)
    try:
        if not run.around.repo.worktree_git_dir(run.session).is_dir():
            raise RepoError("its git dir is gone")
        taken = handoff.take_snapshot(run)
    except (RelayError, OSError) as error:
        raise unreadable(run, error) from error
    where = taken.elsewhere(run.session)
    end, recorded = taken.commit, store.commit(Oid(entry.snapshot))
    if taken.commit == taken.head or (not where and store.ref(worktree.branch_of(run.session)) == taken.commit):
        return Stand((end, *aside), where or entry.stands, False, taken.operation, taken.losses)
    if recorded is not None and recorded.tree == taken.tree and taken.head in recorded.parents:
        return Stand((recorded.oid,), where, bool(taken.losses), taken.operation, taken.losses)
    return Stand((end, *aside), where, True, taken.operation, taken.losses)


def head_of(run: Run) -> Oid | None:
    """What HEAD of the session's worktree names, also where its folder is gone."""
    repo = run.around.repo
    git_dir = repo.worktree_git_dir(run.session)
    if not git_dir.is_dir():
        return None
    git = Git(repo.common_dir, git_dir=git_dir, common_dir=repo.common_dir)
    done = git.result("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    return Oid(done.stdout.decode("ascii", "replace").strip()) if done.returncode == 0 else None


def unreadable(run: Run, error: Exception) -> RepoError:
    """The error for a worktree that git cannot read, with what is safe all the same."""
    name = run.session
    return RepoError(
        f"git cannot read the worktree of {name} ({error})",
        hint=f"git merge relay/{name} takes what is committed; git relay drop --force {name} gives up the rest",
    )


def at_rest(run: Run, way: str) -> None:
    """Raise UserError, with the way to bring it to rest, where the session is at work."""
    if run.state not in RESTS:
        raise UserError(f"the session {run.session} is {run.state}", hint=f"{way}, or git relay status")


def reaches(git: Git, commit: Oid, head: Oid) -> bool:
    """Whether `head` has `commit` in its history."""
    return git.result("merge-base", "--is-ancestor", commit, head).returncode == 0


def reached_elsewhere(repo: Repo, tip: Oid) -> bool:
    """Whether any ref reaches `tip` that is not of a session."""
    done = repo.git().result("for-each-ref", "--format=%(refname)", "--contains", tip)
    names = done.stdout.decode("utf-8", "replace").split("\n") if done.returncode == 0 else []
    return any(n and not n.startswith(("refs/heads/relay/", "refs/relay/", "refs/notes/")) for n in names)


def landed(run: Run) -> Oid | None:
    """What of the session was landed, if the commit that it became is still reached; the journal keeps the original."""
    for recorded in journal.back_from(run.around.store, run.tip):
        entry = recorded.entry
        if entry.event is Event.LANDED and entry.landed:
            return recorded.snapshot if reached_elsewhere(run.around.repo, Oid(entry.landed)) else None
    return None


def way(run: Run) -> str:
    """The command that takes the work of a session that is done, also where it stands on another branch."""
    entry, tip = run.tip.entry, run.around.store.ref(worktree.branch_of(run.session))
    if not entry.stands or tip == entry.snapshot:
        return f"git relay land {run.session}"
    end = Oid(entry.snapshot)
    return bring_over(run.session, end, forward=tip is not None and reaches(run.around.repo.git(), tip, end))


def bring_over(name: SessionId, commit: Oid, *, forward: bool) -> str:
    """The command that brings a commit to the session's branch (or to the user's) and lands it."""
    return f"{f'git branch -f relay/{name}' if forward else 'git merge'} {commit} && git relay land {name}"
