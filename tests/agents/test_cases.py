"""One suite over all readers: transcripts made up after reported failures, each with what must be found in it.

A case is a folder of `data/cases`: `expected.json`, and `home/` or `work/` as the tool had written it. Only the keys
that are present in `expected.json` are compared.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from relay_git.agents import TOOLS
from relay_git.agents.agent import Tool
from relay_git.agents.aider import Aider
from relay_git.agents.claude_reader import ClaudeReader
from relay_git.agents.remembered import Remembered
from relay_git.session import SessionRecord, Usage
from tests.agents.recordings import CASES

NAMES = {"claude-code": "claude", "gemini-cli": "gemini", "copilot-cli": "copilot", "qwen-code": "qwen"}
HERE = {case.name: json.loads((case / "expected.json").read_text()) for case in sorted(CASES.iterdir())}


def tool_of(expected: dict[str, Any]) -> Tool:
    if "local_tz" in expected:
        return Aider(ZoneInfo(expected["local_tz"]))
    return TOOLS[NAMES.get(expected["tool"], expected["tool"])]


def usage_of(usage: Usage) -> dict[str, int]:
    return {
        "input": usage.input,
        "output": usage.output,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
    }


# How each key of an `expected.json` is read off a record.
FOUND: dict[str, Callable[[SessionRecord], object]] = {
    "session_id": lambda r: r.native_id,
    "forked_from": lambda r: r.forked_from,
    "subagents": lambda r: list(r.subagents),
    "foreign_sessions": lambda r: list(r.foreign_sessions),
    "user_prompts": lambda r: list(r.prompts),
    "abandoned_prompts": lambda r: list(r.abandoned_prompts),
    "inherited_prompts": lambda r: list(r.inherited_prompts),
    "open_prompt": lambda r: r.open_prompt,
    "assistant_messages": lambda r: r.model_turns,
    "last_assistant_text": lambda r: r.last_text,
    "usage": lambda r: usage_of(r.usage),
    "usage_active": lambda r: usage_of(r.usage_active),
    "files_touched": lambda r: sorted(r.files_touched),
    "turn_complete": lambda r: r.turn_complete,
    "limit_events": lambda r: len(r.limits),
    "compactions": lambda r: r.compactions,
    "records": lambda r: r.records,
    "pending_tool_calls": lambda r: [(c.id, c.name, c.target) for c in r.pending_calls],
    "skipped": lambda r: list(r.skipped_lines),
    "unreadable": lambda r: list(r.unreadable),
    "loss_reported": lambda r: bool(r.losses),
    "last_activity": lambda r: r.last_activity,
    "started": lambda r: r.started,
}
# What other tests of this file and of others are about, and what only describes the case.
ELSEWHERE = {
    "id", "tool", "title", "entry", "cwd", "sessions", "project_dir", "usage_all_files", "originals_unchanged",
    "first_read", "append", "scale", "contract_max_bytes", "utf8_encodable", "without_wal", "without_zstd",
    "first_session", "local_tz",
}  # fmt: skip


def wanted(key: str, value: Any) -> object:
    """A value of `expected.json` in the form of FOUND."""
    match key:
        case "pending_tool_calls":
            return [(call["id"], call["name"], call["command"]) for call in value]
        case "skipped":
            return [line["line"] for line in value]
        case "last_activity" | "started":
            return datetime.fromisoformat(value)
        case _:
            return value


def photograph(folder: Path) -> dict[str, str]:
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in folder.rglob("*")
        if file.is_file()
    }


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """A copy of the case named by the parameter, with all that was appended to it, and what must be found in it."""
    expected = HERE[request.param]
    shutil.copytree(CASES / request.param, tmp_path / "case")
    if "append" in expected:
        with (tmp_path / "case" / expected["entry"]).open("ab") as file:
            file.write((CASES / request.param / "append.bin").read_bytes())
    return tmp_path / "case", expected


def in_case(*keys: str) -> pytest.MarkDecorator:
    """Run for every case that has one of these keys, or for every case."""
    names = [name for name, expected in HERE.items() if not keys or set(keys) & set(expected)]
    return pytest.mark.parametrize("place", names, indirect=True)


@in_case()
def test_a_reported_failure_is_read_as_it_should_be(place: tuple[Path, dict[str, Any]]) -> None:
    case, expected = place
    before, entry, tool = photograph(case), case / expected["entry"], tool_of(expected)
    assert set(expected) <= set(FOUND) | ELSEWHERE
    if "session_id" in expected:
        assert expected["session_id"] in tool.sessions(entry)
    following = tool.follow(entry, expected.get("session_id", ""), Path(expected.get("cwd", "/w/app")))
    following.poll()
    record = following.record(ended=True)
    compared = expected.keys() & FOUND.keys()
    assert {k: FOUND[k](record) for k in compared} == {k: wanted(k, expected[k]) for k in compared}
    assert photograph(case) == before


@in_case("sessions")
def test_the_sessions_of_a_place_are_those_of_its_own_folder(place: tuple[Path, dict[str, Any]]) -> None:
    case, expected = place
    tool, entry = tool_of(expected), case / expected["entry"]
    if "project_dir" not in expected:
        assert list(tool.sessions(entry)) == expected["sessions"]
        return
    assert (entry / expected["project_dir"]).is_dir()
    cwds = {}
    for found in tool.found({"HOME": str(case / "home")}):
        following = tool.follow(found.path, found.native_id, Path(expected["cwd"]))
        following.poll()
        cwds[found.native_id] = following.record().cwd
    assert [name for name, cwd in cwds.items() if cwd == expected["cwd"]] == expected["sessions"]


@in_case("usage_all_files")
def test_what_a_continued_session_copied_from_another_file_is_counted_once(place: tuple[Path, dict[str, Any]]) -> None:
    case, expected = place
    counted: Remembered[tuple[int, int, int, int]] = Remembered()
    total = dict.fromkeys(("input", "output", "cache_read", "cache_write"), 0)
    for file in sorted((case / expected["entry"]).glob("*.jsonl")):
        reader = ClaudeReader(Path("/w/app"), counted)
        for line in file.read_bytes().split(b"\n"):
            reader.feed(line)
        total = {key: total[key] + value for key, value in usage_of(reader.record().usage).items()}
    assert total == expected["usage_all_files"]


@in_case("without_zstd")
def test_without_a_library_a_compressed_transcript_is_named_as_unread(
    place: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    case, expected = place
    monkeypatch.setitem(__import__("sys").modules, "compression.zstd", None)
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    following = tool_of(expected).follow(case / expected["entry"], expected["session_id"], Path("/w/app"))
    following.poll()
    assert 'pip install "git-relay[zstd]"' in following.record().losses[0]
