"""Claude Code: how it is started, what it may do, and what its stdout says.

Promise: the prompt goes in by stdin and never by argv; shell commands run in Claude Code's own sandbox, which must
start or the run ends; neither they nor its own file tools can read git relay's key, spool and logs, or write hooks,
configuration or another branch.

Last seen: 2.1.332.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import uuid
from collections.abc import Iterator, Mapping
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
    pointer,
)
from relay_git.agents.claude_limits import event_notice, retry_notice, stdout_notice
from relay_git.agents.claude_reader import ClaudeReader
from relay_git.agents.claude_sandbox import sandbox_settings
from relay_git.agents.claude_status import status_line, status_readings
from relay_git.agents.draft import MAX_DOING, cut
from relay_git.agents.family import Family
from relay_git.agents.homes import credential_notes, evidence, home, is_set, missing_programs
from relay_git.agents.jsonl import Record
from relay_git.agents.moments import UNKNOWN, Moment
from relay_git.agents.transcript import Follower
from relay_git.session import QuotaReading

SETTINGS_FILE = "claude-settings.json"
_KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
_CLOUDS = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")
_SANDBOX_PROGRAMS = {"bwrap": "bubblewrap", "socat": "socat", "rg": "ripgrep"}
_TASK_TOOLS = "CLAUDE_CODE_ENABLE_TODO_TOOLS"
_SESSION_ID = re.compile(r"[0-9A-Za-z-]{1,64}")
_SUBAGENT = re.compile(r"agent-([0-9A-Za-z_-]{1,64})\.jsonl")


class Claude:
    """The adapter of Claude Code."""

    name = "claude"
    title = "Claude Code"
    aliases: tuple[str, ...] = ("claude-code",)
    last_seen = "2.1.332"
    unconfined = ""
    account = LoginPlace("CLAUDE_CONFIG_DIR", _KEYS, ("auth", "login"))
    unresumable = ""
    channel = "the prompt on its standard input"

    def check(self, env: Mapping[str, str], permission: Permission) -> Ready | Unready:
        """Say whether Claude Code is installed, signed in and able to keep the permission."""
        found = shutil.which("claude", path=env.get("PATH", ""))
        if not found:
            return Unready(
                "Claude Code is not installed: no `claude` on PATH", "npm install -g @anthropic-ai/claude-code"
            )
        signed_in = _signed_in(env)
        if not signed_in:
            return Unready("Claude Code is not signed in", "claude   (then /login)")
        lacking = missing_programs(_SANDBOX_PROGRAMS, env) if permission is Permission.SANDBOX else ()
        if lacking and sys.platform.startswith("linux"):
            return Unready(
                f"Claude Code's sandbox needs {', '.join(lacking)}, which this machine does not have",
                f"sudo apt install {' '.join(lacking)}   (or, to run it without a sandbox: "
                "git config relay.claude.permission full)",
            )
        if permission is Permission.FULL and _needs_is_sandbox(env):
            return Unready(_ROOT_REFUSAL, "run git relay as an ordinary user, or leave relay.claude.permission unset")
        return Ready(Path(found), credential_notes(env, (*_KEYS, *_CLOUDS)), signed_in)

    def launch(
        self, place: Place, prompt: str, ready: Ready, permission: Permission, env: Mapping[str, str]
    ) -> Launch | Unsupported:
        """Say how to start a new headless run with this prompt on stdin."""
        return self._headless(place, prompt, ready, permission, env)

    def resume(
        self, place: Place, native_id: str, prompt: str, ready: Ready, permission: Permission, env: Mapping[str, str]
    ) -> Launch | Unsupported:
        """Say how to go on in a copy of this session; what it is told comes as its next prompt.

        A resumed session is sent the system prompt that it began with, so that nothing could come by that.
        """
        if not is_plain(native_id):
            return Unsupported("the id of its session is none")
        return self._headless(place, prompt, ready, permission, env, "--resume", native_id, "--fork-session")

    def ask(
        self, place: Place, native_id: str, question: str, ready: Ready, env: Mapping[str, str]
    ) -> Launch | Unsupported:
        """Say how to ask in a copy of this session, where a hook refuses every call of a tool.

        The tools stay named to the model as they were, so that what its provider has cached of the session still holds.
        """
        if not is_plain(native_id):
            return Unsupported("the id of its session is none")
        own_id = str(uuid.uuid4())
        argv = [str(ready.program), "--resume", native_id, "--fork-session", "-p", "--output-format", "stream-json"]
        argv += ["--verbose", "--session-id", own_id, "--permission-mode", "dontAsk"]
        argv += ["--settings", str(place.private_dir / SETTINGS_FILE)]
        refusal = {"type": "command", "command": "echo 'git relay: answer without a tool' >&2; exit 2", "timeout": 10}
        files = {SETTINGS_FILE: json.dumps({"hooks": {"PreToolUse": [{"hooks": [refusal]}]}}).encode()}
        more = {} if _TASK_TOOLS in env else {_TASK_TOOLS: "1"}
        return Launch(tuple(argv), question.encode(), more, (), files, own_id, repeats=True)

    def _headless(
        self, place: Place, prompt: str, ready: Ready, permission: Permission, env: Mapping[str, str], *before: str
    ) -> Launch | Unsupported:
        native_id = str(uuid.uuid4())
        argv = [str(ready.program), *before, "-p", "--output-format", "stream-json", "--verbose"]
        argv += ["--session-id", native_id]
        more = {} if _TASK_TOOLS in env else {_TASK_TOOLS: "1"}
        settings: dict[str, object] | Unsupported = {}
        mode, grants = "bypassPermissions", _FULL_GRANTS
        if permission is Permission.SANDBOX:
            settings, mode, grants = sandbox_settings(place), "acceptEdits", _SANDBOX_GRANTS
        elif _needs_is_sandbox(env):
            return Unsupported(_ROOT_REFUSAL)
        if isinstance(settings, Unsupported):
            return settings
        argv += ["--permission-mode", mode, "--settings", str(place.private_dir / SETTINGS_FILE)]
        files = {SETTINGS_FILE: json.dumps(settings | _pause_hooks(place), indent=1).encode()}
        words = prompt.encode("utf-8", "replace")
        return Launch(tuple(argv), words, more, grants, files, native_id, ends_turn=True, repeats=bool(before))

    def kept(self, native_id: str, worktree: Path, env: Mapping[str, str]) -> Kept | Unsupported:
        """The transcript, and what lies in the folder beside it: its subagents, results too long for it."""
        path = self.transcript(native_id, worktree, env)
        if path is None:
            return Unsupported("its transcript is not there")
        return Kept(self.home(env), (path, *shelf.below(path.with_suffix(""))))

    def launch_tui(
        self, place: Place, told: Path | str, ready: Ready, permission: Permission, env: Mapping[str, str]
    ) -> Launch | Unsupported:
        """Say how to start the TUI in the same sandbox; which of its questions are asked is as the user has set it."""
        native_id = str(uuid.uuid4())
        argv, task = [str(ready.program), "--session-id", native_id], told if isinstance(told, Path) else None
        settings: dict[str, object] | Unsupported = {}
        grants = _FULL_GRANTS
        if permission is Permission.SANDBOX:
            settings, grants = sandbox_settings(place, task), _TUI_GRANTS
        elif _needs_is_sandbox(env):
            return Unsupported(_ROOT_REFUSAL)
        else:
            argv += ["--permission-mode", "bypassPermissions"]
        if isinstance(settings, Unsupported):
            return settings
        argv += ["--settings", str(place.private_dir / SETTINGS_FILE)]
        argv += ["--", pointer(task)] if task is not None else ["--append-system-prompt", str(told)]
        status = status_line(place.private_dir, _settings_files(place.worktree, env))
        files = {SETTINGS_FILE: json.dumps(settings | _pause_hooks(place) | status, indent=1).encode()}
        more = {} if _TASK_TOOLS in env else {_TASK_TOOLS: "1"}
        return Launch(tuple(argv), b"", more, grants, files, native_id, ends_turn=True)

    def live(self, worktree: Path, env: Mapping[str, str], since: float) -> str:
        """The session that was written last in this worktree: `/clear` and `/resume` change it."""
        found = shelf.files(_folder(worktree, env), 0, _id_in_name)
        here = str(worktree)
        return shelf.newest(found, since, lambda path: any(r.get("cwd") == here for r in shelf.head(path)))

    def metered(self, private: Path) -> tuple[QuotaReading, ...]:
        """What its status line was told last of how much is used."""
        return status_readings(private)

    def home(self, env: Mapping[str, str]) -> Path:
        """The folder that holds its configuration, login and sessions."""
        return config_dir(env)

    def hear(self, line: bytes, moment: Moment = UNKNOWN) -> tuple[Heard, ...]:
        """What one line of stream-json says; answers, tool results and retries say nothing of a limit."""
        record = jsonl.parse(line)
        match record.get("type") if record else None:
            case "system" if record and record.get("subtype") == "init":
                session = jsonl.text(record.get("session_id"))
                return (Identified(session),) if session else ()
            case "system" if record and record.get("subtype") == "api_retry":
                return (_hear_retry(record),)
            case "rate_limit_event" if record:
                return _hear_event(record, moment)
            case "assistant" if record:
                return _hear_answer(record, moment)
            case "result" if record:
                return _hear_result(record, moment)
            case _:
                return ()

    def transcript(self, native_id: str, worktree: Path, env: Mapping[str, str]) -> Path | None:
        """Where the transcript lies; its folder's name is made from the cwd in a way that differs by version."""
        if not _SESSION_ID.fullmatch(native_id):
            return None
        projects, usual = config_dir(env) / "projects", _folder(worktree, env) / f"{native_id}.jsonl"
        if usual.is_file():
            return usual
        try:
            return next(iter(sorted(projects.glob(f"*/{native_id}.jsonl"))), None)
        except OSError:
            return None

    def found(self, env: Mapping[str, str]) -> Iterator[Found]:
        """Every session's file; those of subagents lie deeper."""
        return shelf.files(config_dir(env) / "projects", 1, _id_in_name)

    def sessions(self, path: Path) -> tuple[str, ...]:
        """The session in this file, by its records; a folder has those of its files."""
        if path.is_dir():
            return tuple(f.native_id for f in sorted(shelf.files(path, 0, _id_in_name), key=lambda f: f.modified))
        records = [record for record in shelf.head(path) if "parentUuid" in record]
        if any("provenance" in record for record in records):  # Qwen Code's are like ours, and have this
            return ()
        ids = (jsonl.text(record.get("sessionId")) for record in records)
        return tuple(filter(None, ids))[:1]

    def follow(self, path: Path, native_id: str, worktree: Path) -> Following:
        """Read one session's file and those of its subagents beside it."""
        if path.is_dir():
            path = next((f.path for f in shelf.files(path, 0, _id_in_name) if f.native_id == native_id), path)

        def one(file: Path) -> Follower:
            return Follower(file, lambda: ClaudeReader(worktree))

        return Family(one(path), lambda _: _subagents(path), one)


