"""Continue: how its CLI `cn` is started, what it may do, and where it and its editor extension keep their sessions.

Promise: the prompt goes in by stdin and never by argv. It has no sandbox, so that it is only started where the user has
allowed everything. Its stdout is the last answer and no channel: a limit is not heard, since `cn` tries again and again
without a word, and writes its session at the end of a turn.

Last seen: CLI 1.5.47. The extension: not seen live.
"""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

from relay_git.agents import shelf
from relay_git.agents.agent import (
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
from relay_git.agents.continue_reader import INDEX, read_session
from relay_git.agents.homes import credential_notes, evidence, home
from relay_git.agents.moments import UNKNOWN, Moment
from relay_git.agents.rewritten import Document, Rewritten
from relay_git.agents.unconfined import full_grants, not_confined

_ID = re.compile(r"[0-9A-Za-z_-]{1,100}")
_KEYS = ("CONTINUE_API_KEY", "ANTHROPIC_API_KEY")
_WHY = "Continue has no sandbox: its commands may do all that your user may"
_LOGINS = ("config.yaml", "config.json", "config.ts", "auth.json")
# Any of these keeps `cn` from reading its stdin.
_DEAF = ("NODE_ENV", "VITEST", "JEST_WORKER_ID", "CONTINUE_CLI_TEST", "FORCE_NO_TTY")


class Continue:
    """The adapter of Continue."""

    name = "continue"
    title = "Continue"
    aliases: tuple[str, ...] = ("cn", "continue-cli")
    last_seen = "1.5.47"
    unconfined = _WHY
    account = LoginPlace("CONTINUE_GLOBAL_DIR", _KEYS, ("login",))
    unresumable = "Continue's CLI does not tell which session a copied one is, so that nobody could watch it"
    channel = "the prompt on its standard input"

    def check(self, env: Mapping[str, str], permission: Permission) -> Ready | Unready:
        """Say whether `cn` is installed, has a model to work with, and may do what it would do."""
        found = shutil.which("cn", path=env.get("PATH", ""))
        if not found:
            return Unready("Continue's CLI is not installed: no `cn` on PATH", "npm install -g @continuedev/cli")
        signed_in = evidence(env, _KEYS, (_home(env) / name for name in _LOGINS))
        if not signed_in:
            return Unready("Continue has no configuration and is not signed in", "cn login")
        if permission is not Permission.FULL:
            return not_confined(self.name, _WHY)
        return Ready(Path(found), credential_notes(env, _KEYS), signed_in)

    def launch(
        self, place: Place, prompt: str, ready: Ready, permission: Permission, env: Mapping[str, str]
    ) -> Launch | Unsupported:
        """Say how to start a new headless run with this prompt on stdin."""
        if permission is not Permission.FULL:
            return Unsupported(_WHY)
        native_id = str(uuid.uuid4())
        # The last option is -p: a word after it would be taken for the prompt, and stdin be left unread.
        argv = (str(ready.program), "--auto", "-p")
        more = {"CONTINUE_CLI_TEST_SESSION_ID": native_id, "CONTINUE_CLI_AUTO_UPDATED": "1"}
        words, grants = prompt.encode("utf-8", "replace"), full_grants(self.name)
        return Launch(argv, words, more, grants, {}, native_id, drop_env=_DEAF)

    def resume(
        self, place: Place, native_id: str, prompt: str, ready: Ready, permission: Permission, env: Mapping[str, str]
    ) -> Launch | Unsupported:
        """Its `--fork` would, and tells nobody the id of the copy, so that the run could not be watched."""
        return Unsupported(self.unresumable)

    def kept(self, native_id: str, worktree: Path, env: Mapping[str, str]) -> Kept | Unsupported:
        """The session's file."""
        path = self.transcript(native_id, worktree, env)
        return Kept(self.home(env), (path,)) if path is not None else Unsupported("its session was never written")

    def home(self, env: Mapping[str, str]) -> Path:
        """The folder that holds its configuration, login and sessions."""
        return _home(env)

    def hear(self, line: bytes, moment: Moment = UNKNOWN) -> tuple[Heard, ...]:
        """Nothing: what `cn` prints is the model's answer."""
        return ()

    def transcript(self, native_id: str, worktree: Path, env: Mapping[str, str]) -> Path | None:
        """Where the session lies, once it has been written."""
        path = _home(env) / "sessions" / f"{native_id}.json"
        return path if _ID.fullmatch(native_id) and path.is_file() else None

    def found(self, env: Mapping[str, str]) -> Iterator[Found]:
        """Every session of the CLI and of the extension."""
        return shelf.files(_home(env) / "sessions", 0, _id_in_name)

    def sessions(self, path: Path) -> tuple[str, ...]:
        """The session in this file, or those in the files of this folder."""
        if path.is_dir():
            return tuple(f.native_id for f in sorted(shelf.files(path, 0, _id_in_name), key=lambda f: f.modified))
        known = (name in ("workspaceDirectory", "history") for name, _ in Document(path, ["history"]))
        return (path.stem,) if any(known) else ()

    def follow(self, path: Path, native_id: str, worktree: Path) -> Following:
        """Read one session's file."""
        if path.is_dir():
            path /= f"{native_id or ''.join(self.sessions(path)[-1:])}.json"
        return Rewritten(lambda: [path], lambda: read_session(path, worktree), self.name)


def _id_in_name(name: str) -> str:
    stem = name.removesuffix(".json")
    return stem if name not in (stem, INDEX) and _ID.fullmatch(stem) else ""


def _home(env: Mapping[str, str]) -> Path:
    chosen = env.get("CONTINUE_GLOBAL_DIR")
    return Path(chosen) if chosen else home(env) / ".continue"
