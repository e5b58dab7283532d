"""Private keys in PEM armour: whole, with line feeds written as \\n, in quoted pieces, or cut at either end.

Promise: linear time on any text; a marker that stands alone in code, with no key beside it, stays.
"""

from __future__ import annotations

import re

from relay_git.contract.placeholder import Taken

RULE = "private-key"

_MARKER = re.compile(r"-----(?P<kind>BEGIN|END) (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_WHOLE = re.compile(r"[A-Za-z0-9+/=\s\\:,.>|-]+")

# What may stand between the lines of a key: line ends, true or written, indents, quotes, commas, the signs of a diff,
# and a plus between two quoted pieces.
_SIGNS = r"[\s\\\"'`,>|]|(?<!-)-(?!-)"
_RUN = re.compile(r"[A-Za-z0-9+/=]{16,}")
_SHORT = re.compile(r"[A-Za-z0-9+/=]{1,15}")
_HEADER = re.compile(r"(?:Proc-Type|DEK-Info|Version|Comment|Hash): [^\n\\]*")


class _Reading:
    """One direction of reading: each step takes all it can and never gives back, so that the time stays linear.

    Steps, not one large pattern: that would need possessive repeats, which Python before 3.11.5 gets wrong. A step
    answers with the place behind what it took, or None where there is nothing for it.
    """

    def __init__(self, line_end: str) -> None:
        self._gaps = re.compile(rf"(?:{line_end}|{_SIGNS}){{0,16}}")

    def gap(self, text: str, at: int, least: int) -> int | None:
        """What stands between two lines."""
        end = self._after_gaps(text, at)
        if end - at < least:
            return None
        if text.startswith("+", end) and (further := self._after_gaps(text, end + 1)) > end + 1:
            return further
        return end

    def lines(self, text: str, at: int) -> int | None:
        """One line of a key or more."""
        found = _RUN.match(text, at)
        end = None
        while found is not None:
            end = found.end()
            after = self.gap(text, end, 1)
            found = _RUN.match(text, after) if after is not None else None
        return end

    def headers(self, text: str, at: int) -> int:
        """The lines that PEM allows before the key."""
        while (after := self.gap(text, at, 0)) is not None and (found := _HEADER.match(text, after)):
            at = found.end()
        return at

    def body(self, text: str, at: int) -> int | None:
        """All that belongs to a key behind its BEGIN."""
        start = self.gap(text, self.headers(text, at), 0)
        end = self.lines(text, start) if start is not None else None
        return self._with_last(text, end) if end is not None else None

    def backwards(self, text: str) -> int | None:
        """All that belongs to a key before its END, in a text that was turned round."""
        start = self.gap(text, 0, 0) or 0
        short = _SHORT.match(text, start)
        after = self.gap(text, short.end(), 1) if short is not None else None
        return self.lines(text, after if after is not None else start)

    def _with_last(self, text: str, end: int) -> int:
        """The last line is shorter: it counts only where the key's end or the text's follows."""
        after = self.gap(text, end, 1)
        short = _SHORT.match(text, after) if after is not None else None
        if short is None:
            return end
        behind = self.gap(text, short.end(), 0) or short.end()
        return short.end() if behind == len(text) or text.startswith("-----", behind) else end

    def _after_gaps(self, text: str, at: int) -> int:
        found = self._gaps.match(text, at)
        return found.end() if found is not None else at


_FORWARD = _Reading(r"\\[nrt]")
_BACK = _Reading(r"[nrt]\\")


def redact_private_keys(text: str, taken: Taken) -> str:
    """The text without private keys; what was taken out is counted."""
    markers = list(_MARKER.finditer(text))
    spans: list[tuple[int, int]] = []
    done = 0
    for position, marker in enumerate(markers):
        if marker.start() < done:
            continue
        following = markers[position + 1] if position + 1 < len(markers) else None
        start, end = _key_at(text, marker, following, done)
        if end > start:
            spans.append((start, end))
            done = end
    return taken.cut(RULE, text, spans)


def _key_at(text: str, marker: re.Match[str], following: re.Match[str] | None, done: int) -> tuple[int, int]:
    """Start and end of the key that a marker belongs to, equal where there is none."""
    if marker["kind"] == "END":
        before = text[done : marker.start()][:-16_385:-1]
        length = _BACK.backwards(before)
        return (marker.start() - length, marker.end()) if length is not None else (0, 0)
    closing = following if following is not None and following["kind"] == "END" else None
    if closing is not None and _WHOLE.fullmatch(text, marker.end(), closing.start()):
        return marker.start(), closing.end()
    end = _FORWARD.body(text, marker.end())
    if end is None:
        return 0, 0
    if closing is not None and not re.search(r"[^\s\\\"'`,>|+nr-]", text[end : closing.start()][:64]):
        return marker.start(), closing.end()
    return marker.start(), end
