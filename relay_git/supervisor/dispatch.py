"""The handoff's second half: choose the next agent, verify, start it, and wait until it shows that it took over.

Promise: what an agent is told comes from a contract that was read back from git and verified a moment before. A
candidate that is missing, not signed in, at its limit or dead at start is passed over with the reason.
"""

from __future__ import annotations

import contextlib
import os
import time

from relay_git.agents.agent import Ready, Unready
from relay_git.contract.brief import brief, reminder
from relay_git.contract.lifecycle import TRANSITIONS, Event, State
from relay_git.errors import AgentError, RelayError, SignatureRefused
from relay_git.ledger import journal
from relay_git.ledger.journal import PassedOver
from relay_git.quota.entry import Account
from relay_git.quota.policy import Act
from relay_git.session import SessionRecord
from relay_git.supervisor import handoff, login, outlook, own_session, request, waiting
from relay_git.supervisor.launching import check, launch, standing_order
from relay_git.supervisor.outlook import QUOTA
from relay_git.supervisor.patience import Patience
from relay_git.supervisor.request import Request
from relay_git.supervisor.run import Run
from relay_git.supervisor.watch import Seen, Watcher

_STEP = 0.05


def choose(run: Run) -> None:
    """Record who goes on: whom the user named, else whom the policy and the user's order say; or that nobody can."""
    entry, named = run.tip.entry, run.prefer
    passed, rest, why_nobody = list(entry.passed_over), list(entry.candidates), ""
    run.prefer = ""
    if (named or "".join(rest[:1])) == request.HUMAN:
        others = tuple(name for name in rest if name != request.HUMAN)
        return run.record(Event.NONE_LEFT, next_agent="", candidates=others, passed_over=tuple(passed))
    if named:
        rest = [named, *(name for name in rest if name != named)]
    elif entry.pause_reason == QUOTA or entry.pause_reason.endswith("-limit"):
        made = outlook.handoffs(run)
        decision = outlook.decide(run, check, SessionRecord(entry.agent), made)
        rest = list(outlook.pool(run, made))
        if decision.act is Act.WAIT and decision.to and decision.until and not waiting.is_in_vain(run):
            others = tuple(name for name in (*rest, str(run.account)) if name != str(decision.to))
            return waiting.begin(run, str(decision.to), decision.until, others, tuple(passed), decision.reason)
        if decision.act is Act.HAND_OVER:
            rest.sort(key=lambda name: name != str(decision.to))
        why_nobody = decision.reason if decision.act in (Act.ASK, Act.WAIT) else ""
    while rest:
        name = rest.pop(0)
        verdict = check(run, Account.parse(name))
        if name != named and (why := run.around.meter.spent(Account.parse(name)) or why_nobody):
            verdict = Unready(why)
        if isinstance(verdict, Ready):
            run.record(Event.CHOSEN, next_agent=name, candidates=tuple(rest), passed_over=tuple(passed))
            return None
        passed.append(PassedOver(name, verdict.reason))
        run.around.teller.say(f"{name} is passed over: {verdict.reason}")
    return run.record(Event.NONE_LEFT, next_agent="", candidates=(), passed_over=tuple(passed))


def somebody_follows(run: Run) -> bool:
    """Whether any of the candidates could be started now."""
    return any(isinstance(check(run, Account.parse(name)), Ready) for name in run.tip.entry.candidates)


def send(run: Run) -> Watcher | None:
    """Start the chosen agent on the verified brief; None where it was passed over or the contract refused."""
    entry = run.tip.entry
    try:
        verdict = handoff.verified(run)
    except SignatureRefused as error:
        _record_refusal(run, str(error))
        raise
    past = own_session.past_of(run, _last_record(run)) if own_session.may_go_on(run) else None
    try:
        watcher = launch(
            run,
            Account.parse(entry.next_agent),
            entry.leg + 1,
            brief(verdict.contract),
            past,
            reminder(verdict.contract),
        )
    except AgentError as error:
        pass_over(run, str(error))
        return None
    _record_launch(run, watcher)
    return watcher


def _record_refusal(run: Run, reason: str) -> None:
    """Write it down on top of what the journal holds now: who changed the contract may have moved the ref too."""
    with contextlib.suppress(RelayError):  # the refusal itself is what the user must hear
        run.tip = journal.tip(run.around.store, run.session)
        if (run.state, Event.REFUSED) in TRANSITIONS:
            run.record(Event.REFUSED, reason=reason)


def launch_first(run: Run) -> Watcher:
    """Start the first leg on the user's own task."""
    task = handoff.task(run)
    watcher = launch(run, run.account, run.tip.entry.leg, f"{task}\n{standing_order(run)}" if task else "")
    _record_launch(run, watcher)
    return watcher


def _last_record(run: Run) -> SessionRecord:
    entry = run.tip.entry
    return handoff.read_transcript(run, entry.native_id or handoff.started_as(run, entry.leg, entry.agent) or "")


