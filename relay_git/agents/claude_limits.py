"""What Claude Code says when a request was refused: its error records, on stdout and in the transcript.

Promise: only the fields of such a record count, and the text of a record that is itself an error; no other text is
looked at. A reset that a field names outranks the one in the sentence.

Format, as written by 2.1.332: stdout `rate_limit_event`, `assistant` with `is_api_error_message`, `result` with
`is_error`; transcript `assistant` with `isApiErrorMessage`, `apiError`, `quotaLimits`.
"""

from __future__ import annotations

from dataclasses import replace

from relay_git.agents import jsonl, printed
from relay_git.agents.draft import cut
from relay_git.agents.jsonl import Record
from relay_git.agents.moments import UNKNOWN, Moment
from relay_git.agents.refusal import refusal
from relay_git.session import LimitKind, LimitNotice


def event_notice(record: Record) -> LimitNotice | None:
    """The limit that a `rate_limit_event` reports: only when it was rejected, and not paid for as extra usage."""
    info = jsonl.record(record.get("rate_limit_info"))
    if info.get("status") != "rejected" or info.get("isUsingOverage") is True:
        return None
    return _usage(info, None, "rate_limit_event: rejected")


def stdout_notice(record: Record, moment: Moment = UNKNOWN) -> LimitNotice | None:
    """The limit in an `assistant` error record or an erroneous `result` of stream-json."""
    params = jsonl.record(record.get("api_error_params"))
    said = jsonl.text(record.get("result")) or message_text(record)
    fields = (
        record.get("error"),
        record.get("api_error"),
        record.get("api_error_type"),
        record.get("api_error_status"),
    )
    moment = moment.of(jsonl.iso_time(record.get("timestamp")))
    if not any(fields) and record.get("is_api_error_message") is not True:
        # A run may end in an error of another kind with words of the model as its result.
        return printed.notice(said, "claude", moment, stderr=False)
    return _notice(fields, jsonl.record(params.get("rate_limit_info")), said, moment)


def retry_notice(record: Record) -> LimitNotice:
    """What refused the request that an `api_retry` record says is made again; a cut line counts as overload."""
    error, status = jsonl.text(record.get("error")), record.get("error_status")
    kind = LimitKind.RATE if error == "rate_limit" or status == 429 else LimitKind.OVERLOAD
    told = f" (status {status})" if isinstance(status, int) else ""
    return LimitNotice(kind, cut(f"api_retry: {error or 'unknown'}{told}", 300))


def transcript_notice(record: Record, moment: Moment = UNKNOWN) -> LimitNotice | None:
    """The limit in a transcript's record with `isApiErrorMessage`."""
    params = jsonl.record(record.get("apiErrorParams"))
    info = jsonl.record(record.get("quotaLimits")) or jsonl.record(params.get("rate_limit_info"))
    fields = (record.get("error"), record.get("apiError"), record.get("apiErrorType"), record.get("apiErrorStatus"))
    return _notice(fields, info, message_text(record), moment.of(jsonl.iso_time(record.get("timestamp"))))


def message_text(record: Record) -> str:
    """The text blocks of a record's message."""
    content = jsonl.record(record.get("message")).get("content")
    if isinstance(content, str):
        return jsonl.text(content)
    return "\n".join(jsonl.text(block.get("text")) for block in jsonl.records(content) if block.get("type") == "text")


def _notice(
    fields: tuple[object, object, object, object], info: Record, said: str, moment: Moment
) -> LimitNotice | None:
    codes = " ".join(code for code in fields if isinstance(code, str))
    found = refusal(said, status=jsonl.integer(fields[3]), body=codes, moment=moment)
    if fields[1] == "usage_limit_reached" or info.get("status") == "rejected":
        return _usage(info, found, cut(said.strip() or codes, 300))
    return found and replace(found, evidence=cut(said.strip() or codes, 300))


def _usage(info: Record, told: LimitNotice | None, evidence: str) -> LimitNotice:
    window = cut(jsonl.text(info.get("rateLimitType")), 100) or (told.window if told else None)
    until = jsonl.epoch_time(info.get("resetsAt")) or (told.resets_at if told else None)
    return LimitNotice(LimitKind.USAGE, evidence, window, until)
