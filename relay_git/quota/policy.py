"""Whether a session stays with its account, goes to another, or waits: one pure function, with its reason in words.

Promise: total, and decided by its arguments alone. However wallets change:

- an account that a session has left is not gone back to within `Rules.hold`, and a successor has more room than the
  present account by `Rules.margin`: two accounts never play ping-pong;
- no more than `Rules.per_hour` handoffs in an hour;
- an account that refuses is not asked before its breaker lets it be probed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta, tzinfo
from enum import StrEnum

from relay_git.quota import forecast
from relay_git.quota.breaker import Breaker
from relay_git.quota.entry import Account
from relay_git.quota.forecast import Forecast
from relay_git.quota.wallet import Wallet, Window
from relay_git.session import LimitKind

_HOUR = timedelta(hours=1)


class Prefer(StrEnum):
    """What the user would rather have when an account runs dry."""

    ACCOUNT = "account"
    PROVIDER = "provider"
    WAIT = "wait"


class Act(StrEnum):
    """What is to be done now. `CHECK`: see whether the successor is ready, the wall is not far."""

    STAY = "stay"
    CHECK = "check"
    HAND_OVER = "hand-over"
    WAIT = "wait"
    ASK = "ask"


@dataclass(frozen=True, slots=True)
class Quiet:
    """Hours of the user's day in which no account is begun; `start` may be after `end`, across midnight.

    Without a `zone` they are by the machine's clock, changes of it included.
    """

    start: time
    end: time
    zone: tzinfo | None = None

    def until(self, now: datetime) -> datetime | None:
        """When they end, aware UTC as `now` is; None where it is not quiet."""
        local = now.astimezone(self.zone)
        clock = local.time().replace(tzinfo=None)
        across = self.start > self.end
        quiet = (clock >= self.start or clock < self.end) if across else self.start <= clock < self.end
        if not quiet:
            return None
        day = local.date() + timedelta(days=1 if clock >= self.end else 0)
        return datetime.combine(day, self.end, self.zone).astimezone(now.tzinfo)  # naive is local


@dataclass(frozen=True, slots=True)
class Rules:
    """What the user has set.

    `max_wait` is how long a session may wait for a reset, nothing: not at all. A forecast alone hands over at most
    `reach` before the threshold; `lead` is how long a handoff takes, and a reset nearer than `near` is not fled from.
    """

    threshold: float = 0.9
    prefer: Prefer = Prefer.ACCOUNT
    max_wait: timedelta = timedelta(0)
    per_hour: int = 6
    quiet: Quiet | None = None
    hold: timedelta = timedelta(minutes=15)
    margin: float = 0.1
    reach: float = 0.15
    lead: timedelta = timedelta(minutes=3)
    near: timedelta = timedelta(minutes=10)
    longest_step: timedelta = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Standing:
    """An account as the policy sees it.

    `model` is the one in use where known. `budget` is the share of each window that the user lets git relay spend.
    `unready` says why it cannot be used at all, empty where it can or nobody has looked. `since` is when the leg was
    begun that uses it: it was begun in spite of what was refused before, so that only what comes after counts.
    """

    wallet: Wallet
    breaker: Breaker = field(default_factory=Breaker)
    model: str = ""
    budget: float = 1.0
    unready: str = ""
    since: datetime | None = None

    @property
    def account(self) -> Account:
        """Whose it is."""
        return self.wallet.account

    def counts(self, refused: datetime | None) -> bool:
        """Whether a refusal at that moment counts."""
        return refused is not None and (self.since is None or refused >= self.since)


@dataclass(frozen=True, slots=True)
class Handoff:
    """A handoff that this session has made for want of quota."""

    at: datetime
    left: Account
    to: Account


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do and why. `to` is the successor, or the account that is waited for until `until`."""

    act: Act
    reason: str
    to: Account | None = None
    until: datetime | None = None


def decide(
    present: Standing,
    candidates: Sequence[Standing],
    handoffs: Sequence[Handoff],
    rules: Rules,
    now: datetime,
    step: timedelta = timedelta(0),
) -> Decision:
    """What to do now; `candidates` are in the user's order, `step` is how long the present plan step still takes."""
    if why := _wall(present, now):
        return _at_the_wall(present, candidates, handoffs, rules, now, why)
    for window in _counted(present, rules, now):
        said = forecast.of(window, now)
        if why := near_words(window, said, present.budget, rules, now, step):
            return _near_the_wall(present, candidates, handoffs, rules, now, window, why)
    close = [w for w in _counted(present, rules, now) if w.used >= _limit(present, rules) - rules.reach]
    successor = _successor(present, candidates, handoffs, rules, now, rules.margin) if close else None
    if close and successor is not None:
        return Decision(Act.CHECK, f"{_used(present, close[0])}: {successor} would be next", successor)
    return Decision(Act.STAY, "there is room")


def near_words(
    window: Window,
    said: Forecast | None,
    budget: float,
    rules: Rules,
    now: datetime,
    step: timedelta = timedelta(0),
) -> str:
    """Why this window asks for a handoff now; empty where it does not."""
    limit = min(rules.threshold, budget)
    if window.used >= limit:
        return f"{_percent(window.used)} of {window.name} is used, the threshold is {_percent(limit)}"
    if said is None or said.early is None or window.used < limit - rules.reach:
        return ""
    if said.early <= now + rules.lead:
        return f"{window.name} may be spent in {_minutes(said.early - now)}, at {_percent(window.used)}"
    lead = rules.lead + min(step, rules.longest_step)
    if said.dry is not None and said.dry <= now + lead:
        return f"{window.name} will be spent in {_minutes(said.dry - now)}, before the present plan step is done"
    return ""