def acknowledge(run: Run, watcher: Watcher) -> bool:
    """Wait for evidence from the new leg itself; False where it was passed over, with the reason recorded."""
    entry, patience = run.tip.entry, Patience(run.around.settings.ack_timeout)
    while True:
        seen = watcher.look()
        if watcher.native_id != run.tip.entry.native_id:
            run.record(Event.IDENTIFIED, native_id=watcher.native_id)
        if seen.accepted == entry.contract_id or seen.resumed:
            how = "ran git relay accept" if seen.accepted == entry.contract_id else "finished a model turn"
            run.record(
                Event.ACKNOWLEDGED,
                leg=entry.leg + 1,
                agent=watcher.agent.name,
                account=watcher.account.label,
                native_id=watcher.native_id,
                next_agent="",
                reason=f"{watcher.agent.name} {how}",
                pause_reason="",
                safe_point="",
            )
            return True
        if seen.quit:
            run.around.stop.set()
        # At the terminal the user may take any time, over a dialog for instance.
        reason = _why_not(run, watcher, seen, patience.is_over and run.around.terminal is None)
        if reason:
            give_up(run, watcher, reason, again=watcher.past is not None and _can_go_on(run, watcher, seen))
            return False
        if seen.stop or _wants_another(run, seen.request):
            _yield_to(run, watcher, seen.request)
            return False
        time.sleep(_STEP)


def _wants_another(run: Run, asked: Request | None) -> bool:
    """Whether a request that came meanwhile is for something else than the handoff that is under way."""
    if asked is None:
        return False
    if asked.stops or asked.to not in ("", run.tip.entry.next_agent):
        return True
    request.clear(run.around.repo, run.session)
    return False


def _yield_to(run: Run, watcher: Watcher, asked: Request | None) -> None:
    """The user wants something else before the new leg has taken over: a stop, or another agent."""
    if asked is None or asked.stops:
        run.around.stop.set()
    else:
        run.prefer = asked.to
    give_up(run, watcher, "a stop was asked for" if run.around.stop.is_set() else "another handoff was asked for")
    request.clear(run.around.repo, run.session)


def pass_over(run: Run, reason: str, *, again: bool = False) -> None:
    """Record that the chosen agent did not take the session up, and why; with `again` it is next all the same."""
    entry = run.tip.entry
    if again:
        reason = f"it did not go on in its own session, and gets the brief: {reason}"
    run.around.teller.say(f"{entry.next_agent}{':' if again else ' is passed over:'} {reason}")
    passed = (*entry.passed_over, PassedOver(entry.next_agent, reason))
    rest = (entry.next_agent, *entry.candidates) if again else entry.candidates
    worker = _native_id_of_the_worker(run)
    run.record(
        Event.PASSED_OVER, next_agent="", native_id=worker, candidates=rest, passed_over=passed, pid=0, pid_started=0
    )


def _native_id_of_the_worker(run: Run) -> str:
    """The id under which the leg that wrote the contract is found; the journal's tip names the candidate's."""
    chain = journal.back_from(run.around.store, run.tip)
    return next((r.entry.native_id for r in chain if r.entry.state in (State.RUNNING, State.PAUSING)), "")


def give_up(run: Run, watcher: Watcher | None, reason: str, *, again: bool = False) -> None:
    """End a leg that did not take over; if it changed the tree all the same, that work is kept like any other.

    With `again` the same agent is started once more, on the brief.
    """
    entry = run.tip.entry
    handoff.fence(run, watcher)
    if handoff.is_still_the_snapshot(run):
        pass_over(run, reason, again=again)
        return
    run.record(
        Event.STRAYED,
        leg=entry.leg + 1,
        agent=Account.parse(entry.next_agent).agent,
        account=Account.parse(entry.next_agent).label,
        native_id=watcher.native_id if watcher is not None else entry.native_id,
        next_agent="",
        pause_reason="agent-failed",
        reason=f"{entry.next_agent} changed files without taking the session up: {reason}",
        safe_point="ended",
    )


def _can_go_on(run: Run, watcher: Watcher, seen: Seen) -> bool:
    """Whether the account would take another request."""
    return seen.out_of_quota is None and seen.limit is None and not run.around.meter.spent(watcher.account)


def _why_not(run: Run, watcher: Watcher, seen: Seen, late: bool) -> str:
    notice = seen.out_of_quota or seen.limit
    if seen.out_of_quota is not None or (seen.exit is not None and notice is not None):
        return f"it is at its limit ({notice.evidence if notice else ''})"
    if seen.exit is not None and (out := login.refused(run, watcher, seen)):
        return out
    if seen.exit is not None:
        return f"it ended at start with status {seen.exit}: {watcher.process.complaint() or 'no message'}"
    return "it did not show in time that it had taken over" if late else ""


def _record_launch(run: Run, watcher: Watcher) -> None:
    started = watcher.process
    run.record(
        Event.LAUNCHED,
        pid=started.pid,
        pid_started=started.started,
        supervisor=os.getpid(),
        native_id=watcher.native_id,
        permission=str(run.around.settings.permission(watcher.agent.name)),
    )
