"""Aider: how it is started, what it may do, and where its chat history lies.

Promise: the prompt goes in by a file and never by argv; aider keeps its own files out of the worktree, fetches nothing
that a prompt names, and opens no browser. It has no sandbox: a path that the model names is written wherever it lies,
so that it is only started where the user has allowed everything.

Its stdout mixes the model's words with its own and is no channel; the history file tells them apart.

Last seen: 0.86.2.
"""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Iterator, Mapping
from datetime import datetime, tzinfo
from pathlib import Path

from relay_git.agents import shelf
from relay_git.agents.agent import (
    TOLD,
    Doing,
    Following,
    Found,
    Heard,
    Kept,
    Launch,
    LoginPlace,
    Permission,
    Place,
    Ready,
    Unready,
    Unsupported,
)
from relay_git.agents.aider_reader import AiderReader, History
from relay_git.agents.draft import MAX_DOING, cut
from relay_git.agents.homes import credential_notes, evidence, home, in_a_leg
from relay_git.agents.moments import UNKNOWN, Moment
from relay_git.agents.transcript import Follower
from relay_git.agents.unconfined import not_confined

HISTORY = ".aider.chat.history.md"
_MAX_HISTORY = 16 << 20
_KEYS = (
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "OPENROUTER_API_KEY",
    "DEEPSEEK_API_KEY",
    "GROQ_API_KEY",
    "XAI_API_KEY",
    "AIDER_OPENAI_API_KEY",
    "AIDER_ANTHROPIC_API_KEY",
    "AIDER_API_KEY",
)
_WHY = "aider has no sandbox: it writes a file wherever the model says, also outside of the session's worktree"
_LOGINS = (".aider.conf.yml", ".env", ".aider/oauth-keys.env")
_OURS = re.compile(r"[0-9a-f-]{36}")
_OPTIONS = (
    "--yes-always",
    "--no-pretty",
    "--no-fancy-input",
    "--no-check-update",  # with all questions answered by yes it would update itself
    "--no-show-release-notes",
    "--no-show-model-warnings",
    "--no-detect-urls",  # it would fetch every address in the prompt
    "--no-gitignore",
)


