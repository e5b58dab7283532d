"""A transcript that its tool has compressed with Zstandard: read whole, in a stream, when it is new or was replaced.

Promise: the file stays as it is, memory is bounded, and no more than `MOST` bytes are unpacked. Where nothing on this
machine can unpack it the record says so and names the command that helps; it is never just empty.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from relay_git.agents.agent import Reader
from relay_git.agents.shelf import identity
from relay_git.agents.transcript import CHUNK, Lines
from relay_git.session import SessionRecord

MOST = 4 << 30
_MISSING = 'it is compressed with Zstandard, which cannot be read here: pip install "git-relay[zstd]"'


class Unpacked:
    """Follows one compressed transcript; such files are written once, so it is read as often as it was replaced."""

    def __init__(self, path: Path, fresh: Callable[[], Reader]) -> None:
        self._path, self._fresh = path, fresh
        self._lines = Lines(fresh())
        self._identity: tuple[int, ...] = ()
        self._loss = ""

    def poll(self) -> bool:
        """Read the file if it is another one than before."""
        now = identity(self._path)
        if now == self._identity:
            return False
        self._identity, self._lines, self._loss = now, Lines(self._fresh()), ""
        if now:
            self._read()
        return True

    def record(self, *, ended: bool = False) -> SessionRecord:
        """Everything understood so far."""
        record = self._lines.record(ended=ended)
        return replace(record, losses=(*record.losses, self._loss)) if self._loss else record

    def _read(self) -> None:
        unpack = _unpacker()
        if unpack is None:
            self._loss = _MISSING
            return
        room = MOST
        try:
            for chunk in unpack(self._path):
                self._lines.take(chunk[:room])
                room -= len(chunk)
                if room <= 0:
                    self._loss = f"only the first {MOST} bytes were unpacked"
                    return
        except (OSError, EOFError, ValueError, RuntimeError) as error:
            self._loss = f"it could not be unpacked to its end: {type(error).__name__}"


def _unpacker() -> Callable[[Path], Iterator[bytes]] | None:
    """How to read such a file with what Python has: its own module since 3.14, else the library of the extra."""
    for module, unpack in (("compression.zstd", _by_standard_library), ("zstandard", _by_zstandard)):
        try:
            library = importlib.import_module(module)
        except ImportError:
            continue
        return lambda path, unpack=unpack, library=library: unpack(path, library)  # type: ignore[misc]
    return None


def _by_standard_library(path: Path, library: Any) -> Iterator[bytes]:  # noqa: ANN401 - a module that may be absent
    with path.open("rb") as source, library.ZstdFile(source) as stream:
        while chunk := stream.read(CHUNK):
            yield chunk


def _by_zstandard(path: Path, library: Any) -> Iterator[bytes]:  # noqa: ANN401
    try:
        with path.open("rb") as source:
            yield from library.ZstdDecompressor(max_window_size=1 << 27).read_to_iter(source, write_size=CHUNK)
    except library.ZstdError as error:
        raise ValueError(str(error)) from error
