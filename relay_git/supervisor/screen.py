"""What a program has switched on in a terminal and not off again, read from what it writes.

Promise: the bytes are only looked at; wherever they are cut, the answer is the same. `off` switches off exactly what is
on, newest first, and is empty for a program that cleaned up after itself; `on` switches it on again. Memory is bounded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

# CSI with its marks, parameters and final byte; or RIS, and the keypad's two modes.
_SEQUENCE = re.compile(rb"\x1b(?:\[([<=>?!]?)([0-9;:]{0,64})([ -/]{0,2})([@-~])|([c=>]))")
_UNFINISHED = re.compile(rb"\x1b(?:\[[<=>?!]?[0-9;:]{0,64}[ -/]{0,2})?\Z")
_TAIL = 256

_ALTERNATE = (47, 1047, 1049)
# DEC private modes that are off in a terminal at rest: cursor keys, mouse, focus, alternate screen, bracketed paste,
# synchronized output, colour scheme reports, in-band resize; and those that are on: wrapping at the margin, the cursor.
_USUALLY_OFF = frozenset({1, 9, *range(1000, 1007), 1015, 1016, *_ALTERNATE, 2004, 2026, 2031, 2048})
_USUALLY_ON = frozenset({7, 25})
_MOST_KEYBOARDS = 32

Key = tuple[str, int, int]


@dataclass
class Screen:
    """The terminal's state as one program leaves it; feed it all that was written."""

    _changed: dict[Key, tuple[bytes, bytes]] = field(default_factory=dict)  # how it was switched on, how it goes off
    _rest: bytes = b""
    _tail: bytes = b""

    def feed(self, data: bytes) -> None:
        """Take what was written to the terminal."""
        self._tail = (self._tail + data)[-_TAIL:]
        data = self._rest + data
        for found in _SEQUENCE.finditer(data):
            self._take(found)
        unfinished = _UNFINISHED.search(data, max(0, len(data) - 80))
        self._rest = unfinished[0] if unfinished else b""

    def off(self) -> bytes:
        """What switches off all that is on."""
        return b"".join(off for _, off in reversed(self._changed.values()))

    def on(self) -> bytes:
        """What switches it on again."""
        return b"".join(on for on, _ in self._changed.values())

    def mid_line(self) -> bool:
        """Whether the last thing to be seen, once the alternate screen is left, is a line without its end."""
        if self._alternate():
            return False
        shown = _SEQUENCE.sub(b"", self._tail.rpartition(b"\x1b[?1049l")[2])
        return bool(shown) and not shown.endswith((b"\n", b"\r"))

    def _take(self, found: re.Match[bytes]) -> None:
        mark, given, between, final, single = (part or b"" for part in found.groups())
        if single:
            self._single(single, found[0])
            return
        numbers = [int(n) if n.isdigit() and len(n) < 6 else 0 for n in re.split(rb"[;:]", given)]
        match (mark + between + final).decode("ascii"):
            case "?h" | "?l":
                for number in numbers:
                    self._mode(number, set_=final == b"h")
            case "m":
                self._set(("colour", 0, 0), numbers[-1] != 0, found[0], b"\x1b[0m")
            case "r":
                # Without the margins the cursor goes home, so it is kept.
                self._set(("margins", 0, 0), bool(given), found[0], b"\x1b7\x1b[r\x1b8")
            case " q":
                self._set(("cursor", 0, 0), numbers[0] != 0, found[0], b"\x1b[0 q")
            case ">m" if numbers[0] == 4:
                self._set(("other-keys", 0, 0), any(numbers[1:]), found[0], b"\x1b[>4m")
            case ">u" | "<u" | "=u":
                self._keyboard(mark, numbers[0], found[0])
            case "!p":
                self._changed = {key: how for key, how in self._changed.items() if key[0] in ("mode", "keyboard")}

    def _single(self, which: bytes, sequence: bytes) -> None:
        if which == b"c":
            self._changed.clear()
        else:
            self._set(("keypad", 0, 0), which == b"=", sequence, b"\x1b>")

    def _mode(self, number: int, *, set_: bool) -> None:
        if number in _USUALLY_OFF or number in _USUALLY_ON:
            high, low = f"\x1b[?{number}h".encode(), f"\x1b[?{number}l".encode()
            how = (high, low) if number in _USUALLY_OFF else (low, high)
            self._set(("mode", number, 0), set_ is (number in _USUALLY_OFF), *how)

    def _keyboard(self, mark: bytes, number: int, sequence: bytes) -> None:
        """The kitty keyboard protocol: flags on a stack, one for each of the two screens."""
        screen = int(self._alternate())
        pushed = [key for key in self._changed if key[0] == "keyboard" and key[1] == screen]
        if mark == b"=":
            self._set(("flags", screen, 0), number != 0, sequence, b"\x1b[=0u")
        elif mark == b"<":
            for key in pushed[-max(number, 1) :]:
                del self._changed[key]
        elif len(pushed) < _MOST_KEYBOARDS:
            self._set(("keyboard", screen, len(pushed)), True, sequence, b"\x1b[<u")

    def _alternate(self) -> bool:
        return any(("mode", number, 0) in self._changed for number in _ALTERNATE)

    def _set(self, key: Key, changed: bool, on: bytes, off: bytes) -> None:
        self._changed.pop(key, None)
        if changed:
            self._changed[key] = (on, off)
