"""The recorded transcripts, and how a test reads them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from relay_git.agents import AGENTS
from relay_git.agents.agent import Heard, Reader
from relay_git.agents.claude_reader import ClaudeReader
from relay_git.agents.codex_reader import CodexReader
from relay_git.agents.copilot_reader import CopilotReader
from relay_git.agents.demo import DemoReader
from relay_git.agents.gemini_reader import GeminiReader
from relay_git.agents.qwen_reader import QwenReader
from relay_git.session import SessionRecord

DATA = Path(__file__).parent / "data"
CASES = DATA / "cases"
RECORDED_AT = Path("/home/dev/repo")
CASES_AT = Path("/w/app")
READERS: dict[str, Callable[[Path], Reader]] = {
    "claude": ClaudeReader,
    "codex": CodexReader,
    "gemini": GeminiReader,
    "qwen": QwenReader,
    "copilot": CopilotReader,
    "demo": DemoReader,
}


def transcript(agent: str, case: str, part: str = "") -> Path:
    """The transcript of a recording; `part` tells several in one recording apart."""
    found = [p for p in sorted((DATA / agent / case).rglob("*.jsonl")) if p.name != "stdout.jsonl" and part in p.name]
    return found[0]


def read(agent: str, data: bytes, worktree: Path = RECORDED_AT) -> SessionRecord:
    """A record from the bytes of a whole transcript."""
    reader = READERS[agent](worktree)
    *whole, _torn = data.split(b"\n")
    for line in whole:
        reader.feed(line)
    return reader.record()


def recorded(agent: str, case: str, part: str = "") -> SessionRecord:
    """The record of a recording."""
    return read(agent, transcript(agent, case, part).read_bytes())


def heard(agent: str, case: str) -> list[Heard]:
    """All that the stdout of a recording said."""
    data = (DATA / agent / case / "stdout.jsonl").read_bytes()
    return [said for line in data.split(b"\n") for said in AGENTS[agent].hear(line)]


def case(name: str) -> tuple[str, Path, dict[str, Any]]:
    """A made-up case: the agent, the file to read and what must be found."""
    folder = CASES / name
    expected = json.loads((folder / "expected.json").read_text())
    agent = {"claude-code": "claude", "codex": "codex"}[expected["tool"]]
    entry = folder / expected["entry"]
    return agent, entry / "s-new.jsonl" if entry.is_dir() else entry, expected
