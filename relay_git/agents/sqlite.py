"""Reading an SQLite database of another program, which may be writing it, and which may be hostile.

Promise: the owner's files are only read as bytes, and stay as they are. What is opened is a private copy (0700) with
the logs that hold what is not in the database yet; it is gone when it is closed. Only tables are read: a view, a
trigger or a virtual table in the schema runs nothing. What is too big, endless, corrupt or of the wrong type costs
itself and is said in `trouble`; nothing here raises on what a file holds.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import stat
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path

Value = str | int | float | bytes | None
Row = tuple[Value, ...]
About = tuple[int, int, int]

_MAGIC = b"SQLite format 3\0"
_WAL_HEADER = 32
_MAX_FILE = 8 << 30
_MAX_VALUE = 32 << 20
_MAX_ROWS = 1_000_000
_MAX_TROUBLE = 20
_TRIES = 5
# Python decodes SQLite's own words as UTF-8, and they may quote a schema that is none.
_TROUBLE = (sqlite3.Error, OverflowError, UnicodeDecodeError)
# After so many steps of SQLite's machine a query is in a database that was built to never end.
_MAX_STEPS = 500_000_000
_STEPS_A_CALL = 1_000_000
_FUNCTIONS = ("length", "substr", "count", "max")
_ON_DISK = "/var/tmp"  # noqa: S108 - a folder of our own is made in it; /tmp may lie in memory


class Database:
    """A connection to a private copy; `trouble` says in words what could not be read."""

    def __init__(self, copy: Path) -> None:
        self.trouble: dict[str, None] = {}
        self._steps = 0
        # A journal must be rolled back, which writes; else nothing needs to.
        mode = "rw" if _beside(copy, "-journal").exists() else "ro"
        self._connection = connection = sqlite3.connect(f"{copy.as_uri()}?mode={mode}", uri=True, isolation_level=None)
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE)
        for setting in ("trusted_schema=OFF", "query_only=ON", "cell_size_check=ON", "mmap_size=0"):
            connection.execute(f"PRAGMA {setting}").close()
        connection.set_authorizer(_may)
        connection.set_progress_handler(self._is_endless, _STEPS_A_CALL)

    def close(self) -> None:
        """Let the copy go."""
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()

    def columns(self, table: str) -> tuple[str, ...]:
        """The columns of a plain table, in lower case; empty where there is no such table."""
        # A view and a virtual table have no page of their own.
        plain = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ? AND rootpage > 0"
        if not any(self.rows(plain, table)):
            return ()
        name = '"' + table.replace('"', '""') + '"'
        try:
            columns = self._connection.execute(f"SELECT * FROM {name} LIMIT 0").description  # noqa: S608 - quoted
        except _TROUBLE as error:
            self._say(str(error))
            return ()
        return tuple(column[0].lower() for column in columns)

    def rows(self, sql: str, *values: Value) -> Iterator[Row]:
        """The rows of a query, as far as they can be read."""
        try:
            for number, row in enumerate(self._connection.execute(sql, values)):
                if number == _MAX_ROWS:
                    self._say(f"only the first {_MAX_ROWS} rows of a table were read")
                    return
                yield row
        except _TROUBLE as error:
            self._say(str(error))

    def value(self, sql: str, *values: Value) -> Value:
        """The first value of the first row, or None."""
        return next((row[0] for row in self.rows(sql, *values)), None)

    def _say(self, what: str) -> None:
        if len(self.trouble) < _MAX_TROUBLE:
            self.trouble[f"the database could not be read whole: {what}"] = None

    def _is_endless(self) -> bool:
        self._steps += _STEPS_A_CALL
        return self._steps > _MAX_STEPS


class Mirror:
    """A private copy that is brought up to date when the original has changed, for as long as it is kept."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._copied: dict[str, About | None] = {}
        self._folder: Path | None = None
        self._gone: weakref.finalize[[str], Mirror] | None = None

    @property
    def version(self) -> object:
        """What was copied: another object whenever the copy was brought up to date."""
        return self._copied

    def changed(self) -> bool:
        """Whether the original is another than what was copied."""
        return _state(self.path) != self._copied

    @contextlib.contextmanager
    def opened(self) -> Iterator[Database | str]:
        """The database as it is now, or in words why it cannot be read."""
        try:
            trouble = self._refresh()
            opened = trouble or Database(self._place())
        except (OSError, *_TROUBLE) as error:
            opened = f"the database could not be read: {error}"
        yield opened
        if isinstance(opened, Database):
            opened.close()

    def close(self) -> None:
        """Take the copy away; else it goes with this object, at the latest when the program ends."""
        if self._gone is not None:
            self._gone()
        self._folder, self._gone, self._copied = None, None, {}

    def _place(self) -> Path:
        if self._folder is None:
            roomy = _ON_DISK if os.access(_ON_DISK, os.W_OK | os.X_OK) else None
            self._folder = Path(tempfile.mkdtemp(prefix="git-relay-", dir=roomy))
            self._gone = weakref.finalize(self, shutil.rmtree, str(self._folder), ignore_errors=True)
        return self._folder / "copy"

    def _refresh(self) -> str:
        """Copy what has changed, all as of one moment; says why it could not."""
        for _ in range(_TRIES):
            before, head = _state(self.path), _head(_beside(self.path, "-wal"), _WAL_HEADER)
            if before == self._copied:
                return ""
            if before[""] is None:
                return "there is no database file"
            if _head(self.path, len(_MAGIC)) != _MAGIC:
                return "the file is no SQLite database"
            size = sum(about[0] for about in before.values() if about)
            if size > min(_MAX_FILE, shutil.disk_usage(self._place().parent).free // 2):
                return f"the database is too big to be copied: {size} bytes"
            copied, self._copied = self._copied, {}
            for end, about in before.items():
                if end or about != copied.get(end):
                    _copy(_beside(self.path, end), _beside(self._place(), end), about)
            after = _state(self.path)
            # A log that only grew is whole up to its last commit. One that began anew belongs to a newer database.
            same_log = _head(_beside(self.path, "-wal"), _WAL_HEADER) == head
            if same_log and all(before[end] == after[end] for end in ("", "-journal")):
                self._copied = before
                return ""
        return "the database is written faster than it can be copied"


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Database | str]:
    """A database as it is now, or in words why it cannot be read; for one look."""
    mirror = Mirror(path)
    try:
        with mirror.opened() as database:
            yield database
    finally:
        mirror.close()


