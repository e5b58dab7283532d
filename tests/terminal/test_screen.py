"""What a program left on in a terminal is known from what it wrote, however that was cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay_git.supervisor.screen import Screen

LEFT_ON = {
    b"\x1b[?1049h": b"\x1b[?1049l",
    b"\x1b[?25l": b"\x1b[?25h",
    b"\x1b[?25h\x1b[?2004h": b"\x1b[?2004l",
    b"\x1b[?1000;1003;1006h": b"\x1b[?1006l\x1b[?1003l\x1b[?1000l",
    b"\x1b[?1000;1006h\x1b[?1000l": b"\x1b[?1006l",
    b"\x1b[?1004h\x1b[?1004h": b"\x1b[?1004l",
    b"\x1b[>1u\x1b[>5u": b"\x1b[<u\x1b[<u",
    b"\x1b[>1u\x1b[>5u\x1b[<u": b"\x1b[<u",
    b"\x1b[>1u\x1b[>5u\x1b[<9u": b"",
    b"\x1b[=1u": b"\x1b[=0u",
    b"\x1b[=1;1u\x1b[=0u": b"",
    b"\x1b[>1u\x1b[?1049h\x1b[>1u": b"\x1b[<u\x1b[?1049l\x1b[<u",
    b"\x1b[>1u\x1b[?1049h\x1b[<u": b"\x1b[?1049l\x1b[<u",  # each screen has a stack of its own
    b"\x1b[>4;2m": b"\x1b[>4m",
    b"\x1b[>4;2m\x1b[>4;0m": b"",
    b"\x1b[1;31m": b"\x1b[0m",
    b"\x1b[31mred\x1b[0m\x1b[32m\x1b[m": b"",
    b"\x1b[2;5r": b"\x1b7\x1b[r\x1b8",
    b"\x1b[2;5r\x1b[r": b"",
    b"\x1b[5 q": b"\x1b[0 q",
    b"\x1b=": b"\x1b>",
    b"\x1b=\x1b>": b"",
    b"\x1b[?1049h\x1b[?1h\x1b=\x1bc": b"",
    b"\x1b[31m\x1b[?25l\x1b[!p": b"\x1b[?25h",
    b"\x1b[?12h\x1b[?1048h\x1b[4h plain [?1049h \x1b]0;title\x07": b"",
}


@pytest.mark.parametrize("written", LEFT_ON)
def test_what_is_left_on_is_switched_off_newest_first(written: bytes) -> None:
    screen = Screen()
    screen.feed(written)
    assert screen.off() == LEFT_ON[written]


@pytest.mark.parametrize("written", LEFT_ON)
def test_what_was_switched_off_can_be_switched_on_again(written: bytes) -> None:
    first, again = Screen(), Screen()
    first.feed(written)
    again.feed(first.on())
    assert again.off() == first.off()


PIECES = st.sampled_from(
    [*LEFT_ON, b"words", b"\x1b", b"\x1b[", b"\x1b[?", b"h", b"1049", "é".encode(), b"\xff", b"\n"]
)


@given(st.lists(PIECES, max_size=12).map(b"".join), st.data())
def test_it_is_the_same_wherever_the_bytes_are_cut(written: bytes, data) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(written)), max_size=6)))
    whole, cut = Screen(), Screen()
    whole.feed(written)
    for start, end in zip([0, *cuts], [*cuts, len(written)], strict=True):
        cut.feed(written[start:end])
    assert (cut.off(), cut.on(), cut.mid_line()) == (whole.off(), whole.on(), whole.mid_line())


@given(st.lists(st.binary(max_size=50), max_size=50))
def test_any_bytes_are_taken_and_no_memory_is_kept(parts: list[bytes]) -> None:
    screen = Screen()
    for part in [*parts, b"\x1b[" + b"1;" * 500, *[b"\x1b[>1u"] * 50]:
        screen.feed(part)
    assert len(screen.off()) < 1_000


@pytest.mark.parametrize(
    ("written", "open_line"),
    [
        (b"", False),
        (b"a line\r\n", False),
        (b"a line\r\n\x1b[?25h\x1b[0m", False),
        (b"half", True),
        (b"half\x1b[0m", True),
        (b"screen\x1b[?1049hfull of words\x1b[?1049l", False),
        (b"\x1b[?1049hfull of words\x1b[?1049l\x1b[mhalf", True),
        (b"\x1b[?1049hfull of words", False),
    ],
)
def test_an_open_line_is_known(written: bytes, open_line: bool) -> None:
    screen = Screen()
    screen.feed(written)
    assert screen.mid_line() is open_line
