"""The pause: bring a leg to a safe point and hold it there.

Promise: when `hold` returns, the leg is frozen or gone, and the word returned says truthfully where it stood: after a
commit, between two tool calls, in the middle of one, or ended by itself. Nothing has been killed yet.
"""

from __future__ import annotations

import time

from relay_git.contract.pause import SafePoint
from relay_git.git.repo import write_private
from relay_git.supervisor.run import Run
from relay_git.supervisor.watch import Seen, Watcher

_STEP = 0.05
_FREEZES = 20


def hold(run: Run, watcher: Watcher, *, wait_for_commit: bool) -> SafePoint:
    """Ask for a pause and freeze the leg at the best point it reaches in the time that the user allows.

    With `wait_for_commit` the agent may go on to its next commit first; an agent out of quota cannot, so it is only
    given the moment that it needs to end by itself.
    """
    settings = run.around.settings
    grace = settings.grace if wait_for_commit else 1.0
    _raise_flag(run, watcher)
    if (reached := _wait(watcher, grace, boundary=False)) is not None:
        return reached
    watcher.tell("no commit yet: waiting for the end of a tool call")
    if (reached := _wait(watcher, settings.hard_limit, boundary=True)) is not None:
        return reached
    watcher.process.freeze()
    return SafePoint.INTERRUPTED


def lower_flag(run: Run) -> None:
    """Take the pause flag and what the hook answered away, so that the next leg can commit."""
    for name in ("pause", "held", "accepted"):
        (run.hook_dir / name).unlink(missing_ok=True)


def _raise_flag(run: Run, watcher: Watcher) -> None:
    watcher.mark_commits()
    (run.hook_dir / "held").unlink(missing_ok=True)
    write_private(run.hook_dir / "pause", b"git relay asks for a pause\n")


def _wait(watcher: Watcher, seconds: float, *, boundary: bool) -> SafePoint | None:
    deadline = time.monotonic() + seconds
    freezes = 0
    while True:
        seen = watcher.look()
        if seen.exit is not None:
            return SafePoint.ENDED
        # HEAD moves before git lets go of the index: a freeze in between would leave a lock behind.
        if seen.held or (seen.committed and not seen.index_locked):
            watcher.process.freeze()
            return SafePoint.COMMIT
        if boundary and not seen.record.pending_calls and freezes < _FREEZES:
            freezes += 1
            if _frozen_at_boundary(watcher):
                return SafePoint.TOOL_BOUNDARY
        if time.monotonic() >= deadline:
            return None
        time.sleep(_STEP)


def _frozen_at_boundary(watcher: Watcher) -> bool:
    """Freeze, and look again: a call that began between the look and the freeze is let go on."""
    watcher.process.freeze()
    time.sleep(_STEP)  # what was written before the freeze must reach the transcript's reader
    seen: Seen = watcher.look()
    if seen.record.pending_calls:
        watcher.process.thaw()
        return False
    return True
