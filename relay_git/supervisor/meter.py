"""What a run learns of its accounts' quota: kept for all sessions of the user, and read where somebody must decide.

Promise: no session ends for want of it; what cannot be kept is told once. Only names of windows, shares, counts and
times are kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from relay_git.quota import breaker, declared, wallet
from relay_git.quota.breaker import Breaker
from relay_git.quota.declared import Plan
from relay_git.quota.entry import Account, Entry, Refusal, Spent
from relay_git.quota.history import History
from relay_git.quota.wallet import Wallet
from relay_git.session import LimitKind, LimitNotice, QuotaReading

PRETENDED = Account("demo")  # a login that begins anew with each leg


class Meter:
    """The quota of every account, as far as it is known."""

    def __init__(
        self,
        history: History | None,
        now: Callable[[], datetime],
        say: Callable[[str], None],
        plans: Mapping[Account, tuple[Plan, ...]] | None = None,
    ) -> None:
        """Without a history only what this run has heard itself is known; `plans` are those that the user declared."""
        self._history, self._now, self._say, self._plans = history, now, say, plans or {}
        self._heard: dict[Account, list[Entry]] = defaultdict(list)
        self._told = False

    def heard(self, account: Account, readings: Iterable[QuotaReading]) -> None:
        """The tool or its service said how much is used."""
        self._keep(account, readings)

    def refused(self, account: Account, notice: LimitNotice) -> None:
        """The service said no."""
        self._keep(account, [Refusal(notice, self._now())])

    def answered(self, account: Account, requests: int, tokens: int) -> None:
        """The service has answered since the last such word."""
        self._keep(account, [Spent(self._now(), requests, tokens)])

    def wallet(self, account: Account) -> Wallet:
        """What is left of an account now."""
        kept, plans, now = self._kept(account), self._plans.get(account, ()), self._now()
        return wallet.build(account, (*kept, *declared.readings(plans, kept, now)), now)

    def breaker(self, account: Account, jitter: float) -> Breaker:
        """Whether it is of use to ask an account; `jitter` as in `breaker.of`."""
        return breaker.of(self._kept(account), self._now(), jitter)

    def spent(self, account: Account) -> str:
        """Why an account cannot go on now, in words; empty where nothing speaks against it."""
        shut, now = self.breaker(account, 0.0), self._now()
        if shut.kind is LimitKind.LOGIN and shut.refused_at is not None and shut.is_open(now):
            return f"its login was refused at {clock(shut.refused_at, now)}"
        spent = next((w for w in self.wallet(account).windows if w.used >= 1.0), None)
        if spent is None:
            return ""
        until = f" until {clock(spent.resets_at, now)}" if spent.resets_at is not None else ""
        return f"its quota is used up ({spent.name}){until}"

    def line(self, account: Account, model: str = "") -> str:
        """What is left of the window that is used most, in a few words; empty where nothing is known."""
        windows = self.wallet(account).binding(model)
        if not windows:
            return ""
        tight, now = windows[0], self._now()
        until = f" until {clock(tight.resets_at, now)}" if tight.resets_at is not None else ""
        return f"{tight.left:.0%} of {tight.name} left{until}"

    def _kept(self, account: Account) -> Sequence[Entry]:
        return self._history.load(account).entries if self._history is not None else self._heard[account]

    def _keep(self, account: Account, entries: Iterable[Entry]) -> None:
        if account == PRETENDED:
            return
        if self._history is None:
            self._heard[account] += entries
            return
        trouble = self._history.record(account, entries, self._now())
        if trouble and not self._told:
            self._told = True
            self._say(f"note: {trouble}")


def clock(when: datetime, now: datetime) -> str:
    """The time where the user is, with the day if it is not the same."""
    there = when.astimezone()
    return there.strftime("%H:%M" if there.date() == now.astimezone().date() else "%a %d %b %H:%M")