class Aider:
    """The adapter of aider; `zone` is that of the times in its history, None for this machine's."""

    name = "aider"
    title = "aider"
    aliases: tuple[str, ...] = ("aider-chat",)
    last_seen = "0.86.2"
    unconfined = _WHY
    account = LoginPlace("", _KEYS)
    unresumable = ""
    channel = "a message file in the leg's private folder"

    def __init__(self, zone: tzinfo | None = None) -> None:
        self._zone = zone

    def check(self, env: Mapping[str, str], permission: Permission) -> Ready | Unready:
        """Say whether aider is installed, has a key to work with, and may do what it would do."""
        found = shutil.which("aider", path=env.get("PATH", ""))
        if not found:
            return Unready("aider is not installed: no `aider` on PATH", "pipx install aider-chat")
        signed_in = evidence(env, _KEYS, (home(env) / name for name in _LOGINS))
        if not signed_in:
            return Unready(
                "aider has no API key: none in the environment, no ~/.aider.conf.yml and no ~/.env",
                "export OPENAI_API_KEY=…   (or another provider's key that aider knows)",
            )
        if permission is not Permission.FULL:
            return not_confined(self.name, self.unconfined)
        return Ready(Path(found), credential_notes(env, _KEYS), signed_in)

    def launch(
        self, place: Place, prompt: str, ready: Ready, permission: Permission, env: Mapping[str, str]
    ) -> Launch | Unsupported:
        """Say how to start a new headless run with this prompt in a file."""
        return self._headless(place, prompt, ready, permission, b"")

    def resume(
        self, place: Place, native_id: str, prompt: str, ready: Ready, permission: Permission, env: Mapping[str, str]
    ) -> Launch | Unsupported:
        """Say how to go on with a copy of this history, which aider reads back."""
        path = self.transcript(native_id, place.worktree, env)
        before = shelf.content(path, _MAX_HISTORY) if path is not None else None
        if not before:
            return Unsupported(f"its history is not there, is empty, or has more than {_MAX_HISTORY >> 20} MiB")
        return self._headless(place, prompt, ready, permission, before)

    def kept(self, native_id: str, worktree: Path, env: Mapping[str, str]) -> Kept | Unsupported:
        """Nothing: a leg's history lies in its private folder, which every account finds."""
        return Kept(self.home(env), ())

    def home(self, env: Mapping[str, str]) -> Path:
        """The folder that its keys and settings are looked for in."""
        return home(env)

    def _headless(
        self, place: Place, prompt: str, ready: Ready, permission: Permission, before: bytes
    ) -> Launch | Unsupported:
        if permission is not Permission.FULL:
            return Unsupported(_WHY)
        native_id = str(uuid.uuid4())
        argv = [str(ready.program), *_OPTIONS, f"--{'' if before else 'no-'}restore-chat-history"]
        argv += ["--chat-history-file", str(place.private_dir / f"{native_id}.md")]
        argv += ["--input-history-file", str(place.private_dir / "input-history")]
        argv += ["--message-file", str(place.private_dir / TOLD)]
        grants: tuple[str, ...] = _GRANTS
        if not _ignored(place):
            argv += ["--map-tokens", "0"]
            grants += (_NO_MAP,)
        # A message that begins so would be a command to aider, or to the shell.
        words = f" {prompt}" if prompt.startswith(("/", "!")) else prompt
        files = {TOLD: words.encode("utf-8", "replace"), f"{native_id}.md": before}
        # Where a provider's error names an address, it would be opened, with all questions answered by yes.
        return Launch(tuple(argv), b"", {"BROWSER": "true"}, grants, files, native_id)

    def hear(self, line: bytes, moment: Moment = UNKNOWN) -> tuple[Heard, ...]:
        """What aider is at, for the live line; a model could say the same, so nothing else is believed."""
        said = line.decode("utf-8", "replace").strip()
        return (Doing(cut(said, MAX_DOING)),) if said.startswith(("Applied edit to ", "Commit ")) else ()

    def transcript(self, native_id: str, worktree: Path, env: Mapping[str, str]) -> Path | None:
        """The history file of a leg of ours, in the leg's private folder."""
        return in_a_leg(worktree, f"{native_id}.md") if _OURS.fullmatch(native_id) else None

    def found(self, env: Mapping[str, str]) -> Iterator[Found]:
        """The histories that the environment names: aider keeps no list of the folders it worked in."""
        places = [Path(env[name]) / HISTORY for name in ("PWD", "HOME") if env.get(name)]
        if chosen := env.get("AIDER_CHAT_HISTORY_FILE"):
            places.append(Path(env.get("PWD", "/")) / chosen)
        for path in dict.fromkeys(places):
            if stamp := shelf.identity(path):
                yield Found(path, "", stamp[3] / 1e9, stamp[2])

    def sessions(self, path: Path) -> tuple[str, ...]:
        """The sessions in this history, each by its start in UTC; a folder's are those of the history in it."""
        reader = AiderReader(path, wanted="none", zone=self._zone)
        Follower(path / HISTORY if path.is_dir() else path, lambda: reader).poll()
        return tuple(reader.sessions)

    def inside(self, found: Found) -> _Sessions:
        """The sessions of a history."""
        return _Sessions(self, found.path)

    def follow(self, path: Path, native_id: str, worktree: Path) -> Following:
        """Read one session of a history; that of a leg of ours is the only one in its file."""
        path = path / HISTORY if path.is_dir() else path
        wanted = "" if _OURS.fullmatch(native_id) else native_id
        cwd = str(path.parent) if path.name == HISTORY else str(worktree)
        return History(path, worktree, cwd, wanted, self._zone)


class _Sessions:
    """The sessions of one history."""

    def __init__(self, aider: Aider, path: Path) -> None:
        self._aider, self._path = aider, path

    def listed(self) -> tuple[Found, ...]:
        """Each session, at the latest alive when the next one began; the last one as long as the file was written."""
        stamp, begun = shelf.identity(self._path), self._aider.sessions(self._path)
        if not stamp or not begun:
            return ()
        ends = [datetime.fromisoformat(name).timestamp() for name in begun[1:]]
        older = [Found(self._path, name, end, 0) for name, end in zip(begun, ends, strict=False)]
        return (*older, Found(self._path, begun[-1], stamp[3] / 1e9, stamp[2]))

    def follow(self, native_id: str) -> Following:
        """Read one of them."""
        return self._aider.follow(self._path, native_id, Path())


def _ignored(place: Place) -> bool:
    """Whether git ignores the folder that aider caches its map of the repository in, in the middle of the worktree."""
    for path in (place.worktree / ".gitignore", place.common_dir / "info" / "exclude"):
        try:
            lines = path.read_text("utf-8", "replace").splitlines() if shelf.is_regular(path) else []
        except OSError:
            continue
        if not {".aider*", "/.aider*", ".aider.tags.cache*", ".aider.tags.cache*/"}.isdisjoint(lines):
            return True
    return False


_GRANTS = (
    "edit files wherever your user may (relay.aider.permission is full): aider has no sandbox",
    "commit each edit; it runs no shell commands unattended, but linters and tests that your aider settings name",
)
_NO_MAP = "it makes no map of the repository, which it would cache in the worktree, unless .gitignore has .aider*"
