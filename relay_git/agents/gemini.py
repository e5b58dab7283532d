"""Gemini CLI: how it is started, where its sessions lie, and what its stdout says.

Promise: the prompt goes in by stdin and never by argv. A session is never resumed where it lies, since a resume in a
later minute makes Gemini CLI delete the transcript at its next start: it goes on in a session that is read from the
file of the old one.

Last seen: 0.61.0.
"""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from relay_git.agents import jsonl, shelf
from relay_git.agents.agent import (
    Doing,
    Ended,
    Following,
    Found,
    Heard,
    Identified,
    Kept,
    Launch,
    Limited,
    LoginPlace,
    Permission,
    Place,
    Ready,
    Unready,
    Unsupported,
)
from relay_git.agents.draft import MAX_DOING, cut
from relay_git.agents.gemini_store import find_session, follow, is_session, session_files, session_id
from relay_git.agents.homes import credential_notes, evidence, home
from relay_git.agents.jsonl import Record
from relay_git.agents.moments import UNKNOWN, Moment
from relay_git.agents.refusal import refusal
from relay_git.agents.unconfined import full_grants, not_confined, without_yolo

_KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS")
_CLOUDS = ("GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA", "GEMINI_CLI_USE_COMPUTE_ADC")
_ID = re.compile(r"[0-9A-Za-z-]{1,64}")


class Gemini:
    """The adapter of Gemini CLI."""

    name = "gemini"
    title = "Gemini CLI"
    aliases: tuple[str, ...] = ("gemini-cli",)
    last_seen = "0.61.0"
    unconfined = "Gemini CLI's sandbox is a container, which does not hold the git dir of a session's worktree"
    account = LoginPlace("GEMINI_CLI_HOME", _KEYS, hint="choose how to sign in, then leave it with /quit")
    unresumable = ""
    channel = "the prompt on its standard input"

    def check(self, env: Mapping[str, str], permission: Permission) -> Ready | Unready:
        """Say whether Gemini CLI is installed and signed in."""
        found = shutil.which("gemini", path=env.get("PATH", ""))
        if not found:
            return Unready("Gemini CLI is not installed: no `gemini` on PATH", "npm install -g @google/gemini-cli")
        signed_in = _signed_in(env)
        if not signed_in:
            return Unready("Gemini CLI is not signed in", "gemini   (then choose how to sign in)")
        if permission is Permission.SANDBOX:
            return not_confined(self.name, self.unconfined)
        return Ready(Path(found), credential_notes(env, _KEYS), signed_in)

    def launch(
        self, place: Place, prompt: str, ready: Ready, permission: Permission, env: Mapping[str, str]
    ) -> Launch | Unsupported:
        """Say how to start a new headless run with this prompt on stdin."""
        native_id = str(uuid.uuid4())
        plan = _headless(prompt, ready, permission, "--session-id", native_id)
        return replace(plan, native_id=native_id) if isinstance(plan, Launch) else plan

    def resume(
        self, place: Place, native_id: str, prompt: str, ready: Ready, permission: Permission, env: Mapping[str, str]
    ) -> Launch | Unsupported:
        """Say how to go on in a session that Gemini CLI makes from this one's file."""
        path = self.transcript(native_id, place.worktree, env)
        if path is None:
            return Unsupported("its transcript is not there")
        plan = _headless(prompt, ready, permission, "--session-file", str(path))
        return replace(plan, repeats=True) if isinstance(plan, Launch) else plan

    def ask(
        self, place: Place, native_id: str, question: str, ready: Ready, env: Mapping[str, str]
    ) -> Launch | Unsupported:
        """Say how to ask in a session made from this one's file, without the tools that it would have to allow."""
        return without_yolo(self.resume(place, native_id, question, ready, Permission.FULL, env))

    def kept(self, native_id: str, worktree: Path, env: Mapping[str, str]) -> Kept | Unsupported:
        """The session's file, and those of its subagents in the folder beside it."""
        path = self.transcript(native_id, worktree, env)
        if path is None:
            return Unsupported("its transcript is not there")
        return Kept(self.home(env), (path, *shelf.below(path.parent / native_id)))

    def home(self, env: Mapping[str, str]) -> Path:
        """The folder that holds its configuration, login and sessions."""
        return gemini_home(env)

    def hear(self, line: bytes, moment: Moment = UNKNOWN) -> tuple[Heard, ...]:
        """What one line of stream-json says; answers and tool results say nothing of a limit."""
        record = jsonl.parse(line) or {}
        match record.get("type"):
            case "init":
                session = jsonl.text(record.get("session_id"))
                return (Identified(session),) if session else ()
            case "tool_use":
                given = jsonl.record(record.get("parameters"))
                target = jsonl.text(given.get("file_path")) or jsonl.text(given.get("command"))
                return (Doing(cut(f"{jsonl.text(record.get('tool_name'))} {target}".strip(), MAX_DOING)),)
            case "message" if record.get("role") == "assistant" and record.get("content"):
                return (Doing(cut(" ".join(jsonl.text(record.get("content")).split()), MAX_DOING)),)
            case "result":
                return _hear_result(record, moment)
            case _:
                return ()

    def transcript(self, native_id: str, worktree: Path, env: Mapping[str, str]) -> Path | None:
        """Where the transcript lies: its name holds the first eight signs of the id."""
        if not _ID.fullmatch(native_id):
            return None
        try:
            named = [*gemini_home(env).glob(f"tmp/*/chats/session-*-{native_id[:8]}.jsonl")]
        except OSError:
            return None
        return find_session(sorted(named), native_id)

    def found(self, env: Mapping[str, str]) -> Iterator[Found]:
        """Every session's file, by project; its name tells only the beginning of its id."""
        try:
            projects = sorted((gemini_home(env) / "tmp").iterdir())
        except OSError:
            return
        for project in projects:
            for found in shelf.files(project / "chats", 0, is_session):
                yield Found(found.path, "", found.modified, found.size)

    def sessions(self, path: Path) -> tuple[str, ...]:
        """The session in this file, or those of this folder."""
        files = session_files(path) if path.is_dir() else [path] if is_session(path.name) else []
        return tuple(dict.fromkeys(own for file in files if (own := session_id(file))))

    def follow(self, path: Path, native_id: str, worktree: Path) -> Following:
        """Read one session."""
        return follow(path, native_id, worktree)


