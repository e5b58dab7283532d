"""Sessions whose files are rewritten as a whole: JSON documents, databases, folders of small files.

Promise: a document is read one value after another, so that memory is bounded by its largest value and a file that is
cut gives all that stands whole before the cut. A file that is read while it is being written costs nothing: the last
good record is kept, and it is read again at the next look. Nothing that is no regular file is opened.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from relay_git.agents import shelf
from relay_git.session import SessionRecord

CHUNK = 262_144
MOST_VALUE = 33_554_432  # characters of one value: an image stored inline is the largest that was reported
MOST = 1_073_741_824  # characters of one document
_TRIES = 3
_DECODER = json.JSONDecoder()
_SIGN = re.compile(r"\S")


class _Cut(Exception):
    """The document ends, or becomes something else, in the middle."""


class Document:
    """One pass over a JSON file: the members of its object, or the elements of its array under the name "".

    Members named in `lists` come element by element. Afterwards `torn` says why not all was read, if so.
    """

    def __init__(self, path: Path, lists: Collection[str] = ()) -> None:
        self.torn = ""
        self._path, self._lists = path, lists
        self._text, self._at, self._taken = "", 0, 0

    def __iter__(self) -> Iterator[tuple[str, object]]:
        if not shelf.is_regular(self._path):
            self.torn = f"{self._path.name} is not there, or is no regular file"
            return
        try:
            with self._path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
                yield from self._top(file)
        except OSError as error:
            self.torn = f"{self._path.name} could not be read: {error.strerror or type(error).__name__}"
        except _Cut:
            self.torn = f"{self._path.name} is cut or broken: what stands whole before that was read"

    def _top(self, file: TextIO) -> Iterator[tuple[str, object]]:
        match self._sign(file):
            case "[":
                yield from self._elements(file, "")
            case "{":
                yield from self._members(file)
            case _:
                raise _Cut

    def _members(self, file: TextIO) -> Iterator[tuple[str, object]]:
        while (sign := self._sign(file)) != "}":
            if sign == ",":
                continue
            self._at -= 1
            name = self._value(file)
            if not isinstance(name, str) or self._sign(file) != ":":
                raise _Cut
            if self._sign(file) == "[" and name in self._lists:
                yield from self._elements(file, name)
            else:
                self._at -= 1
                yield name, self._value(file)

    def _elements(self, file: TextIO, name: str) -> Iterator[tuple[str, object]]:
        while (sign := self._sign(file)) != "]":
            if sign != ",":
                self._at -= 1
                yield name, self._value(file)

    def _sign(self, file: TextIO) -> str:
        """The next character that is no blank."""
        while (found := _SIGN.search(self._text, self._at)) is None:
            self._at = len(self._text)
            self._more(file)
        self._at = found.end()
        return found[0]

    def _value(self, file: TextIO) -> object:
        """The value that begins here; what is not whole is read on in ever longer steps."""
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except RecursionError:
                raise _Cut from None
            except ValueError:
                self._more(file)
                continue
            if end == len(self._text) and isinstance(value, int | float):
                self._more(file)  # its last digits may be still to come
                continue
            self._at = end
            return value

    def _more(self, file: TextIO) -> None:
        kept = self._text[self._at :]
        if len(kept) > MOST_VALUE or self._taken > MOST:
            raise _Cut
        fresh = file.read(CHUNK + len(kept))
        if not fresh:
            raise _Cut
        self._text, self._at, self._taken = kept + fresh, 0, self._taken + len(fresh)


class Rewritten:
    """Follows a session that is read anew whenever one of its files has changed.

    `files` names them, those that are not there yet too; `read` gives the record, and whether a file was torn.
    """

    def __init__(
        self, files: Callable[[], Iterable[Path]], read: Callable[[], tuple[SessionRecord, bool]], agent: str
    ) -> None:
        self._files, self._read = files, read
        self._record, self._good = SessionRecord(agent), False
        self._stamps: tuple[tuple[int, ...], ...] = ()
        self._tries = 0
        self._torn_since = False

    def poll(self) -> bool:
        """Read the session again if it was written; a torn one once more at each of the next looks."""
        stamps = tuple(map(shelf.identity, self._files()))
        if not any(stamps):
            return False
        if stamps != self._stamps:
            self._tries = _TRIES
        if self._tries == 0:
            return False
        self._stamps = stamps
        record, torn = self._read()
        self._tries = self._tries - 1 if torn else 0
        self._torn_since = torn and self._good
        if self._torn_since or record == self._record:
            return False
        self._record, self._good = record, not torn
        return True

    def record(self, *, ended: bool = False) -> SessionRecord:
        """The newest record of files that were whole; of torn ones only where there was never a better."""
        if not self._torn_since:
            return self._record
        loss = "the session's file is torn since its last change: this is what it held before"
        return replace(self._record, losses=(*self._record.losses, loss))
