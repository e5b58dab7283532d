"""How an account's history is written: one JSON object a line, a header first.

Promise: what `line` writes `entry` reads back, and a line that is none is told from one that is; nothing raises.
No text of any tool is written: a refusal keeps its kind and its times, not its words.
"""

from __future__ import annotations

import contextlib
import json
from datetime import UTC, datetime
from typing import Any

from relay_git.errors import printable
from relay_git.quota.entry import Account, Entry, Refusal, Spent
from relay_git.session import LimitKind, LimitNotice, QuotaReading

_FORMAT, _VERSION = "git-relay-quota", 1
_NAME = 100  # characters


def first_line(account: Account) -> bytes:
    return _json({"format": _FORMAT, "version": _VERSION, "agent": account.agent, "account": account.label})


def header(body: bytes) -> dict[str, Any] | None:
    found = _object(body.partition(b"\n")[0])
    return found if found is not None and found.get("format") == _FORMAT else None


def is_newer(body: bytes) -> bool:
    version = (header(body) or {}).get("version")
    return isinstance(version, int) and version > _VERSION


def entries(body: bytes) -> tuple[tuple[Entry, ...], int]:
    """The entries, and how many lines are none; the header is no entry."""
    lines = [line for line in body.split(b"\n") if line]
    if lines and header(lines[0]) is not None:
        del lines[0]
    found = [entry(line) for line in lines]
    kept = tuple(entry for entry in found if entry is not None)
    return kept, len(found) - len(kept)


def line(entry: Entry) -> bytes:
    body: dict[str, Any] = {"at": entry.at.astimezone(UTC).isoformat()}
    match entry:
        case QuotaReading():
            body |= {"window": entry.window[:_NAME], "used": entry.used, "minutes": entry.minutes}
            body |= {"resetsAt": _iso(entry.resets_at), "source": entry.source[:_NAME]}
        case Refusal(notice):
            body |= {"refused": notice.kind, "window": notice.window and notice.window[:_NAME]}
            body |= {"resetsAt": _iso(notice.resets_at)}
        case Spent():
            body |= {"requests": entry.requests, "tokens": entry.tokens}
    return _json(body)


def entry(line: bytes) -> Entry | None:
    body = _object(line)
    if body is None:
        return None
    with contextlib.suppress(KeyError, ValueError, TypeError, AttributeError, OverflowError):
        at, resets_at = _time(body["at"]), _time(body["resetsAt"]) if body.get("resetsAt") else None
        if "refused" in body:
            window = printable(str(body["window"])) if body.get("window") else None
            return Refusal(LimitNotice(LimitKind(body["refused"]), "", window, resets_at), at)
        if "requests" in body:
            return Spent(at, int(body["requests"]), int(body["tokens"]))
        minutes = int(body["minutes"]) if body.get("minutes") else None
        window = printable(str(body["window"]))
        return QuotaReading(window, float(body["used"]), at, resets_at, minutes, str(body["source"]))
    return None


def _object(line: bytes) -> dict[str, Any] | None:
    with contextlib.suppress(ValueError, RecursionError):
        found = json.loads(line)
        return found if isinstance(found, dict) else None
    return None


def _json(body: dict[str, Any]) -> bytes:
    kept = {name: value for name, value in body.items() if value is not None}
    return json.dumps(kept, separators=(",", ":")).encode() + b"\n"


def _iso(at: datetime | None) -> str | None:
    return at.astimezone(UTC).isoformat() if at else None


def _time(text: str) -> datetime:
    """An aware moment of this century; raises ValueError on any other."""
    at = datetime.fromisoformat(text)
    if at.tzinfo is None or not 2000 <= at.year < 2100:
        raise ValueError(text)
    return at.astimezone(UTC)
