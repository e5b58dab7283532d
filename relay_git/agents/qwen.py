"""Qwen Code: how it is started, where its sessions lie, and what its stdout says.

Promise: the prompt goes in by stdin and never by argv; only its own error and retry records say anything of a limit.

Last seen: 0.24.4.
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
    Retrying,
    Unready,
    Unsupported,
    is_plain,
)
from relay_git.agents.draft import MAX_DOING, cut
from relay_git.agents.homes import credential_notes, evidence, home
from relay_git.agents.jsonl import Record
from relay_git.agents.moments import UNKNOWN, Moment
from relay_git.agents.qwen_reader import QwenReader
from relay_git.agents.refusal import refusal
from relay_git.agents.transcript import Follower
from relay_git.agents.unconfined import full_grants, not_confined, without_yolo
from relay_git.session import LimitKind, LimitNotice

_KEYS = (
    "OPENAI_API_KEY",
    "DASHSCOPE_API_KEY",
    "QWEN_API_KEY",
    "BAILIAN_CODING_PLAN_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
)
_ID = re.compile(r"[0-9A-Za-z-]{1,64}")


class Qwen:
    """The adapter of Qwen Code."""

    name = "qwen"
    title = "Qwen Code"
    aliases: tuple[str, ...] = ("qwen-code",)
    last_seen = "0.24.4"
    unconfined = "Qwen Code's sandbox cannot commit: it lets commands write in the worktree only, not in its git dir"
    account = LoginPlace("QWEN_HOME", _KEYS, hint="sign in with /auth, then leave it with /quit")
    unresumable = ""
    channel = "the prompt on its standard input"

    def check(self, env: Mapping[str, str], permission: Permission) -> Ready | Unready:
        """Say whether Qwen Code is installed and signed in."""
        found = shutil.which("qwen", path=env.get("PATH", ""))
        if not found:
            return Unready("Qwen Code is not installed: no `qwen` on PATH", "npm install -g @qwen-code/qwen-code")
        signed_in = _signed_in(env)
        if not signed_in:
            return Unready("Qwen Code is not signed in", "qwen   (then /auth)")
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
        """Say how to go on in a copy of this session; Qwen Code chooses the id of the copy."""
        if not is_plain(native_id):
            return Unsupported("the id of its session is none")
        plan = _headless(prompt, ready, permission, "--resume", native_id, "--fork-session")
        return replace(plan, repeats=True) if isinstance(plan, Launch) else plan

    def ask(
        self, place: Place, native_id: str, question: str, ready: Ready, env: Mapping[str, str]
    ) -> Launch | Unsupported:
        """Say how to ask in a copy of this session, without the tools that it would have to allow."""
        return without_yolo(self.resume(place, native_id, question, ready, Permission.FULL, env))

    def kept(self, native_id: str, worktree: Path, env: Mapping[str, str]) -> Kept | Unsupported:
        """The session's file."""
        path = self.transcript(native_id, worktree, env)
        return Kept(self.home(env), (path,)) if path is not None else Unsupported("its transcript is not there")

    def home(self, env: Mapping[str, str]) -> Path:
        """The folder that holds its configuration, login and sessions."""
        return qwen_home(env)

    def hear(self, line: bytes, moment: Moment = UNKNOWN) -> tuple[Heard, ...]:
        """What one line of stream-json says; answers and tool results say nothing of a limit."""
        record = jsonl.parse(line) or {}
        match record.get("type"), record.get("subtype"):
            case "system", "init":
                session = jsonl.text(record.get("session_id"))
                return (Identified(session),) if session else ()
            case "system", "retry":
                return _hear_retry(jsonl.record(record.get("data")))
            case "assistant", _:
                return _hear_answer(record)
            case "result", _:
                return _hear_result(record, moment)
            case _:
                return ()

    def transcript(self, native_id: str, worktree: Path, env: Mapping[str, str]) -> Path | None:
        """Where the transcript lies; its folder's name is made from the cwd."""
        if not _ID.fullmatch(native_id):
            return None
        try:
            return next(iter(sorted(qwen_home(env).glob(f"projects/*/chats/{native_id}.jsonl"))), None)
        except OSError:
            return None

    def found(self, env: Mapping[str, str]) -> Iterator[Found]:
        """Every session's file, by project."""
        try:
            projects = sorted((qwen_home(env) / "projects").iterdir())
        except OSError:
            return
        for project in projects:
            yield from shelf.files(project / "chats", 0, _id_in_name)

    def sessions(self, path: Path) -> tuple[str, ...]:
        """The session in this file, by its first record."""
        for record in shelf.head(path)[:1]:
            own = jsonl.text(record.get("sessionId"))
            return (own,) if own and "provenance" in record else ()
        return ()

    def follow(self, path: Path, native_id: str, worktree: Path) -> Following:
        """Read one session's file."""
        return Follower(path, lambda: QwenReader(worktree))


