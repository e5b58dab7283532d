"""Following a file that grows, is cut, is replaced, or is not there."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

from relay_git.agents.transcript import Follower
from relay_git.session import SessionRecord


class Lines:
    """A reader that keeps what it was fed."""

    def __init__(self) -> None:
        self.fed: list[bytes] = []

    def feed(self, line: bytes) -> None:
        self.fed.append(line)

    def record(self) -> SessionRecord:
        return SessionRecord("lines", records=len(self.fed), prompts=tuple(line.decode("latin-1") for line in self.fed))


def following(path: Path, **more: int) -> Follower:
    return Follower(path, Lines, **more)


def test_a_file_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "t"
    follower = following(path)
    assert not follower.poll()
    path.write_bytes(b"a\n")
    assert follower.poll()
    assert follower.record().prompts == ("a",)


def test_lines_are_cut_at_lf_and_nowhere_else(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes("a\u2028b\x0bc\r\nd\x85\n".encode())
    follower = following(path)
    follower.poll()
    assert [text.encode("latin-1").decode() for text in follower.record().prompts] == ["a\u2028b\x0bc\r", "d\x85"]


def test_a_line_that_is_too_long_is_counted_and_the_next_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(b"x" * 1000 + b"\nshort\n" + b"y" * 1000)
    follower = following(path, max_line=100)
    follower.poll()
    record = follower.record(ended=True)
    assert record.prompts == ("short",)
    assert record.skipped == 2
    assert record.losses[0] == "1 lines longer than 100 bytes were passed over"


def test_a_truncated_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(b"a\nb\nc\n")
    follower = following(path)
    follower.poll()
    path.write_bytes(b"z\n")
    assert follower.poll()
    assert follower.record().prompts == ("z",)
    assert follower.restarts == 1


def test_a_file_that_was_cut_and_grew_past_the_old_place_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(b"a\nb\n")
    follower = following(path)
    follower.poll()
    path.write_bytes(b"c\nd\ne\nf\n")
    follower.poll()
    assert follower.record().prompts == ("c", "d", "e", "f")


def test_a_replaced_file_is_read_again(tmp_path: Path) -> None:
    path, other = tmp_path / "t", tmp_path / "other"
    path.write_bytes(b"a\n")
    follower = following(path)
    follower.poll()
    other.write_bytes(b"a\nnew\n")
    other.replace(path)
    follower.poll()
    assert follower.record().prompts == ("a", "new")
    assert "truncated or replaced" in follower.record().losses[0]


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    follower = following(tmp_path)  # a folder
    assert not follower.poll()
    assert follower.record().losses == ("the transcript is not a regular file",)


def test_memory_stays_bounded_by_the_longest_line(tmp_path: Path) -> None:
    path = tmp_path / "t"
    with path.open("wb") as file:
        for _ in range(64):
            file.write(b"x" * 1_048_576)
    follower = following(path, max_line=100_000)
    tracemalloc.start()
    follower.poll()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4_000_000
