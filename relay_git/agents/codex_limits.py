"""What Codex says when a request was refused, in its rollout and on the stdout of `exec --json`.

Promise: only error records count: `task_complete.error`, `event_msg` of type `error`, `turn.failed` and `error` on
stdout. Codex's own retry announcements are no limit. A reset comes from the quota windows of the last reply, else from
the sentence.

Format, as written by 0.171.0: `codex_error_info` is a word or an object with one key; stdout has the sentence only.
"""

from __future__ import annotations

import re
from datetime import datetime

from relay_git.agents import jsonl, meters
from relay_git.agents.draft import cut
from relay_git.agents.jsonl import Record
from relay_git.agents.moments import UNKNOWN, Moment
from relay_git.agents.refusal import refusal
from relay_git.session import LimitKind, LimitNotice

_RETRY = "Reconnecting"
# Codex says this of any error of its server, and not only of a full one.
_SERVER_ERROR = re.compile(r"We['’]re currently experiencing high demand", re.I)
_OUT_OF_MONEY = re.compile(r"Quota exceeded\b", re.I)


def rollout_notice(error: Record, quota: Record, moment: Moment = UNKNOWN) -> LimitNotice | None:
    """The limit in an error of the rollout; `quota` is the newest `rate_limits` seen before it."""
    info, said = error.get("codex_error_info"), jsonl.text(error.get("message"))
    word = info if isinstance(info, str) else next(iter(jsonl.record(info)), "")
    told = sentence_notice(said, moment)
    kind = told.kind if told else None
    if word == "usage_limit_exceeded":
        # Codex files a spent API budget under the same word; its sentence is what tells the two apart.
        kind = kind if kind is LimitKind.BILLING else LimitKind.USAGE
    elif word == "server_overloaded":
        kind = LimitKind.OVERLOAD
    elif word and word != "other":
        status = jsonl.record(jsonl.record(info).get(word)).get("http_status_code")
        kind = {429: kind or LimitKind.RATE, 503: LimitKind.OVERLOAD, 529: LimitKind.OVERLOAD}.get(
            jsonl.integer(status) or 0
        )
    if kind is None:
        return None
    window, until = (told.window, told.resets_at) if told else (None, None)
    if kind is LimitKind.USAGE and (spent := spent_window(quota, moment.at))[1]:
        window, until = spent
    return LimitNotice(kind, cut(said.strip() or str(info), 300), window, until)


def sentence_notice(said: str, moment: Moment = UNKNOWN) -> LimitNotice | None:
    """The limit in the message of an error, such as a `turn.failed` or `error` event of stdout."""
    if said.startswith(_RETRY) or _SERVER_ERROR.match(said):
        return None
    found = refusal(said, body=said, moment=moment)
    if found and _OUT_OF_MONEY.match(said):
        return LimitNotice(LimitKind.BILLING, found.evidence)
    return found


def spent_window(quota: Record, at: datetime | None = None) -> tuple[str | None, datetime | None]:
    """The window that is used up and when it begins anew; of several the one that takes longest.

    One that began anew before `at` is not what is used up then.
    """
    spent: list[tuple[datetime, str | None]] = []
    for window in (jsonl.record(quota.get("primary")), jsonl.record(quota.get("secondary"))):
        used, resets_at = window.get("used_percent"), jsonl.epoch_time(window.get("resets_at"))
        if isinstance(used, int | float) and used >= 100 and resets_at and (at is None or resets_at > at):
            spent.append((resets_at, meters.window_of(jsonl.count(window.get("window_minutes")))))
    if not spent:
        return None, None
    resets_at, name = max(spent, key=lambda entry: entry[0])
    return name, resets_at
