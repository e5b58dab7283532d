"""What a refusal by a model's API means, for the tools that pass it on as it came.

Promise: a code or type in the body wins over the sentence, the sentence over the status. Only text of an error record
goes in here. A reset is what was said with a length or a date; where nothing of the kind was said, there is none.

An allowance over an hour or more is `usage`, and so is a wait of an hour or more; a throttle is `rate`.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from relay_git.agents import jsonl
from relay_git.agents.draft import cut
from relay_git.session import LimitKind, LimitNotice

# Words of a body, in the order in which they decide.
_CODES = (
    (
        LimitKind.USAGE,
        re.compile(
            r"FreeUsageLimitError|usage_limit_(?:reached|exceeded)|(?<=[a-z])PerDay|quota_(?:reached|exceeded)", re.I
        ),
    ),
    (LimitKind.BILLING, re.compile(r"insufficient[_ ](?:quota|balance|credits?)|billing_error|payment_required", re.I)),
    (LimitKind.RATE, re.compile(r"rate_limit_(?:exceeded|error)|(?<=[a-z])PerMinute|rateLimitExceeded", re.I)),
    (LimitKind.OVERLOAD, re.compile(r"overloaded_error|server_overloaded|model_overloaded|ServiceUnavailable", re.I)),
)
_SENTENCES = (
    (
        LimitKind.USAGE,
        re.compile(
            r"(?:daily|weekly|monthly|5-hour|free|usage|premium)[\w -]{0,30}(?:quota|limit|exceeded|requests)"
            r"|per day|no quota|exhausted your (?:daily )?(?:quota|capacity)",
            re.I,
        ),
    ),
    (LimitKind.BILLING, re.compile(r"credit balance|billing details|payment required|out of credits", re.I)),
    (LimitKind.OVERLOAD, re.compile(r"overloaded|no capacity available|high demand", re.I)),
    (LimitKind.RATE, re.compile(r"rate.?limit|too many requests|resource.has.been.exhausted", re.I)),
)
_LENGTH = re.compile(
    r"\b(?:in|after)\s+((?:\d{1,6}(?:\.\d{1,3})?\s{0,2}(?:days?|hours?|minutes?|seconds?|ms|[dhms])\b[\s,]{0,3}){1,5}"
    r"|(?:\d{1,6}(?:\.\d{1,6})?(?:ms|[dhms])){1,5})",
    re.I,
)
_PIECE = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|[dhms])", re.I)
_SECONDS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_LONG = 3_600.0
_LONGEST = 400 * 86_400.0


def refusal(
    said: str, *, status: int | None = None, body: str = "", wait: float | None = None, at: datetime | None = None
) -> LimitNotice | None:
    """The limit in an error record, or None where it tells of none.

    `said` is its sentence, `status` the HTTP status, `body` the answer's body or the codes that the record names,
    `wait` the seconds that the service asked for, `at` the time of the record, from which waits count.
    """
    said, body = said[:4_096], body[:16_384]
    told, daily = seconds_in(said), _CODES[0][1].search(body) is not None
    # Of several waits the longest is meant. A short one beside a daily quota is when to ask again, not when there is
    # anything left.
    seconds = max((s for s in (told, wait) if s is not None and (s >= _LONG or not daily)), default=None)
    kind = _kind(said, status, body)
    if kind is None:
        return None
    if kind in (LimitKind.RATE, LimitKind.USAGE) and seconds is not None and (told is not None or seconds >= _LONG):
        kind = LimitKind.USAGE if daily or seconds >= _LONG else LimitKind.RATE
    evidence = cut(" ".join(said.split()) or f"status {status}", 300)
    return LimitNotice(kind, evidence, None, _after(at, seconds))


def seconds_in(said: str) -> float | None:
    """The length of time that a sentence says is left, such as `in 6h16m` or `after 5 minutes`."""
    found = _LENGTH.search(said)
    if found is None:
        return None
    total = sum(float(number) * _SECONDS[unit.lower()] for number, unit in _PIECE.findall(found[1]))
    return total if total <= _LONGEST else None


def retry_after(headers: object) -> float | None:
    """The seconds in a `retry-after` header, in any case of its name; a date or anything else is None."""
    named = {str(name).lower(): value for name, value in jsonl.record(headers).items()}
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = jsonl.text(named.get(name)).strip()
        if value.isascii() and value.isdigit() and len(value) < 10:
            return int(value) * unit
    return None


def _kind(said: str, status: int | None, body: str) -> LimitKind | None:
    for text, words in ((body, _CODES), (said, _SENTENCES)):
        for kind, pattern in words:
            if pattern.search(text):
                # Words alone prove nothing where the service says that the request itself was wrong.
                return kind if status is None or status in (400, 402, 403, 429, 503, 529) else None
    by_status = {402: LimitKind.BILLING, 429: LimitKind.RATE, 529: LimitKind.OVERLOAD}
    return by_status.get(status or 0)


def _after(at: datetime | None, seconds: float | None) -> datetime | None:
    if at is None or seconds is None or seconds > _LONGEST:
        return None
    try:
        return at + timedelta(seconds=seconds)
    except OverflowError:
        return None
