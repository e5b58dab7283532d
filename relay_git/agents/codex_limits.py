"""What Codex says when a request was refused, in its rollout and on the stdout of `exec --json`.

Promise: only error records count: `task_complete.error`, `event_msg` of type `error`, `turn.failed` and `error` on
stdout. Codex's own retry announcements are no limit. A reset comes from the quota windows of the last reply and never
from the clock in a sentence.

Format, as written by 0.171.0: `codex_error_info` is a word or an object with one key; stdout has the sentence only.
"""

from __future__ import annotations

import re
from datetime import datetime

from relay_git.agents import jsonl
from relay_git.agents.draft import cut
from relay_git.agents.jsonl import Record
from relay_git.session import LimitKind, LimitNotice

# The CLI's own sentences, with a straight or a curly apostrophe; each counts at the start only.
_USAGE = re.compile(
    r"You['’]ve hit your usage limit|You have hit your usage limit|.{0,20}usage limit (?:has been )?reached", re.I
)
_BILLING = re.compile(r"Quota exceeded|Your workspace is out of credits|You(?:['’]re| are) out of credits", re.I)
_RATE = re.compile(r"(?:exceeded retry limit, last status: 429|Rate limit reached|429 Too Many Requests)", re.I)
_OVERLOAD = re.compile(r"(?:exceeded retry limit, last status: (?:503|529)|Selected model is at capacity)", re.I)
_RETRY = "Reconnecting"
_WINDOWS = {300: "five_hour", 1440: "day", 10080: "seven_day"}


def rollout_notice(error: Record, quota: Record) -> LimitNotice | None:
    """The limit in an error of the rollout; `quota` is the newest `rate_limits` seen before it."""
    info, said = error.get("codex_error_info"), jsonl.text(error.get("message"))
    kind = _kind(info, said)
    if kind is None:
        return None
    evidence = cut(said.strip() or str(info), 300)
    if kind is not LimitKind.USAGE:
        return LimitNotice(kind, evidence)
    window, resets_at = spent_window(quota)
    return LimitNotice(kind, evidence, window, resets_at)


def stdout_notice(said: str) -> LimitNotice | None:
    """The limit in the message of a `turn.failed` or `error` event."""
    kind = None if said.startswith(_RETRY) else _kind_of_sentence(said)
    return LimitNotice(kind, cut(said.strip(), 300)) if kind else None


def spent_window(quota: Record) -> tuple[str | None, datetime | None]:
    """The window that is used up and when it begins anew; of several the one that takes longest."""
    spent: list[tuple[datetime, str | None]] = []
    for window in (jsonl.record(quota.get("primary")), jsonl.record(quota.get("secondary"))):
        used, resets_at = window.get("used_percent"), jsonl.epoch_time(window.get("resets_at"))
        if isinstance(used, int | float) and used >= 100 and resets_at:
            minutes = jsonl.count(window.get("window_minutes"))
            spent.append((resets_at, _WINDOWS.get(minutes, f"{minutes}_minutes") if minutes else None))
    if not spent:
        return None, None
    resets_at, name = max(spent, key=lambda entry: entry[0])
    return name, resets_at


def _kind(info: object, said: str) -> LimitKind | None:
    word = info if isinstance(info, str) else next(iter(jsonl.record(info)), "")
    if word == "usage_limit_exceeded":
        # Codex files a spent API budget under the same word; its sentence is what tells the two apart.
        return LimitKind.BILLING if _BILLING.match(said) else LimitKind.USAGE
    if word == "server_overloaded":
        return LimitKind.OVERLOAD
    status = jsonl.record(jsonl.record(info).get(word)).get("http_status_code") if word else None
    if status == 429:
        return LimitKind.RATE
    if status in (503, 529):
        return LimitKind.OVERLOAD
    return None if word and word != "other" else _kind_of_sentence(said)


def _kind_of_sentence(said: str) -> LimitKind | None:
    for kind, pattern in (
        (LimitKind.USAGE, _USAGE),
        (LimitKind.BILLING, _BILLING),
        (LimitKind.RATE, _RATE),
        (LimitKind.OVERLOAD, _OVERLOAD),
    ):
        if pattern.match(said):
            return kind
    return None
