"""What a worktree needs before an agent works in it: submodules, `.worktreeinclude`, and the user's setup command.

Promise: it is done once for each worktree that is made, before any agent was in it, so that no program of ours runs by
what an agent wrote. The command comes from the user's `git config` alone. Where it fails before the first leg, no agent
is started; later, with a task half done, it is a note to the user and to the next agent.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from relay_git.errors import UserError, printable
from relay_git.git import include, submodule, worktree
from relay_git.git.run import without_local_env
from relay_git.supervisor import process
from relay_git.supervisor.run import Run

LIMIT = 3600.0  # seconds for the setup command
_STEP = 0.05


def furnish(run: Run, leg: int) -> None:
    """Do what is due in a fresh worktree; raises UserError where the setup command fails before the first leg."""
    around, session = run.around, run.session
    if not worktree.is_fresh(around.repo, session):
        return
    notes = [*submodule.fill(around.repo, session), *include.bring(around.repo, session)]
    for note in notes:
        around.teller.say(f"note: {note}")
    if around.settings.setup:
        log = around.repo.log_dir(session) / f"setup-{leg}"
        why = _set_up(run, leg, log)
        if around.stop.is_set():
            return
        if why and leg == 1:
            raise UserError(
                f"the setup command failed ({why}); no agent was started",
                hint=f"see {printable(str(log))}, mend it or git config --unset relay.setup",
            )
        if why:
            run.mended[f"the setup command (relay.setup) failed in the new worktree: {why}"] = None
            around.teller.say(f"note: the setup command failed: {why}; see {printable(str(log))}")
    worktree.no_longer_fresh(around.repo, session)


def _set_up(run: Run, leg: int, log: Path) -> str:
    """Why the command failed, or nothing; what it leaves running is ended, since nobody else may write in there."""
    around, deadline = run.around, time.monotonic() + LIMIT
    around.teller.say(f"setting up: {printable(around.settings.setup)}")
    argv, env = ("sh", "-c", around.settings.setup), without_local_env(around.env)
    started = process.start(argv, run.worktree, env, Path(os.devnull), run.log(log), run.mark)
    try:
        while (status := started.poll()) is None:
            if around.stop.is_set() or time.monotonic() > deadline:
                return f"it did not end within {LIMIT:.0f} s"
            for line in started.output.lines():
                around.teller.live(leg, "setup", line.decode("utf-8", "replace").strip())
            time.sleep(_STEP)
        started.output.drain(1.0)
        return "" if status == 0 else f"it ended with status {status}: {started.complaint() or 'no message'}"
    finally:
        started.end(around.settings.term_grace)
