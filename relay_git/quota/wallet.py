"""What is left of one account, window by window, from all that was read and refused.

Promise: total and pure; values that cannot be are dropped, not believed. The rules:

- Windows are those that the provider reports. Two names of one window (`5h`, `five_hour`) are one.
- The best source that is fresh wins: response headers, then the tool's own files, then a counted plan.
- A window's use only grows until its reset. A meter that falls earlier is believed once it has stayed low for
  `CONFIRM`: transient zeros, and sessions that repeat an old reading, are no reset.
- A refusal outranks a meter: the window is spent until its reset, or until the account has answered again.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from relay_git.quota.entry import DECLARED, HEADERS, Account, Entry, Refusal, Spent, happened
from relay_git.session import LimitKind, QuotaReading

FRESH = timedelta(minutes=15)  # a better source that is older than the newest by more than this has fallen silent
CONFIRM = timedelta(minutes=5)
NOISE = 0.02  # by how much a meter may fall without having been reset
UNNAMED = "limit"  # the window of a refusal that names none

_SKEW = timedelta(minutes=1)
_FUTURE = timedelta(days=1)
_LONGEST = timedelta(days=400)
_MOST = 10.0
_LASTING = (LimitKind.USAGE, LimitKind.BILLING)
_FAMILIES = ("opus", "sonnet", "haiku", "spark")
_NAMES = {
    **dict.fromkeys(("5h", "five_hour", "5_hour", "300_minutes", "session"), "five_hour"),
    **dict.fromkeys(("1d", "day", "daily", "1440_minutes"), "day"),
    **dict.fromkeys(("7d", "seven_day", "week", "weekly", "10080_minutes"), "seven_day"),
    **dict.fromkeys(("month", "monthly", "30d"), "month"),
}


@dataclass(frozen=True, slots=True)
class Sample:
    """A share of the window that was used at a moment."""

    at: datetime
    used: float


@dataclass(frozen=True, slots=True)
class Window:
    """One window of one account at a moment.

    `used` is a share, 1.0 is all. `resets_at` is None where nobody said; `at` is the age of the figure and `source`
    where it comes from. `refused` is when the service last said no and has not answered since. `renewed` is the
    reset that has passed since the last reading, if one has: nothing is used then, as far as is known. `trails` are the
    readings that are believed, one row for each time that the window began anew; the last is the present one.
    """

    name: str
    used: float
    at: datetime
    resets_at: datetime | None = None
    minutes: int | None = None
    source: str = ""
    refused: datetime | None = None
    renewed: datetime | None = None
    trails: tuple[tuple[Sample, ...], ...] = ()

    @property
    def left(self) -> float:
        """The share that is left, never below nothing."""
        return max(0.0, 1.0 - self.used)


@dataclass(frozen=True, slots=True)
class Wallet:
    """All windows of one account, the most used first."""

    account: Account
    windows: tuple[Window, ...] = ()

    def binding(self, model: str = "") -> tuple[Window, ...]:
        """The windows that count for a model: not those of another; all where the model is not known."""
        return tuple(w for w in self.windows if not model or model_of(w.name) in model.lower())


def build(account: Account, entries: Iterable[Entry], now: datetime) -> Wallet:
    """The wallet that all this makes at a moment; the order of the entries does not matter, but for equal times."""
    sane = sorted((e for entry in entries if (e := _sane(entry, now)) is not None), key=happened)
    readings: dict[str, list[QuotaReading]] = defaultdict(list)
    for entry in sane:
        if isinstance(entry, QuotaReading):
            readings[canonical(entry.window)].append(entry)
    windows = {name: _metered(name, found, now) for name, found in readings.items()}
    answered = max((e.at for e in sane if isinstance(e, Spent)), default=None)
    for refusal in (e for e in sane if isinstance(e, Refusal) and e.notice.kind in _LASTING):
        name = _refused_window(refusal, windows.values())
        if _stands(refusal, name, answered, now):
            windows[name] = _refuse(name, windows.get(name), refusal)
    return Wallet(account, tuple(sorted(windows.values(), key=lambda w: (-w.used, w.name))))


def canonical(name: str) -> str:
    """The one name of a window that sources call differently; `7d_opus` is `seven_day_opus`."""
    plain = "_".join(name.lower().replace("-", " ").replace("_", " ").split()) or UNNAMED
    if plain in _NAMES:
        return _NAMES[plain]
    head, _, tail = plain.rpartition("_")
    return f"{_NAMES[head]}_{tail}" if head in _NAMES else plain


def model_of(window: str) -> str:
    """The model family that a window is of (`seven_day_opus`: opus); empty where it may be of the whole account."""
    tail = canonical(window).rpartition("_")[2]
    return tail if tail in _FAMILIES else ""


def rank(source: str) -> int:
    """How good a source is; lower is better."""
    return {HEADERS: 0, DECLARED: 2}.get(source, 1)


def _sane(entry: Entry, now: datetime) -> Entry | None:
    """The entry with what cannot be taken out; None where nothing is left, or it lies beyond any wrong clock."""
    if entry.at > now + _FUTURE:
        return None
    at = min(entry.at, now)
    if isinstance(entry, Spent):
        return replace(entry, at=at)
    if isinstance(entry, Refusal):
        return replace(entry, at=at, notice=replace(entry.notice, resets_at=_reset(entry.notice.resets_at, at)))
    if not math.isfinite(entry.used) or not 0.0 <= entry.used <= _MOST:
        return None
    minutes = entry.minutes if entry.minutes and 0 < entry.minutes <= _LONGEST.total_seconds() / 60 else None
    resets_at = _reset(entry.resets_at, at)
    if (at, minutes, resets_at) == (entry.at, entry.minutes, entry.resets_at):
        return entry
    return replace(entry, at=at, minutes=minutes, resets_at=resets_at)


def _reset(resets_at: datetime | None, at: datetime) -> datetime | None:
    return resets_at if resets_at is not None and at < resets_at <= at + _LONGEST else None


def _metered(name: str, readings: Sequence[QuotaReading], now: datetime) -> Window:
    newest = readings[-1].at
    alive = {rank(r.source): r.at for r in readings}
    best = min(grade for grade, at in alive.items() if newest - at <= FRESH)
    rows = _rows(r for r in readings if rank(r.source) == best)
    row, last = rows[-1], rows[-1][-1]
    trails = tuple(tuple(Sample(r.at, r.used) for r in each) for each in rows)
    # A reading without its reset or its length does not take away what was said before.
    resets_at = next((r.resets_at for r in reversed(row) if r.resets_at), None)
    minutes = next((r.minutes for r in reversed(row) if r.minutes), None)
    end = resets_at or _end(replace(row[0], minutes=minutes))
    if end is not None and end <= now:
        return Window(name, 0.0, last.at, None, minutes, last.source, renewed=end, trails=(*trails, ()))
    return Window(name, max(r.used for r in row), last.at, resets_at, minutes, last.source, trails=trails)


def _rows(readings: Iterable[QuotaReading]) -> list[list[QuotaReading]]:
    """The readings that are believed, a new row at each reset; never empty, nor is any row."""
    rows: list[list[QuotaReading]] = []
    doubtful: list[QuotaReading] = []
    level, end = 0.0, None
    for reading in readings:
        over = end is not None and _is_over(end, reading)
        if rows and not over and reading.used < level - NOISE:
            doubtful.append(reading)
            if reading.at - doubtful[0].at < CONFIRM:
                continue
            rows.append(doubtful)
            level = max(r.used for r in doubtful)
        elif not rows or over:
            rows.append([reading])
            level = reading.used
        else:
            rows[-1].append(reading)
            level = max(level, reading.used)
        doubtful = []
        newest = rows[-1][-1]
        end = newest.resets_at or (end if len(rows[-1]) > 1 and not over else None) or _end(newest)
    return [_without_false_start(row) for row in rows]


def _end(reading: QuotaReading) -> datetime | None:
    """When the window is over for certain: where no reset is told, once its whole length has gone by."""
    return reading.resets_at or (reading.at + timedelta(minutes=reading.minutes) if reading.minutes else None)


def _is_over(end: datetime, reading: QuotaReading) -> bool:
    # Within the skew of two clocks an old window may still be told of, with its old reset.
    told_of_next = reading.resets_at is not None and reading.resets_at > end + _SKEW
    return reading.at >= end or (told_of_next and reading.at >= end - _SKEW)


def _without_false_start(row: list[QuotaReading]) -> list[QuotaReading]:
    """A zero before a leap was none: it would make the use look faster than it is."""
    return row[1:] if len(row) > 1 and row[0].used == 0.0 and row[1].used > 5 * NOISE else row


def _refused_window(refusal: Refusal, windows: Iterable[Window]) -> str:
    """The window that a refusal is about: the one it names, the one with its reset, or one of its own."""
    if refusal.notice.window:
        return canonical(refusal.notice.window)
    resets_at = refusal.notice.resets_at
    near = (w.name for w in windows if resets_at and w.resets_at and abs(w.resets_at - resets_at) <= 2 * _SKEW)
    return next(near, "credits" if refusal.notice.kind is LimitKind.BILLING else UNNAMED)


def _stands(refusal: Refusal, name: str, answered: datetime | None, now: datetime) -> bool:
    if refusal.notice.resets_at is not None and refusal.notice.resets_at <= now:
        return False
    # An answer that was on its way when another request was refused says nothing, nor does one of another model.
    return bool(model_of(name)) or answered is None or answered < refusal.at + _SKEW


def _refuse(name: str, metered: Window | None, refusal: Refusal) -> Window:
    resets_at, source = refusal.notice.resets_at, "a refusal"
    if metered is None:
        return Window(name, 1.0, refusal.at, resets_at, source=source, refused=refusal.at)
    if resets_at is None and metered.renewed is not None and metered.renewed > refusal.at:
        return metered  # the window in which it was refused is over
    return replace(
        metered,
        used=max(1.0, metered.used),
        at=max(metered.at, refusal.at),
        resets_at=resets_at or metered.resets_at,
        source=source,
        refused=refusal.at,
        renewed=None,
    )
