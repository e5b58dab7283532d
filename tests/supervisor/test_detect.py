"""Finding agents that nobody told us of: real processes of the demo agent, and what they leave behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from relay_git.agents.running import Process, clue, tool_of
from relay_git.supervisor.detect import Detected, Detector, State
from relay_git.supervisor.seen_before import SeenBefore
from tests.cli.scene import HANG, LIMIT, Step, digest, everything, say, wait_for, write

ROOT = str(Path(__file__).parents[2])
Begin = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """`begin(name, *steps)`: a demo agent with a home and a folder of its own, as a user would have started it."""
    begun: list[subprocess.Popen[bytes]] = []

    def start(name: str, *steps: Step) -> subprocess.Popen[bytes]:
        home, folder = tmp_path / f"home-{name}", tmp_path / f"folder-{name}"
        home.mkdir()
        folder.mkdir()
        (home / "steps.json").write_text(json.dumps({"legs": [steps]}))
        env = {**os.environ, "RELAY_DEMO_HOME": str(home), "RELAY_DEMO_STEPS": str(home / "steps.json")}
        argv = [sys.executable, "-m", "relay_git.agents.demo_agent", "--session-id", f"id-of-{name}"]
        with (home / "task").open("wb") as task:
            task.write(f"the task of {name}".encode())
        with (home / "task").open("rb") as task, (home / "out").open("wb") as out:
            argv_env = {**env, "PYTHONPATH": ROOT}
            begun.append(subprocess.Popen(argv, cwd=folder, env=argv_env, stdin=task, stdout=out, stderr=out))
        return begun[-1]

    yield start
    for process in begun:
        process.kill()
        process.wait()


def detector(tmp_path: Path, name: str = "") -> Detector:
    home = {"RELAY_DEMO_HOME": str(tmp_path / f"home-{name}")} if name else {}
    return Detector({"HOME": os.environ["HOME"], **home}, SeenBefore(tmp_path / "cache" / "detect.json"))


def look(tmp_path: Path, *, name: str = "", later: float = 0) -> dict[str, Detected]:
    """What is found that this test has started, by the session's id."""
    now = datetime.now(UTC) + timedelta(seconds=later)
    rows = detector(tmp_path, name).look(now, timedelta(hours=1))
    return {row.native_id: row for row in rows if str(tmp_path) in row.record.cwd}


def in_state(tmp_path: Path, session: str, state: State, *, name: str = "", later: float = 0) -> Detected:
    def there() -> Detected | None:
        row = look(tmp_path, name=name, later=later).get(session)
        return row if row is not None and row.state is state and row.record.prompts else None

    return wait_for(there)


def test_two_agents_of_one_tool_are_told_apart_with_their_folders_and_homes(tmp_path: Path, begin: Begin) -> None:
    one, other = begin("one", say("I begin."), HANG), begin("other", say("I begin, too."), HANG)
    for name, process in (("one", one), ("other", other)):
        found = in_state(tmp_path, f"id-of-{name}", State.WORKING)
        assert (found.tool, found.pid) == ("demo", process.pid)
        assert found.record.cwd == str(tmp_path / f"folder-{name}")
        assert found.record.prompts == (f"the task of {name}",)
        assert found.matched == "its command line"


def test_a_call_that_nothing_works_at_waits_for_a_permission(tmp_path: Path, begin: Begin) -> None:
    begin("asks", say("I begin."), HANG)
    in_state(tmp_path, "id-of-asks", State.WAITS_FOR_PERMISSION, later=30)


def test_an_agent_that_was_killed_in_mid_turn_has_crashed(tmp_path: Path, begin: Begin) -> None:
    process = begin("dies", say("I begin."), HANG)
    in_state(tmp_path, "id-of-dies", State.WORKING)
    process.send_signal(signal.SIGKILL)
    process.wait()
    found = in_state(tmp_path, "id-of-dies", State.CRASHED, name="dies")
    assert (found.pid, found.matched) == (0, "")


@pytest.mark.parametrize(
    ("steps", "state"),
    [([say("I begin."), write("made.txt", "made\n")], State.ENDED), ([say("I begin."), LIMIT], State.AT_LIMIT)],
    ids=["it finished", "it met its limit"],
)
def test_an_agent_that_ended_is_told_by_how_it_ended(tmp_path: Path, begin: Begin, steps, state) -> None:
    begin("ends", *steps).wait()
    found = in_state(tmp_path, "id-of-ends", state, name="ends")
    assert found.record.last_text == "I begin."


def test_looking_writes_nothing_where_the_tools_keep_their_sessions(tmp_path: Path, begin: Begin) -> None:
    begin("still", say("I begin.")).wait()
    home = tmp_path / "home-still"
    before = {str(f): (f.stat().st_mtime_ns, digest(f)) for f in everything(home, leave_out=set())}
    in_state(tmp_path, "id-of-still", State.ENDED, name="still")
    assert {str(f): (f.stat().st_mtime_ns, digest(f)) for f in everything(home, leave_out=set())} == before


