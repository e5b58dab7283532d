"""`git relay read`: what is understood of a transcript, at the command."""

from __future__ import annotations

import json
import os
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.agents.recordings import CASES, DATA
from tests.agents.test_cases import FOUND, HERE

NAMES = {"claude-code": "claude", "gemini-cli": "gemini", "copilot-cli": "copilot", "qwen-code": "qwen"}
TIMES = ("started", "last_activity")


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def in_camel_case(value: Any) -> Any:
    if isinstance(value, dict):
        return {camel(key): in_camel_case(item) for key, item in value.items()}
    return [in_camel_case(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", sorted(HERE))
def test_the_json_has_what_must_be_found_under_its_name_in_camel_case(name: str, tmp_path: Path, relay) -> None:
    expected = HERE[name]
    shutil.copytree(CASES / name, tmp_path / "case")
    entry = tmp_path / "case" / expected["entry"]
    if "append" in expected:
        with entry.open("ab") as file:
            file.write((CASES / name / "append.bin").read_bytes())
    ran = relay("read", str(entry), "--json", "--agent", NAMES.get(expected["tool"], expected["tool"]), cwd=tmp_path)
    assert ran.rc == 0, ran.stderr
    found = json.loads(ran.stdout)
    # Of a folder with several sessions the newest is read; copies have no times of their own, so only one is sure.
    compared = (FOUND.keys() & expected.keys()) - set(TIMES) if len(found["sessions"]) <= 1 else set()
    assert {k: found[camel(k)] for k in compared} == {k: in_camel_case(expected[k]) for k in compared}
    for key in TIMES:
        if key in expected:
            assert datetime.fromisoformat(found[camel(key)]) == datetime.fromisoformat(expected[key])


def test_a_session_is_found_by_its_id_or_the_beginning_of_it(tmp_path: Path, relay) -> None:
    home = Path(os.environ["HOME"])
    project = home / ".claude" / "projects" / "-home-dev-repo"
    project.mkdir(parents=True)
    shutil.copy(DATA / "claude" / "normal" / "9746912e-3829-43e1-90d9-309c866c6910.jsonl", project)
    for word in ("9746912e-3829-43e1-90d9-309c866c6910", "9746912e"):
        ran = relay("read", word, cwd=tmp_path)
        assert ran.rc == 0, ran.stderr
        assert "Add a farewell function next to greet and commit it" in ran.stdout
        assert "python3 -c 'import nosuchmodule' (exit 1)" in ran.stdout


def test_a_session_is_found_in_a_place_whose_name_does_not_tell_it(tmp_path: Path, relay) -> None:
    share = Path(os.environ["HOME"]) / ".local" / "share" / "opencode"
    shutil.copytree(CASES / "B32" / "home" / ".local" / "share" / "opencode", share)
    ran = relay("read", "ses_1", "--json", cwd=tmp_path)
    assert ran.rc == 0, ran.stderr
    assert json.loads(ran.stdout)["userPrompts"] == ["split the view"]


@pytest.mark.parametrize(
    ("what", "why", "hint"),
    [
        ("nothing-here", "is neither a file nor the id", "git relay detect --all"),
        ("notes.txt", "is no transcript that git relay knows", "--agent AGENT"),
        ("pipe", "is no transcript that git relay knows", "--agent AGENT"),
        ("loop", "is no transcript that git relay knows", "--agent AGENT"),
    ],
)
def test_what_is_no_transcript_is_refused_with_the_next_command(tmp_path: Path, relay, what, why, hint) -> None:
    (tmp_path / "notes.txt").write_text("not a transcript\n")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    ran = relay("read", what, cwd=tmp_path)
    assert (ran.rc, ran.stdout) == (2, "")
    assert why in ran.stderr
    assert hint in ran.stderr


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_garbage_read_as_a_tools_transcript_is_counted_and_no_failure(tmp_path: Path, relay, agent: str) -> None:
    (tmp_path / "garbage.jsonl").write_bytes(b"\0\xff{]\n" * 3)
    ran = relay("read", "garbage.jsonl", "--agent", agent, "--json", cwd=tmp_path)
    assert ran.rc == 0, ran.stderr
    assert json.loads(ran.stdout)["skippedRecords"] == 3
