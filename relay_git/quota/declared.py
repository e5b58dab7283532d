"""A plan that the user has declared, counted by what went through: the last resort where no meter tells anything.

Promise: pure. A window begins with the first request after the one before it has ended, and lasts as long as the user
said; what is counted are the turns that git relay has seen, so what others use of the account is not in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from relay_git.errors import UserError, printable
from relay_git.quota.entry import DECLARED, Entry, Spent
from relay_git.session import QuotaReading

_WORDS = re.compile(
    r"(\d{1,9}(?:\.\d{1,3})?)\s*([km]?)\s*(requests|tokens)\s*(?:/|per)\s*(?:(\d{1,3})\s*)?(hour|h|day|d|week|w|month)s?"
)
_NAMES = {300: "five_hour", 1440: "day", 10080: "seven_day", 43200: "month"}
_MINUTES = {"h": 60, "d": 1440, "w": 10080, "m": 43200}


@dataclass(frozen=True, slots=True)
class Plan:
    """So many requests or tokens in so long."""

    most: float
    tokens: bool
    length: timedelta

    @property
    def window(self) -> str:
        """The name of its window, the same that meters of that length have."""
        minutes = int(self.length.total_seconds() / 60)
        return _NAMES.get(minutes, f"{minutes}_minutes")


def parse(text: str) -> tuple[Plan, ...]:
    """The plans in words such as `300 requests/5h, 20m tokens/week`; raises UserError on anything else."""
    found = [_WORDS.fullmatch(part.strip().lower()) for part in text.split(",") if part.strip()]
    plans = []
    for words in found:
        most = float(words[1]) * {"": 1, "k": 1e3, "m": 1e6}[words[2]] if words else 0
        count = int(words[4] or 1) if words else 0
        if words is None or most <= 0 or count <= 0:
            raise UserError(
                f"{printable(text)} is no plan", hint='git config relay.plan.claude "300 requests/5h, 20m tokens/week"'
            )
        plans.append(Plan(most, words[3] == "tokens", timedelta(minutes=count * _MINUTES[words[5][0]])))
    return tuple(plans)


def readings(plans: Sequence[Plan], entries: Iterable[Entry], now: datetime) -> list[QuotaReading]:
    """What a meter of these plans would have shown at each turn; those of tokens and requests apart where both are."""
    turns = sorted((e for e in entries if isinstance(e, Spent) and e.at <= now), key=lambda e: e.at)
    taken: set[str] = set()
    found: list[QuotaReading] = []
    for plan in plans:
        name = plan.window if plan.window not in taken else f"{plan.window}_{'tokens' if plan.tokens else 'requests'}"
        taken.add(name)
        found += _counted(plan, name, turns)
    return found


def _counted(plan: Plan, name: str, turns: Iterable[Spent]) -> Iterator[QuotaReading]:
    end: datetime | None = None
    used = 0.0
    for turn in turns:
        if end is None or turn.at >= end:
            end, used = turn.at + plan.length, 0.0
        used += turn.tokens if plan.tokens else turn.requests
        minutes = int(plan.length.total_seconds() / 60)
        yield QuotaReading(name, min(used / plan.most, 10.0), turn.at, end, minutes, DECLARED)