def _subagents(path: Path) -> Iterator[tuple[str, Path]]:
    for found in shelf.files(path.with_suffix("") / "subagents", 0, _agent_in_name):
        yield found.native_id, found.path


def _agent_in_name(name: str) -> str:
    found = _SUBAGENT.fullmatch(name)
    return found[1] if found else ""


def _id_in_name(name: str) -> str:
    stem = name.removesuffix(".jsonl")
    return stem if stem != name and _SESSION_ID.fullmatch(stem) else ""


def _pause_hooks(place: Place) -> dict[str, object]:
    """Settings with which Claude Code itself ends its turn between two tool calls when a pause is asked for.

    PostToolUse, and not PostToolBatch, which is the better moment: an older version may not know that event, and the
    sandbox's settings stand in the same file (ADR 0018).
    """
    from relay_git.git.hooks import script  # which starts programs, so reading a transcript does without it

    command = shlex.join(["sh", str(script("end-turn")), str(place.git_dir / "relay")])
    hook = {"hooks": [{"type": "command", "command": command, "timeout": 10}]}
    return {"hooks": {"PostToolUse": [hook], "Stop": [hook]}}


def config_dir(env: Mapping[str, str]) -> Path:
    """The folder that holds Claude Code's settings, login and transcripts."""
    chosen = env.get("CLAUDE_CONFIG_DIR")
    return Path(chosen) if chosen else home(env) / ".claude"


