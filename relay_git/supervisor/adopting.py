"""Where the work of a session lies that git relay did not start: its repository and what it is to begin from.

Promise: nothing is changed here. What cannot be found again is said, and a folder is never taken for the one that is
gone.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from relay_git.errors import UserError, printable
from relay_git.git import worktree
from relay_git.git.repo import SESSIONS, Repo, discover, no_work_tree
from relay_git.session import SessionRecord
from relay_git.supervisor.detect import Detected, State
from relay_git.supervisor.opening import MAX_TASK, Order
from relay_git.supervisor.source import Source

_IN_EVERY_REPOSITORY = ("main", "master", "trunk", "develop")


@dataclass(frozen=True, slots=True)
class Ground:
    """The repository as seen from the source's work tree, and what the session begins from there.

    `carried` says that what lies uncommitted there comes along; `losses` what does not, in words.
    """

    repo: Repo
    base: str
    carried: bool
    losses: tuple[str, ...]


def ground_of(record: SessionRecord, here: Repo | None) -> Ground:
    """Where the session's work lies; UserError where that cannot be told, RepoError where it is no repository.

    `here` is the repository that the user stands in, if any: it counts where the session's own folder is gone.
    """
    folder = Path(record.cwd)
    if record.cwd and folder.is_absolute() and folder.is_dir():
        return ground_in(discover(folder, {}))
    if folder.parts[-3:-1] == tuple(SESSIONS.split("/")):
        raise _a_leg(folder.name)
    return _without_folder(record, here)


def ground_in(repo: Repo) -> Ground:
    """The work tree that this repository is seen from."""
    if repo.stands_in_session and repo.work_tree is not None:
        raise _a_leg(repo.work_tree.name)
    if repo.work_tree is None or repo.home is None:
        raise no_work_tree()
    half = worktree.operation_in(repo.git_dir)
    lost = f"a {half} stood half-done in {repo.work_tree}: its files came over as they lay, the {half} did not"
    return Ground(repo, "HEAD", True, (lost,) if half else ())


def _without_folder(record: SessionRecord, here: Repo | None) -> Ground:
    """The folder is gone: its branch, else HEAD, in the repository where the user stands, if it can only be that."""
    gone = f"its folder {printable(record.cwd)} is gone" if record.cwd else "it does not tell in which folder it works"
    hint = "cd to the work tree with its work, and type it again with --here"
    if here is None or here.home is None:
        raise UserError(gone, hint=hint)
    branch = f"refs/heads/{record.branch}" if record.branch else ""
    has_branch = bool(branch) and here.resolve(branch) is not None
    telling = has_branch and record.branch not in _IN_EVERY_REPOSITORY
    if not telling and not _was_within(record.cwd, here):
        raise UserError(
            f"{gone}, and nothing says that it belonged to the repository {here.home}",
            hint=hint,
        )
    base = branch if has_branch else "HEAD"
    told = f"the branch {record.branch}" if has_branch else "HEAD"
    lost = f"what was not committed in {printable(record.cwd)}: that folder is gone; the work goes on from {told}"
    return Ground(here, base, False, (lost,))


def _was_within(folder: str, repo: Repo) -> bool:
    out = repo.git().run("worktree", "list", "--porcelain", "-z")
    trees = [os.fsdecode(w.removeprefix(b"worktree ")) for w in out.split(b"\0") if w.startswith(b"worktree ")]
    return bool(folder) and any(folder == tree or folder.startswith(tree.rstrip("/") + "/") for tree in trees)


def _a_leg(session: str) -> UserError:
    name = printable(session)
    return UserError(f"it is a leg of the session {name} of git relay", hint=f"git relay handoff {name} --to AGENT")


def order_of(found: Detected, record: SessionRecord, ground: Ground, then: tuple[str, ...], *, stops: bool) -> Order:
    """What is asked for when a session is adopted; raises UserError where there is nothing to go on with."""
    if found.relay:
        raise _a_leg(found.relay)
    prompts = (*record.inherited_prompts, *record.prompts)
    if not prompts and not record.calls:
        raise UserError(
            f"{found.tool} {printable(found.native_id)} has done nothing yet", hint='git relay start "your task"'
        )
    runs, top = found.pid > 0, ground.repo.work_tree if ground.carried else Path(record.cwd)
    losses = ground.losses
    if runs and not stops:
        losses += (f"what {found.tool} (pid {found.pid}), which was left running in {top}, does from here on",)
    if found.state is State.CRASHED:
        losses += (f"{found.tool} crashed in mid-turn: its last steps may be unfinished",)
    adopted = Source(
        found.tool,
        found.path,
        found.native_id,
        str(top),
        found.pid,
        int(found.started * 1000),
        stops and runs,
        losses,
    )
    task = next((said for said in prompts if said.strip()), "")[:MAX_TASK]
    return Order(task, found.tool, then, ground.base, ground.carried, adopted)