def _wall(present: Standing, now: datetime) -> str:
    """Why nothing more goes through this account; empty where something does."""
    if present.breaker.is_open(now) and present.counts(present.breaker.refused_at):
        return f"{present.account} refused"
    for window in present.wallet.binding(present.model):
        if window.resets_at is not None and present.counts(window.refused):
            return f"{present.account} refused: {window.name} is spent"
        if present.budget < 1.0 and window.refused is None and window.used >= present.budget:
            return f"{_used(present, window)}, your budget is {_percent(present.budget)}"
    return ""


def _near_the_wall(
    present: Standing,
    candidates: Sequence[Standing],
    handoffs: Sequence[Handoff],
    rules: Rules,
    now: datetime,
    window: Window,
    why: str,
) -> Decision:
    """Something still goes through: leave only for something better."""
    wait = window.resets_at - now if window.resets_at is not None else None
    if rules.prefer is Prefer.WAIT and wait is not None and wait <= rules.max_wait:
        return Decision(Act.STAY, f"{why}; you prefer to wait for the reset")
    if rules.quiet is not None and rules.quiet.until(now) is not None:
        return Decision(Act.STAY, f"{why}; in quiet hours no other account is begun")
    if _recent(handoffs, now) >= rules.per_hour:
        return Decision(Act.STAY, f"{why}; there were {rules.per_hour} handoffs in the last hour")
    successor = _successor(present, candidates, handoffs, rules, now, rules.margin)
    if successor is None:
        return Decision(Act.STAY, f"{why}; no other account has more room, so this one goes on")
    return Decision(Act.HAND_OVER, why, successor)


def _at_the_wall(
    present: Standing,
    candidates: Sequence[Standing],
    handoffs: Sequence[Handoff],
    rules: Rules,
    now: datetime,
    why: str,
) -> Decision:
    """Nothing goes through any more."""
    back = _back(present, rules, now)
    short = back is not None and back - now <= min(rules.near, rules.max_wait)
    if back is not None and (short or (rules.prefer is Prefer.WAIT and back - now <= rules.max_wait)):
        return Decision(Act.WAIT, f"{why}; it is waited for", present.account, back)
    if rules.quiet is not None and (end := rules.quiet.until(now)) is not None:
        until = min(end, back) if back is not None else end
        return Decision(Act.WAIT, f"{why}; in quiet hours no other account is begun", present.account, until)
    full = _recent(handoffs, now) >= rules.per_hour
    successor = None if full else _successor(present, candidates, handoffs, rules, now, None)
    if successor is not None:
        return Decision(Act.HAND_OVER, why, successor)
    none = f"there were {rules.per_hour} handoffs in the last hour" if full else "no other account has room"
    waits = [(back, present.account), *((_back(c, rules, now), c.account) for c in candidates if not c.unready)]
    known = sorted((until, account) for until, account in waits if until is not None and until > now)
    if known and known[0][0] - now <= rules.max_wait:
        return Decision(Act.WAIT, f"{why}; {none}", known[0][1], known[0][0])
    return Decision(Act.ASK, f"{why}; {none}")


def _successor(
    present: Standing,
    candidates: Iterable[Standing],
    handoffs: Sequence[Handoff],
    rules: Rules,
    now: datetime,
    margin: float | None,
) -> Account | None:
    """The first that may be begun: with a margin over the present account, or where that is spent with any room."""
    wanted = rules.prefer is not Prefer.PROVIDER
    ordered = sorted(candidates, key=lambda c: (c.account.agent == present.account.agent) is not wanted)
    best = 1.0 if margin is None else max((w.used for w in _counted(present, rules, now)), default=0.0) - margin
    for one in ordered:
        limit = _limit(one, rules) - (margin or 0.0)
        left = (abs(now - h.at) < rules.hold for h in handoffs if h.left == one.account)
        if one.account == present.account or one.unready or any(left) or _wall(one, now):
            continue
        windows = _counted(one, rules, now)
        if all(w.used < min(limit, best) and not _runs_dry(w, one, rules, now) for w in windows):
            return one.account
    return None


def _runs_dry(window: Window, one: Standing, rules: Rules, now: datetime) -> bool:
    return bool(near_words(window, forecast.of(window, now), one.budget, rules, now))


def _counted(one: Standing, rules: Rules, now: datetime) -> list[Window]:
    """The windows that count for a move: not one that begins anew in a moment, nor a refusal that may be probed."""
    return [
        w
        for w in one.wallet.binding(one.model)
        if not (w.resets_at is not None and w.resets_at - now <= rules.near)
        and not (w.refused is not None and (w.resets_at is None or not one.counts(w.refused)))
    ]


def _limit(one: Standing, rules: Rules) -> float:
    return min(rules.threshold, one.budget)


def _back(one: Standing, rules: Rules, now: datetime) -> datetime | None:
    """When an account has room again; None where nobody knows, as of a login that the user must renew."""
    if one.breaker.kind is LimitKind.LOGIN and one.breaker.is_open(now):
        return None
    spent = [w for w in one.wallet.binding(one.model) if w.used >= _limit(one, rules)]
    if any(w.resets_at is None and w.refused is None for w in spent):
        return None
    times = [w.resets_at for w in spent if w.resets_at is not None]
    if one.breaker.probe_at is not None and one.breaker.is_open(now):
        times.append(one.breaker.probe_at)
    return max(times, default=None)


def _recent(handoffs: Iterable[Handoff], now: datetime) -> int:
    # A clock that was set back must not make room for more.
    return sum(abs(now - h.at) < _HOUR for h in handoffs)


def _used(one: Standing, window: Window) -> str:
    return f"{_percent(window.used)} of {window.name} of {one.account} is used"


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def _minutes(span: timedelta) -> str:
    return f"{max(0, round(span.total_seconds() / 60))} min"
