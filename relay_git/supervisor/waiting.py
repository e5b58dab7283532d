"""Waiting until a quota window begins anew: no agent runs meanwhile, and no provider is asked anything.

Promise: the moment stands in the journal, so a restart changes nothing, and a machine that was asleep over it goes on
when it wakes. A clock that is set back does not prolong the wait. Who waits in vain again and again stops waiting.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from itertools import takewhile

from relay_git.contract.lifecycle import Event
from relay_git.ledger import journal
from relay_git.ledger.journal import PassedOver
from relay_git.supervisor import handoff, recover, request
from relay_git.supervisor.run import Run, stamp

MOST_IN_VAIN = 3  # waits in a row after which nobody took the session up
_AFTER = timedelta(seconds=5)  # clocks differ
_STEP = 1.0


def begin(
    run: Run, account: str, until: datetime, rest: tuple[str, ...], passed: tuple[PassedOver, ...], why: str
) -> None:
    """Record that the session waits for this account's window, and why."""
    moment = stamp(until + _AFTER)
    run.record(Event.WAIT_BEGUN, next_agent=account, candidates=rest, passed_over=passed, wait_until=moment, reason=why)


def sit_out(run: Run) -> None:
    """Do nothing until it is time, or until the user wants something else; then look for who can go on."""
    entry = run.tip.entry
    until = datetime.fromisoformat(entry.wait_until)
    left = time.monotonic() + (until - run.around.now()).total_seconds()
    run.around.teller.say(
        f"{run.session} waits for {entry.next_agent} until {_here(until)}; it may be left "
        f"alone, stopped (git relay stop {run.session}) or handed over (git relay handoff {run.session} --to AGENT)"
    )
    while run.around.now() < until and time.monotonic() < left and not run.prefer:
        asked = request.get(run.around.repo, run.session)
        if run.around.stop.is_set() or (asked is not None and asked.stops):
            request.clear(run.around.repo, run.session)
            run.record(Event.STOP_ASKED, reason="stopped by the user", wait_until="", supervisor=0)
            return
        if asked is not None:
            break
        run.around.stop.wait(_STEP)
    if handoff.is_still_the_snapshot(run):
        rest = (entry.next_agent, *entry.candidates)
        run.record(Event.WAIT_OVER, next_agent="", candidates=rest, passed_over=(), wait_until="")
    else:
        recover.keep_what_strayed(run)


def is_in_vain(run: Run) -> bool:
    """Whether it has waited again and again, and nobody took the session up."""
    entries = (recorded.entry for recorded in journal.back_from(run.around.store, run.tip))
    since = takewhile(lambda entry: entry.event is not Event.ACKNOWLEDGED, entries)
    return sum(entry.event is Event.WAIT_BEGUN for entry in since) >= MOST_IN_VAIN


def told(moment: str, now: datetime) -> str:
    """When a wait is over, in the user's own time, and how long that is."""
    until = datetime.fromisoformat(moment).astimezone(UTC)
    minutes = max(0, round((until - now).total_seconds() / 60))
    length = f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{minutes} min"
    return f"{_here(until)} (in {length})"


def _here(until: datetime) -> str:
    return f"{until.astimezone():%a %d %b %H:%M %Z}"
