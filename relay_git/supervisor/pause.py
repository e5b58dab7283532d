"""The pause: bring a leg to a safe point and hold it there.

Promise: when `hold` returns, the leg is frozen or gone, and the word returned says truthfully where it stood: after a
commit, between two tool calls, in the middle of one, or ended by itself. Nothing has been killed yet.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from relay_git.contract.pause import SafePoint
from relay_git.git import links
from relay_git.git.repo import write_private
from relay_git.supervisor.patience import Patience
from relay_git.supervisor.run import Run
from relay_git.supervisor.watch import Seen, Watcher

_STEP = 0.05
_FREEZES = 20
_FLAGS = ("pause", "held", "end-turn", "turn-ended", "accepted")


def hold(run: Run, watcher: Watcher, *, wait_for_commit: bool) -> SafePoint:
    """Ask for a pause and freeze the leg at the best point it reaches in the time that the user allows.

    With `wait_for_commit` the agent may go on to its next commit first, then finish a merge or rebase that it has
    begun, and then it is asked by its own hook to end its turn. An agent out of quota can do none of that, so it is
    only given the moment that it needs to end by itself.
    """
    limit = run.around.settings.hard_limit
    _raise_flag(run, watcher)
    reached = _wait(watcher, run.around.settings.grace if wait_for_commit else 1.0)
    if reached is None and wait_for_commit:
        reached = _ask_to_end(run, watcher, limit / 2)
    if reached is None:
        watcher.tell("no commit yet: waiting for the end of a tool call")
        reached = _wait(watcher, limit, boundary=True)
    return reached or _freeze_here(watcher)


def lower_flag(run: Run) -> None:
    """Take the pause flag and what the hooks answered away, so that the next leg can commit."""
    links.clear_folders(run.around.repo, run.session)
    for name in _FLAGS:
        (run.hook_dir / name).unlink(missing_ok=True)


def _raise_flag(run: Run, watcher: Watcher) -> None:
    watcher.mark_commits()
    links.clear_folders(run.around.repo, run.session)
    for name in ("held", "turn-ended"):
        (run.hook_dir / name).unlink(missing_ok=True)
    write_private(run.hook_dir / "pause", b"git relay asks for a pause\n")


def _ask_to_end(run: Run, watcher: Watcher, seconds: float) -> SafePoint | None:
    """No commit came: let a half-done merge or rebase be finished, then have the agent's own hook end the turn."""
    if watcher.operation():
        watcher.tell(f"no commit yet: waiting for the end of the {watcher.operation()}")
        reached = _wait(watcher, seconds, until=lambda: not watcher.operation())
        if reached is not None:
            return reached
    if not watcher.ends_turn:
        return None
    watcher.tell("no commit yet: its own hook ends the turn after this tool call")
    write_private(run.hook_dir / "end-turn", b"git relay asks for the end of the turn\n")
    return _wait(watcher, seconds)


def _wait(
    watcher: Watcher, seconds: float, *, boundary: bool = False, until: Callable[[], bool] = lambda: False
) -> SafePoint | None:
    patience, freezes = Patience(seconds), 0
    while True:
        seen = watcher.look()
        if seen.exit is not None:
            return _where_it_ended(seen)
        # HEAD moves before git lets go of the index: a freeze in between would leave a lock behind.
        if seen.held or (seen.committed and not seen.index_locked):
            watcher.process.freeze()
            return SafePoint.COMMIT
        if (boundary or seen.idle) and _is_between_calls(seen) and freezes < _FREEZES:
            freezes += 1
            if _freeze_here(watcher) is SafePoint.TOOL_BOUNDARY:
                return SafePoint.TOOL_BOUNDARY
            watcher.process.thaw()
        if seen.hurry or (seen.stop and not boundary) or until() or patience.is_over:
            return None
        time.sleep(_STEP)


def _where_it_ended(seen: Seen) -> SafePoint:
    """A turn that the agent's own hook ended stands between two calls, if the transcript has no open one."""
    asked = seen.turn_ended and seen.exit == 0 and not seen.record.pending_calls
    return SafePoint.TOOL_BOUNDARY if asked else SafePoint.ENDED


def _freeze_here(watcher: Watcher) -> SafePoint:
    """Freeze, and only then look where that was: a call may have begun between the last look and the freeze."""
    watcher.process.freeze()
    time.sleep(_STEP)  # what was written before the freeze must reach the transcript's reader
    seen = watcher.look()
    if seen.exit is not None:
        return _where_it_ended(seen)
    return SafePoint.TOOL_BOUNDARY if _is_between_calls(seen) else SafePoint.INTERRUPTED


def _is_between_calls(seen: Seen) -> bool:
    """Whether the transcript shows it; where there is none yet, nothing is known, but that it waits for its user."""
    return seen.idle or (seen.record.records > 0 and not seen.record.pending_calls)
