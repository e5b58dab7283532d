"""What Claude Code says when a request was refused: its error records, on stdout and in the transcript.

Promise: only the fields of such a record count, and the text of a record that is itself an error; no other text is
looked at. Where the record names no reset, there is none: nothing is guessed from a clock in a sentence.

Format, as written by 2.1.332: stdout `rate_limit_event`, `assistant` with `is_api_error_message`, `result` with
`is_error`; transcript `assistant` with `isApiErrorMessage`, `apiError`, `quotaLimits`.
"""

from __future__ import annotations

import re

from relay_git.agents import jsonl
from relay_git.agents.draft import cut
from relay_git.agents.jsonl import Record
from relay_git.session import LimitKind, LimitNotice

# Older versions wrote the sentence and no code. It counts only at the start of an error record's own text.
_USAGE_TEXT = re.compile(r"(?:You['’]ve (?:hit|reached) your|Claude AI usage limit|[\w-]+ limit reached\b)", re.I)
_RATE_TEXT = re.compile(r"API Error:.{0,40}rate limit", re.I)
_BILLING_TEXT = re.compile(r"Credit balance is too low", re.I)


def event_notice(record: Record) -> LimitNotice | None:
    """The limit that a `rate_limit_event` reports: only when it was rejected, and not paid for as extra usage."""
    info = jsonl.record(record.get("rate_limit_info"))
    if info.get("status") != "rejected" or info.get("isUsingOverage") is True:
        return None
    return _usage(info, "rate_limit_event: rejected")


def stdout_notice(record: Record) -> LimitNotice | None:
    """The limit in an `assistant` error record or an erroneous `result` of stream-json."""
    params = jsonl.record(record.get("api_error_params"))
    said = jsonl.text(record.get("result")) or message_text(record)
    fields = (
        record.get("error"),
        record.get("api_error"),
        record.get("api_error_type"),
        record.get("api_error_status"),
    )
    return _notice(fields, jsonl.record(params.get("rate_limit_info")), said)


def retry_notice(record: Record) -> LimitNotice:
    """What refused the request that an `api_retry` record says is made again; a cut line counts as overload."""
    error, status = jsonl.text(record.get("error")), record.get("error_status")
    kind = LimitKind.RATE if error == "rate_limit" or status == 429 else LimitKind.OVERLOAD
    told = f" (status {status})" if isinstance(status, int) else ""
    return LimitNotice(kind, cut(f"api_retry: {error or 'unknown'}{told}", 300))


def transcript_notice(record: Record) -> LimitNotice | None:
    """The limit in a transcript's record with `isApiErrorMessage`."""
    params = jsonl.record(record.get("apiErrorParams"))
    info = jsonl.record(record.get("quotaLimits")) or jsonl.record(params.get("rate_limit_info"))
    fields = (record.get("error"), record.get("apiError"), record.get("apiErrorType"), record.get("apiErrorStatus"))
    return _notice(fields, info, message_text(record))


def message_text(record: Record) -> str:
    """The text blocks of a record's message."""
    content = jsonl.record(record.get("message")).get("content")
    if isinstance(content, str):
        return jsonl.text(content)
    return "\n".join(jsonl.text(block.get("text")) for block in jsonl.records(content) if block.get("type") == "text")


def _notice(fields: tuple[object, object, object, object], info: Record, said: str) -> LimitNotice | None:
    error, code, kind, status = fields
    evidence = cut(said.strip() or f"{code or kind or error}", 300)
    if code == "usage_limit_reached" or info.get("status") == "rejected":
        return _usage(info, evidence)
    if error == "billing_error" or kind == "billing_error" or _BILLING_TEXT.match(said):
        return LimitNotice(LimitKind.BILLING, evidence)
    if kind == "overloaded_error" or error == "overloaded" or status == 529:
        return LimitNotice(LimitKind.OVERLOAD, evidence)
    if error == "rate_limit" or kind == "rate_limit_error" or status == 429 or _RATE_TEXT.match(said):
        return LimitNotice(LimitKind.USAGE if _USAGE_TEXT.match(said) else LimitKind.RATE, evidence)
    return LimitNotice(LimitKind.USAGE, evidence) if _USAGE_TEXT.match(said) else None


def _usage(info: Record, evidence: str) -> LimitNotice:
    window = cut(jsonl.text(info.get("rateLimitType")), 100) or None
    return LimitNotice(LimitKind.USAGE, evidence, window, jsonl.epoch_time(info.get("resetsAt")))
