"""Finding agents that nobody told us of: real processes of the demo agent, and what they leave behind."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
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


def in_state(
    tmp_path: Path, session: str, state: State, *, name: str = "", later: float = 0, matched: str | None = None
) -> Detected:
    def there() -> Detected | None:
        row = look(tmp_path, name=name, later=later).get(session)
        if row is None or row.state is not state or not row.record.prompts:
            return None
        return row if matched in (None, row.matched) else None

    return wait_for(there)


def test_two_agents_of_one_tool_are_told_apart_with_their_folders_and_homes(tmp_path: Path, begin: Begin) -> None:
    one, other = begin("one", say("I begin."), HANG), begin("other", say("I begin, too."), HANG)
    for name, process in (("one", one), ("other", other)):
        # Its open files are looked at a moment before its transcript is, which it may have begun meanwhile.
        found = in_state(tmp_path, f"id-of-{name}", State.WORKING, matched="its open transcript")
        assert (found.tool, found.pid) == ("demo", process.pid)
        assert found.record.cwd == str(tmp_path / f"folder-{name}")
        assert found.record.prompts == (f"the task of {name}",)


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


def test_a_lock_or_a_transcript_counts_where_the_tool_keeps_it_and_nowhere_else(tmp_path: Path) -> None:
    thread = "0b72ab1c-b60c-40a3-9877-ef470310ce7e"
    process = Process(77, 1, 0.0, ("codex",), "/w")
    homes = {"codex": tmp_path}
    own = clue("codex", process, (str(tmp_path / "thread-writer-locks" / f"{thread}.lock"),), homes)
    assert own is not None
    assert (own.native_id, own.how) == (thread, "its writer lock")
    for elsewhere in (
        f"/elsewhere/thread-writer-locks/{thread}.lock",
        f"/w/fixtures/{thread}.jsonl",
        f"/w/{thread}/x.log",
    ):
        assert clue("codex", process, (elsewhere,), homes) is None


HOUR = 3600


def opencode_database(home: Path, ages: dict[str, float]) -> Path:
    """A database as opencode writes it, with a session for each name, written so many seconds ago."""
    folder, now = home / ".local/share/opencode", datetime.now(UTC).timestamp()
    folder.mkdir(parents=True)
    base = sqlite3.connect(folder / "opencode.db")
    base.execute("CREATE TABLE session (id, directory, version, parent_id, time_created, time_updated)")
    base.execute("CREATE TABLE message (id, session_id, time_created, data)")
    base.execute("CREATE TABLE part (id, message_id, session_id, data)")
    for name, age in ages.items():
        at = int((now - age) * 1000)
        base.execute("INSERT INTO session VALUES (?, ?, '1', NULL, ?, ?)", (name, f"/w/{name}", at, at))
        said, part = {"role": "user", "time": {"created": at}}, {"type": "text", "text": f"the task of {name}"}
        base.execute("INSERT INTO message VALUES (?, ?, ?, ?)", (f"msg_{name}", name, at, json.dumps(said)))
        base.execute("INSERT INTO part VALUES (?, ?, ?, ?)", (f"prt_{name}", f"msg_{name}", name, json.dumps(part)))
    base.commit()
    base.close()
    return folder / "opencode.db"


def test_each_session_of_a_database_that_is_young_enough_is_found(tmp_path: Path) -> None:
    opencode_database(tmp_path, {"ses_old": 50 * HOUR, "ses_two": 2 * HOUR, "ses_one": HOUR})
    looks = Detector({"HOME": str(tmp_path)}, SeenBefore(None))
    found = looks.look(datetime.now(UTC), timedelta(hours=24))
    mine = [row for row in found if row.path.startswith(str(tmp_path))]
    assert [(row.native_id, row.record.prompts) for row in mine] == [
        ("ses_one", ("the task of ses_one",)),
        ("ses_two", ("the task of ses_two",)),
    ]
    every = looks.look(datetime.now(UTC), None)
    assert [r.native_id for r in every if r.path.startswith(str(tmp_path))] == ["ses_one", "ses_two", "ses_old"]


def test_what_is_written_in_a_database_between_two_looks_is_seen(tmp_path: Path) -> None:
    path = opencode_database(tmp_path, {"ses_two": 2 * HOUR, "ses_one": HOUR})
    looks = Detector({"HOME": str(tmp_path)}, SeenBefore(None))
    looks.look(datetime.now(UTC), None)
    base = sqlite3.connect(path)
    for number in range(200):  # so that the file grows
        part = {"type": "text", "text": f"and {number}"}
        base.execute(
            "INSERT INTO part VALUES (?, 'msg_ses_one', 'ses_one', ?)", (f"prt_z{number:03}", json.dumps(part))
        )
    base.commit()
    base.close()
    rows = {r.native_id: r for r in looks.look(datetime.now(UTC), None) if r.path == str(path)}
    assert "and 199" in rows["ses_one"].record.prompts[0]
    assert rows["ses_two"].record.prompts == ("the task of ses_two",)


def test_each_session_of_an_aider_history_is_found_and_those_before_the_span_are_not(tmp_path: Path) -> None:
    starts = {age: datetime.now() - timedelta(hours=age) for age in (60, 50, 2, 1)}
    text = "".join(
        f"\n# aider chat started at {start:%Y-%m-%d %H:%M:%S}\n\n#### task {age}  \n\nDone.\n"
        for age, start in starts.items()
    )
    (tmp_path / ".aider.chat.history.md").write_text(text)
    looks = Detector({"HOME": str(tmp_path)}, SeenBefore(None))
    rows = [r for r in looks.look(datetime.now(UTC), timedelta(hours=24)) if r.path.startswith(str(tmp_path))]
    # The one of fifty hours ago may have gone on until the next began.
    assert {r.record.prompts for r in rows} == {("task 1",), ("task 2",), ("task 50",)}
