"""Where opencode keeps its sessions: an SQLite database, and before that a tree of JSON files.

Promise: one session is read whole each time that its store has changed, from a copy of the database, in order, a
message at a time. What cannot be read costs itself and is named.

Formats: tables `session`, `message`, `part` and `todo` of 1.18.33; `storage/{session,message,part,todo}` as 1.1.65
wrote it (not seen live).
"""

from __future__ import annotations

import copy
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

from relay_git.agents import jsonl, shelf
from relay_git.agents.agent import Found
from relay_git.agents.jsonl import Record
from relay_git.agents.opencode_reader import OpencodeReader
from relay_git.agents.sqlite import Database, Mirror, Row, Value, opened
from relay_git.session import SessionRecord

_MAX_FILE = 32 << 20
_MAX_FILES = 100_000
_MAX_SUBAGENTS = 200
_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")
# The newest messages may still change; what was before them is not read again as long as its dates stay.
_UNSETTLED = 8
_HOUR = 3600.0
_MESSAGES = "SELECT id FROM message WHERE session_id = ? ORDER BY time_created, id"
_DATED = "SELECT id, time_updated FROM message WHERE session_id = ? ORDER BY time_created, id"
_PARTS = "SELECT message_id, count(*), max(time_updated) FROM part WHERE session_id = ? GROUP BY message_id"
_SESSION = ("id", "directory", "version", "time_created", "time_updated", "revert")


def database_sessions(path: Path) -> tuple[str, ...]:
    """The ids in a database, oldest first, those of subagents left out."""
    with opened(path) as database:
        if not isinstance(database, Database) or not {"id", "time_created"} <= set(database.columns("session")):
            return ()
        own = " WHERE parent_id IS NULL" if "parent_id" in database.columns("session") else ""
        rows = database.rows(f"SELECT id FROM session{own} ORDER BY time_created, id")  # noqa: S608 - words of ours
        return tuple(str(row[0]) for row in rows)


class AllInDatabase:
    """The sessions in a database, all read from one copy of it."""

    def __init__(self, found: Found) -> None:
        self._path, self._mirror = found.path, Mirror(found.path)

    def listed(self) -> tuple[Found, ...]:
        """Each session with the time that its row tells.

        A message may come while that stays as it is, so the newest and what was written in the last hour counts as
        changed whenever the database has.
        """
        with self._mirror.opened() as database:
            if not isinstance(database, Database) or not {"id", "time_updated"} <= set(database.columns("session")):
                return ()
            own = " WHERE parent_id IS NULL" if "parent_id" in database.columns("session") else ""
            rows = list(database.rows(f"SELECT id, time_updated FROM session{own} ORDER BY time_updated DESC, id DESC"))  # noqa: S608
        written = [
            about for end in ("", "-wal") if (about := shelf.identity(self._path.with_name(self._path.name + end)))
        ]
        last, size = max((time for *_, time in written), default=0) / 1e9, sum(size for _, _, size, _ in written)
        found = []
        for number, (name, updated) in enumerate(rows):
            when = updated / 1e3 if isinstance(updated, int | float) else 0.0
            fresh = number == 0 or when > last - _HOUR
            found.append(Found(self._path, str(name), last if number == 0 else when, size if fresh else 0))
        return tuple(found)

    def follow(self, native_id: str) -> InDatabase:
        """Read one of them from the same copy."""
        return InDatabase(self._path, native_id, Path(), self._mirror)


