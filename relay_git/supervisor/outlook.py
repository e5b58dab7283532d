"""Looking ahead: whether a leg is to hand over before its account is spent, and who can go on once it is.

Promise: what is decided, is decided by `quota.policy`; here its arguments are gathered: wallets, the user's order, who
is ready, and the handoffs that this session has made for want of quota.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from relay_git.agents.agent import Ready, Unready
from relay_git.contract.lifecycle import Event
from relay_git.ledger import journal
from relay_git.quota import policy
from relay_git.quota.entry import Account
from relay_git.quota.policy import Act, Decision, Handoff, Rules, Standing
from relay_git.session import PlanStatus, SessionRecord
from relay_git.supervisor.patience import Patience
from relay_git.supervisor.run import Run

Check = Callable[[Run, Account], Ready | Unready]

QUOTA = "quota"  # the reason of a pause before the wall
EVERY = 5.0  # seconds between two looks ahead

_FOR_QUOTA = (Event.LIMIT_SEEN, Event.QUOTA_LOW)


class Outlook:
    """The look ahead of one leg; cheap where nothing is near."""

    def __init__(self, run: Run, check: Check) -> None:
        self._run, self._check, self._next = run, check, Patience(0)
        self._near, self._handoffs = "", handoffs(run)
        self._since = run.around.now()

    def handover(self, record: SessionRecord) -> str:
        """Why the leg is to be paused now for want of quota, in words; empty where it goes on."""
        if not self._next.is_over:
            return ""
        self._next = Patience(EVERY)
        decision = decide(self._run, self._check, record, self._handoffs, self._since)
        capped = self._run.around.settings.budgets.get(self._run.account, 1.0) < 1.0
        if decision.act in (Act.HAND_OVER, Act.WAIT) or (decision.act is Act.ASK and capped):
            return decision.reason
        if decision.act is Act.CHECK and self._near != str(decision.to):
            self._near = str(decision.to)
            self._run.around.teller.say(decision.reason)
        return ""


def decide(
    run: Run, check: Check, record: SessionRecord, made: Sequence[Handoff], since: datetime | None = None
) -> Decision:
    """What the policy says now, after the handoffs `made`; a successor that it names is ready, as far as `check` sees.

    What was refused before `since` does not count against the present account: the leg was begun all the same.
    """
    account, now = run.account, run.around.now()
    present = replace(_standing(run, account), model=record.model, since=since)
    candidates = {name: _standing(run, Account.parse(name)) for name in pool(run, made)}
    while True:
        decision = policy.decide(present, tuple(candidates.values()), made, rules(run), now, _step(record))
        if decision.to is None or decision.to == account or decision.act not in (Act.CHECK, Act.HAND_OVER):
            return decision
        verdict = check(run, decision.to)
        if isinstance(verdict, Ready):
            return decision
        candidates[str(decision.to)] = replace(candidates[str(decision.to)], unready=verdict.reason)


def pool(run: Run, made: Sequence[Handoff]) -> tuple[str, ...]:
    """Who may go on: the user's order, then the accounts that the session left for want of quota, where they have some.

    An account that was asked for by the user stands in that order already, wherever the session has been.
    """
    named, present = run.tip.entry.candidates, str(run.account)
    left = dict.fromkeys(str(handoff.left) for handoff in made)
    again = (name for name in left if not run.around.meter.spent(Account.parse(name)))
    return (*named, *(name for name in again if name not in named and name != present))


def rules(run: Run) -> Rules:
    """The user's rules; how long this session may wait, where it was said for it."""
    most, own = run.around.settings.rules, run.tip.entry.wait
    return replace(most, max_wait=timedelta(seconds=own)) if own else most


def _standing(run: Run, account: Account) -> Standing:
    meter = run.around.meter
    jitter = zlib.crc32(run.session.encode()) / 2**32
    budget = run.around.settings.budgets.get(account, 1.0)
    return Standing(meter.wallet(account), meter.breaker(account, jitter), budget=budget)


def handoffs(run: Run) -> list[Handoff]:
    """Those that this session has made for want of quota, the oldest first."""
    left: Account | None = None
    made = []
    for recorded in reversed(list(journal.back_from(run.around.store, run.tip))):
        entry = recorded.entry
        if entry.event in _FOR_QUOTA:
            left = Account(entry.agent, entry.account)
        elif entry.event is Event.ACKNOWLEDGED and left is not None:
            made.append(Handoff(datetime.fromisoformat(entry.at), left, Account(entry.agent, entry.account)))
            left = None
        elif entry.event in (Event.HANDOFF_ASKED, Event.STOP_ASKED):
            left = None
    return made


def _step(record: SessionRecord) -> timedelta:
    """How long a step of the plan has taken so far, where there is a plan with steps left."""
    done = sum(item.status is PlanStatus.COMPLETED for item in record.plan)
    if not done or done == len(record.plan) or record.started is None or record.last_activity is None:
        return timedelta(0)
    return max(timedelta(0), record.last_activity - record.started) / done
