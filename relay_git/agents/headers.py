"""What the headers of an HTTP answer say of the account's windows, and whether they tell of a limit.

Promise: only windows that are rejected or used up count for a limit, and a status alone proves nothing about the kind
of it. Nothing raises on any name or value.

Formats, from the services' public documentation and from what the CLIs read: `anthropic-ratelimit-*` (subscription and
API key), `x-codex-*`, `x-ratelimit-*` of OpenAI's kind and of OpenRouter's, `retry-after` of RFC 9110.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from relay_git.agents import jsonl, meters, moments
from relay_git.agents.moments import LONG
from relay_git.session import LimitKind, LimitNotice, QuotaReading

_MOST_HEADERS = 500
_UNIFIED = "anthropic-ratelimit-unified"
_CLAIM = re.compile(rf"{_UNIFIED}-(\d{{1,2}}[hd](?:[_-]\w{{1,20}})?|overage)-(?:status|utilization|reset)")
_API = re.compile(r"(?:anthropic|x)-ratelimit(?:-[a-z-]{1,20})?")
_LENGTH = re.compile(r"(?:\d{1,6}(?:\.\d{1,6})?(?:ms|[dhms])){1,5}")


@dataclass(frozen=True, slots=True)
class Window:
    """One window: its share used, None where it is not told; `rejected` where the service says so itself."""

    name: str
    used: float | None
    resets_at: datetime | None
    minutes: int | None = None
    rejected: bool = False

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left in it."""
        return self.rejected or (self.used is not None and self.used >= 1)


def notice(headers: Mapping[str, object], status: int | None, at: datetime | None) -> LimitNotice | None:
    """The limit that an answer's headers tell of, or None."""
    named = _lower(headers)
    word = named.get(f"{_UNIFIED}-status", "").lower()
    refused = word == "rejected" or status in (402, 429, 503, 529)
    if not refused and (word.startswith("allowed") or named.get("x-codex-credits-has-credits", "").lower() == "true"):
        return None
    spent = [window for window in windows(named, at) if window.is_spent]
    lasting = [window for window in spent if window.minutes is not None]
    if word == "rejected" and not lasting:
        claim = _claim_name(named.get(f"{_UNIFIED}-representative-claim", ""))
        lasting = [Window(claim, None, _epoch(named.get(f"{_UNIFIED}-reset")), rejected=True)]
    asked = _retry_after(named, at)
    if lasting:
        last = max(lasting, key=lambda window: (window.resets_at is not None, window.resets_at))
        said = f"{last.name or 'a window'} is used up"
        return LimitNotice(LimitKind.USAGE, said, last.name or None, last.resets_at or asked)
    if not refused or (status == 503 and asked is None):
        return None
    until = max((window.resets_at for window in spent if window.resets_at), default=None) or asked
    far = until is not None and at is not None and (until - at).total_seconds() >= LONG
    kind = {402: LimitKind.BILLING, 503: LimitKind.OVERLOAD, 529: LimitKind.OVERLOAD}.get(status or 0)
    return LimitNotice(kind or (LimitKind.USAGE if far else LimitKind.RATE), f"status {status}", None, until)


def readings(headers: Mapping[str, object], at: datetime | None) -> tuple[QuotaReading, ...]:
    """How much of each window is used, as the headers say."""
    found = (
        meters.reading(window.name, window.used, at, window.resets_at, window.minutes, "response headers")
        for window in windows(_lower(headers), at)
    )
    return tuple(one for one in found if one is not None)


def retry_after(headers: object) -> float | None:
    """The seconds in a `retry-after` header, in any case of its name; a date or anything else is None."""
    named = {str(name).lower(): value for name, value in jsonl.record(headers).items()}
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = jsonl.text(named.get(name)).strip()
        if value.isascii() and value.isdigit() and len(value) < 10:
            return int(value) * unit
    return None


