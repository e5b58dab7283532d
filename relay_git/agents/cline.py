"""Cline: how its CLI is started, what it may do, and where it and its editor extension keep their sessions.

Promise: argv names the file that the task is in, and nothing of the task. The run is a process of its own: by itself
Cline would hand it to a daemon that all its sessions share and that outlives it. Cline has no sandbox, so that it is
only started where the user has allowed everything.

Last seen: CLI 3.0.65. The extension, Roo Code and Kilo Code: from public sources, not seen live.
"""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from relay_git.agents import jsonl, shelf
from relay_git.agents.agent import (
    TOLD,
    Doing,
    Ended,
    Following,
    Found,
    Heard,
    Kept,
    Launch,
    Limited,
    LoginPlace,
    Permission,
    Place,
    Ready,
    Unready,
    Unsupported,
    pointer,
)
from relay_git.agents.cline_reader import read_session
from relay_git.agents.cline_tasks import ABOUT, API, HISTORY, UI, read_task
from relay_git.agents.draft import MAX_DOING, cut
from relay_git.agents.editors import user_folders
from relay_git.agents.homes import evidence, home, in_a_leg
from relay_git.agents.jsonl import Record
from relay_git.agents.moments import UNKNOWN, Moment
from relay_git.agents.refusal import refusal
from relay_git.agents.rewritten import Rewritten
from relay_git.agents.unconfined import full_grants, not_confined
from relay_git.session import SessionRecord

_EXTENSIONS = ("saoudrizwan.claude-dev", "rooveterinaryinc.roo-cline", "kilocode.kilo-code")
_OURS = re.compile(r"[0-9a-f-]{36}")
# The sessions of a leg lie in its private folder, below the name that we chose for it.
_SESSIONS = "CLINE_SESSION_DATA_DIR"
_WHY = "Cline has no sandbox: its commands may do all that your user may"


class Cline:
    """The adapter of Cline."""

    name = "cline"
    title = "Cline"
    aliases: tuple[str, ...] = ("cline-cli", "claude-dev", "roo", "roo-code", "kilo", "kilo-code")
    last_seen = "3.0.65"
    unconfined = _WHY
    account = LoginPlace("CLINE_DATA_DIR", command=("auth",))
    unresumable = "Cline's CLI goes on in a session of its own only at a terminal"
    channel = "a prompt that names a file in the leg's private folder"

    def check(self, env: Mapping[str, str], permission: Permission) -> Ready | Unready:
        """Say whether Cline's CLI is installed, has a provider, and may do what it would do."""
        found = shutil.which("cline", path=env.get("PATH", ""))
        if not found:
            return Unready("Cline is not installed: no `cline` on PATH", "npm install -g cline")
        signed_in = evidence(env, (), (_data(env) / "settings" / "providers.json",))
        if not signed_in:
            return Unready("Cline has no provider yet", "cline auth")
        if permission is not Permission.FULL:
            return not_confined(self.name, _WHY)
        return Ready(Path(found), evidence=signed_in)

    def launch(
        self, place: Place, prompt: str, ready: Ready, permission: Permission, env: Mapping[str, str]
    ) -> Launch | Unsupported:
        """Say how to start a new headless run whose prompt names the file with the task."""
        if permission is not Permission.FULL:
            return Unsupported(_WHY)
        native_id = str(uuid.uuid4())
        argv = (str(ready.program), "--json", pointer(place.private_dir / TOLD))
        more = {
            "CLINE_SESSION_BACKEND_MODE": "local",
            "CLINE_NO_AUTO_UPDATE": "1",
            _SESSIONS: str(place.private_dir / native_id),
        }
        return Launch(argv, b"", more, full_grants(self.name), {TOLD: prompt.encode("utf-8", "replace")}, native_id)

    def resume(
        self, place: Place, native_id: str, prompt: str, ready: Ready, permission: Permission, env: Mapping[str, str]
    ) -> Launch | Unsupported:
        """Cline does that only at a terminal."""
        return Unsupported(self.unresumable)

    def kept(self, native_id: str, worktree: Path, env: Mapping[str, str]) -> Kept | Unsupported:
        """Nothing: a session that cannot go on need not be laid elsewhere."""
        return Unsupported(self.unresumable)

    def home(self, env: Mapping[str, str]) -> Path:
        """The folder that holds its configuration, login and sessions."""
        return _data(env)

    def hear(self, line: bytes, moment: Moment = UNKNOWN) -> tuple[Heard, ...]:
        """What one event of `--json` says; what tools and the model say is never a limit."""
        record = jsonl.parse(line) or {}
        match record.get("type"):
            case "agent_event":
                return _hear_event(jsonl.record(record.get("event")), moment.of(jsonl.iso_time(record.get("ts"))))
            case "run_result":
                return _hear_result(record, moment.of(jsonl.iso_time(record.get("ts"))))
            case "error":
                return (Ended(False, cut(jsonl.text(record.get("message")), 300)),)
            case _:
                return ()

    def transcript(self, native_id: str, worktree: Path, env: Mapping[str, str]) -> Path | None:
        """The session of a leg of ours, in the leg's private folder."""
        return in_a_leg(worktree, f"{native_id}/*/") if _OURS.fullmatch(native_id) else None

    def found(self, env: Mapping[str, str]) -> Iterator[Found]:
        """The sessions of the CLI, and the tasks of the extensions in every editor."""
        yield from shelf.folders(Path(env.get(_SESSIONS) or _data(env) / "sessions"), _session_files)
        for user in user_folders(env):
            for extension in _EXTENSIONS:
                yield from shelf.folders(user / "globalStorage" / extension / "tasks", _task_files)

    def sessions(self, path: Path) -> tuple[str, ...]:
        """The session in this folder, or those in the folders in it."""
        folder = path if path.is_dir() else path.parent
        if _files(folder):
            of_it = path == folder or path in [*_paths(folder, _session_files), *_paths(folder, _task_files)]
            return (folder.name,) if of_it else ()
        inside = [*shelf.folders(folder, _session_files), *shelf.folders(folder, _task_files)]
        return tuple(dict.fromkeys(found.native_id for found in sorted(inside, key=lambda found: found.modified)))

    def follow(self, path: Path, native_id: str, worktree: Path) -> Following:
        """Read one session's folder, also where there is nothing in it yet."""
        folder = path if path.is_dir() else path.parent
        inside = () if _files(folder) else self.sessions(folder)
        if inside:
            folder = folder / (native_id if native_id in inside else inside[-1])
        files = [*_paths(folder, _session_files), *_paths(folder, _task_files)]

        def read() -> tuple[SessionRecord, bool]:
            task = any(map(shelf.identity, _paths(folder, _task_files)))
            return read_task(folder, worktree) if task else read_session(folder, worktree)

        return Rewritten(lambda: files, read, self.name)


