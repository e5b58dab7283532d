"""Carrying a session: one loop that does what the journal's tip says is due, until the session is at rest.

Promise: the loop holds no state that a crash could lose but the process it watches; whatever happens is recorded first.
"""

from __future__ import annotations

import time

from relay_git.contract.lifecycle import RESTS, Event, State
from relay_git.contract.pause import SafePoint
from relay_git.errors import AgentError
from relay_git.session import LimitNotice
from relay_git.supervisor import asking, dispatch, handoff, login, own_session, pause, recover, request, waiting
from relay_git.supervisor.launching import check
from relay_git.supervisor.meter import clock
from relay_git.supervisor.outlook import QUOTA, Outlook
from relay_git.supervisor.process import tree
from relay_git.supervisor.request import STOP
from relay_git.supervisor.run import Run
from relay_git.supervisor.source import ADOPTED
from relay_git.supervisor.watch import Seen, Watcher

_STEP = 0.1


def carry(run: Run) -> State:
    """Do what is due until the session is at rest; the state it rests in."""
    watcher: Watcher | None = None
    recover.settle(run)
    try:
        while run.state not in RESTS:
            watcher = _advance(run, watcher)
    finally:
        if watcher is not None:
            watcher.process.close()
    return run.state


def _advance(run: Run, watcher: Watcher | None) -> Watcher | None:
    """Do what is due in the present state; who is to be watched afterwards."""
    match run.state:
        case State.RUNNING:
            return _running(run, watcher)
        case State.PAUSING:
            _pausing(run, watcher)
            return watcher
        case State.SNAPSHOTTED:
            _snapshotted(run, watcher)
        case State.ENVELOPE_BUILT:
            handoff.write_note(run, only_missing=True)
            _onward(run)
        case State.DISPATCHED:
            return dispatch.send(run)
        case State.RESUMING:
            return _resuming(run, watcher)
        case State.WAITING:
            waiting.sit_out(run)
    return None


def _running(run: Run, watcher: Watcher | None) -> Watcher | None:
    if watcher is not None:
        handoff.make_ready()
        _watch(run, watcher)
        return watcher
    if run.around.stop.is_set():
        never = " before the agent was started" if run.tip.entry.event is Event.STARTED else ""
        _pause_for(run, Event.STOP_ASKED, STOP, f"stopped by the user{never}")
        return None
    if run.tip.entry.event is not Event.STARTED:
        _pause_for(run, Event.AGENT_DIED, "supervisor-died", "the supervisor ended while the agent worked")
        return None
    try:
        return dispatch.launch_first(run)
    except AgentError as error:
        _pause_for(run, Event.AGENT_DIED, "agent-failed", str(error))
        return None


def _watch(run: Run, watcher: Watcher) -> None:
    """Until something happens that ends the leg; it is recorded."""
    run.limit = None
    ahead = Outlook(run, check)
    while True:
        seen = watcher.look()
        if watcher.native_id != run.tip.entry.native_id:
            run.record(Event.IDENTIFIED, native_id=watcher.native_id)
        if seen.out_of_quota is not None and _acts_on(run, seen.out_of_quota):
            words = _limit_words(seen.out_of_quota)
            if seen.out_of_quota is seen.waits_out:
                words += f"; it would wait by itself for too long ({seen.out_of_quota.evidence})"
            return _pause_for(run, Event.LIMIT_SEEN, f"{seen.out_of_quota.kind}-limit", words)
        if seen.exit is not None:
            return _ended(run, watcher, seen)
        if seen.stop:
            return _pause_for(run, Event.STOP_ASKED, STOP, "stopped by the user")
        if seen.request is not None:
            return _handoff_asked(run, seen.request)
        if low := ahead.handover(seen.record):
            return _pause_for(run, Event.QUOTA_LOW, QUOTA, low)
        if seen.hangs:
            return _pause_for(run, Event.AGENT_HUNG, "agent-hangs", _silence_words(run, watcher))
        time.sleep(_STEP)


def _acts_on(run: Run, notice: LimitNotice) -> bool:
    """At the terminal a TUI is taken from the user only for another: Claude Code waits for the reset by itself."""
    known, run.limit = run.limit, notice
    return run.around.terminal is None or (notice != known and dispatch.somebody_follows(run))


def _ended(run: Run, watcher: Watcher, seen: Seen) -> None:
    """The agent ended by itself: done, at a limit, or failed. The exit status alone proves nothing."""
    if seen.quit:  # which is no word of the task being done: `land` or `resume`, that is the user's to say
        return _pause_for(run, Event.STOP_ASKED, STOP, f"the user left {watcher.agent.name}")
    if seen.limit is not None and not (seen.exit == 0 and seen.ended is not None and seen.ended.ok):
        return _pause_for(run, Event.LIMIT_SEEN, f"{seen.limit.kind}-limit", _limit_words(seen.limit))
    if seen.exit == 0 and seen.resumed and (seen.ended is None or seen.ended.ok):
        return _done(run, watcher)
    if out := login.refused(run, watcher, seen):
        return _pause_for(run, Event.AGENT_DIED, login.REASON, out)
    said = login.last_words(watcher, seen)
    why = (
        "it ended without a single finished turn"
        if seen.exit == 0 and not seen.resumed
        else f"it ended with status {seen.exit}"
    )
    return _pause_for(run, Event.AGENT_DIED, "agent-failed", f"{why}: {said or 'no message'}")


def _done(run: Run, watcher: Watcher) -> None:
    handoff.fence(run, watcher)
    taken = handoff.take_snapshot(run)
    left = "; files it had not committed were kept as a snapshot commit" if taken.commit != taken.head else ""
    run.record(
        Event.AGENT_DONE,
        reason=f"{watcher.agent.name} finished{left}{taken.told(run.session)}",
        snapshot=taken.commit,
        stands=taken.elsewhere(run.session),
        pid=0,
        pid_started=0,
        supervisor=0,
        pause_reason="",
    )
    for loss in (*run.mended, *taken.losses):
        run.around.teller.say(f"note: {loss}")


