"""What the tools and their services say of how much of a window is used, as QuotaReadings.

Promise: an absurd value is no reading: a share below zero, above ten or that is no number, a window without a reset.
Nothing raises on any value.

Formats: Claude Code 2.1.332 `rate_limit_info` (stdout, transcript), `rate_limits` (status line); Codex 0.171.0
`rate_limits` of `token_count`; Copilot CLI `quotaSnapshots`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime

from relay_git.agents import jsonl
from relay_git.agents.draft import cut
from relay_git.agents.jsonl import Record
from relay_git.session import QuotaReading

FIVE_HOURS, DAY, WEEK = 300, 1_440, 10_080
_NAMES = {FIVE_HOURS: "five_hour", DAY: "day", WEEK: "seven_day"}
_MINUTES = {"five_hour": FIVE_HOURS, "day": DAY, "seven_day": WEEK}
_MOST_USED = 10.0
_MOST_WINDOWS = 16


def reading(
    window: str, used: object, at: datetime | None, resets_at: datetime | None, minutes: int | None, source: str
) -> QuotaReading | None:
    """A reading, or None where a value of it cannot be; `used` is a share, 1.0 for all."""
    if isinstance(used, bool) or not isinstance(used, int | float) or not math.isfinite(used):
        return None
    if not 0 <= used <= _MOST_USED or not window or at is None or resets_at is None:
        return None
    return QuotaReading(cut(window, 100), float(used), at.astimezone(UTC), resets_at, minutes, source)


def window_of(minutes: int) -> str | None:
    """Our name for a window of that length."""
    return _NAMES.get(minutes, f"{minutes}_minutes") if minutes else None


def minutes_of(window: str) -> int | None:
    """The length of a window that the provider names, such as `seven_day_opus`; None where the name does not tell."""
    return next((minutes for name, minutes in _MINUTES.items() if window.startswith(name)), None)


def claude_event(info: Record, at: datetime | None, source: str) -> tuple[QuotaReading, ...]:
    """What a `rate_limit_info` says: each window, or in older versions the one that is nearest to its end."""
    windows = jsonl.record(info.get("unifiedWindows"))
    if not windows:
        windows = {jsonl.text(info.get("rateLimitType")): info}
    return tuple(_claude(windows, at, source))


def _claude(windows: Record, at: datetime | None, source: str) -> Iterator[QuotaReading]:
    for name, value in list(windows.items())[:_MOST_WINDOWS]:
        window, known = jsonl.record(value), jsonl.text(name)
        resets_at = jsonl.epoch_time(window.get("resetsAt"))
        if found := reading(known, window.get("utilization"), at, resets_at, minutes_of(known), source):
            yield found


def claude_status(limits: Record, at: datetime) -> tuple[QuotaReading, ...]:
    """What the `rate_limits` of Claude Code's status line say: percents, and moments as numbers or as text."""
    return tuple(_claude_status(limits, at))


def _claude_status(limits: Record, at: datetime) -> Iterator[QuotaReading]:
    for name, value in list(limits.items())[:_MOST_WINDOWS]:
        window, known = jsonl.record(value), jsonl.text(name)
        used, until = window.get("used_percentage"), window.get("resets_at")
        share = used / 100 if isinstance(used, int | float) and not isinstance(used, bool) else None
        resets_at = jsonl.epoch_time(until) or jsonl.iso_time(until)
        if found := reading(known, share, at, resets_at, minutes_of(known), "Claude Code's status line"):
            yield found


def codex(limits: Record, at: datetime | None) -> tuple[QuotaReading, ...]:
    """What the `rate_limits` of a `token_count` say; its two windows have a length and no name."""
    return tuple(_codex(limits, at))


def _codex(limits: Record, at: datetime | None) -> Iterator[QuotaReading]:
    family = jsonl.text(limits.get("limit_id"))
    for slot in ("primary", "secondary"):
        window = jsonl.record(limits.get(slot))
        minutes = jsonl.count(window.get("window_minutes"))
        name = window_of(minutes) or slot
        if family not in ("", "codex"):
            name = f"{name}_{family}"  # a model with windows of its own
        resets_at = jsonl.epoch_time(window.get("resets_at"))
        if found := reading(name, share(window.get("used_percent")), at, resets_at, minutes or None, "Codex's rollout"):
            yield found


def copilot(snapshots: Record, at: datetime | None) -> tuple[QuotaReading, ...]:
    """What the `quotaSnapshots` say that Copilot's answers bring, where its plan counts anything."""
    return tuple(_copilot(snapshots, at))


def _copilot(snapshots: Record, at: datetime | None) -> Iterator[QuotaReading]:
    for name, value in list(snapshots.items())[:_MOST_WINDOWS]:
        snapshot = jsonl.record(value)
        left = snapshot.get("remainingPercentage")
        if (
            snapshot.get("isUnlimitedEntitlement") is True
            or isinstance(left, bool)
            or not isinstance(left, int | float)
        ):
            continue
        resets_at = jsonl.iso_time(snapshot.get("resetDate"))
        if found := reading(jsonl.text(name), 1 - left / 100, at, resets_at, None, "Copilot's own count"):
            yield found


def share(percent: object) -> object:
    """A percentage as a share; what is no number stays what it is."""
    return percent / 100 if isinstance(percent, int | float) and not isinstance(percent, bool) else percent
