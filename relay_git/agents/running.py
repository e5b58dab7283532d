"""How a running agent is told from other processes, and which of its sessions it is at.

Promise: nothing here looks at the system; it is given what was seen of a process. A tool's own word about its live
sessions is believed before anything that is only likely. No file that may hold a token is opened.

The programs and the registries were seen on Linux with the versions that the adapters name as last seen.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from relay_git.agents import jsonl, shelf

_PROGRAMS = {
    "claude": "claude",
    "codex": "codex",
    "opencode": "opencode",
    "gemini": "gemini",
    "qwen": "qwen",
    "copilot": "copilot",
    "cline": "cline",
    "cn": "continue",
    "aider": "aider",
    "cursor-agent": "cursor",
    "relay_git.agents.demo_agent": "demo",
    "relay_git.agents.demo_tui": "demo",
}
# A script of a package is often named `cli.js` or `index.js`: the package then says whose it is.
_PACKAGES = {
    "@anthropic-ai/claude-code": "claude",
    "@openai/codex": "codex",
    "@google/gemini-cli": "gemini",
    "@qwen-code/qwen-code": "qwen",
    "@github/copilot": "copilot",
    "@continuedev/cli": "continue",
    "opencode-ai": "opencode",
}
_INTERPRETERS = re.compile(r"(node|nodejs|bun|deno|python[0-9.]*)")
# What the same programs do besides a session.
_NO_SESSION = {"mcp", "mcp-server", "login", "logout", "auth", "update", "upgrade", "serve", "doctor", "--version"}
_NO_SESSION |= {"-v", "--help", "-h", "--cline-hub-daemon", "completion"}
_RESUMED = re.compile(r"(?:--session-id|--resume|-r|-s|--session)(?:=(?P<id>.+))?")
_SAME_START = 60  # seconds between the start of a process and what its tool took for it
_ID = re.compile(r"[0-9A-Za-z_-]{6,80}")
BY_ARGUMENT = "its command line"


@dataclass(frozen=True, slots=True)
class Process:
    """What was seen of a process: `started` is Unix time in seconds, `env` is empty where it may not be read."""

    pid: int
    parent: int
    started: float
    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Clue:
    """Which session a process is at, how that is known, and the tool's own word for what it does, where it has one."""

    native_id: str
    how: str
    doing: str = ""


def tool_of(argv: tuple[str, ...]) -> str:
    """The name of the tool whose session this command line runs; empty where it runs none."""
    words = [word for word in argv[:8] if word]
    if not words:
        return ""
    name, rest = _name(words[0]), words[1:]
    if _INTERPRETERS.fullmatch(name):
        while rest and rest[0].startswith("-") and rest[0] != "-m":
            rest = rest[1:]
        rest = rest[1:] if rest and rest[0] == "-m" else rest
        if not rest:
            return ""
        script, rest = rest[0], rest[1:]
        whose = next((tool for package, tool in _PACKAGES.items() if f"/{package}/" in script), "")
        tool = whose or _PROGRAMS.get(_name(script), "")
    else:
        tool = _PROGRAMS.get(name, "")
    return "" if set(rest[:1]) & _NO_SESSION else tool


def clue(tool: str, process: Process, opened: tuple[str, ...], homes: Mapping[str, Path]) -> Clue | None:
    """What tells which session the process is at; None where nothing but place and time does.

    `opened` are the paths of its open files, `homes` the folder of each tool that has a registry of live sessions or
    locks of them.
    """
    home = homes.get(tool)
    found = None
    if tool == "claude" and home is not None:
        found = _claude(home, process)
    elif tool == "copilot" and home is not None:
        found = _copilot(home, process)
    elif tool == "codex" and home is not None:
        found = _codex(home, opened)
    return found or _by_argument(process.argv)


def _claude(config: Path, process: Process) -> Clue | None:
    """`sessions/<pid>.json`; it stays behind when the process is killed, so its start time must fit."""
    entry = shelf.document(config / "sessions" / f"{process.pid}.json")
    began = jsonl.epoch_time(entry.get("startedAt"))
    if entry.get("pid") != process.pid or (
        began is not None and abs(began.timestamp() - process.started) > _SAME_START
    ):
        return None
    return Clue(jsonl.text(entry.get("sessionId")), "its live registry", jsonl.text(entry.get("status")))


def _copilot(home: Path, process: Process) -> Clue | None:
    """`session-state/<id>/inuse.<pid>.lock`."""
    for lock in (home / "session-state").glob(f"*/inuse.{process.pid}.lock"):
        return Clue(lock.parent.name, "its lock")
    return None


def _codex(home: Path, opened: tuple[str, ...]) -> Clue | None:
    """`thread-writer-locks/<thread>.lock`, which it holds open."""
    locks = os.path.realpath(home / "thread-writer-locks")
    for path in opened:
        folder, name = os.path.split(path)
        if name.endswith(".lock") and os.path.realpath(folder) == locks:
            return Clue(name.removesuffix(".lock"), "its writer lock")
    return None


def _by_argument(argv: tuple[str, ...]) -> Clue | None:
    words = iter(argv[1:])
    for word in words:
        named = _RESUMED.fullmatch(word)
        if named is None:
            continue
        value = named["id"] or next(words, "")
        if _ID.fullmatch(value):
            return Clue(value, BY_ARGUMENT)
    return None


def _name(path: str) -> str:
    name = path.replace("\\", "/").rsplit("/", 1)[-1]
    for suffix in (".exe", ".js", ".mjs", ".cjs", ".py"):
        name = name.removesuffix(suffix)
    return name
