"""Sessions out of sight: carried on in the background, and followed from wherever the user is.

Promise: what goes wrong before an agent works is told where the command was typed, with the exit status that it has in
the foreground. Whoever only follows can leave at any moment; the session does not notice.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable

from relay_git.cli import context, told
from relay_git.contract.lifecycle import RESTS, Event, State
from relay_git.errors import ExitCode, RelayError
from relay_git.git.repo import Repo
from relay_git.git.store import Store
from relay_git.ledger import journal
from relay_git.session import SessionId
from relay_git.supervisor import process
from relay_git.supervisor.patience import Patience

ASIDE = "RELAY_ASIDE"  # set for a supervisor in the background: what it tells, it tells its file alone
_STEP = 0.1
_SETTLED = 15.0  # seconds after which an agent that was started counts as working, also if it says nothing
_LOOK = 1.0  # whether a supervisor runs is seen by its lock, which a look takes for a moment
_AT_WORK = (Event.LAUNCHED, Event.IDENTIFIED, Event.ACKNOWLEDGED)
_EXITS = {State.DONE: ExitCode.DONE, State.STOPPED: ExitCode.INTERRUPTED, State.FAILED: ExitCode.REFUSED}


def carry_aside(repo: Repo, store: Store, session: SessionId, command: list[str]) -> int:
    """Run a command of ours that carries the session, without this terminal; back as soon as its agent works."""
    errors = repo.log_dir(session) / "aside"
    reading = told.Reading(told.file_of(repo, session), fresh=True)
    argv = (sys.executable, "-m", "relay_git", *command)
    child = process.start_aside(argv, {**os.environ, ASIDE: "1"}, errors)
    try:
        status = _until_it_works(child, reading, lambda: _works(store, session, child.pid))
    except KeyboardInterrupt:
        status = None
    _tell(reading)
    if status is not None:
        sys.stderr.write(errors.read_text("utf-8", "replace"))
        return status
    print(session)
    _say(f"{session} goes on in the background (pid {child.pid})")
    _say(f"follow it: git relay attach {session}")
    _say(f"stop it:   git relay stop {session}")
    return ExitCode.DONE


def attach(word: str | None) -> int:
    """Follow a session until it rests; its exit status is the session's."""
    repo, store = context.open_repo()
    session = journal.find(store, word)
    try:
        return follow(repo, store, session)
    except KeyboardInterrupt:
        _say(f"{session} goes on; back to it: git relay attach {session}; stop it: git relay stop {session}")
        return ExitCode.INTERRUPTED


def follow(repo: Repo, store: Store, session: SessionId, *, fresh: bool = False) -> int:
    """Tell what the session's supervisor tells until there is none; the exit status that the session's state has."""
    reading = told.Reading(told.file_of(repo, session), fresh=fresh)
    while journal.is_running(repo, session):
        look = Patience(_LOOK)
        while not look.is_over:
            _tell(reading)
            time.sleep(_STEP)
    _tell(reading)
    state = journal.tip(store, session).entry.state
    if state not in RESTS:
        _say(f"{session} is interrupted while {state}; to go on: git relay resume {session}")
    return _EXITS.get(state, ExitCode.FAILED)


def _until_it_works(child: process.Aside, reading: told.Reading, works: Callable[[], bool]) -> int | None:
    """Tell what the supervisor tells until its agent is heard; its exit status where it ended before."""
    heard, patience = False, Patience(_SETTLED)
    while (status := child.poll()) is None:
        heard = any([_is_of_an_agent(line) for line in _tell(reading)]) or heard
        if not works():
            patience = Patience(_SETTLED)
        elif heard or patience.is_over:
            return None
        time.sleep(_STEP)
    return status


def _works(store: Store, session: SessionId, supervisor: int) -> bool:
    try:
        entry = journal.tip(store, session).entry
    except RelayError:
        return False
    return entry.supervisor == supervisor and entry.event in _AT_WORK


def _is_of_an_agent(line: str) -> bool:
    return bool(re.match(r"leg \d+ [^\s(]+: (?!starting$)", line))


def _tell(reading: told.Reading) -> list[str]:
    lines = reading.lines()
    for line in lines:
        _say(line)
    return lines


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
