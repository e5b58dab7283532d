"""Cursor: where its editor, its agent and its CLI keep their sessions. It is read and not started.

Promise: as those of its readers, `cursor_ide` and `cursor_agent`. No version of it was seen live.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from relay_git.agents import shelf
from relay_git.agents.agent import Following, Found
from relay_git.agents.cursor_agent import SIDECAR, STORE, AgentReader, read_store
from relay_git.agents.cursor_ide import DATABASE, conversations, read_conversation
from relay_git.agents.editors import user_folders
from relay_git.agents.homes import home
from relay_git.agents.rewritten import Rewritten
from relay_git.agents.transcript import Follower

_ID = re.compile(r"[0-9A-Za-z-]{1,100}")
_WAL = "-wal"


class Cursor:
    """The reader of Cursor."""

    name = "cursor"
    title = "Cursor"
    aliases: tuple[str, ...] = ("cursor-agent", "cursor-cli", "cursor-ide")
    last_seen = ""

    def found(self, env: Mapping[str, str]) -> Iterator[Found]:
        """The CLI's stores, the transcripts of sessions that have none, and the editor's one database."""
        stores: set[str] = set()
        for top in (home(env) / ".cursor" / "chats", home(env) / ".config" / "cursor" / "chats"):
            for place in shelf.subfolders(top):
                for found in shelf.folders(place, lambda _: (STORE, STORE + _WAL)):
                    stores.add(found.native_id)
                    yield replace(found, path=found.path / STORE)
        for project in shelf.subfolders(home(env) / ".cursor" / "projects"):
            for depth in (0, 1):
                for found in shelf.files(project / "agent-transcripts", depth, _id_in_name):
                    if found.native_id not in stores:
                        yield found
        for user in user_folders(env, ("Cursor",)):
            path = user / "globalStorage" / DATABASE
            if stamp := shelf.identity(path):
                yield Found(path, "", stamp[3] / 1e9, stamp[2])

    def sessions(self, path: Path) -> tuple[str, ...]:
        """The session in this transcript, store or folder; those in the editor's database."""
        path = _entry(path)
        if path.name == DATABASE:
            return conversations(path)
        if path.name == STORE and shelf.is_regular(path):
            return (path.parent.name,)
        known = any("role" in record for record in shelf.head(path))
        return (path.stem,) if known and path.suffix == ".jsonl" else ()

    def follow(self, path: Path, native_id: str, worktree: Path) -> Following:
        """Read one session."""
        path = _entry(path)
        files = [path, path.with_name(path.name + _WAL), path.with_name(SIDECAR)]
        if path.name == DATABASE:
            return Rewritten(lambda: files[:2], lambda: read_conversation(path, native_id, worktree), self.name)
        if path.name == STORE:
            return Rewritten(lambda: files, lambda: read_store(path, worktree), self.name)
        return Follower(path, lambda: AgentReader(worktree, path.stem))


def _entry(path: Path) -> Path:
    """The file that a session's folder stands for."""
    if not path.is_dir():
        return path
    inside = (path / STORE, path / f"{path.name}.jsonl", path / DATABASE)
    return next((file for file in inside if shelf.is_regular(file)), inside[0])


def _id_in_name(name: str) -> str:
    stem = name.removesuffix(".jsonl")
    return stem if stem != name and _ID.fullmatch(stem) else ""
