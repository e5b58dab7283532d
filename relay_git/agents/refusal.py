"""What a refusal by a model's API or by a tool means: which kind of limit, of which window, until when.

Promise: only text of an error record or of a line that the tool itself prints for an error goes in here. A code or type
in the body wins over the sentence, the sentence over the status. A reset is what was said with a number, a length or a
time; where nothing of the kind was said, there is none. Words that are not known are a limit, without a time, where
the status or the code beside them says that it is one.

An allowance over an hour or more is `usage`, and so is a wait of an hour or more; a throttle is `rate`.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

from relay_git.agents import moments
from relay_git.agents.draft import cut
from relay_git.agents.moments import LONG, UNKNOWN, Moment
from relay_git.session import LimitKind, LimitNotice

_MOST_SAID, _MOST_BODY = 4_096, 16_384
_NUMBER = r"\bcode[\\\"']{0,4}\s{0,2}:\s{0,2}[\\\"']{0,4}"  # a service's own numbers, as in `"code":"1308"`
# Codes of a body, in the order in which they decide.
_CODES = (
    (
        LimitKind.USAGE,
        re.compile(
            r"FreeUsageLimit|(?<=[a-z])PerDay|usage_limit_(?:reached|exceeded)|quota_(?:reached|exceeded)"
            r"|free-models-per-day|(?:daily|weekly|monthly)_(?:rate_|usage_)?limit|quota_?exhausted"
            rf"|{_NUMBER}(?:1304|1308|1310)\b",
            re.I,
        ),
    ),
    (
        LimitKind.BILLING,
        re.compile(
            r"insufficient[_ ](?:quota|balance|credits?|funds)|billing_(?:error|hard_limit_reached|not_active)"
            rf"|payment_required|CreditsError|{_NUMBER}(?:1113|1309)\b",
            re.I,
        ),
    ),
    (
        LimitKind.OVERLOAD,
        re.compile(
            r"\boverloaded(?:_error)?\b|(?:server|model|engine)_overloaded|ServiceUnavailable|model_?capacity_?exhausted"
            rf"|{_NUMBER}1312\b",
            re.I,
        ),
    ),
    (LimitKind.RATE, re.compile(rf"(?<=[a-z])PerMinute|free-models-per-min|{_NUMBER}(?:1302|1303|1305)\b", re.I)),
)
# Codes that say only that something was refused: a window in the sentence says more.
_THROTTLED = re.compile(
    r"rate_limit_(?:exceeded|error|reached)|\brate_limit(?:ed)?\b|rateLimitExceeded|RESOURCE_EXHAUSTED"
    r"|too_many_requests|throttl",
    re.I,
)
_ENOUGH = r"(?:reached|hit|exceeded|exhausted|used up|consumed|depleted|spent|used (?:all|100% of))"
_MONEY = re.compile(r"credit balance|spend(?:ing)? (?:limit|cap)\b", re.I)
_SENTENCES = (
    (
        LimitKind.USAGE,
        re.compile(
            r"\busage\b[\w -]{0,30}(?:limit|exceeded|quota)"
            r"|(?:free|premium)[\w -]{0,30}(?:quota|limit|exceeded|request)"
            r"|extra usage|no quota|\bhit your limit|(?<!rate )(?<!request )\blimit reached\s{0,3}[·∙•]"
            rf"|\ballowance\b.{{0,40}}{_ENOUGH}|{_ENOUGH}.{{0,40}}\b(?:allowance|usage)\b|upgrade to increase",
            re.I,
        ),
    ),
    (
        LimitKind.BILLING,
        re.compile(
            r"billing details|payment (?:required|method)|out of credits|more credits|insufficient (?:balance|credits?)"
            r"|(?:insufficient|add) funds|in arrears",
            re.I,
        ),
    ),
    (
        LimitKind.OVERLOAD,
        re.compile(r"overloaded|no capacity available|at capacity|high demand|service unavailable|status:? 529", re.I),
    ),
    (
        LimitKind.RATE,
        re.compile(
            r"rate.?limit|too many requests|resource.has.been.exhausted|limiting requests|concurrency|throttl|\(429\)"
            r"|quota exceeded|(?:exhausted|exceeded) your (?:current )?(?:capacity|quota)"
            rf"|\b(?:limit|quota|capacity)\b.{{0,30}}\b{_ENOUGH}|\b{_ENOUGH}\b.{{0,30}}\b(?:limit|quota|capacity)\b",
            re.I,
        ),
    ),
)
# What is too large or too long is no limit on how much may be asked for.
_OTHER_LIMITS = re.compile(
    r"\b(?:context|prompt|output|input length|max(?:imum)?[_ ](?:\w+[_ ])?(?:tokens|length|turns)|payload|file|image"
    r"|upload|request size|turns?|iteration|recursion|depth|memory|time|stack|heap)\b[\w -]{0,20}"
    r"\b(?:limit|quota|length|size|tokens?(?! per))\b|count.{0,20} exceeds the limit",
    re.I,
)
_WINDOWS = (
    ("five_hour", re.compile(r"\b(?:5|five)[- ]?h(?:ou)?rs?\b|\b5h\b|\bsession\b[\w -]{0,10}limit", re.I)),
    ("seven_day", re.compile(r"\bweek(?:ly)?\b|\b(?:7|seven)[- ]day", re.I)),
    ("day", re.compile(r"\bdaily\b|(?:per|/|a|1|one)[- ]day\b|PerDay|\b[RT]PD\b", re.I)),
    ("month", re.compile(r"\bmonth(?:ly)?\b|premium requests?", re.I)),
    ("hour", re.compile(r"\bhourly\b|per[- ]hour\b|PerHour", re.I)),
)
_LASTING = re.compile(r"(?<=[a-z])PerDay|per-day|FreeUsageLimit", re.I)
_MODEL = re.compile(r"\b(opus|sonnet|haiku)\b", re.I)
_DENIED = re.compile(r"\(not your[^)]{0,40}\)", re.I)
_SPENT = re.compile(r"[\w ]{0,20}\bspend(?:ing)? (?:limit|cap)", re.I)
# z.ai and its sister print a wall-clock time of their own place, without saying so.
_OF_ZAI = re.compile(rf"{_NUMBER}13\d\d\b|limit reached for \d+ (?:hour|day|week|month)s?\b", re.I)
_ZAI = timezone(timedelta(hours=8))


def refusal(
    said: str,
    *,
    status: int | None = None,
    body: str = "",
    wait: float | None = None,
    moment: Moment = UNKNOWN,
) -> LimitNotice | None:
    """The limit in an error, or None where it tells of none.

    `said` is its sentence, `status` the HTTP status, `body` the answer's body or the codes that the record names,
    `wait` the seconds that the service asked for, `moment` that of the record, from which waits and clocks count.
    """
    said, body = _DENIED.sub(" ", said[:_MOST_SAID]), body[:_MOST_BODY]
    kind = _kind(said, status, body)
    if kind is None:
        return None
    window = window_named(said) or window_named(body)
    until = _absolute(said, body, moment, window)
    lasting = kind is LimitKind.USAGE and (window not in (None, "five_hour", "hour") or bool(_LASTING.search(body)))
    seconds = _wait(f"{said} {body}" if body != said else said, wait, lasting)
    if kind is LimitKind.RATE and until is None and seconds is not None and seconds >= LONG:
        kind = LimitKind.USAGE
    evidence = cut(" ".join(said.split()) or f"status {status}", 300)
    return LimitNotice(kind, evidence, window, until or moments.after(moment.at, seconds))


def window_named(said: str) -> str | None:
    """Our name for the window that a text speaks of."""
    found = next((name for name, words in _WINDOWS if words.search(said)), None)
    model = _MODEL.search(said) if found == "seven_day" else None
    return f"{found}_{model[1].lower()}" if model else found


def _wait(said: str, asked: float | None, lasting: bool) -> float | None:
    """The seconds to the reset: of several the longest that was meant.

    A short delay beside a quota of a day or longer is when to ask again, not when there is anything left.
    """
    told = moments.seconds(said)
    if lasting and told is not None and told < LONG:
        told = moments.seconds(said, resets=True)
    asked = None if lasting and asked is not None and asked < LONG else asked
    return max((s for s in (told, asked) if s is not None), default=None)


def _absolute(said: str, body: str, moment: Moment, window: str | None) -> datetime | None:
    at, zone = moment.at, moment.zone
    if _OF_ZAI.search(body) or _OF_ZAI.search(said):
        zone = _ZAI
    session = window == "five_hour"
    return moments.absolute(said, at, zone, session=session) or (
        moments.absolute(body, at, zone, session=session) if body != said else None
    )


def _kind(said: str, status: int | None, body: str) -> LimitKind | None:
    if kind := next((kind for kind, pattern in _CODES if pattern.search(body)), None):
        return kind if _may_refuse(status) else None
    throttled = _THROTTLED.search(body) is not None
    if kind := _kind_of_sentence(said, throttled):
        return kind if _may_refuse(status) else None
    if throttled and _may_refuse(status):
        return LimitKind.RATE
    return {402: LimitKind.BILLING, 429: LimitKind.RATE, 529: LimitKind.OVERLOAD}.get(status or 0)


def _may_refuse(status: int | None) -> bool:
    """Words alone prove nothing where the service says that the request itself was wrong."""
    return status is None or status in (400, 402, 403, 429, 503, 529)


def _kind_of_sentence(said: str, throttled: bool) -> LimitKind | None:
    """What the words say; `throttled`: a code beside them says that it is a limit, and not of which window."""
    if _OTHER_LIMITS.search(said):
        return None
    if _MONEY.search(said):
        # A spend cap beside a window of the plan that begins anew is that window's limit.
        rest = _SPENT.sub(" ", said)
        return LimitKind.USAGE if rest != said and "reset" in rest.lower() and window_named(rest) else LimitKind.BILLING
    kind = next((kind for kind, pattern in _SENTENCES if pattern.search(said)), None)
    if kind is LimitKind.RATE or (kind is LimitKind.BILLING and throttled):
        return LimitKind.USAGE if window_named(said) else LimitKind.RATE
    return kind
