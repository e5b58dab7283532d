"""Canonical bytes equal RFC 8785 on the subset, and nothing outside of the subset is parsed."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay_git.contract.canonical import (
    _REFUSING_DUPLICATES,
    MAX_BYTES,
    MAX_DEPTH,
    MAX_INTEGER,
    Malformed,
    _encode,
    _parse,
    _parse_fast,
    canonical,
    parse_stored,
    strict_parse,
)

TEXTS = st.text(st.characters(exclude_categories=("Cs",)))
KEYS = st.text(st.characters(max_codepoint=127), max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-MAX_INTEGER, MAX_INTEGER) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=5)

SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def rfc_8785(value: object) -> str:
    """RFC 8785 written out by its text: sections 3.2.2 (literals, strings, numbers) and 3.2.3 (sorting)."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return '"' + "".join(SHORT.get(c, c if ord(c) >= 0x20 else f"\\u{ord(c):04x}") for c in value) + '"'
    if isinstance(value, list):
        return "[" + ",".join(map(rfc_8785, value)) + "]"
    assert isinstance(value, dict)
    ordered = sorted(value, key=lambda key: key.encode("utf-16-be"))
    return "{" + ",".join(f"{rfc_8785(key)}:{rfc_8785(value[key])}" for key in ordered) + "}"


@given(OBJECTS)
def test_canonical_bytes_are_those_of_rfc_8785_and_come_back_the_same(value: dict[str, object]) -> None:
    data = canonical(value)
    assert data == rfc_8785(value).encode("utf-8")
    assert parse_stored(data) == value
    assert strict_parse(data) == value


@given(OBJECTS, st.integers(0), st.binary(min_size=1, max_size=3))
def test_the_fast_parse_accepts_nothing_that_the_strict_one_does_not(value, place, put) -> None:
    good = canonical(value)
    place %= len(good) + 1
    odd = b'"' + put + b'":' + put if put.isalnum() else put
    for data in (good[:place] + put + good[place + 1 :], good[:place] + odd + good[place:]):
        fast = _parse_fast(data)
        if fast is not None:
            slow = _parse(data, _REFUSING_DUPLICATES)
            assert (fast, _encode(slow)) == (slow, data)
            assert type(fast) is type(slow)


@pytest.mark.parametrize("number", ["1.0", "1.5", "1e3", "-0", "9007199254740992", "18446744073709551616", "1" * 40])
def test_the_fast_parse_takes_no_number_outside_of_the_subset(number) -> None:
    for text in (f'{{"a":{number}}}', f'{{"a":[["x",{number}]]}}', f'{{"a":{{"é":0,"z":{number}}}}}'):
        assert _parse_fast(text.encode()) is None
        with pytest.raises(Malformed):
            strict_parse(text.encode())


def test_golden_bytes() -> None:
    value = {"b": [1, -2, None, True], "a": 'é"\\\n\x01\x7f\u2028', "B": {}}
    assert canonical(value) == '{"B":{},"a":"é\\"\\\\\\n\\u0001\x7f\u2028","b":[1,-2,null,true]}'.encode()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not JSON"),
        (b"[1]", "not a JSON object"),
        (b'{"a":1.0}', "only integers"),
        (b'{"a":1e3}', "only integers"),
        (b'{"a":NaN}', "only integers"),
        (b'{"a":-Infinity}', "only integers"),
        (b'{"a":-0}', "-0"),
        (b'{"a":9007199254740992}', "integer is outside"),
        (b'{"a":-9007199254740992}', "integer is outside"),
        (b'{"a":' + b"9" * 5000 + b"}", "integer is outside"),
        (b'{"a":1,"a":1}', "twice"),
        (b'{"b":{"a":1,"a":2}}', "twice"),
        (b'{"a":"\\ud800"}', "surrogate"),
        (b'{"a":"\xff"}', "UTF-8"),
        (b'{"a":"\xed\xa0\x80"}', "UTF-8"),
        (b'\xef\xbb\xbf{"a":1}', "not JSON"),
        (b'{"a":1}x', "not JSON"),
        (b'{"a":"\n"}', "not JSON"),
        ('{"é":1}'.encode(), "ASCII"),
        (b'{"\\u00e9":1}', "ASCII"),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "deeper"),
        (b'{"a":' + b"[" * 16 + b"]" * 16 + b"}", "deeper"),
        (b'{"a":"' + b"x" * MAX_BYTES + b'"}', "bytes"),
    ],
)
def test_what_is_outside_of_the_subset_is_refused_with_a_reason(data: bytes, reason: str) -> None:
    with pytest.raises(Malformed, match=reason):
        parse_stored(data)
    if reason != "surrogate":
        with pytest.raises(Malformed, match=reason):
            strict_parse(data)


@pytest.mark.parametrize(
    "data", [b'{"a":1}\n', b' {"a":1}', b'{"a": 1}', b'{"b":1,"a":1}', b'{"a":"\\u0041"}', b'{"a":"\\/"}']
)
def test_another_spelling_of_the_same_value_is_not_stored_form(data: bytes) -> None:
    strict_parse(data)
    with pytest.raises(Malformed, match="not canonical"):
        parse_stored(data)


@pytest.mark.parametrize(
    "value", [1.5, float("nan"), {1: 2}, {"é": 1}, ("a",), b"x", 2**53, "\ud800", {"a": {1, 2}}, object()]
)
def test_values_outside_of_the_subset_have_no_canonical_form(value: object) -> None:
    with pytest.raises(Malformed):
        canonical(value)


def test_depth_is_bounded_exactly() -> None:
    value: object = 1
    for _ in range(MAX_DEPTH - 1):
        value = [value]
    assert parse_stored(canonical({"a": value})) == {"a": value}
    with pytest.raises(Malformed, match="deeper"):
        canonical({"a": [value]})
    with pytest.raises(Malformed, match="deeper"):
        parse_stored(json.dumps({"a": [value]}).encode())


@given(st.binary(max_size=80))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    for parse in (strict_parse, parse_stored):
        with contextlib.suppress(Malformed):
            parse(data)