def _may(action: int, what: str | None, name: str | None, _schema: str | None, inside: str | None) -> int:
    """Allow what reads a table, and nothing that a view or a trigger would do."""
    reads = action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ)
    calls = action == sqlite3.SQLITE_FUNCTION and name in _FUNCTIONS
    return sqlite3.SQLITE_OK if inside is None and (reads or calls) else sqlite3.SQLITE_DENY


def _beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


def _state(path: Path) -> dict[str, About | None]:
    """Size, time and identity of the database and of the two kinds of log that may belong to it."""
    return {end: _about(_beside(path, end)) for end in ("", "-wal", "-journal")}


def _about(path: Path) -> About | None:
    try:
        about = path.stat()
    except OSError:
        return None
    return (about.st_size, about.st_mtime_ns, about.st_ino) if stat.S_ISREG(about.st_mode) else None


def _head(path: Path, most: int) -> bytes:
    if _about(path) is None:  # a FIFO would block
        return b""
    with path.open("rb") as file:
        return file.read(most)


def _copy(source: Path, target: Path, about: About | None) -> None:
    target.unlink(missing_ok=True)
    if about is None:
        return
    with contextlib.suppress(FileNotFoundError):  # a log goes when its owner is done with it
        shutil.copyfile(source, target)
    if source.name.endswith("-journal") and target.exists():
        # A journal may name at its very end a file that SQLite deletes after it has rolled back. This one names none.
        with target.open("ab") as file:
            file.write(bytes(16))
