"""What a supervisor tells, kept beside it: a bounded file that `attach` follows.

Promise: at most two files of MOST bytes for a session, 0600, in its log folder; a line is one line, made printable by
who told it. What cannot be written is not kept, and a session goes on all the same.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from relay_git.errors import RelayError
from relay_git.git.repo import Repo, make_private
from relay_git.session import SessionId

MOST = 1 << 20
_SHOWN = 20


def file_of(repo: Repo, session: SessionId) -> Path:
    """Where the supervisor of a session keeps what it tells."""
    return repo.log_dir(session) / "told"


def keep(file: Path, line: str) -> None:
    """Add a line; a file that is full becomes the old one."""
    with contextlib.suppress(OSError, RelayError):
        make_private(file.parent)
        if file.exists() and file.stat().st_size > MOST:
            file.replace(file.with_suffix(".old"))
        fd = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(fd, "wb") as out:
            out.write(line.replace("\n", " ").encode("utf-8", "replace") + b"\n")


class Reading:
    """Follows such a file, over its change to the old one, from its last lines or (`fresh`) from its end."""

    def __init__(self, file: Path, *, fresh: bool = False) -> None:
        self._file, self._half = file, b""
        self._inode, self._at = 0, 0
        self._first = self._skip(fresh=fresh)

    def lines(self) -> list[str]:
        """What was told since the last call."""
        first, self._first = self._first, []
        with contextlib.suppress(OSError), self._file.open("rb") as source:
            now = os.fstat(source.fileno())
            if now.st_ino != self._inode:
                first += self._rest_of_the_old()
                self._inode, self._at = now.st_ino, 0
            return first + self._read(source.fileno())
        return first

    def _skip(self, *, fresh: bool) -> list[str]:
        with contextlib.suppress(OSError), self._file.open("rb") as source:
            self._inode = os.fstat(source.fileno()).st_ino
            lines = self._read(source.fileno())
            return [] if fresh else lines[-_SHOWN:]
        return []

    def _rest_of_the_old(self) -> list[str]:
        with contextlib.suppress(OSError), self._file.with_suffix(".old").open("rb") as source:
            if os.fstat(source.fileno()).st_ino == self._inode:
                return self._read(source.fileno())
        return []

    def _read(self, fd: int) -> list[str]:
        data = os.pread(fd, 2 * MOST, self._at)
        self._at += len(data)
        *whole, self._half = (self._half + data).split(b"\n")
        return [line.decode("utf-8", "replace") for line in whole]
