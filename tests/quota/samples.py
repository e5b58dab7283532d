"""Readings, refusals and moments to write tests of the budget with."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from relay_git.quota.entry import HEADERS, Account, Refusal
from relay_git.session import LimitKind, LimitNotice, QuotaReading

NOW = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)
RESET = NOW + timedelta(hours=3)
CLAUDE, CODEX, WORK = Account("claude"), Account("codex"), Account("claude", "work")


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def read(
    used: float,
    minutes_ago: float = 0,
    window: str = "five_hour",
    resets_at: datetime | None = RESET,
    source: str = HEADERS,
    minutes: int | None = 300,
) -> QuotaReading:
    return QuotaReading(window, used, ago(minutes_ago), resets_at, minutes, source)


def refused(
    minutes_ago: float = 0,
    window: str | None = "five_hour",
    resets_at: datetime | None = RESET,
    kind: LimitKind = LimitKind.USAGE,
) -> Refusal:
    return Refusal(LimitNotice(kind, "limit reached", window, resets_at), ago(minutes_ago))