def test_an_unchanged_transcript_is_not_read_again_and_a_changed_one_is(tmp_path: Path, begin: Begin) -> None:
    begin("kept", say("I begin.")).wait()
    transcript = tmp_path / "home-kept" / "sessions" / "id-of-kept.jsonl"
    in_state(tmp_path, "id-of-kept", State.ENDED, name="kept")
    written, size = transcript.stat(), transcript.stat().st_size
    transcript.write_bytes(b"x" * size)
    os.utime(transcript, ns=(written.st_atime_ns, written.st_mtime_ns))
    assert look(tmp_path, name="kept")["id-of-kept"].record.last_text == "I begin."  # remembered, not read
    transcript.write_bytes(b"x" * (size + 1))
    assert "id-of-kept" not in look(tmp_path, name="kept")  # its folder is no longer known


@pytest.mark.parametrize("rubbish", [b"", b"{", b"[]", b'{"version": "0", "entries": {}}', b"\xff" * 100])
def test_a_cache_that_cannot_be_understood_counts_as_none(tmp_path: Path, begin: Begin, rubbish: bytes) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "detect.json").write_bytes(rubbish)
    begin("fresh", say("I begin.")).wait()
    in_state(tmp_path, "id-of-fresh", State.ENDED, name="fresh")
    assert (tmp_path / "cache" / "detect.json").stat().st_mode & 0o777 == 0o600


def test_odd_things_in_a_transcripts_place_are_passed_over(tmp_path: Path, begin: Begin) -> None:
    begin("odd", say("I begin.")).wait()
    sessions = tmp_path / "home-odd" / "sessions"
    os.mkfifo(sessions / "fifo.jsonl")
    (sessions / "loop.jsonl").symlink_to("loop.jsonl")
    (sessions / "device.jsonl").symlink_to("/dev/zero")
    (sessions / "folder.jsonl").mkdir()
    with (sessions / "huge.jsonl").open("wb") as huge:
        huge.truncate(10 << 30)  # holds nothing, so reading it is all zeros
    os.utime(sessions / "huge.jsonl", (0, 0))
    in_state(tmp_path, "id-of-odd", State.ENDED, name="odd")


@pytest.mark.parametrize(
    ("argv", "tool"),
    [
        (("claude", "-p", "hi"), "claude"),
        (("/opt/x/claude-code/bin/claude.exe",), "claude"),
        (("node", "/usr/lib/node_modules/@anthropic-ai/claude-code/cli.js"), "claude"),
        (("/usr/bin/node", "--max-old-space-size=4096", "/opt/bin/gemini", "-p"), "gemini"),
        (("node", "/opt/bin/qwen", "x"), "qwen"),
        (("node", "/opt/bin/cn", "-p"), "continue"),
        (("/x/vendor/bin/codex", "exec", "--json", "-"), "codex"),
        (("python3.11", "/venv/bin/aider", "--model", "x"), "aider"),
        (("python3", "-m", "relay_git.agents.demo_agent", "--session-id", "x"), "demo"),
        (("claude", "mcp", "serve"), ""),
        (("cline", "--cline-hub-daemon"), ""),
        (("codex", "login"), ""),
        (("vim", "claude"), ""),
        (("grep", "-r", "codex"), ""),
        (("node", "/home/u/claude-notes.js"), ""),
        (("python3", "-m"), ""),
        ((), ""),
    ],
)
def test_a_command_line_is_an_agents_or_not(argv: tuple[str, ...], tool: str) -> None:
    assert tool_of(argv) == tool


@pytest.mark.parametrize(
    ("registered", "session"),
    [
        ({"pid": 77, "sessionId": "s-77", "startedAt": 1_795_978_187_000, "status": "busy"}, "s-77"),
        ({"pid": 77, "sessionId": "s-old", "startedAt": 1_795_000_000_000, "status": "busy"}, None),
        ({"pid": 78, "sessionId": "s-78", "startedAt": 1_795_978_187_000}, None),
        ("no object", None),
    ],
    ids=["its own", "left behind by an earlier process with its pid", "another's", "rubbish"],
)
def test_claude_s_registry_is_believed_only_for_the_very_process(tmp_path: Path, registered, session) -> None:
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions" / "77.json").write_text(json.dumps(registered, indent=1))
    (tmp_path / "sessions" / "77.abc.key").write_text("MADE-UP-TOKEN")
    homes: Mapping[str, Path] = {"claude": tmp_path}
    found = clue("claude", Process(77, 1, 1_795_978_187.5, ("claude",), "/w"), (), homes)
    assert (found.native_id if found is not None else None) == session
