"""Following a transcript while its agent is still writing it.

Promise: every line is handed over once, whole, in order, and never before its LF is there; lines are cut at LF as
bytes and nowhere else. Memory is bounded by the longest line allowed. A file that was truncated or replaced is read
again from its start by a fresh reader, so that the record is always that of the file as it is.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from relay_git.agents.agent import Reader
from relay_git.session import SessionRecord

CHUNK = 262_144
# Screenshots are stored inline as base64: lines of 20 MiB were reported. What is longer is not worth its memory.
MAX_LINE = 33_554_432
# So many bytes before the read position are compared at each poll: a file that was cut and has grown past the old
# position in between looks otherwise like one that was only appended to.
_TAIL = 64


class Lines:
    """Cuts a stream of bytes into lines for a reader; `pending` is how many bytes of an unfinished line it holds."""

    def __init__(self, reader: Reader, max_line: int = MAX_LINE) -> None:
        self._reader, self._max_line = reader, max_line
        self._partial = bytearray()
        self._dropping = False
        self._too_long = 0
        self._lines = 0

    @property
    def pending(self) -> int | None:
        """Bytes since the last LF; None within a line that is too long to be kept."""
        return None if self._dropping else len(self._partial)

    def take(self, chunk: bytes) -> bool:
        """Hand over every line that ends in this chunk; whether one did."""
        at = 0
        while (end := chunk.find(b"\n", at)) >= 0:
            if self._partial or self._dropping or end - at > self._max_line:
                self._end_line(chunk[at:end])
            else:
                self._reader.feed(chunk[at:end])
            self._lines += 1
            at = end + 1
        self._grow(chunk[at:])
        return at > 0

    def record(self, *, ended: bool = False) -> SessionRecord:
        """The record so far; with `ended`, a last line without its LF is counted as lost."""
        record = self._reader.record()
        losses = list(record.losses)
        skipped, torn = record.skipped + self._too_long, record.skipped_lines
        if self._too_long:
            losses.append(f"{self._too_long} lines longer than {self._max_line} bytes were passed over")
        if ended and (self._partial or self._dropping):
            skipped, torn = skipped + 1, (*torn, self._lines + 1)
            losses.append("the last line is cut: its writer was stopped in the middle of it")
        return replace(record, skipped=skipped, skipped_lines=torn, losses=tuple(losses))

    def _end_line(self, end: bytes) -> None:
        self._grow(end)
        line, self._partial = bytes(self._partial), bytearray()
        if self._dropping:
            self._too_long += 1
            self._dropping = False
        else:
            self._reader.feed(line)

    def _grow(self, more: bytes) -> None:
        if self._dropping:
            return
        if len(self._partial) + len(more) > self._max_line:
            self._dropping = True
            self._partial = bytearray()
        else:
            self._partial += more


class Follower:
    """One transcript and the reader that is fed from it.

    `fresh` makes a new reader; it is called once now and again whenever the file begins anew.
    """

    def __init__(self, path: Path, fresh: Callable[[], Reader], *, max_line: int = MAX_LINE) -> None:
        self.path = path
        self.offset = 0
        self.restarts = 0
        self._fresh = fresh
        self._max_line = max_line
        self._begin()

    def _begin(self) -> None:
        self._lines = Lines(self._fresh(), self._max_line)
        self._position = 0
        self._identity: tuple[int, int] | None = None
        self._tail = b""
        self._unreadable = ""
        self.offset = 0

    def poll(self, most: int | None = None) -> bool:
        """Read what is new, at most about this many bytes; True when a line was handed over or the file began anew."""
        try:
            # A FIFO would block and a device may never end: what is no regular file is not opened.
            if not stat.S_ISREG(self.path.stat().st_mode):
                self._unreadable = "the transcript is not a regular file"
                return False
            with self.path.open("rb") as file:
                began = self._begin_anew_if_changed(file)
                fed = self._feed(file, most)
        except FileNotFoundError:
            return False
        except OSError as error:
            self._unreadable = f"the transcript could not be read: {error.strerror or type(error).__name__}"
            return False
        self._unreadable = ""
        return fed or began

    def record(self, *, ended: bool = False) -> SessionRecord:
        """The record so far; with `ended`, a last line without its LF is counted as lost."""
        record = self._lines.record(ended=ended)
        losses = list(record.losses)
        if self._unreadable:
            losses.append(self._unreadable)
        if self.restarts:
            losses.append(f"the transcript was truncated or replaced {self.restarts} times and read again")
        return replace(record, losses=tuple(losses))

    def _begin_anew_if_changed(self, file: BinaryIO) -> bool:
        status = os.fstat(file.fileno())
        identity = (status.st_dev, status.st_ino)
        if self._identity is None:
            self._identity = identity
            return False
        if identity == self._identity and status.st_size >= self._position and self._same_tail(file):
            return False
        restarts = self.restarts + 1
        self._begin()
        self.restarts, self._identity = restarts, identity
        return True

    def _same_tail(self, file: BinaryIO) -> bool:
        file.seek(self._position - len(self._tail))
        return file.read(len(self._tail)) == self._tail

    def _feed(self, file: BinaryIO, most: int | None) -> bool:
        file.seek(self._position)
        fed = False
        while most is None or most > 0:
            chunk = file.read(CHUNK if most is None else min(CHUNK, most))
            if not chunk:
                break
            most = None if most is None else most - len(chunk)
            self._position += len(chunk)
            self._tail = chunk[-_TAIL:] if len(chunk) >= _TAIL else (self._tail + chunk)[-_TAIL:]
            fed = self._lines.take(chunk) or fed
            if (pending := self._lines.pending) is not None:
                self.offset = self._position - pending
        return fed
