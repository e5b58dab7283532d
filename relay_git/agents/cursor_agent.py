"""Sessions of Cursor's agent: the transcripts of the editor and the CLI, and the CLI's own store.

Promise: bounded memory, never an exception. What of the store is no JSON is counted as not read.

Format, from public sources and not seen live. Transcript: `{role, message{content[] text|tool_use|tool_result}}` a
line, without times; what the user said stands in `<user_query>`; many versions leave out what tools answered. Store:
tables `meta` (row 0: JSON in hex) and `blobs`; the newest root is a protobuf message that names its messages by hash in
field 1, in order, and the folder in field 9; a message is JSON (`text`, `tool-call`, `tool-result`), or protobuf.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from relay_git.agents import jsonl, shelf, sqlite
from relay_git.agents.draft import Draft, cut, plan_status
from relay_git.agents.jsonl import Record
from relay_git.agents.rewritten import Document
from relay_git.agents.sqlite import Database, Value
from relay_git.session import PlanItem, SessionRecord

STORE, SIDECAR = "store.db", "meta.json"
_QUERY = re.compile(r"<user_query>(.*?)(?:</user_query>|\Z)", re.S)
_INJECTED = (
    "<user_info>",
    "<system_reminder>",
    "<system-reminder>",
    "<open_and_recently",
    "<attached_files>",
    "<rules>",
)
_EDITS = ("Write", "StrReplace", "Edit", "MultiEdit", "EditNotebook", "Delete", "ApplyPatch")
_SHELLS = ("Shell", "Bash", "run_terminal_cmd")
_EXITED = re.compile(r"[Ee]xit code:? (\d{1,5})\b")
_HASH = 32
_MAX_MESSAGES = 100_000
_MAX_CALLS = 500


class AgentReader:
    """Folds one transcript, or the messages of a store."""

    def __init__(self, worktree: Path, native_id: str) -> None:
        self.draft = Draft("cursor", str(worktree), native_id=native_id)
        self._commands: dict[str, str] = {}
        self._calls = 0

    def feed(self, line: bytes) -> None:
        """Take one line of a transcript; never raises."""
        record = self.draft.take(line)
        if record is not None:
            message = jsonl.record(record.get("message")) or record
            self.take({"role": record.get("role"), **message})

    def record(self) -> SessionRecord:
        """Everything understood so far."""
        return self.draft.record()

    def take(self, message: Record) -> None:
        """Take one message."""
        draft = self.draft
        draft.saw(None)
        content = message.get("content")
        blocks = jsonl.records(content) or [{"type": "text", "text": content}]
        for block in blocks:
            if block.get("type") in ("tool_result", "tool-result"):
                self._result(block)
        texts = [jsonl.text(block.get("text")) for block in blocks if block.get("type") == "text"]
        match message.get("role"):
            case "user":
                self._user("\n".join(texts))
            case "assistant":
                self._assistant("\n".join(texts).strip(), blocks)

    def _user(self, text: str) -> None:
        found = _QUERY.search(text)
        said = (found[1] if found else text).strip()
        if said and (found or not said.startswith(_INJECTED)):
            self._settle()
            self.draft.prompt(said)
            self.draft.turn_complete = False

    def _assistant(self, said: str, blocks: list[Record]) -> None:
        self._settle()
        draft = self.draft
        draft.turns += 1
        if said:
            draft.say(said)
        calls = [block for block in blocks if block.get("type") in ("tool_use", "tool-call")]
        draft.turn_complete = not calls
        for block in calls:
            self._call(block)

    def _settle(self) -> None:
        """The model went on: what it had called is done, also where the transcript leaves out with what result."""
        for call in list(self.draft.pending):
            self.draft.returned(call, ok=None)
            self._ran(call, None)

    def _call(self, block: Record) -> None:
        self._calls += 1
        call = jsonl.text(block.get("id")) or jsonl.text(block.get("toolCallId")) or f"#{self._calls}"
        name = jsonl.text(block.get("name")) or jsonl.text(block.get("toolName"))
        given = jsonl.record(block.get("input")) or jsonl.record(block.get("args"))
        keys = ("path", "file_path", "target_file", "target_notebook", "command")
        target = next((told for key in keys if (told := jsonl.text(given.get(key)))), "")
        self.draft.called(call, name, target)
        if name in _EDITS:
            self.draft.touch(target)
        elif name in _SHELLS and len(self._commands) < _MAX_CALLS:
            self._commands[call] = jsonl.text(given.get("command"))
        elif name == "TodoWrite":
            self.draft.set_plan(_todos(given.get("todos")))

    def _result(self, block: Record) -> None:
        call = jsonl.text(block.get("tool_use_id")) or jsonl.text(block.get("toolCallId"))
        told = block.get("content") if "content" in block else block.get("result")
        parts = [jsonl.text(part.get("text")) for part in jsonl.records(told)]
        self.draft.returned(call, ok=block.get("is_error") is not True)
        self._ran(call, jsonl.text(told) or "\n".join(parts))

    def _ran(self, call: str, output: str | None) -> None:
        command = self._commands.pop(call, "")
        if command:
            found = _EXITED.search(output or "")
            self.draft.ran(command, int(found[1]) if found else None, output)


def read_store(path: Path, worktree: Path) -> tuple[SessionRecord, bool]:
    """The session in a store of the CLI's, and whether it could not be opened."""
    reader = AgentReader(worktree, path.parent.name)
    draft = reader.draft
    if shelf.is_regular(path.with_name(SIDECAR)):
        beside = dict(Document(path.with_name(SIDECAR)))
        draft.cwd = jsonl.text(beside.get("cwd"))
    with sqlite.opened(path) as database:
        if isinstance(database, str):
            draft.lose(database)
            return draft.record(), True
        if {"id", "data"} <= set(database.columns("blobs")) and "value" in database.columns("meta"):
            _read(reader, database)
        else:
            draft.lose("the database is none of Cursor's")
        for trouble in database.trouble:
            draft.lose(trouble)
    return draft.record(), False