class InDatabase:
    """Follows one session in a database; an empty id means the newest that is no subagent's."""

    def __init__(self, path: Path, native_id: str, worktree: Path, mirror: Mirror | None = None) -> None:
        self._id, self._worktree = native_id, worktree
        self._mirror = mirror if mirror is not None else Mirror(path)
        self._version: object = None
        self._record = SessionRecord("opencode", native_id)
        self._settled: tuple[list[Row], OpencodeReader] = ([], OpencodeReader(worktree))

    def poll(self) -> bool:
        """Read the session anew if the database has changed."""
        if self._version is self._mirror.version and not self._mirror.changed():
            return False
        with self._mirror.opened() as database:
            self._version = self._mirror.version
            if isinstance(database, Database):
                reader = self._read(database, self._id or _newest(database))
                for trouble in database.trouble:
                    reader.draft.lose(trouble)
            else:
                reader = OpencodeReader(self._worktree)
                reader.draft.lose(database)
        self._record = reader.record()
        return True

    def record(self, *, ended: bool = False) -> SessionRecord:
        """The session as of the last look; with `ended` the copy is taken away."""
        if ended:
            self.poll()
            self._mirror.close()
        return self._record

    def _read(self, database: Database, native_id: str) -> OpencodeReader:
        fresh = OpencodeReader(self._worktree)
        columns = {table: set(database.columns(table)) for table in ("session", "message", "part", "todo")}
        if not ({"id"} <= columns["session"] and {"id", "session_id", "data"} <= columns["message"]):
            fresh.draft.lose("the database has not the tables that opencode is known to write")
            return fresh
        known = [name for name in _SESSION if name in columns["session"]]
        row = next(database.rows(f"SELECT {', '.join(known)} FROM session WHERE id = ?", native_id), None)  # noqa: S608
        if row is None:
            return fresh
        fresh.begin(dict(zip(known, row, strict=True)))
        reader = self._fold(database, fresh, native_id, {"time_updated"} <= columns["message"] & columns["part"])
        if {"session_id", "content", "status", "position"} <= columns["todo"]:
            todos = "SELECT content, status FROM todo WHERE session_id = ? ORDER BY position"
            reader.todos([{"content": c, "status": s} for c, s in database.rows(todos, native_id)])
        if "parent_id" in columns["session"]:
            self._subagents(database, reader, native_id)
        return reader

    def _fold(self, database: Database, fresh: OpencodeReader, native_id: str, dated: bool) -> OpencodeReader:
        """Hand over the session's messages: only what follows the last state that still stands, where there is one."""
        messages = list(database.rows(_DATED if dated else _MESSAGES, native_id))
        if dated:  # a part may change and its message not
            parts = {key: rest for key, *rest in database.rows(_PARTS, native_id)}
            messages = [(*message, *parts.get(message[0], ())) for message in messages]
        known, settled = self._settled
        goes_on = bool(dated and known and messages[: len(known)] == known and settled.goes_on_as(fresh))
        reader = copy.deepcopy(settled) if goes_on else fresh
        reader.draft.last_activity = fresh.draft.last_activity
        for at in range(len(known) if goes_on else 0, len(messages)):
            if at == len(messages) - _UNSETTLED:
                self._settled = messages[:at], copy.deepcopy(reader)
            _hand_over(database, reader, messages[at][0])
        return reader

    def _subagents(self, database: Database, reader: OpencodeReader, native_id: str) -> None:
        """Sessions below this one, to any depth, each once."""
        seen, queue = {native_id}, [native_id]
        while queue:
            for (child,) in database.rows("SELECT id FROM session WHERE parent_id = ? ORDER BY id", queue.pop(0)):
                name = jsonl.text(child)
                if name in seen:
                    continue
                if len(seen) > _MAX_SUBAGENTS:
                    reader.draft.lose(f"only the first {_MAX_SUBAGENTS} subagents were read")
                    return
                seen.add(name)
                queue.append(name)
                theirs = OpencodeReader(self._worktree)
                theirs.draft.cwd = reader.draft.cwd
                for (key,) in database.rows(_MESSAGES, name):
                    _hand_over(database, theirs, key)
                reader.subagent(name, theirs)


def _newest(database: Database) -> str:
    own = "WHERE parent_id IS NULL" if "parent_id" in database.columns("session") else ""
    return str(database.value(f"SELECT id FROM session {own} ORDER BY time_created DESC, id DESC LIMIT 1") or "")  # noqa: S608


def _hand_over(database: Database, reader: OpencodeReader, key: Value) -> None:
    """One message, read by itself: a value that is too big costs its own row only."""
    message = _data(database, reader, "SELECT data FROM message WHERE id = ?", key)
    if message is not None:
        ids = database.rows("SELECT id FROM part WHERE message_id = ? ORDER BY id", key)
        parts = (_data(database, reader, "SELECT data FROM part WHERE id = ?", part) for (part,) in ids)
        reader.message(jsonl.text(key), message, [part for part in parts if part is not None])


