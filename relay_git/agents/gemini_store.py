"""Where Gemini CLI keeps its sessions, and how one is followed.

Promise: a session's file is found by its id whatever minute is in its name; old checkpoints are read whole when they
change. In a folder, what cannot be read is named beside the session that can.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from relay_git.agents import jsonl, shelf
from relay_git.agents.agent import Following
from relay_git.agents.draft import MAX_LIMITS
from relay_git.agents.family import Family
from relay_git.agents.gemini_reader import GeminiReader
from relay_git.agents.jsonl import Record
from relay_git.agents.transcript import Follower
from relay_git.session import SessionRecord, ToolCall

MAX_CHECKPOINT = 64 << 20
_NAME = re.compile(r"session-[0-9T-]{1,20}-[0-9A-Za-z_-]{1,64}\.jsonl?")
_MAX_ROOT = 4_096


def is_session(name: str) -> str:
    """Whether a file's name is that of a session; the id in it is cut, so it gives none."""
    return "?" if _NAME.fullmatch(name) else ""


def session_files(chats: Path) -> list[Path]:
    """The sessions' files in a folder, oldest first."""
    found = sorted(shelf.files(chats, 0, is_session), key=lambda found: (found.modified, found.path))
    return [one.path for one in found]


def session_id(path: Path) -> str:
    """The id that a file's head or the checkpoint itself tells; empty where it cannot be read."""
    if path.suffix == ".json":
        return jsonl.text((_checkpoint(path) or {}).get("sessionId"))
    ids = [jsonl.text(record.get("sessionId")) for record in shelf.head(path)[:1]]
    return ids[0] if ids else ""


def find_session(files: list[Path], native_id: str) -> Path | None:
    """The file of a session; of several the biggest, because a resume leaves a stub beside the real one."""
    named = [path for path in files if session_id(path) == native_id] if native_id else files[-1:]
    return max(named, key=lambda path: shelf.identity(path)[2:3], default=None)


def follow(path: Path, native_id: str, worktree: Path) -> Following:
    """Follow a session in a file or in a folder of them."""
    if not path.is_dir():
        return _Session(path, worktree)
    files = session_files(path)
    unreadable = [file.name for file in files if not session_id(file)]
    chosen = find_session([file for file in files if file.name not in unreadable], native_id)
    return _Session(chosen or path / "no-session.jsonl", worktree, tuple(unreadable[:MAX_LIMITS]))


class _Session:
    """One session, with its subagents' files and what the folder beside it tells."""

    def __init__(self, path: Path, worktree: Path, unreadable: tuple[str, ...] = ()) -> None:
        self._unreadable, self._cwd = unreadable, _project_root(path)
        self._reader = GeminiReader(worktree)
        main: Following = _Checkpoint(path, worktree) if path.suffix == ".json" else self._lines(path, worktree)
        self._all = Family(
            main,
            lambda main: [
                (found.native_id, found.path)
                for found in shelf.files(path.parent / (_plain(main.record().native_id) or "none"), 0, _stem)
            ],
            lambda child: Follower(child, lambda: GeminiReader(worktree)),
        )

    def poll(self) -> bool:
        """Read what is new."""
        return self._all.poll()

    def record(self, *, ended: bool = False) -> SessionRecord:
        """Everything understood so far; as long as it goes on, an open answer may have a call at work."""
        record = self._all.record(ended=ended)
        if self._reader.open_answer and not ended and not record.pending_calls:
            record = replace(record, pending_calls=(ToolCall("?", "a call that is not written yet"),))
        losses = (*record.losses, *(f"{name} could not be read" for name in self._unreadable))
        return replace(
            record, cwd=record.cwd or self._cwd, unreadable=(*record.unreadable, *self._unreadable), losses=losses
        )

    def _lines(self, path: Path, worktree: Path) -> Follower:
        def fresh() -> GeminiReader:
            self._reader = GeminiReader(worktree)
            return self._reader

        return Follower(path, fresh)


class _Checkpoint:
    """Follows a session that is one JSON object: it is read whole when it has changed."""

    def __init__(self, path: Path, worktree: Path) -> None:
        self._path, self._worktree = path, worktree
        self._identity: tuple[int, ...] = ()
        self._record = SessionRecord("gemini")

    def poll(self) -> bool:
        """Read it anew if it has changed."""
        identity = shelf.identity(self._path)
        if identity == self._identity:
            return False
        self._identity = identity
        reader = GeminiReader(self._worktree)
        session = _checkpoint(self._path)
        if session is None:
            reader.draft.cannot_read(self._path.name)
        else:
            reader.whole(session)
        self._record = reader.record()
        return True

    def record(self, *, ended: bool = False) -> SessionRecord:
        """Everything understood."""
        return self._record


def _checkpoint(path: Path) -> Record | None:
    try:
        if not shelf.is_regular(path) or path.stat().st_size > MAX_CHECKPOINT:
            return None
        with path.open("rb") as file:
            return jsonl.parse(file.read(MAX_CHECKPOINT))
    except OSError:
        return None


def _project_root(path: Path) -> str:
    """The folder that the project's own file names, two folders above a session's."""
    named = path.parent.parent / ".project_root"
    if not shelf.is_regular(named):
        return ""
    try:
        with named.open("rb") as file:
            return file.read(_MAX_ROOT).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _plain(name: str) -> str:
    return name if re.fullmatch(r"[0-9A-Za-z-]{1,64}", name) else ""


def _stem(name: str) -> str:
    return name.removesuffix(".jsonl") if name.endswith(".jsonl") else ""
