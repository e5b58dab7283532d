"""What a leg says: its pipes read as they come, as lines for the watcher and as a log that holds no secret.

Promise: whatever is said, in whatever shape, no flood blocks the agent or fills memory or disk, and the log has only
whole lines out of which the secrets were taken before they were written.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

LINE_BYTES = 1 << 20
_QUEUE_BATCHES = 128  # each holds the lines of one read: 64 KiB, or one line of at most LINE_BYTES
_PATIENCE = 2.0  # seconds that a reader waits for us before it drops lines, so that no flood blocks the agent for good
_TAIL_LINES = 40


@dataclass(frozen=True, slots=True)
class Log:
    """Where output is kept, 0600: in files of this folder, of so many bytes each at most, and without its secrets."""

    folder: Path
    room: int
    clean: Callable[[str], str]


class Output:
    """Both pipes of a process; at a terminal there are none, and nothing is heard."""

    def __init__(self, stdout: IO[bytes] | None, stderr: IO[bytes] | None, log: Log | None) -> None:
        self.dropped_lines = 0
        self._lines: queue.Queue[list[bytes]] = queue.Queue(_QUEUE_BATCHES)
        self._errors: deque[bytes] = deque(maxlen=_TAIL_LINES)
        self._pipes: list[IO[bytes]] = []
        self._threads: list[threading.Thread] = []
        for pipe, name, take in ((stdout, "stdout", self._take), (stderr, "stderr", self._errors.extend)):
            if pipe is not None and log is not None:
                self._pipes.append(pipe)
                args = (pipe, log, name, take)
                self._threads.append(threading.Thread(target=self._pump, args=args, daemon=True))
        for thread in self._threads:
            thread.start()

    def lines(self) -> Iterator[bytes]:
        """What stdout said since the last call, line by line."""
        with contextlib.suppress(queue.Empty):
            while True:
                yield from self._lines.get_nowait()

    def last_errors(self) -> list[bytes]:
        """The last lines on stderr."""
        return list(self._errors)

    def drain(self, seconds: float) -> None:
        """Wait for the end of the pipes; a descendant that holds one open is waited for no longer than that."""
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def close(self) -> None:
        """Let go of the pipes; one that a descendant still holds open is left to its reader."""
        self.drain(1.0)
        if not any(thread.is_alive() for thread in self._threads):
            for pipe in self._pipes:
                pipe.close()

    def _pump(self, pipe: IO[bytes], log: Log, name: str, take: Callable[[list[bytes]], object]) -> None:
        line, too_long, room = b"", False, log.room
        with (
            contextlib.suppress(OSError, ValueError),
            open(log.folder / name, "ab", buffering=0, opener=_private) as out,
        ):
            while chunk := os.read(pipe.fileno(), 1 << 16):
                *whole, line = (line + chunk).split(b"\n")
                if too_long and whole:
                    del whole[0]
                    too_long = False
                if whole:
                    take(whole)
                    room -= _write(out, b"".join(each + b"\n" for each in whole), room, log.clean)
                if len(line) > LINE_BYTES:
                    self.dropped_lines += not too_long
                    line, too_long = b"", True
            if line and not too_long:
                _write(out, line, room, log.clean)

    def _take(self, lines: list[bytes]) -> None:
        try:
            self._lines.put(lines, timeout=_PATIENCE)
        except queue.Full:
            self.dropped_lines += len(lines)


def _write(out: IO[bytes], said: bytes, room: int, clean: Callable[[str], str]) -> int:
    """How many bytes of the log's room this has taken."""
    if room <= 0:
        return 0
    kept = clean(said.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")[:room]
    # A full disk must not stop the agent: what the log cannot hold is still heard.
    with contextlib.suppress(OSError):
        out.write(kept)
    return len(kept)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
