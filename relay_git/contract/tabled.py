"""Secrets in tables: the cells below a head that names a secret, and the cell beside such a name.

Promise: a table is lines of cells between the same signs: `|`, comma, semicolon or tab; or a name, several blanks and a
value alone on their line, as tools list what they know. What is in a cell must look random; below a password's head,
between bars, a digit among letters will do. A line longer than a person reads is no table, so that the time
stays linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from relay_git.contract.assigned import could_be, looks_chosen, looks_random
from relay_git.contract.placeholder import Taken

RULE = "table"
_NEEDLES = (
    *("assword", "ASSWORD", "asswd", "ASSWD", "assphrase", "asswort", "ennwort", "pwd", "PWD", "ecret", "SECRET"),
    *("oken", "TOKEN", "pi_key", "piKey", "PI_KEY", "pi key", "PI key", "ccess key"),
)
_NAME = re.compile(
    r"[\w .-]{0,30}(?P<password>pass(?:word|wd|phrase|wort)|kennwort|pwd)"
    r"|[\w .-]{0,30}(?:secret|token|(?:api|access|secret)[ _-]?key)",
    re.I,
)
_HEAD = re.compile(r"[\w .()#/-]{0,40}")
_RULER = re.compile(r"[-+=|: \t]+\r?")
_LISTED = re.compile(r"[ \t]{0,8}(?P<name>[\w.-]{1,40})(?:[ \t]{2,40})(?P<value>\S{8,200})[ \t]{0,40}\r?")
_AROUND = " \t\r\"'`*"
_MOST_LINE = 1000
_MOST_ROWS = 500
_DIGIT, _LETTER = re.compile("[0-9]"), re.compile("[A-Za-z]")
Row = list[tuple[str, tuple[int, int]]]


def redact_tables(text: str, taken: Taken) -> str:
    """The text without such cells; what was taken out is counted."""
    return taken.cut(RULE, text, _cells(text))


def _cells(text: str) -> Iterator[tuple[int, int]]:
    done = 0  # what was read as rows of a table is no head of one, so that each line is read twice at most
    for start, end in sorted(_lines(text)):
        if start >= done:
            found = _Table(text, start, end)
            yield from found.secrets()
            done = found.end


def _lines(text: str) -> set[tuple[int, int]]:
    """The lines in which something is named."""
    found = set[tuple[int, int]]()
    for needle in _NEEDLES:
        at = text.find(needle)
        while at >= 0:
            line = _line(text, at)
            if line is not None:
                found.add(line)
            at = text.find(needle, line[1] if line is not None else at + len(needle))
    return found


def _line(text: str, at: int) -> tuple[int, int] | None:
    """Where the line around a place begins and ends, unless it is long."""
    start = text.rfind("\n", max(0, at - _MOST_LINE), at) + 1
    if start == 0 and at > _MOST_LINE:
        return None
    end = text.find("\n", at, start + _MOST_LINE)
    if end < 0:
        end = len(text)
    return (start, end) if end - start <= _MOST_LINE else None


class _Table:
    """A line that names a secret, and the lines below it that have as many cells; `end` is where they end."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self.end = end
        self._text, self._start, self._line = text, start, text[start:end]
        self._sign = next((sign for sign in "|\t,;" if sign in self._line), "")
        self._head = _split(self._line, start, self._sign)

    def secrets(self) -> Iterator[tuple[int, int]]:
        """Where the secrets of this table lie."""
        listed = _LISTED.fullmatch(self._line)
        if listed is not None and _NAME.fullmatch(listed["name"]) and looks_chosen(listed["value"]):
            yield self._start + listed.start("value"), self._start + listed.end("value")
        columns = {column: about for column, (name, _) in enumerate(self._head) if (about := _NAME.fullmatch(name))}
        bare = self._sign in ",;"
        if not columns or (bare and not all(name and _HEAD.fullmatch(name) for name, _ in self._head)):
            return
        for column, about in columns.items() if self._sign == "|" else ():
            yield from self._value(self._head, column + 1, password=about["password"] is not None)
        for row in self._rows():
            for column, about in columns.items():
                yield from self._value(row, column, password=about["password"] is not None)

    def _value(self, row: Row, column: int, *, password: bool) -> Iterator[tuple[int, int]]:
        if column < len(row):
            cell, at = row[column]
            if " " not in cell and could_be(cell) and self._is_one(cell, password=password):
                yield at

    def _is_one(self, cell: str, *, password: bool) -> bool:
        if not password:
            return looks_random(cell, 16)
        return looks_chosen(cell) or (self._sign == "|" and bool(_DIGIT.search(cell) and _LETTER.search(cell)))

    def _rows(self) -> Iterator[Row]:
        """The lines that follow, as long as they have so many cells; rulers are passed over."""
        for _ in range(_MOST_ROWS):
            start = self.end + 1
            end = self._text.find("\n", start, start + _MOST_LINE)
            end = end if end >= 0 else len(self._text)
            line = self._text[start:end]
            if not line or len(line) > _MOST_LINE:
                return
            ruler = _RULER.fullmatch(line)
            cells = [] if ruler else _split(line, start, self._sign)
            if not ruler and len(cells) != len(self._head):
                return
            self.end = end
            if cells:
                yield cells


def _split(line: str, start: int, sign: str) -> Row:
    """The cells of a line and where their words lie; none where the sign is not there."""
    cells = Row()
    for cell in line.split(sign) if sign else ():
        words = cell.strip(_AROUND)
        at = start + cell.find(words)
        cells.append((words, (at, at + len(words))))
        start += len(cell) + 1
    return cells