def windows(named: Mapping[str, str], at: datetime | None) -> Iterator[Window]:
    """Every window that the headers, by lowercase name, tell of; those of an hour or more have `minutes`."""
    for claim in dict.fromkeys(found[1] for name in named if (found := _CLAIM.fullmatch(name))):
        if claim != "overage":
            yield _claimed(named, claim)
    for slot in ("primary", "secondary"):
        if f"x-codex-{slot}-used-percent" in named:
            yield _of_codex(named, slot, at)
    for name in named:
        prefix, remaining, what = name.partition("-remaining")
        if remaining and _API.fullmatch(prefix):
            yield _throttle(named, prefix, what, at)


def _claimed(named: Mapping[str, str], claim: str) -> Window:
    value = {part: named.get(f"{_UNIFIED}-{claim}-{part}", "") for part in ("status", "utilization", "reset")}
    unit = claim.lstrip("0123456789")[:1]
    minutes = int(claim.partition(unit)[0]) * (60 if unit == "h" else meters.DAY)
    name = _claim_name(claim)
    return Window(name, _number(value["utilization"]), _epoch(value["reset"]), minutes, value["status"] == "rejected")


def _of_codex(named: Mapping[str, str], slot: str, at: datetime | None) -> Window:
    def get(part: str) -> float | None:
        return _number(named.get(f"x-codex-{slot}-{part}", ""))

    percent, minutes = get("used-percent"), int(get("window-minutes") or 0)
    resets_at = _epoch(named.get(f"x-codex-{slot}-reset-at")) or moments.after(at, get("reset-after-seconds"))
    name = meters.window_of(minutes) or slot
    return Window(name, percent / 100 if percent is not None else None, resets_at, minutes or meters.FIVE_HOURS)


def _throttle(named: Mapping[str, str], prefix: str, what: str, at: datetime | None) -> Window:
    """A window of an API key. Its length is told nowhere; one whose reset is an hour away or more is no throttle."""
    left, most = _number(named.get(f"{prefix}-remaining{what}", "")), _number(named.get(f"{prefix}-limit{what}", ""))
    used = 1 - left / most if left is not None and most else 1.0 if left == 0 else None
    resets_at = _when(named.get(f"{prefix}-reset{what}", ""), at)
    far = resets_at is not None and at is not None and (resets_at - at).total_seconds() >= LONG
    return Window(what.lstrip("-") or "requests", used, resets_at, 60 if far else None)


def _claim_name(claim: str) -> str:
    """`5h`, `7d_opus` in the words that the service uses elsewhere."""
    for short, name in (("5h", "five_hour"), ("7d", "seven_day")):
        if claim.startswith(short):
            return name + claim[len(short) :].replace("-", "_")
    return claim[:40]


def _lower(headers: Mapping[str, object]) -> dict[str, str]:
    named: dict[str, str] = {}
    for name, value in list(headers.items())[:_MOST_HEADERS]:
        first = value[0] if isinstance(value, list) and value else value
        said = str(first) if isinstance(first, int | float) else jsonl.text(first)
        named[str(name).strip().lower()] = said.strip()[:1_024]
    return named


def _retry_after(named: Mapping[str, str], at: datetime | None) -> datetime | None:
    """The moment that `retry-after` names: digits are seconds, else a date; anything else is not there."""
    if (seconds := retry_after(named)) is not None:
        return moments.after(at, seconds)
    try:
        when = parsedate_to_datetime(named.get("retry-after", ""))
        return when.astimezone(UTC) if when.tzinfo else None
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _when(said: str, at: datetime | None) -> datetime | None:
    """A reset as a Unix time, an ISO time, a length such as `6m0s`, or seconds."""
    if _LENGTH.fullmatch(said):
        return moments.after(at, moments.seconds(f"in {said}"))
    number = _number(said)
    if number is None:
        return jsonl.iso_time(said)
    return _epoch(said) if number >= 1_000_000_000 else moments.after(at, number)


def _epoch(said: str | None) -> datetime | None:
    number = _number(said or "")
    return jsonl.epoch_time(number / 1_000 if number > 99_999_999_999 else number) if number is not None else None


def _number(said: str) -> float | None:
    if len(said) > 20 or not re.fullmatch(r"-?\d+(?:\.\d+)?", said, re.A):
        return None
    return float(said)
