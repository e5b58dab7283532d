"""What model providers say when they refuse a request, as tools print it that pass their errors on.

Promise: a code or type in the error decides before its sentence does; what is not known is no limit. A caller gives
only text that its tool marked as an error, never prose or tool output.

Sources: the providers' public error references, and the texts that aider (litellm), Cline and Continue showed for them.
"""

from __future__ import annotations

import re

from relay_git.agents.draft import cut
from relay_git.session import LimitKind, LimitNotice

_STATUS = r"(?:^|\b(?:status|code|error|http)\W{0,3}(?:code\W{1,3})?)"
# In this order: quota ids and codes, then sentences; a spent budget and a spent day are often sent as a rate limit.
_KINDS: tuple[tuple[LimitKind, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.I))
    for kind, pattern in (
        (LimitKind.USAGE, r"usage_limit_reached|FreeUsageLimitError|PerDay"),
        (LimitKind.RATE, r"PerMinute"),
        (
            LimitKind.BILLING,
            r"insufficient_quota|billing_(?:error|hard_limit)|BudgetExceededError|credit balance is too low"
            r"|(?:insufficient|more|out of) (?:credits|balance|funds)|payment required"
            r"|exceeded your current quota, please check your plan and billing",
        ),
        (
            LimitKind.USAGE,
            r"usage limit|\bper day\b|\b(?:daily|weekly|monthly) (?:\w+ )?(?:limit|quota)"
            r"|(?:try again|retry|reset) (?:in|after) \d+ ?(?:h\b|hours?\b|d\b|days?\b)",
        ),
        (LimitKind.OVERLOAD, rf"overloaded|ServiceUnavailableError|no capacity|at capacity|{_STATUS}(?:503|529)\b"),
        (LimitKind.RATE, rf"rate.?limit|too many requests|RESOURCE_EXHAUSTED|{_STATUS}429\b"),
    )
)


def notice(said: str) -> LimitNotice | None:
    """The limit that a provider's error tells of, or None where it is some other error."""
    text = cut(" ".join(said.split()), 2_000)
    for kind, pattern in _KINDS:
        if pattern.search(text):
            return LimitNotice(kind, cut(text, 300))
    return None
