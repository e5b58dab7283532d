"""Private keys in PEM armour: whole, with line feeds written as \\n, in quoted pieces, or cut at either end.

Promise: linear time on any text; a marker that stands alone in code, with no key beside it, stays.
"""

from __future__ import annotations

import re
from collections import Counter

RULE = "private-key"

_MARKER = re.compile(r"-----(?P<kind>BEGIN|END) (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_WHOLE = re.compile(r"[A-Za-z0-9+/=\s\\:,.>|-]+")

# What may stand between the lines of a key: line ends, true or written, indents, quotes, commas, the signs of a diff,
# and a plus between two quoted pieces. `_BACK` is the same for text that is read from its end.
_SIGNS = r"[\s\\\"'`,>|]|(?<!-)-(?!-)"
_GAP = rf"(?:\\[nrt]|{_SIGNS})"
_BACK = rf"(?:[nrt]\\|{_SIGNS})"
_RUN = r"[A-Za-z0-9+/=]{16,}+"


def _between(gap: str, least: int) -> str:
    return rf"{gap}{{{least},16}}+(?:\+{gap}{{1,16}}+)?+"


def _lines(gap: str) -> str:
    return rf"{_RUN}(?:{_between(gap, 1)}{_RUN})*+"


_HEADERS = rf"(?:{_between(_GAP, 0)}(?:Proc-Type|DEK-Info|Version|Comment|Hash): [^\n\\]*+)*+"
_LAST = rf"(?:{_between(_GAP, 1)}[A-Za-z0-9+/=]{{1,15}}+(?={_between(_GAP, 0)}(?:-----|\Z)))?+"
_BODY = re.compile(rf"{_HEADERS}{_between(_GAP, 0)}{_lines(_GAP)}{_LAST}")
_BACKWARDS = re.compile(rf"{_between(_BACK, 0)}(?:[A-Za-z0-9+/=]{{1,15}}+{_between(_BACK, 1)})?+{_lines(_BACK)}")


def redact_private_keys(text: str, counts: Counter[str]) -> str:
    """The text without private keys; what was taken out is added to the counts."""
    markers = list(_MARKER.finditer(text))
    kept: list[str] = []
    done = 0
    for position, marker in enumerate(markers):
        if marker.start() < done:
            continue
        following = markers[position + 1] if position + 1 < len(markers) else None
        start, end = _key_at(text, marker, following, done)
        if end > start:
            counts[RULE] += 1
            kept += [text[done:start], f"[redacted:{RULE}]"]
            done = end
    return "".join([*kept, text[done:]])


def _key_at(text: str, marker: re.Match[str], following: re.Match[str] | None, done: int) -> tuple[int, int]:
    """Start and end of the key that a marker belongs to, equal where there is none."""
    if marker["kind"] == "END":
        before = text[done : marker.start()][:-16_385:-1]
        found = _BACKWARDS.match(before)
        return (marker.start() - found.end(), marker.end()) if found else (0, 0)
    closing = following if following is not None and following["kind"] == "END" else None
    if closing is not None and _WHOLE.fullmatch(text, marker.end(), closing.start()):
        return marker.start(), closing.end()
    found = _BODY.match(text, marker.end())
    if found is None:
        return 0, 0
    if closing is not None and not re.search(r"[^\s\\\"'`,>|+nr-]", text[found.end() : closing.start()][:64]):
        return marker.start(), closing.end()
    return marker.start(), found.end()
