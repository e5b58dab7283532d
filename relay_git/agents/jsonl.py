"""Reading records that someone else wrote: one JSON object a line, and values that may be of any type.

Promise: nothing here raises on any bytes or any value. What is not what was expected is the empty value of its kind,
so that a reader can be written as if the file were well formed and still survive every other one.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import orjson

Record = Mapping[str, object]

_EMPTY: Record = {}
_OPEN = ord("{")
_MOST_FUSED = 16
_SURROGATE = re.compile("[\ud800-\udfff]")
# 9999-01-01 in seconds: above it a number is milliseconds, as some tools write them (13 digits).
_SECONDS_MAX = 253_370_764_800


def parse(line: bytes) -> Record | None:
    """The object on this line, or None where there is none; broken UTF-8 costs its character only, not the line.

    A crash of the machine leaves runs of NUL around whole records; they are no part of them.
    """
    if _OPEN not in line:
        return None  # a flood of plain output costs next to nothing
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return _parse_broken(line)
    return value if isinstance(value, dict) else None


def _parse_broken(line: bytes) -> Record | None:
    """What the strict parser refuses, read as far as it can be: broken UTF-8, lone surrogates, NUL, NaN, a BOM."""
    try:
        value = json.loads(line.strip(b"\0").decode("utf-8-sig", "replace"))
        if b"\\ud" in line.lower():
            # Lone ones go here, since the names of members are texts as well, and nobody cleans them.
            value = json.loads(_SURROGATE.sub("\ufffd", json.dumps(value, ensure_ascii=False)))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def after_a_cut(line: bytes) -> Record | None:
    """The whole object at the end of a line whose beginning is a cut one: a writer that was killed leaves no LF.

    Both were written by the same program, so the second begins like the first.
    """
    begin = line[: line.find(b":") + 1].lstrip(b"\0 ")
    if len(begin) > 80 or not begin.startswith(b'{"'):
        return None
    at = line.find(begin, 1)
    for _ in range(_MOST_FUSED):
        if at < 0:
            return None
        if (found := parse(line[at:])) is not None:
            return found
        at = line.find(begin, at + 1)
    return None


def parse_text(text: object) -> Record:
    """The object that a string holds as JSON; empty where it holds none."""
    if not isinstance(text, str):
        return _EMPTY
    return parse(text.encode("utf-8", "replace")) or _EMPTY


def text(value: object) -> str:
    """A string that can be encoded as UTF-8: lone surrogates become U+FFFD."""
    if not isinstance(value, str):
        return ""
    if not value.isascii():
        try:
            value.encode()  # ten times as fast as looking for a surrogate
        except UnicodeEncodeError:
            return _SURROGATE.sub("\ufffd", value)
    return value


def record(value: object) -> Record:
    """An object, or the empty one."""
    return value if isinstance(value, dict) else _EMPTY


def items(value: object) -> Sequence[object]:
    """An array, or the empty one."""
    return value if isinstance(value, list) else ()


def records(value: object) -> list[Record]:
    """The objects in an array."""
    return [item for item in items(value) if isinstance(item, dict)]


def count(value: object) -> int:
    """A whole number from 0 up; anything else is 0."""
    return value if type(value) is int and value > 0 else 0


def integer(value: object) -> int | None:
    """A whole number, or None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def iso_time(value: object) -> datetime | None:
    """An ISO 8601 time as aware UTC; without an offset it is taken for UTC, as both tools write it."""
    if not isinstance(value, str):
        return None
    try:
        when = datetime.fromisoformat(value)
        return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def epoch_time(value: object) -> datetime | None:
    """A Unix time in seconds or milliseconds as aware UTC."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        return None
    try:
        return datetime.fromtimestamp(value / 1000 if value > _SECONDS_MAX else value, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def sha256(output: str) -> str:
    """SHA-256 of a text as UTF-8, in lowercase hex."""
    return hashlib.sha256(output.encode("utf-8", "replace")).hexdigest()
