"""What is read of sessions that are no plain line a record, and that nothing that happens to their files breaks it."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import random
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relay_git.agents import TOOLS
from relay_git.session import LimitKind, PlanStatus, SessionRecord, Usage
from tests.agents.recordings import DATA
from tests.agents.samples import GOAL, SAMPLES, Sample
from tests.agents.test_reader_properties import VALUES, mutated, sane

DONE, DOING, TO_DO = PlanStatus.COMPLETED, PlanStatus.IN_PROGRESS, PlanStatus.PENDING
EVERY = pytest.mark.parametrize("name", sorted(SAMPLES))
# Where the environment does not lead to: aider's lie in any folder, and every folder of VS Code has such a database.
HIDDEN = {"aider", "copilot_chat_database"}
SOME = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
_numbers = itertools.count()


def fresh(name: str, tmp_path: Path) -> Sample:
    """The sample in a folder of its own."""
    top = tmp_path / str(next(_numbers))
    top.mkdir()
    return SAMPLES[name](top)


def digests(folder: Path) -> dict[str, str]:
    files = [file for file in folder.rglob("*") if file.is_file()]
    return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def commands(record: SessionRecord) -> list[tuple[str, int | None]]:
    return [(command.command, command.exit_code) for command in record.commands]


# Sample: files touched, commands with exit codes, plan, usage, turns, kinds of limits, whether the turn is complete.
FOUND: dict[str, tuple[Any, ...]] = {
    "aider": (["src/farewell.py"], [], [], Usage(2500, 36), 1, [], True),
    "cline": (["src/farewell.py"], [], [], Usage(4500, 120), 3, [LimitKind.RATE], False),
    "cline_task": (
        ["src/farewell.py"], [("pytest -q", None)], [DONE, TO_DO], Usage(1200, 40, 7, 3), 1, [LimitKind.RATE], False,
    ),
    "continue_": (
        ["src/farewell.py", "src/greet.py"],
        [("git add -A && git commit -m 'Add farewell' && git log --oneline | head -3", 0),
         ("python3 -c 'import nosuchmodule'", 1)],
        [DONE, DONE, TO_DO], Usage(16000, 320), 8, [], True,
    ),
    "cursor_chat": (
        ["src/farewell.py", "src/greet.py"], [("pytest -q", 1)], [DONE, DOING], Usage(100, 9), 2, [], True,
    ),
    "cursor_transcript": (["src/farewell.py"], [("pytest -q", None)], [TO_DO], Usage(), 4, [], True),
    "cursor_store": ([], [("pytest -q", 1)], [], Usage(), 2, [], True),
    "antigravity": (
        ["src/farewell.py"], [("pytest -q", 1)], [DONE, DOING, TO_DO], Usage(100, 50, 20), 2, [], True,
    ),
    "copilot_chat": (
        ["src/farewell.py"], [("pytest -q", 1)], [DOING], Usage(100, 9), 1, [LimitKind.USAGE], False,
    ),
    "copilot_chat_file": ([], [], [], Usage(), 1, [], True),
    "copilot_chat_database": ([], [], [], Usage(), 1, [], True),
}  # fmt: skip
FIRST = {"aider": "Add farewell"}


@EVERY
def test_a_session_is_read_whole(name: str, tmp_path: Path) -> None:
    sample = fresh(name, tmp_path)
    record = sample.read("/home/dev/repo" if name in ("cline", "continue_") else "/w/app")
    files, ran, plan, usage, turns, limits, complete = FOUND[name]
    assert (record.agent, record.native_id) == (sample.tool, sample.native_id)
    assert record.prompts[0] == FIRST.get(name, GOAL)
    assert record.last_text
    assert sorted(record.files_touched) == files
    assert commands(record) == ran
    assert [item.status for item in record.plan] == plan
    assert (record.usage, record.model_turns, record.turn_complete) == (usage, turns, complete)
    assert [limit.kind for limit in record.limits] == limits
    assert (record.pending_calls, record.skipped) == ((), 0)


@EVERY
def test_reading_leaves_no_trace(name: str, tmp_path: Path) -> None:
    sample = fresh(name, tmp_path)
    before = digests(tmp_path)
    sample.read()
    TOOLS[sample.tool].sessions(sample.entry)
    assert digests(tmp_path) == before


@pytest.mark.parametrize("name", sorted(set(SAMPLES) - HIDDEN))
def test_a_session_is_found_where_its_tool_keeps_it(name: str, home: Path) -> None:
    sample = SAMPLES[name](home)
    (found,) = TOOLS[sample.tool].found({"HOME": str(home)})
    assert sample.native_id in (found.native_id, *TOOLS[sample.tool].sessions(found.path))
    assert found.size > 0
    following = TOOLS[sample.tool].follow(found.path, sample.native_id, Path("/w/app"))
    assert following.poll()
    assert following.record().prompts == sample.read("/w/app").prompts


@EVERY
def test_a_tool_is_told_that_a_place_is_not_its_own(name: str, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none", Path("/dev/null")):
        assert TOOLS[fresh(name, tmp_path).tool].sessions(path) == ()


@EVERY
@SOME
@given(data=st.data())
def test_a_file_that_is_cut_gives_nothing_that_was_not_in_it(name: str, tmp_path: Path, data: st.DataObject) -> None:
    sample = fresh(name, tmp_path)
    whole = sample.read()
    file = data.draw(st.sampled_from(sample.files))
    content = file.read_bytes()
    at = data.draw(st.integers(0, len(content) - 1))
    file.write_bytes(content[:at])
    record = sample.read()
    sane(record)
    # What a later record takes back stands, where the file is cut before that.
    assert {said for said in record.prompts if said.encode() not in content} <= set(whole.prompts)
    assert set(commands(record)) <= set(commands(whole))
    assert set(record.files_touched) <= set(whole.files_touched)


@EVERY
@SOME
@given(data=st.data())
def test_flipped_bytes_are_survived(name: str, tmp_path: Path, data: st.DataObject) -> None:
    sample = fresh(name, tmp_path)
    file = data.draw(st.sampled_from(sample.files))
    content = bytearray(file.read_bytes())
    for at, flip in data.draw(st.lists(st.tuples(st.integers(0, len(content) - 1), st.integers(1, 255)), min_size=1)):
        content[at] ^= flip
    file.write_bytes(content)
    sane(sample.read())
    TOOLS[sample.tool].sessions(sample.entry)


@EVERY
@SOME
@given(noise=st.binary(max_size=300))
def test_any_bytes_in_place_of_a_file_are_survived(name: str, tmp_path: Path, noise: bytes) -> None:
    sample = fresh(name, tmp_path)
    for file in sample.files:
        file.write_bytes(noise)
    sane(sample.read())
    TOOLS[sample.tool].sessions(sample.entry)


@pytest.mark.parametrize("name", sorted(n for n in SAMPLES if not n.endswith(("database", "store")) and n != "aider"))
@SOME
@given(dice=st.randoms(use_true_random=False), other=VALUES)
def test_values_of_any_type_are_survived(name: str, tmp_path: Path, dice: random.Random, other: Any) -> None:
    sample = fresh(name, tmp_path)
    for file in sample.files:
        if file.suffix == ".jsonl":
            lines = [mutated(json.loads(line), dice, other) for line in file.read_text().splitlines()]
            file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        elif file.suffix == ".json":
            file.write_text(json.dumps(mutated(json.loads(file.read_text()), dice, other)))
    sane(sample.read())
    TOOLS[sample.tool].sessions(sample.entry)


@EVERY
@pytest.mark.parametrize("thing", ["fifo", "folder", "loop", "device", "nothing"])
def test_what_is_no_file_is_not_opened(name: str, thing: str, tmp_path: Path) -> None:
    sample = fresh(name, tmp_path)
    for file in sample.files:
        file.unlink()
        match thing:
            case "fifo":
                os.mkfifo(file)
            case "folder":
                file.mkdir()
            case "loop":
                file.symlink_to(file.name)
            case "device":
                file.symlink_to("/dev/zero")
    record = sample.read()
    sane(record)
    assert record.prompts == ()
    TOOLS[sample.tool].sessions(sample.entry)


DATABASES = pytest.mark.parametrize("name", ["cursor_chat", "cursor_store", "copilot_chat_database"])


@DATABASES
def test_a_view_that_never_ends_in_place_of_a_table_is_not_asked(name: str, tmp_path: Path) -> None:
    sample = fresh(name, tmp_path)
    connection = sqlite3.connect(sample.entry)
    for (table,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
        columns = ", ".join(f"n AS {row[1]}" for row in connection.execute(f"PRAGMA table_info({table})"))
        connection.execute(f"DROP TABLE {table}")
        endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c)"
        connection.execute(f"CREATE VIEW {table} AS {endless} SELECT {columns} FROM c")
    connection.commit()
    connection.close()
    record = sample.read()
    assert record.prompts == ()
    assert record.losses
    assert TOOLS[sample.tool].sessions(sample.entry) in ((), (sample.native_id,))


@DATABASES
def test_a_database_is_read_while_its_owner_holds_it(name: str, tmp_path: Path) -> None:
    sample = fresh(name, tmp_path)
    owner = sqlite3.connect(sample.entry)
    owner.execute("BEGIN EXCLUSIVE")
    assert sample.read().prompts == (GOAL,)
    owner.close()


@EVERY
def test_a_session_that_is_taken_away_stays_as_it_was_last_read(name: str, tmp_path: Path) -> None:
    sample = fresh(name, tmp_path)
    following = TOOLS[sample.tool].follow(sample.entry, sample.native_id, Path("/w/app"))
    assert following.poll()
    known = following.record()
    for file in sample.files:
        file.unlink()
    following.poll()
    assert following.record().prompts == known.prompts
    shutil.rmtree(tmp_path)


@pytest.mark.parametrize("agent", ["claude", "codex", "copilot", "gemini", "qwen"])
def test_a_file_that_was_sent_from_elsewhere_is_taken_for_its_tools_own(agent: str, tmp_path: Path) -> None:
    file = next(f for f in sorted((DATA / agent / "normal").rglob("*.jsonl")) if f.name != "stdout.jsonl")
    copy = tmp_path / (file.name if agent == "gemini" else "sent.jsonl")
    shutil.copy(file, copy)
    assert [name for name, tool in TOOLS.items() if tool.sessions(copy)] == [agent]


@EVERY
def test_no_other_tool_takes_a_sample_for_its_own(name: str, tmp_path: Path) -> None:
    sample = fresh(name, tmp_path)
    assert [tool for tool, one in TOOLS.items() if one.sessions(sample.entry)][:1] == [sample.tool]
