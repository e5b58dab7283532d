"""Antigravity, the editor and its CLI `agy`: where their sessions are, and what can be read of them. Read, not started.

Promise: what only stands in a conversation file in protobuf, which has no published form, is said to be unread; the
transcript and the artifacts beside it are read instead.

Format, from public sources and not seen live: `~/.gemini/antigravity*/brain/<id>/` with `task.md` (a checklist),
`implementation_plan.md`, `walkthrough.md`, and in newer versions `.system_generated/logs/transcript_full.jsonl` (and
`transcript.jsonl`, with long values cut): a step a line, `{step_index, source, type, status, created_at, content,
tool_calls[{name, args}]}`. Conversations: `~/.gemini/antigravity*/conversations/<id>.pb` or `.db`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from relay_git.agents import shelf
from relay_git.agents.agent import Following, Found
from relay_git.agents.antigravity_reader import AntigravityReader, tasks
from relay_git.agents.draft import MAX_TEXT_CHARS, cut
from relay_git.agents.homes import home
from relay_git.agents.transcript import Follower
from relay_git.session import PlanItem, SessionRecord

_HOMES = ("antigravity", "antigravity-ide", "antigravity-cli")
_LOGS = ".system_generated/logs"
_TRANSCRIPTS = (f"{_LOGS}/transcript_full.jsonl", f"{_LOGS}/transcript.jsonl")
_TASK, _TELLING = "task.md", ("walkthrough.md", "implementation_plan.md")
_ID = re.compile(r"[0-9A-Za-z_-]{1,100}")
_MAX_ARTIFACT = 1 << 20


class Antigravity:
    """The reader of Antigravity."""

    name = "antigravity"
    title = "Antigravity"
    aliases: tuple[str, ...] = ("antigravity-cli", "antigravity-ide", "agy")
    last_seen = ""

    def found(self, env: Mapping[str, str]) -> Iterator[Found]:
        """Every session's folder, and the conversations that have none."""
        for place in (home(env) / ".gemini" / name for name in _HOMES):
            known = set()
            for found in shelf.folders(place / "brain", _parts):
                known.add(found.native_id)
                yield found
            for found in shelf.files(place / "conversations", 0, _id_in_name):
                if found.native_id not in known:
                    yield found

    def sessions(self, path: Path) -> tuple[str, ...]:
        """The session in this folder, or of this file in it or of this conversation; those in a folder of folders."""
        folder = _folder(path)
        if any(map(shelf.identity, (folder / part for part in _parts("")))):
            return (folder.name,)
        if _id_in_name(path.name) and shelf.is_regular(path):
            return (path.stem,)
        inside = sorted(shelf.folders(path, _parts), key=lambda found: found.modified)
        return tuple(found.native_id for found in inside)

    def follow(self, path: Path, native_id: str, worktree: Path) -> Following:
        """Read one session."""
        folder = _folder(path)
        if folder == path and not any(map(shelf.identity, (folder / part for part in _parts("")))):
            folder = path / (native_id or "".join(self.sessions(path)[-1:]))
        return _Session(folder, worktree)


class _Session:
    """Follows the transcript of a session, and the artifacts beside it."""

    def __init__(self, folder: Path, worktree: Path) -> None:
        self._folder = folder
        transcripts = [folder / name for name in _TRANSCRIPTS]
        self._transcript = next(filter(shelf.is_regular, transcripts), transcripts[-1])
        self._follower = Follower(self._transcript, lambda: AntigravityReader(worktree, folder.name))
        self._artifacts = [folder / name for name in (_TASK, *_TELLING)]
        self._stamps: list[tuple[int, ...]] = []
        self._plan: list[PlanItem] = []
        self._told = ""

    def poll(self) -> bool:
        """Read what is new in the transcript, and the artifacts where they have changed."""
        fresh, stamps = self._follower.poll(), [shelf.identity(path) for path in self._artifacts]
        if stamps == self._stamps:
            return fresh
        self._stamps = stamps
        self._plan = tasks(_text(self._artifacts[0]))
        self._told = next((told for path in self._artifacts[1:] if (told := _text(path))), "")
        return True

    def record(self, *, ended: bool = False) -> SessionRecord:
        """What the transcript and the artifacts tell."""
        record = self._follower.record(ended=ended)
        record = replace(record, plan=tuple(self._plan) or record.plan)
        if shelf.is_regular(self._transcript):
            return record
        file = f"conversations/{self._folder.name}.pb"
        loss = "the conversation is kept in a form that cannot be read: this is what its artifacts tell"
        return replace(
            record,
            last_text=cut(self._told, MAX_TEXT_CHARS),
            unreadable=(*record.unreadable, file),
            losses=(*record.losses, loss),
        )


def _parts(_name: str) -> tuple[str, ...]:
    return (*_TRANSCRIPTS, _TASK, *_TELLING)


def _folder(path: Path) -> Path:
    """The session's folder, of itself, of a file in it, or of a conversation."""
    if path.parent.name == "conversations":
        return path.parent.parent / "brain" / path.stem
    if path.parent.name == "logs":
        return path.parents[2]
    return path if path.is_dir() else path.parent


def _id_in_name(name: str) -> str:
    stem, _, kind = name.rpartition(".")
    return stem if kind in ("pb", "db") and _ID.fullmatch(stem) else ""


def _text(path: Path) -> str:
    if not shelf.is_regular(path):
        return ""
    try:
        with path.open("rb") as file:
            return file.read(_MAX_ARTIFACT).decode("utf-8", "replace").strip()
    except OSError:
        return ""