def _pausing(run: Run, watcher: Watcher | None) -> None:
    entry = run.tip.entry
    if watcher is None:
        point = _where_nobody_looked(run)
    else:
        point = pause.hold(run, watcher, wait_for_commit=entry.pause_reason in (request.HANDOFF, QUOTA))
    over = watcher is None or watcher.process.poll() is not None
    if over:
        handoff.fence(run, watcher)  # nothing is left to be frozen, so this one snapshot is the last
    paused = "is adopted" if entry.pause_reason == ADOPTED else "is paused at a safe point"
    run.around.teller.say(f"leg {entry.leg} ({entry.agent}) {paused}: {point}")
    taken = handoff.take_snapshot(run)
    run.last_snapshot = taken if over else None
    run.record(Event.SNAPSHOT_TAKEN, safe_point=str(point), snapshot=taken.commit)
    _take_wish(run)


def _where_nobody_looked(run: Run) -> SafePoint:
    """Where a leg stood that had no supervisor any more; what its transcript leaves open was interrupted."""
    entry = run.tip.entry
    if entry.safe_point:
        return SafePoint(entry.safe_point)
    record = handoff.read_record(run, entry.native_id)
    return SafePoint.INTERRUPTED if record.pending_calls or tree(run.mark) else SafePoint.ENDED


def _take_wish(run: Run) -> None:
    """A handoff that was asked for before the next agent is chosen: its wish counts, and it is then done with."""
    asked = request.get(run.around.repo, run.session)
    if asked is not None and asked.to:
        run.prefer = asked.to
    if asked is not None and asked.stops:
        run.around.stop.set()
    request.clear(run.around.repo, run.session)


def _snapshotted(run: Run, watcher: Watcher | None) -> None:
    """Fence, and look at the tree once more: what was told to end may have written a last time."""
    taken, run.last_snapshot = run.last_snapshot, None
    if taken is None:
        handoff.fence(run, watcher)
        taken = handoff.take_snapshot(run)
    if taken.commit != run.tip.entry.snapshot:
        run.record(Event.SNAPSHOT_TAKEN, snapshot=taken.commit)
    if watcher is not None:
        taken = asking.ask(run, watcher, taken)
    answered = asking.heard(run)
    handoff.write_contract(run, taken, watcher, answered.notes, answered.losses)
    run.around.teller.say(f"contract {run.tip.entry.contract_id} is signed and stored; snapshot {taken.commit[:12]}")


def _onward(run: Run) -> None:
    entry = run.tip.entry
    if entry.pause_reason == STOP or run.around.stop.is_set():
        run.record(Event.STOP_ASKED, supervisor=0, pid=0, pid_started=0)
        return
    _take_wish(run)
    dispatch.choose(run)
    if run.state is State.DISPATCHED:
        run.around.teller.say(f"leg {entry.leg + 1}: handing over to {run.tip.entry.next_agent}")
        if run.around.terminal is not None:
            run.around.terminal.tell(_takeover_words(run))


def _resuming(run: Run, watcher: Watcher | None) -> Watcher | None:
    if watcher is None:
        again = own_session.was_tried(run)
        dispatch.give_up(run, None, "the supervisor ended before it had taken over", again=again)
        return None
    if dispatch.acknowledge(run, watcher):
        run.around.teller.say(
            f"leg {run.tip.entry.leg} ({watcher.agent.name}) has picked the work up: {run.tip.entry.reason}"
        )
        return watcher
    return None


def _handoff_asked(run: Run, asked: request.Request) -> None:
    rest = run.tip.entry.candidates
    if asked.to:
        rest = (asked.to, *(c for c in rest if c != asked.to))
    _pause_for(run, Event.HANDOFF_ASKED, "handoff", asked.reason or "asked for by the user", candidates=rest)


def _pause_for(run: Run, event: Event, reason: str, words: str, candidates: tuple[str, ...] | None = None) -> None:
    entry = run.tip.entry
    run.around.teller.say(f"leg {entry.leg} ({entry.agent}): {words}")
    rest = entry.candidates if candidates is None else candidates
    run.record(event, pause_reason=reason, reason=words, safe_point="", next_agent="", candidates=rest, passed_over=())


def _silence_words(run: Run, watcher: Watcher) -> str:
    said = watcher.process.complaint()
    limit = (
        f"no output, no transcript, no commit and no work of its processes for {run.around.settings.hang_timeout:.0f} s"
    )
    return f"it hangs: {limit}" + (f"; its last words on stderr: {said}" if said else "")


def _takeover_words(run: Run) -> str:
    """All that a user at the terminal is told between two TUIs."""
    entry, limit = run.tip.entry, run.limit
    why = f"{entry.agent}: {entry.reason}"
    if entry.pause_reason.endswith("-limit") and limit is not None:
        when = f" until {clock(limit.resets_at, run.around.now())}" if limit.resets_at is not None else ""
        why = f"{entry.agent} is at its limit{when}"
    passed = "".join(f"; {p.agent} is passed over: {p.reason}" for p in entry.passed_over)
    return f"{why}{passed}; {entry.next_agent} takes over"


def _limit_words(notice: LimitNotice) -> str:
    until = (
        f", resets at {notice.resets_at:%Y-%m-%d %H:%M} UTC" if notice.resets_at is not None else ", reset time unknown"
    )
    window = f" ({notice.window})" if notice.window else ""
    return f"{notice.kind} limit{window}{until}"
