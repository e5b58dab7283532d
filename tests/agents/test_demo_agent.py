"""The demo agent as a process: it plays its steps, keeps to the worktree, and says that it is a demo."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from relay_git.agents import AGENTS
from relay_git.agents.agent import Ended, Identified, Limited
from relay_git.agents.demo import DemoReader
from relay_git.agents.transcript import Follower
from relay_git.session import LimitKind, PlanItem, PlanStatus, SessionRecord
from tests.seal.repo import Repo

ROOT = str(Path(__file__).parents[2])
PROMPT = b"# Brief\n\nContract: c-0123abcd\n"


class Demo:
    """Runs the program in a worktree."""

    def __init__(self, worktree: Path, home: Path) -> None:
        self.worktree = worktree
        self.home = home

    def start(self, *legs: list[dict[str, Any]], leg: str = "1") -> subprocess.Popen[bytes]:
        env = {**os.environ, "RELAY_DEMO_HOME": str(self.home), "RELAY_LEG": leg, "PYTHONPATH": ROOT}
        if legs:
            steps = self.home / "steps.json"
            steps.write_text(json.dumps({"legs": legs}))
            env["RELAY_DEMO_STEPS"] = str(steps)
        argv = [sys.executable, "-m", "relay_git.agents.demo_agent", "--session-id", "d-1"]
        pipe = subprocess.PIPE
        process = subprocess.Popen(argv, cwd=self.worktree, env=env, stdin=pipe, stdout=pipe, stderr=pipe)
        assert process.stdin
        process.stdin.write(PROMPT)
        process.stdin.close()
        process.stdin = None
        return process

    def run(self, *legs: list[dict[str, Any]], leg: str = "1") -> tuple[int, bytes, str]:
        process = self.start(*legs, leg=leg)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err.decode()

    def record(self) -> SessionRecord:
        path = AGENTS["demo"].transcript("d-1", self.worktree, {"RELAY_DEMO_HOME": str(self.home)})
        assert path
        follower = Follower(path, lambda: DemoReader(self.worktree))
        follower.poll()
        return follower.record()


@pytest.fixture
def demo(repo: Repo, tmp_path: Path) -> Demo:
    home = tmp_path / "demo-home"
    home.mkdir()
    return Demo(Path(repo.path), home)


def git(demo: Demo, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=demo.worktree, capture_output=True, text=True, check=True).stdout


def test_its_own_script_writes_one_note_and_says_what_it_is(demo: Demo) -> None:
    code, out, err = demo.run()
    assert (code, err) == (0, "")
    assert "a script that calls no model" in (demo.worktree / "DEMO.md").read_text()
    assert "Demo-Agent: scripted, no model" in git(demo, "log", "-1", "--format=%B")
    assert all(json.loads(line)["demo"] is True for line in out.splitlines())
    record = demo.record()
    assert record.prompts == (PROMPT.decode(),)
    assert record.model == "none (scripted demo)"
    assert record.plan == (
        PlanItem("Write DEMO.md", PlanStatus.COMPLETED),
        PlanItem("Commit it", PlanStatus.COMPLETED),
    )
    assert record.files_touched == ("DEMO.md",)
    assert record.turn_complete
    assert record.skipped == 0


def test_steps_leave_their_marks_in_the_transcript(demo: Demo) -> None:
    code, out, _ = demo.run(
        [
            {"do": "write", "path": "a/b.txt", "content": "1\n"},
            {"do": "append", "path": "a/b.txt", "content": "2\n"},
            {"do": "shell", "argv": ["sh", "-c", "echo out; exit 3"]},
            {"do": "commit", "message": "Two lines"},
        ]
    )
    assert code == 0
    record = demo.record()
    assert (demo.worktree / "a/b.txt").read_text() == "1\n2\n"
    assert [(c.command, c.exit_code, c.excerpt) for c in record.commands[:1]] == [
        ("sh -c 'echo out; exit 3'", 3, "out")
    ]
    assert record.pending_calls == ()
    assert git(demo, "log", "-1", "--format=%s").strip() == "Two lines"
    heard = [said for line in out.split(b"\n") for said in AGENTS["demo"].hear(line)]
    assert heard[0] == Identified("d-1")
    assert heard[-1] == Ended(True)


def test_a_pretend_limit_names_its_reset_and_ends_with_1(demo: Demo) -> None:
    before = time.time()
    code, out, _ = demo.run([{"do": "say", "text": "hello"}, {"do": "limit", "reset_in": 600}])
    assert code == 1
    (limit,) = demo.record().limits
    assert limit.kind is LimitKind.USAGE
    assert "pretend" in limit.evidence
    assert limit.resets_at
    assert abs((limit.resets_at - datetime.fromtimestamp(before, UTC)).total_seconds() - 600) < 30
    assert [s.notice for line in out.split(b"\n") for s in AGENTS["demo"].hear(line) if isinstance(s, Limited)] == [
        limit
    ]
    assert not demo.record().turn_complete


@pytest.mark.parametrize(
    ("leg", "said"), [("1", "one"), ("2", "two"), ("9", "two"), ("0", "one"), ("x", "one"), ("", "one")]
)
def test_the_leg_chooses_the_list_and_the_last_one_repeats(demo: Demo, leg: str, said: str) -> None:
    demo.run([{"do": "say", "text": "one"}], [{"do": "say", "text": "two"}], leg=leg)
    assert demo.record().last_text == said


@pytest.mark.parametrize("path", ["../out.txt", "/etc/x", ".git/hooks/x", ".", "link/x"])
def test_its_writes_stay_in_the_worktree(demo: Demo, path: str, tmp_path: Path) -> None:
    (demo.worktree / "link").symlink_to(tmp_path)
    code, _, err = demo.run([{"do": "write", "path": path, "content": "x"}])
    assert code == 2
    assert "demo agent: " in err
    assert not (demo.worktree.parent / "out.txt").exists()
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    "step", [{"do": "dance"}, {}, 7, {"do": "write"}, {"do": "shell", "argv": "ls"}, {"do": "limit", "reset_in": "x"}]
)
def test_a_step_that_cannot_be_played_is_refused_with_a_reason(demo: Demo, step: Any) -> None:
    code, _, err = demo.run([step])
    assert code == 2
    assert err.startswith("demo agent: ")
    assert "Traceback" not in err


def test_it_accepts_the_contract_that_the_brief_names(demo: Demo) -> None:
    demo.run([{"do": "accept"}])
    assert demo.record().commands[0].command == "git relay accept c-0123abcd"


def test_a_crash_leaves_the_turn_open(demo: Demo) -> None:
    code, _, _ = demo.run([{"do": "say", "text": "x"}, {"do": "crash", "code": 70}])
    assert code == 70
    assert not demo.record().turn_complete


def test_a_flood_on_stdout_is_no_event(demo: Demo) -> None:
    _, out, _ = demo.run([{"do": "flood", "bytes": 500_000}])
    assert len(out) > 500_000
    assert len([said for line in out.split(b"\n") for said in AGENTS["demo"].hear(line)]) == 2


def test_it_can_hang_deaf_to_sigterm_with_an_open_call(demo: Demo) -> None:
    process = demo.start([{"do": "ignore_term"}, {"do": "hang"}])
    try:
        assert process.stdout
        while b"hangs" not in process.stdout.readline():
            pass
        process.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        assert demo.record().pending_calls[0].name == "hang"
    finally:
        process.kill()
        process.communicate()


def test_a_spawned_child_outlives_it_in_the_worktree(demo: Demo) -> None:
    code, _, _ = demo.run([{"do": "spawn", "seconds": 60}])
    assert code == 0
    child = int(demo.record().commands[0].excerpt)
    try:
        os.kill(child, 0)
        assert os.getsid(child) == child
    finally:
        os.kill(child, signal.SIGKILL)
