"""Canonical bytes: one value, one spelling, so that a signature over bytes is a signature over meaning.

Promise: `canonical` equals RFC 8785 for the subset that contracts use (objects with ASCII keys, arrays, strings,
integers within +-(2**53 - 1), true, false, null), and `strict_parse` accepts nothing outside that subset. What the
fields mean is `model`'s business.
"""

from __future__ import annotations

import json
from typing import Any, TypeAlias

import orjson

MAX_BYTES = 256 * 1024
MAX_DEPTH = 16
MAX_INTEGER = 2**53 - 1

JsonObject: TypeAlias = dict[str, Any]


class Malformed(ValueError):
    """The bytes or the value are not what a contract may consist of; `reason` says why, in words."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def canonical(value: object) -> bytes:
    """The canonical bytes of a value; raises `Malformed` for what the subset does not hold."""
    _check(value)
    return _encode(value)


def strict_parse(data: bytes) -> JsonObject:
    """The object that the bytes spell, in any spelling; raises `Malformed` for everything but the subset."""
    fast = _parse_fast(data)
    if fast is not None:
        return fast
    return _parse(data, _REFUSING_DUPLICATES, escapes=b"\\" in data)


def parse_stored(data: bytes) -> JsonObject:
    """The object in stored bytes, which must be its canonical bytes and nothing else; raises `Malformed`."""
    fast = _parse_fast(data)
    if fast is not None:
        return fast
    # All but the canonical spelling takes the slow way, which knows the words for what is wrong.
    value = strict_parse(data)
    if _encode(value) == data:
        return value
    raise Malformed("the bytes are not canonical: keys out of order, white space, or another spelling of a value")


def glance(data: bytes) -> JsonObject:
    """The object that bytes seem to spell, to name it before it is verified; empty where there is none."""
    try:
        value = orjson.loads(data) if len(data) <= MAX_BYTES else None
    except orjson.JSONDecodeError:
        value = None
    return value if type(value) is dict else {}


def _parse_fast(data: bytes) -> JsonObject | None:
    """The object where the bytes are canonical, None where they are not or where it cannot be told in a hurry.

    orjson lets through what the subset does not hold: duplicate keys, -0, white space and other spellings, which its
    own encoding of the value does not give back; integers above 64 bits, which it makes floats of; and floats, depth
    and keys, which are looked at here. Its encoder is RFC 8785 on what is left, and refuses integers beyond 53 bits.
    """
    if len(data) > MAX_BYTES:
        return None
    try:
        value = orjson.loads(data)
        if type(value) is not dict or orjson.dumps(value, option=_CANONICAL) != data:
            return None
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return None
    return value if _is_plain(value, ascii_only=data.isascii()) else None


def _is_plain(value: JsonObject, *, ascii_only: bool) -> bool:
    """No float, no key outside of ASCII, no more levels than allowed, in what a decoder made of canonical bytes."""
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        if not ascii_only and not all(k.isascii() for item in level if type(item) is dict for k in item):
            return False
        # One comprehension a level, and strings left out at once: a third of the time of the plain loop.
        level = [
            member
            for item in level
            for member in (item.values() if type(item) is dict else item if type(item) is list else ())
            if type(member) is not str
        ]
        if float in map(type, level):
            return False
        if not level:
            return True
    return not any(type(item) in (dict, list) for item in level)


def _parse(data: bytes, decoder: json.JSONDecoder, *, escapes: bool = False) -> JsonObject:
    if len(data) > MAX_BYTES:
        raise Malformed(f"{len(data)} bytes, the limit is {MAX_BYTES}")
    try:
        value = decoder.decode(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise Malformed(f"not UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise Malformed(f"nested deeper than {MAX_DEPTH} levels") from None
    except json.JSONDecodeError as error:
        raise Malformed(f"not JSON: {error.msg} at character {error.pos}") from None
    if type(value) is not dict:
        raise Malformed("not a JSON object")
    _check_parsed(value, ascii_only=data.isascii() and not escapes)
    return value


def _check_parsed(value: JsonObject, ascii_only: bool) -> None:
    """What `_check` asks, of a value that a decoder made: its types and integers are right already."""
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        if not ascii_only:  # An escape in a key is not ASCII here either: canonical bytes have none, and are compared.
            for item in level:
                if type(item) is dict:
                    _check_keys(item)
        # One comprehension a level, and strings left out at once: a third of the time of the plain loop.
        level = [
            member
            for item in level
            for member in (item.values() if type(item) is dict else item if type(item) is list else ())
            if type(member) is not str
        ]
        if not level:
            return
    if any(type(item) in (dict, list) for item in level):
        raise Malformed(f"nested deeper than {MAX_DEPTH} levels")


def _encode(value: object) -> bytes:
    try:
        return _ENCODER.encode(value).encode("utf-8")
    except UnicodeEncodeError:
        raise Malformed("a string holds half of a surrogate pair") from None


def _check(value: object) -> None:
    """Walks level by level, so that no depth can exhaust the stack."""
    level: list[Any] = [value]
    for depth in range(MAX_DEPTH + 1):
        below: list[Any] = []
        for item in level:
            kind = type(item)
            if kind is str or item is None or kind is bool:
                continue
            if kind is int:
                _check_integer(item)
            elif kind is dict:
                _check_keys(item)
                _check_depth(depth)
                below.extend(item.values())
            elif kind is list:
                _check_depth(depth)
                below.extend(item)
            else:
                raise Malformed(f"a {kind.__name__} is not allowed")
        if not below:
            return
        level = below


def _check_depth(depth: int) -> None:
    if depth >= MAX_DEPTH:
        raise Malformed(f"nested deeper than {MAX_DEPTH} levels")


def _check_integer(number: int) -> None:
    if not -MAX_INTEGER <= number <= MAX_INTEGER:
        raise Malformed("an integer is outside of +-(2**53 - 1)")


def _check_keys(item: dict[object, object]) -> None:
    for key in item:
        if type(key) is not str or not key.isascii():
            raise Malformed("a key is not an ASCII string")


def _integer(text: str) -> int:
    if len(text) > 17:
        raise Malformed("an integer is outside of +-(2**53 - 1)")
    if text == "-0":
        raise Malformed("-0 is not allowed")
    number = int(text)
    _check_integer(number)
    return number


def _no_float(text: str) -> float:
    raise Malformed(f"only integers are allowed, not {text[:32]}")


def _no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Malformed("a key occurs twice in one object")
    return found


_CANONICAL = orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER
_ENCODER = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False, check_circular=False
)
_REFUSING_DUPLICATES = json.JSONDecoder(
    parse_int=_integer, parse_float=_no_float, parse_constant=_no_float, object_pairs_hook=_no_duplicates
)