def _settings_files(worktree: Path, env: Mapping[str, str]) -> tuple[Path, ...]:
    """The user's own settings that count in a folder, what outranks first."""
    there = worktree / ".claude"
    return (there / "settings.local.json", there / "settings.json", config_dir(env) / "settings.json")


def _folder(worktree: Path, env: Mapping[str, str]) -> Path:
    """Where it keeps the transcripts of the sessions in this folder."""
    return config_dir(env) / "projects" / re.sub(r"[^0-9A-Za-z]", "-", str(worktree))


def _signed_in(env: Mapping[str, str]) -> str:
    config = config_dir(env)
    found = evidence(env, (*_KEYS, *_CLOUDS), (config / ".credentials.json",))
    if found or sys.platform == "darwin":
        return found or "the keychain is asked when it starts"  # which is not ours to open
    helper = shelf.document(config / "settings.json").get("apiKeyHelper")
    return f"{config / 'settings.json'} names an apiKeyHelper" if helper else ""


def _needs_is_sandbox(env: Mapping[str, str]) -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0 and not is_set(env, "IS_SANDBOX")


def _hear_event(record: Record, moment: Moment) -> tuple[Heard, ...]:
    notice = event_notice(record)
    info = jsonl.record(record.get("rate_limit_info"))
    metered = meters.claude_event(info, moment.at, "Claude Code's rate_limit_event")
    return (*([Metered(metered)] if metered else []), *([Limited(notice)] if notice else []))