def gemini_home(env: Mapping[str, str]) -> Path:
    """The folder that holds Gemini CLI's settings, login and sessions."""
    chosen = env.get("GEMINI_CLI_HOME")
    return (Path(chosen) if chosen else home(env)) / ".gemini"


def _signed_in(env: Mapping[str, str]) -> str:
    logins = ("oauth_creds.json", "gemini-credentials.json")
    return evidence(env, (*_KEYS, *_CLOUDS), (gemini_home(env) / name for name in logins))


def _headless(prompt: str, ready: Ready, permission: Permission, *session: str) -> Launch | Unsupported:
    if permission is Permission.SANDBOX:
        return Unsupported("Gemini CLI's sandbox does not hold the git dir of a session's worktree")
    argv = (str(ready.program), "--yolo", "--skip-trust", "--output-format", "stream-json", *session)
    words = prompt.encode("utf-8", "replace")
    # Its shell tool points git's global and system configuration at nothing.
    return Launch(argv, words, {}, full_grants("gemini"), {}, hides_git_config=True)


def _hear_result(record: Record, moment: Moment) -> tuple[Heard, ...]:
    if record.get("status") != "error":
        return (Ended(True),)
    error = jsonl.record(record.get("error"))
    said = jsonl.text(error.get("message"))
    moment = moment.of(jsonl.iso_time(record.get("timestamp")))
    notice = refusal(said.removeprefix("[API Error: "), body=said, moment=moment)
    ended = Ended(False, cut(said, 300))
    return (Limited(notice), ended) if notice else (ended,)
