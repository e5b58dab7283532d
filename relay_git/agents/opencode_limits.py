"""What opencode says when a request was refused: in a message's `error`, and in its announcement of a retry.

Promise: only these two count, and of them only what the service answered.

Format, as written by 1.18.33: `error` is `{name, data: {message, statusCode, responseHeaders, responseBody}}`, on
stdout and in the message; a retry is `session.status` with `{type: retry, attempt, message, next}`, `next` in
milliseconds.
"""

from __future__ import annotations

from relay_git.agents import jsonl
from relay_git.agents.agent import Retrying
from relay_git.agents.draft import cut
from relay_git.agents.headers import retry_after
from relay_git.agents.jsonl import Record
from relay_git.agents.moments import Moment
from relay_git.agents.refusal import refusal
from relay_git.session import LimitKind, LimitNotice


def error_notice(error: Record, moment: Moment) -> LimitNotice | None:
    """The limit in an error for which opencode gave up."""
    data = jsonl.record(error.get("data"))
    return refusal(
        jsonl.text(data.get("message")),
        status=jsonl.integer(data.get("statusCode")),
        body=jsonl.text(data.get("responseBody")),
        wait=retry_after(data.get("responseHeaders")),
        moment=moment,
    )


def retry_notice(status: Record, moment: Moment) -> Retrying | None:
    """The wait that opencode announces to its plugins at this time."""
    if status.get("type") != "retry":
        return None
    at = moment.at
    said, until = jsonl.text(status.get("message")), jsonl.epoch_time(status.get("next"))
    wait = (until - at).total_seconds() if until and at else None
    found = refusal(said, body=said, wait=wait, moment=moment)
    kind, evidence = (found.kind, found.evidence) if found else (LimitKind.OVERLOAD, cut(said, 300))
    attempt = jsonl.count(status.get("attempt"))
    return Retrying(LimitNotice(kind, evidence, None, until), attempt=attempt, refused=found is not None)