def _data(database: Database, reader: OpencodeReader, sql: str, key: Value) -> Record | None:
    value = database.value(sql, key)
    found = jsonl.parse(value.encode("utf-8", "replace")) if isinstance(value, str) else None
    if found is None:
        reader.draft.skip()
    return found


class InTree:
    """Follows one session in the tree of files below `storage`."""

    def __init__(self, storage: Path, native_id: str, worktree: Path) -> None:
        self._storage, self._id, self._worktree = storage, native_id, worktree
        self._state: dict[Path, tuple[int, ...]] = {}
        self._record = SessionRecord("opencode", native_id)

    def poll(self) -> bool:
        """Read the session anew if one of its files has changed."""
        native_id = self._id or next(reversed(tree_sessions(self._storage)), "")
        state = {path: shelf.identity(path) for path in _files_of(self._storage, native_id)}
        if state == self._state:
            return False
        self._state = state
        reader = OpencodeReader(self._worktree)
        self._read(reader, native_id)
        self._record = reader.record()
        return True

    def record(self, *, ended: bool = False) -> SessionRecord:
        """The session as of the last look."""
        return self._record

    def _read(self, reader: OpencodeReader, native_id: str) -> None:
        for path in _session_files(self._storage):
            if path.stem == native_id and (session := _load(path, reader)):
                times = jsonl.record(session.get("time"))
                reader.begin({**session, "time_created": times.get("created"), "time_updated": times.get("updated")})
        for path in _listed(self._storage / "message" / native_id):
            message = _load(path, reader)
            if message is not None:
                parts = [_load(part, reader) for part in _listed(self._storage / "part" / path.stem)]
                reader.message(path.stem, message, [part for part in parts if part is not None])
        todo = self._storage / "todo" / f"{native_id}.json"
        if shelf.is_regular(todo):
            reader.todos(_load_list(todo, reader))


def tree_sessions(storage: Path) -> tuple[str, ...]:
    """The ids in a tree, oldest first by their files' times."""
    found = [(shelf.identity(path)[-1:], path.stem) for path in _session_files(storage)]
    return tuple(name for _, name in sorted(found))


def _session_files(storage: Path) -> list[Path]:
    return [found.path for found in shelf.files(storage / "session", 1, id_in_name)]


def id_in_name(name: str) -> str:
    """The id that a file of the tree is named by; empty where it is none."""
    stem = name.removesuffix(".json")
    return stem if stem != name and _ID.fullmatch(stem) else ""


def _listed(folder: Path) -> list[Path]:
    """The files of a folder in the order of their ids, which is that of time."""
    return sorted(found.path for found in itertools.islice(shelf.files(folder, 0, id_in_name), _MAX_FILES))


def _files_of(storage: Path, native_id: str) -> Iterator[Path]:
    if not _ID.fullmatch(native_id):
        return
    yield from (path for path in _session_files(storage) if path.stem == native_id)
    yield storage / "todo" / f"{native_id}.json"
    for message in _listed(storage / "message" / native_id):
        yield message
        yield from _listed(storage / "part" / message.stem)


def _load(path: Path, reader: OpencodeReader) -> Record | None:
    found = jsonl.parse(_bytes(path))
    if found is None:
        reader.draft.cannot_read(path.name)
    return found


def _load_list(path: Path, reader: OpencodeReader) -> list[Record]:
    # The file holds an array; the parser of records wants an object.
    found = jsonl.parse(b'{"all":' + _bytes(path) + b"}")
    if found is None:
        reader.draft.cannot_read(path.name)
    return jsonl.records((found or {}).get("all"))


def _bytes(path: Path) -> bytes:
    try:
        if not shelf.is_regular(path) or path.stat().st_size > _MAX_FILE:
            return b""
        with path.open("rb") as file:
            return file.read(_MAX_FILE)
    except OSError:
        return b""