def _hear_answer(record: Record, moment: Moment) -> tuple[Heard, ...]:
    if record.get("parent_tool_use_id"):
        return ()
    if record.get("is_api_error_message") is True:
        notice = stdout_notice(record, moment)
        return (Limited(notice),) if notice else ()
    heard: list[Heard] = []
    for block in jsonl.records(jsonl.record(record.get("message")).get("content")):
        given = jsonl.record(block.get("input"))
        if block.get("type") == "tool_use":
            target = jsonl.text(given.get("description")) or jsonl.text(given.get("file_path"))
            target = target or jsonl.text(given.get("command"))
            heard.append(Doing(cut(f"{jsonl.text(block.get('name'))} {target}".strip(), MAX_DOING)))
        elif block.get("type") == "text" and block.get("text"):
            heard.append(Doing(cut(" ".join(jsonl.text(block.get("text")).split()), MAX_DOING)))
    return tuple(heard)


def _hear_retry(record: Record) -> Retrying:
    seconds = record.get("retry_delay_ms")
    wait = seconds / 1000 if isinstance(seconds, int | float) and seconds >= 0 else None
    attempt, last = jsonl.integer(record.get("attempt")) or 0, jsonl.integer(record.get("max_retries")) or 0
    refused = record.get("error") == "rate_limit" or record.get("error_status") in (429, 503, 529)
    return Retrying(retry_notice(record), wait, attempt, last, refused)


def _hear_result(record: Record, moment: Moment) -> tuple[Heard, ...]:
    if record.get("is_error") is not True:
        return (Ended(True),)
    notice = stdout_notice(record, moment)
    ended = Ended(False, cut(jsonl.text(record.get("result")) or jsonl.text(record.get("subtype")), 300))
    return (Limited(notice), ended) if notice else (ended,)


_ROOT_REFUSAL = "Claude Code refuses to run without its sandbox as root, unless the user has set IS_SANDBOX=1"
_SANDBOX_GRANTS: tuple[str, ...] = (
    "edit files in the session's worktree",
    "run commands in Claude Code's sandbox: writing in the worktree, its own git dir, git's objects, the session's "
    "branches below refs/heads/relay and a temp folder; network only to hosts that your Claude settings allow",
    "commands and file tools can neither read git relay's key, spool and logs, nor write hooks, git's "
    "configuration or another branch",
    "commands can read the rest of the disk, as your user",
    "what your own Claude Code settings allow beyond that stays allowed",
)
_TUI_GRANTS = (
    *_SANDBOX_GRANTS[1:],
    "whatever else it wants to do, it asks you in its own dialogs, as your Claude Code settings say",
)
_FULL_GRANTS: tuple[str, ...] = (
    "everything that your user may do: no sandbox, no questions (relay.claude.permission is full)",
)
