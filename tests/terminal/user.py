"""A user at a terminal: a real pseudo-terminal with a program in it, typed into and looked at by a test."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_AT_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"
)
_SEQUENCE = re.compile(r"\x1b(?:\[[<=>?!]?[0-9;:]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_=>c78]|\([A-Z0-9])")


class User:
    """Sits at a terminal of `columns` x `rows` in which `argv` was started; `typed` is all that was typed so far."""

    def __init__(
        self,
        argv: Sequence[str | Path],
        *,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        columns: int = 100,
        rows: int = 30,
    ) -> None:
        self.typed, self.seen = b"", bytearray()
        self._eyes, slave = os.openpty()
        os.set_blocking(self._eyes, False)
        self.resize(columns, rows)
        self.modes_before = termios.tcgetattr(slave)
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _AT_TERMINAL, *map(str, argv)],
            cwd=cwd,
            env={**os.environ, "TERM": "xterm-256color", **(env or {})},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        self.slave = slave

    def type(self, keys: str | bytes) -> None:
        """Type keys."""
        data = keys.encode() if isinstance(keys, str) else keys
        self.typed += data
        while data:
            with contextlib.suppress(BlockingIOError):
                data = data[os.write(self._eyes, data) :]
            self.look(0.01)

    def look(self, seconds: float = 0.0) -> bytearray:
        """All that was shown so far, after waiting so long for more."""
        while select.select([self._eyes], [], [], seconds)[0]:
            try:
                data = os.read(self._eyes, 1 << 16)
            except OSError:
                data = b""
            if not data:
                break
            self.seen += data
            seconds = 0.0
        return self.seen

    def text(self, start: int = 0) -> str:
        """What was shown since `start`, without control sequences."""
        return _SEQUENCE.sub("", self.look()[start:].decode("utf-8", "replace"))

    def sees(self, words: str, *, since: int = 0, seconds: float = 60) -> int:
        """Wait until the words have been shown; how much had been shown then."""
        return self.until(lambda: words in self.text(since), f"{words!r} was not shown", seconds)

    def until(self, true, what: str = "it did not come", seconds: float = 60) -> int:
        """Keep looking until something is true."""
        deadline = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < deadline, f"{what}:\n{self.text()[-3000:]}"
            self.look(0.05)
        return len(self.seen)

    def is_asked(self) -> bool:
        """Whether keys lie in the terminal that no program has read."""
        return bool(select.select([self.slave], [], [], 0)[0])

    def ends(self, seconds: float = 60) -> int:
        """Wait for the end of the program; its exit status."""
        self.until(lambda: self.process.poll() is not None, "it did not end", seconds)
        self.look(0.1)
        return self.process.returncode

    def modes(self) -> list:
        """The terminal's modes now."""
        return termios.tcgetattr(self.slave)

    def resize(self, columns: int, rows: int) -> None:
        """Give the window another size."""
        fcntl.ioctl(self._eyes, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def leave(self) -> None:
        """Close the window."""
        for end in (self.slave, self._eyes):
            if end >= 0:
                os.close(end)
        self.slave = self._eyes = -1

    def close(self) -> None:
        """Nothing that was started here is left."""
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.leave()