def _session_files(name: str) -> tuple[str, ...]:
    return f"{name}.json", f"{name}.messages.json"


def _task_files(name: str) -> tuple[str, ...]:
    return UI, API, ABOUT, HISTORY


def _paths(folder: Path, names: Callable[[str], tuple[str, ...]]) -> list[Path]:
    return [folder / name for name in names(folder.name)]


def _files(folder: Path) -> bool:
    # Continue's folder "sessions" has an index that is named like it.
    own = [] if folder.name == "sessions" else _paths(folder, _session_files)
    return any(map(shelf.is_regular, (*own, *_paths(folder, _task_files)[:2])))


def _data(env: Mapping[str, str]) -> Path:
    if chosen := env.get("CLINE_DATA_DIR"):
        return Path(chosen)
    return Path(env.get("CLINE_DIR") or home(env) / ".cline") / "data"


def _hear_event(event: Record, moment: Moment) -> tuple[Heard, ...]:
    match event.get("type"):
        case "content_start" if event.get("contentType") == "tool":
            given = jsonl.record(event.get("input"))
            commands = ", ".join(map(jsonl.text, jsonl.items(given.get("commands"))))
            target = jsonl.text(given.get("path")) or commands
            return (Doing(cut(f"{jsonl.text(event.get('toolName'))} {target}".strip(), MAX_DOING)),)
        case "content_end" if event.get("contentType") == "text":
            return (Doing(cut(" ".join(jsonl.text(event.get("text")).split()), MAX_DOING)),)
        case "error" if event.get("recoverable") is False:
            return _limit(jsonl.text(jsonl.record(event.get("error")).get("message")), moment)
        case _:
            return ()


def _hear_result(record: Record, moment: Moment) -> tuple[Heard, ...]:
    if record.get("finishReason") == "completed":
        return (Ended(True),)
    said = jsonl.text(record.get("text"))
    ended = Ended(False, cut(said or jsonl.text(record.get("finishReason")), 300))
    return (*_limit(said, moment), ended) if record.get("finishReason") == "error" else (ended,)


def _limit(said: str, moment: Moment) -> tuple[Limited, ...]:
    found = refusal(said, body=said, moment=moment)
    return (Limited(found),) if found else ()
