"""What detection has read before, so that an unchanged transcript is not read again; safe to delete at any time.

Promise: an entry counts only for the very size and time of the file that it was made from, and what cannot be read
back is read anew from the transcript. The file is the user's alone (0600), bounded, and replaced in one step, so that
two at once lose at most each other's entries.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Container
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Any

from relay_git import __version__
from relay_git.session import (
    Command,
    LimitKind,
    LimitNotice,
    PlanItem,
    PlanStatus,
    QuotaReading,
    SessionRecord,
    ToolCall,
    Usage,
)

Key = tuple[str, Path, str]
Version = tuple[int, float]
_MOST = 5_000
_PROMPT_CHARS = 2_000


class SeenBefore:
    """Records of transcripts by tool, path and id, each with the size and time of the file."""

    def __init__(self, file: Path | None) -> None:
        self._file, self._changed = file, False
        self._entries: dict[str, list[Any]] = _load(file) if file is not None else {}

    def get(self, key: Key, version: Version) -> SessionRecord | None:
        """The record that was read from this very version of the file."""
        entry = self._entries.get(_name(key))
        if entry is None or entry[:2] != list(version):
            return None
        with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):
            return _record(entry[2])
        return None

    def put(self, key: Key, version: Version, record: SessionRecord) -> None:
        """Remember a record, long texts cut: detection shows the first line of them."""
        self._entries[_name(key)] = [*version, _plain(record)]
        self._changed = True

    def keep(self, known: Container[Key]) -> None:
        """Forget what is gone, and write what is left, where anything has changed."""
        if self._file is None or not self._changed:
            return
        wanted = {name: entry for name, entry in self._entries.items() if _key(name) in known}
        newest = sorted(wanted.items(), key=lambda item: item[1][1], reverse=True)[:_MOST]
        with contextlib.suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, part = tempfile.mkstemp(dir=self._file.parent, prefix=".detect-")
            with os.fdopen(handle, "w", encoding="utf-8") as out:
                json.dump({"version": __version__, "entries": dict(newest)}, out)
            Path(part).replace(self._file)
        self._changed = False


def _load(file: Path) -> dict[str, list[Any]]:
    try:
        body = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(body, dict) or body.get("version") != __version__ or not isinstance(body.get("entries"), dict):
        return {}
    return {name: entry for name, entry in body["entries"].items() if isinstance(entry, list) and len(entry) == 3}


def _name(key: Key) -> str:
    return "\0".join((key[0], str(key[1]), key[2]))


def _key(name: str) -> Key:
    tool, path, native_id = name.split("\0")
    return tool, Path(path), native_id


def _plain(record: SessionRecord) -> dict[str, Any]:
    body: dict[str, Any] = {}
    for member in fields(record):
        value = getattr(record, member.name)
        match value:
            case Usage():
                body[member.name] = [value.input, value.output, value.cache_read, value.cache_write]
            case datetime():
                body[member.name] = value.isoformat()
            case tuple() if value and isinstance(value[0], Command):
                body[member.name] = []
            case tuple() if value and isinstance(value[0], ToolCall):
                body[member.name] = [_item(call) for call in value[-20:]]
            case tuple():
                body[member.name] = [_item(one) for one in value]
            case str():
                body[member.name] = value[:_PROMPT_CHARS]
            case _:
                body[member.name] = value
    return body


def _item(one: object) -> object:
    match one:
        case LimitNotice():
            return [one.kind, one.evidence, one.window, one.resets_at and one.resets_at.isoformat()]
        case QuotaReading():
            end = one.resets_at and one.resets_at.isoformat()
            return [one.window, one.used, one.at.isoformat(), end, one.minutes, one.source]
        case PlanItem():
            return [one.text, one.status]
        case ToolCall():
            return [one.id, one.name, one.target, one.ok]
        case str():
            return one[:_PROMPT_CHARS]
        case _:
            return one


def _record(body: dict[str, Any]) -> SessionRecord:
    made: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in body.items()}
    made["usage"], made["usage_active"] = Usage(*body["usage"]), Usage(*body["usage_active"])
    made["plan"] = tuple(PlanItem(text, PlanStatus(status)) for text, status in body["plan"])
    made["calls"] = tuple(ToolCall(*call) for call in body["calls"])
    made["pending_calls"] = tuple(ToolCall(*call) for call in body["pending_calls"])
    made["limits"] = tuple(
        LimitNotice(LimitKind(kind), evidence, window, datetime.fromisoformat(at) if at else None)
        for kind, evidence, window, at in body["limits"]
    )
    made["quota"] = tuple(
        QuotaReading(name, used, datetime.fromisoformat(at), datetime.fromisoformat(end) if end else None, *more)
        for name, used, at, end, *more in body["quota"]
    )
    for name in ("started", "last_activity"):
        made[name] = datetime.fromisoformat(body[name]) if body[name] else None
    return SessionRecord(**made)
