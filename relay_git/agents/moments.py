"""When a limit is over, read from the words in which a tool says so.

Promise: nothing is guessed. A clock time is the next one after the moment at which it was said, built in the zone that
the text names, else in that of the machine that printed it (None: this one), and turned into UTC last, so that a change
of the clocks in between counts. A date without a clock, a zone that does not exist, a clock that cannot be meant: None.
Any text gives an answer and no exception, in time linear in its length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

LONG = 3_600.0  # seconds: what takes as long as this is an allowance and no throttle
LONGEST = 400 * 86_400.0
_MOST_CHARS = 4_096
_SESSION = timedelta(hours=5, minutes=30)  # a 5-hour window with some room

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
_CLOCK = (
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d)(?::(?P<second>\d\d))?)?(?:\s{0,2}(?P<half>[ap])\.?m\b\.?)?(?![\d:]|\.\d)"
)
_DATE = (
    r"(?:(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?\s{1,2}(?P<day>\d{1,2})"
    r"(?:st|nd|rd|th)?(?:,?\s{1,2}(?P<year>\d{4}))?"
    r"|(?P<iso>\d{4}-\d\d-\d\d)"
    r"|(?P<weekday>mon|tue|wed|thu|fri|sat|sun)(?:day|sday|nesday|rsday|urday|s|r|rs)?\b|(?P<near>today|tomorrow))"
)
_WHEN = re.compile(
    r"\b(?:resets?|resetting|again|until|renews?|access|available|back|automatically|at|on)\b(?:\s{1,2}(?:at|on|is)\b)?"
    rf"[:\s]{{0,3}}(?:(?P<dated>{_DATE})(?:,|T)?(?:\s{{0,2}}\bat\b)?\s{{0,2}})?(?:{_CLOCK})?"
    r"(?P<offset>Z\b|[+-]\d\d:?\d\d\b)?"
    r"(?:\s{0,2}\((?P<zone>[A-Za-z][\w+/-]{0,40}(?::\d\d)?)\)|\s{1,2}(?P<bare>(?:UTC|GMT)(?:[+-]\d{1,2}(?::\d\d)?)?"
    r"|(?-i:[A-Z]{1,4}T)|[A-Z][a-z]{2,12}/[A-Za-z_/+-]{2,30})\b)?",
    re.I,
)
_UNITS = {"w": 604_800.0, "d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PIECE = (
    r"\d{1,9}(?:\.\d{1,9})?\s{0,2}(?:weeks?|w|days?|d|hours?|hrs?|h|minutes?|mins?|milliseconds?|msecs?|ms|m"
    r"|seconds?|secs?|s)(?![A-Za-z])"
)
_LENGTH = re.compile(
    r"(?P<before>\w{0,20}\s{0,2})\b(?:in|after|wait)\s{1,2}(?:about |around |approximately |another |~)?"
    rf"(?P<length>{_PIECE}(?:[\s,]{{0,3}}(?:and\s)?{_PIECE}){{0,6}})(?P<own>\.\.\.|\s\(attempt)?",
    re.I,
)
_ONE = re.compile(r"(\d+(?:\.\d+)?)\s*(w|d|h|ms|mil|msec|m|s)", re.I)
_EPOCH = re.compile(r"\|\s{0,2}(\d{13}|\d{10})\b")
_FIELD = r"[\\\"']{0,4}\s{0,3}[:=]\s{0,3}[\\\"']{0,4}"
_AT_FIELD = re.compile(
    rf"\b(?:resets?_?(?:at|on|time|date)|quota_?reset(?:_?time_?stamp|_?at)?|x-ratelimit-reset){_FIELD}"
    r"(?:(?P<epoch>\d{13}|\d{10})\b|(?P<iso>\d{4}-\d\d-\d\dT[\d:.]{5,15}(?:Z|[+-]\d\d:?\d\d)))",
    re.I,
)
_IN_FIELD = re.compile(
    rf"\b(resets?_?in_?seconds|reset_?after_?seconds|retry[_-]?after(?:_?seconds)?|retry_?delay){_FIELD}"
    r"(\d{1,9}(?:\.\d{1,9})?)(?!\d|ms)",
    re.I,
)
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2}):?(\d\d)?", re.I)
_SHARE = re.compile(r"(?<!\d)\d{1,2}(?:\.\d+)?\s?%")


@dataclass(frozen=True, slots=True)
class Moment:
    """When something was said, None where that is unknown, and in which zone the machine is; None for this one."""

    at: datetime | None = None
    zone: tzinfo | None = None

    def of(self, told: datetime | None) -> Moment:
        """The same with the time that a record bears, where it bears one."""
        return self if told is None else Moment(told, self.zone)


UNKNOWN = Moment()


def absolute(said: str, at: datetime | None, zone: tzinfo | None, *, session: bool = False) -> datetime | None:
    """The moment that a text names: as a number, a date with a clock, or a clock alone; of several the latest.

    `at` is when it was said, None where that is unknown: then only a full date counts. With `session`
    the text is about a window of five hours, and a clock that is farther away is not believed.
    """
    said = said[:_MOST_CHARS]
    if fields := [when for found in _AT_FIELD.finditer(said) if (when := _of_field(found))]:
        return max(fields)
    if (number := _EPOCH.search(said)) and (when := _of_epoch(number[1])):
        return when
    return max(_named(said, at, zone, session), default=None)


def seconds(said: str, *, resets: bool = False) -> float | None:
    """The length of time that a text says is left: of the window first, then until a request may be made again.

    Of several of one sort the longest is meant. With `resets`, how long to wait between two tries does not count.
    """
    said = said[:_MOST_CHARS]
    found = [(2 if name.lower().startswith("reset") else 0, float(n)) for name, n in _IN_FIELD.findall(said)]
    for match in _LENGTH.finditer(said):
        before = match["before"].lower().rstrip()
        if match["own"] and before == "retrying":
            continue  # how long the tool itself waits before it asks again says nothing of the window
        rank = 2 if before.startswith(("reset", "renew")) else 1 if before == "again" else 0
        found.append((rank, sum(_pieces(match["length"]))))
    rank, most = max(found, default=(0, None))
    return most if most is not None and most <= LONGEST and (rank or not resets) else None


def after(at: datetime | None, wait: float | None) -> datetime | None:
    """That many seconds after a moment."""
    if at is None or wait is None or not 0 <= wait <= LONGEST:
        return None
    try:
        return at + timedelta(seconds=wait)
    except OverflowError:
        return None


def zone_named(name: str) -> tzinfo | None:
    """The zone of a name of tzdata, old ones included, or of an offset from UTC; None where there is none."""
    try:
        if re.fullmatch(r"[A-Za-z][\w+-]*(?:/[\w+-]+){0,3}", name, re.A):
            return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        pass
    found = _OFFSET.fullmatch(name)
    if name.upper() in ("Z", "UTC", "GMT"):
        return UTC
    if found is None or int(found[2]) > 14:
        return None
    ahead = timedelta(hours=int(found[2]), minutes=int(found[3] or 0))
    return timezone(ahead if found[1] == "+" else -ahead)


def _of_field(found: re.Match[str]) -> datetime | None:
    if found["epoch"]:
        return _of_epoch(found["epoch"])
    try:
        return datetime.fromisoformat(found["iso"]).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _of_epoch(digits: str) -> datetime | None:
    try:
        return datetime.fromtimestamp(int(digits) / (1_000 if len(digits) == 13 else 1), UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _pieces(length: str) -> Iterator[float]:
    for number, unit in _ONE.findall(length):
        word = unit.lower()
        yield float(number) * _UNITS["ms" if word in ("mil", "msec") else word]


def _named(said: str, at: datetime | None, zone: tzinfo | None, session: bool) -> Iterator[datetime]:
    """Every moment that the text names in words; windows that are not used up do not count."""
    last = 0
    for found in _WHEN.finditer(said):
        clock = found["hour"] is not None and (found["minute"] or found["half"])
        if not clock and not found["dated"]:
            continue
        between, last = said[last : found.start()], found.end()
        when = None if _SHARE.search(between) else _moment(found, at, zone, session) if clock else None
        if when is not None:
            yield when
        elif not _SHARE.search(between):
            return  # it says when, in a way that is not understood: what follows is about something else


def _moment(found: re.Match[str], at: datetime | None, zone: tzinfo | None, session: bool) -> datetime | None:
    name = found["offset"] or found["zone"] or found["bare"]
    if name and (zone := zone_named(name)) is None:
        return None
    try:
        clock = _clock(found)
        if found["iso"] or found["year"]:
            return _utc(datetime.combine(_date(found), clock), zone)
        if at is None or clock is None:
            return None
        when = next((w for day in _candidates(found, at, zone) if (w := _utc(day, zone, at)) > at), None)
    except (ValueError, OverflowError, OSError):
        return None
    too_far = session and not found["dated"] and when is not None and when - at > _SESSION
    return None if too_far else when


def _clock(found: re.Match[str]) -> time:
    hour, half = int(found["hour"]), (found["half"] or "").lower()
    if half and not 1 <= hour <= 12:
        raise ValueError(hour)
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    return time(hour, int(found["minute"] or 0), int(found["second"] or 0))


def _date(found: re.Match[str]) -> datetime:
    if found["iso"]:
        return datetime.fromisoformat(found["iso"])
    return datetime(int(found["year"]), _MONTHS.index(found["month"].lower()) + 1, int(found["day"]))


def _candidates(found: re.Match[str], at: datetime, zone: tzinfo | None) -> Iterator[datetime]:
    """The wall-clock times that may be meant, the nearest first."""
    today, clock = at.astimezone(zone).date(), _clock(found)
    if found["month"]:
        month, day = _MONTHS.index(found["month"].lower()) + 1, int(found["day"])
        for year in range(today.year, today.year + 9):  # 29 February may be eight years away
            try:
                yield datetime.combine(datetime(year, month, day), clock)
            except ValueError:
                continue
        return
    near, weekday = (found["near"] or "").lower(), (found["weekday"] or "").lower()
    first, last = (1, 1) if near == "tomorrow" else (0, 0) if near == "today" else (0, 8)
    for days in range(first, last + 1):
        date = today + timedelta(days=days)
        if not weekday or date.weekday() == _DAYS.index(weekday):
            yield datetime.combine(date, clock)


def _utc(wall: datetime, zone: tzinfo | None, later_than: datetime | None = None) -> datetime:
    """A wall-clock time in UTC; of one that comes twice on a day that the clocks go back, the first that is later."""
    first, second = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    return second if later_than is not None and first <= later_than < second else first
