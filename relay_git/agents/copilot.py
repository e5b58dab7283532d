"""Copilot CLI: how it is started, where its sessions lie, and what its stdout says.

Promise: the prompt goes in by stdin and never by argv; only its own error and retry events say anything of a limit.

Last seen: 1.0.102.
"""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from relay_git.agents import jsonl, meters, shelf
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
    Metered,
    Permission,
    Place,
    Ready,
    Retrying,
    Unready,
    Unsupported,
    is_plain,
)
from relay_git.agents.copilot_reader import CopilotFollower, error_notice
from relay_git.agents.draft import MAX_DOING, cut
from relay_git.agents.homes import credential_notes, evidence, home
from relay_git.agents.jsonl import Record
from relay_git.agents.moments import UNKNOWN, Moment
from relay_git.agents.refusal import refusal
from relay_git.agents.unconfined import full_grants, not_confined

_KEYS = ("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "COPILOT_PROVIDER_API_KEY")
_EVENTS = "events.jsonl"
_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")


class Copilot:
    """The adapter of Copilot CLI."""

    name = "copilot"
    title = "Copilot CLI"
    aliases: tuple[str, ...] = ("copilot-cli", "github-copilot")
    last_seen = "1.0.102"
    unconfined = "Copilot CLI cannot be confined for one run: its sandbox is a setting of your own files"
    account = LoginPlace("COPILOT_HOME", _KEYS, ("login",))
    unresumable = ""
    channel = "the prompt on its standard input"

    def check(self, env: Mapping[str, str], permission: Permission) -> Ready | Unready:
        """Say whether Copilot CLI is installed and signed in."""
        found = shutil.which("copilot", path=env.get("PATH", ""))
        if not found:
            return Unready("Copilot CLI is not installed: no `copilot` on PATH", "npm install -g @github/copilot")
        signed_in = _signed_in(env)
        if not signed_in:
            return Unready("Copilot CLI is not signed in", "copilot login")
        if permission is Permission.SANDBOX:
            return not_confined(self.name, self.unconfined)
        return Ready(Path(found), credential_notes(env, _KEYS), signed_in)

    def launch(
        self, place: Place, prompt: str, ready: Ready, permission: Permission, env: Mapping[str, str]
    ) -> Launch | Unsupported:
        """Say how to start a new headless run with this prompt on stdin."""
        native_id = str(uuid.uuid4())
        return _headless(prompt, ready, permission, native_id, "--session-id", native_id)

    def resume(
        self, place: Place, native_id: str, prompt: str, ready: Ready, permission: Permission, env: Mapping[str, str]
    ) -> Launch | Unsupported:
        """Say how to go on in this session: Copilot CLI makes no copy of one."""
        if not is_plain(native_id):
            return Unsupported("the id of its session is none")
        plan = _headless(prompt, ready, permission, native_id, f"--resume={native_id}")
        return replace(plan, repeats=True) if isinstance(plan, Launch) else plan

    def kept(self, native_id: str, worktree: Path, env: Mapping[str, str]) -> Kept | Unsupported:
        """All of the session's folder but the locks of processes that are at it."""
        events = self.transcript(native_id, worktree, env)
        if events is None:
            return Unsupported("its events are not there")
        files = (path for path in shelf.below(events.parent) if not path.name.endswith(".lock"))
        return Kept(self.home(env), tuple(files))

    def home(self, env: Mapping[str, str]) -> Path:
        """The folder that holds its configuration, login and sessions."""
        return copilot_home(env)

    def hear(self, line: bytes, moment: Moment = UNKNOWN) -> tuple[Heard, ...]:
        """What one event says; answers and tool results say nothing of a limit."""
        record = jsonl.parse(line) or {}
        data = jsonl.record(record.get("data"))
        match record.get("type"):
            case "tool.execution_start":
                given = jsonl.record(data.get("arguments"))
                target = jsonl.text(given.get("command")) or jsonl.text(given.get("path"))
                return (Doing(cut(f"{jsonl.text(data.get('toolName'))} {target}".strip(), MAX_DOING)),)
            case "assistant.message" if data.get("content"):
                return (Doing(cut(" ".join(jsonl.text(data.get("content")).split()), MAX_DOING)),)
            case "model.call_failure":
                return _hear_failure(data, moment.of(jsonl.iso_time(record.get("timestamp"))))
            case "assistant.usage":
                metered = meters.copilot(jsonl.record(data.get("quotaSnapshots")), moment.at)
                return (Metered(metered),) if metered else ()
            case "session.error":
                notice = error_notice(data, moment.of(jsonl.iso_time(record.get("timestamp"))))
                ended = Ended(False, cut(jsonl.text(data.get("message")), 300))  # its result says only that it failed
                return (Limited(notice), ended) if notice else (ended,)
            case "result":
                session = jsonl.text(record.get("sessionId"))
                ended = Ended(record.get("exitCode") == 0)
                return (Identified(session), ended) if session else (ended,)
            case _:
                return ()

    def transcript(self, native_id: str, worktree: Path, env: Mapping[str, str]) -> Path | None:
        """Where the events lie."""
        if not _ID.fullmatch(native_id):
            return None
        events = copilot_home(env) / "session-state" / native_id / _EVENTS
        return events if events.is_file() else None

    def found(self, env: Mapping[str, str]) -> Iterator[Found]:
        """Every session's events; the folder is named by the id."""
        for found in shelf.files(copilot_home(env) / "session-state", 1, lambda name: name if name == _EVENTS else ""):
            yield Found(found.path, found.path.parent.name, found.modified, found.size)

    def sessions(self, path: Path) -> tuple[str, ...]:
        """The session in this file, by its first record."""
        for record in shelf.head(path)[:1]:
            if record.get("type") == "session.start":
                own = jsonl.text(jsonl.record(record.get("data")).get("sessionId"))
                return (own,) if own else ()
        return ()

    def follow(self, path: Path, native_id: str, worktree: Path) -> Following:
        """Read one session's events."""
        return CopilotFollower(path, worktree)


def copilot_home(env: Mapping[str, str]) -> Path:
    """The folder that holds Copilot's settings, login and sessions."""
    chosen = env.get("COPILOT_HOME")
    return Path(chosen) if chosen else home(env) / ".copilot"


def _headless(prompt: str, ready: Ready, permission: Permission, native_id: str, *session: str) -> Launch | Unsupported:
    if permission is Permission.SANDBOX:
        return Unsupported("Copilot CLI cannot be confined for one run")
    argv = (str(ready.program), "--output-format", "json", *session, "--allow-all", "--no-ask-user")
    return Launch(argv, prompt.encode("utf-8", "replace"), {}, full_grants("copilot"), {}, native_id)


def _signed_in(env: Mapping[str, str]) -> str:
    """A token, a provider of the user's own, or a file that a login leaves; none of them is opened."""
    chosen = env.get("XDG_CONFIG_HOME")
    github = (Path(chosen) if chosen else home(env) / ".config") / "gh" / "hosts.yml"
    return evidence(env, (*_KEYS, "COPILOT_PROVIDER_BASE_URL"), (github, copilot_home(env) / "config.json"))


def _hear_failure(data: Record, moment: Moment) -> tuple[Heard, ...]:
    """A call that failed, after which Copilot waits and asks again; the last failure is followed by an error."""
    notice = refusal(
        jsonl.text(data.get("errorMessage")),
        status=jsonl.integer(data.get("statusCode")),
        body=f"{jsonl.text(data.get('errorType'))} {jsonl.text(data.get('errorCode'))}",
        moment=moment,
    )
    return (Retrying(notice, attempt=jsonl.count(data.get("retryAttempt")) + 1),) if notice else ()