def _read(reader: AgentReader, database: Database) -> None:
    draft, about = reader.draft, _meta(database.value("SELECT value FROM meta WHERE key = '0'"))
    draft.model = jsonl.text(about.get("lastUsedModel"))
    root = database.value("SELECT data FROM blobs WHERE id = ?", jsonl.text(about.get("latestRootBlobId")))
    names: list[str] = []
    for field, value in _fields(root if isinstance(root, bytes) else b""):
        if field == 1 and len(value) == _HASH and len(names) < _MAX_MESSAGES:
            names.append(value.hex())
        elif field == 9:
            draft.cwd = draft.cwd or local_folder(value)
    if not names:
        draft.lose("the store's list of messages could not be read")
    for name in names:
        data = database.value("SELECT data FROM blobs WHERE id = ?", name)
        message = jsonl.parse(data if isinstance(data, bytes) else str(data or "").encode("utf-8", "replace"))
        if message is None:
            draft.lose("a message in the store is in a form that cannot be read")
        else:
            reader.take(message)
    records = draft.records
    draft.saw(jsonl.epoch_time(about.get("createdAt")))
    draft.records = records


def local_folder(value: bytes) -> str:
    """A folder's path in a field of bytes; empty where it is none."""
    text = value.decode("utf-8", "replace").removeprefix("file://")
    return text if text.startswith("/") and "\0" not in text else ""


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields of a protobuf message that hold bytes, as far as it is one."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        match tag & 7:
            case 0:
                _, at = _varint(data, at)
            case 1:
                at += 8
            case 2:
                length, at = _varint(data, at)
                yield tag >> 3, data[at : at + length]
                at += length
            case 5:
                at += 4
            case _:
                return


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number, and where it ends; 0 and the end of the data where it is cut."""
    number = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        number, shift, at = number | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return number, at
    return 0, len(data)


def _meta(value: Value) -> Record:
    """JSON that is written as hex digits, or as it is."""
    text = value if isinstance(value, str) else value.decode("utf-8", "replace") if isinstance(value, bytes) else ""
    try:
        return jsonl.parse(bytes.fromhex(text)) or {}
    except ValueError:
        return jsonl.parse_text(text)


def _todos(todos: object) -> list[PlanItem]:
    return [
        PlanItem(cut(text, 2_000), plan_status(jsonl.text(todo.get("status"))))
        for todo in jsonl.records(todos)
        if (text := jsonl.text(todo.get("content")))
    ]