def qwen_home(env: Mapping[str, str]) -> Path:
    """The folder that holds Qwen Code's settings, login and sessions."""
    chosen = env.get("QWEN_HOME")
    return Path(chosen) if chosen else home(env) / ".qwen"


def _headless(prompt: str, ready: Ready, permission: Permission, *session: str) -> Launch | Unsupported:
    if permission is Permission.SANDBOX:
        return Unsupported("Qwen Code's sandbox cannot commit in a linked worktree")
    argv = (str(ready.program), "--yolo", "--output-format", "stream-json", *session)
    return Launch(argv, prompt.encode("utf-8", "replace"), {}, full_grants("qwen"), {})


def _id_in_name(name: str) -> str:
    stem = name.removesuffix(".jsonl")
    return stem if stem != name and _ID.fullmatch(stem) else ""


def _signed_in(env: Mapping[str, str]) -> str:
    found = evidence(env, _KEYS, (qwen_home(env) / "oauth_creds.json",))
    if found:
        return found
    settings = qwen_home(env) / "settings.json"
    return f"{settings} names modelProviders" if jsonl.record(shelf.document(settings).get("modelProviders")) else ""


def _hear_retry(data: Record) -> tuple[Heard, ...]:
    """A wait for the model; it says how long, and not what was refused."""
    delay = data.get("delayMs")
    if isinstance(delay, bool) or not isinstance(delay, int | float) or delay < 0:
        return ()  # a stream that was cut is asked for again at once
    attempt, last = jsonl.count(data.get("attempt")), jsonl.count(data.get("maxRetries"))
    notice = LimitNotice(LimitKind.RATE, f"its model refused {attempt} times of {last}, it waits {delay / 1000:.0f} s")
    return (Retrying(notice, delay / 1000, attempt, last),)


def _hear_answer(record: Record) -> tuple[Heard, ...]:
    if record.get("parent_tool_use_id"):
        return ()
    heard: list[Heard] = []
    for block in jsonl.records(jsonl.record(record.get("message")).get("content")):
        given = jsonl.record(block.get("input"))
        if block.get("type") == "tool_use":
            target = jsonl.text(given.get("file_path")) or jsonl.text(given.get("command"))
            heard.append(Doing(cut(f"{jsonl.text(block.get('name'))} {target}".strip(), MAX_DOING)))
        elif block.get("type") == "text" and block.get("text"):
            heard.append(Doing(cut(" ".join(jsonl.text(block.get("text")).split()), MAX_DOING)))
    return tuple(heard)


def _hear_result(record: Record, moment: Moment) -> tuple[Heard, ...]:
    if record.get("is_error") is not True:
        return (Ended(True),)
    said = jsonl.text(jsonl.record(record.get("error")).get("message")) or jsonl.text(record.get("result"))
    notice = refusal(said, body=said, moment=moment)
    ended = Ended(False, cut(said, 300))
    return (Limited(notice), ended) if notice else (ended,)
