"""Copilot Chat in VS Code: where its sessions are, in all three forms. It is read and not started.

Promise: as that of `copilot_chat_reader`, which has the formats. No version of it was seen live.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from relay_git.agents import jsonl, shelf, sqlite
from relay_git.agents.agent import Following, Found
from relay_git.agents.copilot_chat_reader import LogReader, fold, take_request
from relay_git.agents.draft import Draft
from relay_git.agents.editors import user_folders, workspace
from relay_git.agents.jsonl import Record
from relay_git.agents.rewritten import Document, Rewritten
from relay_git.agents.transcript import Follower
from relay_git.session import SessionRecord

DATABASE = "state.vscdb"
_EDITORS = ("Code", "Code - Insiders", "VSCodium")
_OLDEST = "SELECT value FROM ItemTable WHERE key = 'interactive.sessions'"
_ID = re.compile(r"[0-9A-Za-z-]{1,100}")


class CopilotChat:
    """The reader of Copilot Chat."""

    name = "copilot-chat"
    title = "Copilot Chat"
    aliases: tuple[str, ...] = ("vscode-copilot-chat",)
    last_seen = ""

    def found(self, env: Mapping[str, str]) -> Iterator[Found]:
        """The sessions of every folder and of windows without one; a log stands for the older file beside it.

        Those in a `state.vscdb` are read where the database is named: each folder has one, mostly for other things.
        """
        for user in user_folders(env, _EDITORS):
            places = [folder / "chatSessions" for folder in shelf.subfolders(user / "workspaceStorage")]
            for place in (*places, user / "globalStorage" / "emptyWindowChatSessions"):
                inside = list(shelf.files(place, 0, _id_in_name))
                logs = {found.native_id for found in inside if found.path.suffix == ".jsonl"}
                yield from (f for f in inside if f.path.suffix == ".jsonl" or f.native_id not in logs)

    def sessions(self, path: Path) -> tuple[str, ...]:
        """The session in this file, or those in this database or folder."""
        if path.is_dir():
            inside = sorted(shelf.files(path, 0, _id_in_name), key=lambda found: found.modified)
            return tuple(dict.fromkeys(found.native_id for found in inside))
        if path.name == DATABASE:
            return tuple(jsonl.text(session.get("sessionId")) for session in _oldest(path)[0])
        if path.suffix == ".jsonl":
            begun = any(type(record.get("kind")) is int for record in shelf.head(path)[:1])
            return (path.stem,) if begun else ()
        known = (name in ("requests", "requesterUsername") for name, _ in Document(path, ["requests"]))
        return (path.stem,) if any(known) else ()

    def follow(self, path: Path, native_id: str, worktree: Path) -> Following:
        """Read one session."""
        if path.is_dir():
            name = native_id or "".join(self.sessions(path)[-1:])
            path = path / f"{name}.jsonl" if shelf.is_regular(path / f"{name}.jsonl") else path / f"{name}.json"
        if path.suffix == ".jsonl":
            cwd = workspace(path.parents[1])
            return Follower(path, lambda: LogReader(worktree, path.stem, cwd))
        if path.name == DATABASE:
            files = [path, path.with_name(path.name + "-wal")]
            return Rewritten(lambda: files, lambda: _read_oldest(path, native_id, worktree), self.name)
        return Rewritten(lambda: [path], lambda: _read_file(path, worktree), self.name)


def _read_file(path: Path, worktree: Path) -> tuple[SessionRecord, bool]:
    """The session in a file of one object, and whether it is torn."""
    draft = Draft("copilot-chat", str(worktree), native_id=path.stem, cwd=workspace(path.parents[1]))
    document, about = Document(path, ["requests"]), dict[str, object]()
    for name, value in document:
        if name == "requests":
            take_request(draft, jsonl.record(value))
        else:
            about[name] = value
    records = draft.records
    fold(draft, about)
    draft.records = records
    if document.torn:
        draft.lose(document.torn)
    return draft.record(), bool(document.torn)


def _oldest(path: Path) -> tuple[list[Record], list[str]]:
    """The sessions in a folder's database, oldest first, and in words what could not be read."""
    with sqlite.opened(path) as database:
        if isinstance(database, str):
            return [], [database]
        value = database.value(_OLDEST) if "value" in database.columns("ItemTable") else None
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        told = jsonl.parse_text(f'{{"v": {text}}}').get("v") if isinstance(text, str) else None
        sessions = jsonl.records(list(told.values()) if isinstance(told, dict) else told)
        return sorted(sessions, key=lambda s: jsonl.count(s.get("creationDate"))), list(database.trouble)


def _read_oldest(path: Path, native_id: str, worktree: Path) -> tuple[SessionRecord, bool]:
    """One session of a folder's database, the newest where none is named; and whether it could not be opened."""
    draft = Draft("copilot-chat", str(worktree), native_id=native_id, cwd=workspace(path.parent))
    sessions, trouble = _oldest(path)
    chosen = [session for session in sessions if native_id in ("", session.get("sessionId"))]
    if chosen:
        fold(draft, chosen[-1])
    else:
        draft.lose("the session is not in the database")
    for what in trouble:
        draft.lose(what)
    return draft.record(), bool(trouble and not sessions)


def _id_in_name(name: str) -> str:
    stem, _, kind = name.rpartition(".")
    return stem if kind in ("json", "jsonl") and _ID.fullmatch(stem) else ""
