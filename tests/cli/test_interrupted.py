"""Sessions that a crash has left standing: every command says so, one resume takes them up, and no stranger is hurt."""

from __future__ import annotations

import os
import signal
import subprocess

import psutil
import pytest

from relay_git.session import SessionId
from relay_git.supervisor.process import Mark, end_tree, still
from tests.cli.scene import HANG, LIMIT, TAKE_OVER, WORK, only_session, processes_of, states, wait_for
from tests.cli.test_crash import at_state, begin, kill, said

__all__ = ["begin"]  # the fixture


@pytest.fixture
def interrupted(repo, demo, begin) -> str:
    """The id of a session whose supervisor was killed while its agent worked."""
    demo.plays([*WORK, HANG])
    supervisor = begin(repo, "start", "x", "--agent", "demo")
    session = at_state(repo, "RUNNING")
    wait_for((repo.path / ".relay/sessions" / session / "made.txt").exists)
    kill(supervisor)
    yield session
    for pid in processes_of(session):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    "words",
    [
        "status",
        "status --json",
        "log",
        "show",
        "verify",
        "land",
        "drop",
        "doctor",
        "start y --agent demo --base nothing",
    ],
)
def test_every_command_says_that_a_session_is_interrupted_and_how_it_goes_on(repo, relay, interrupted, words) -> None:
    ran = relay(*words.split(), cwd=repo.path)
    note = f"note: {interrupted} is interrupted while RUNNING; to go on: git relay resume {interrupted}"
    assert ran.stderr.splitlines().count(note) == 1, ran
    assert note not in ran.stdout


def test_nothing_is_said_of_a_session_that_runs_or_rests(repo, relay, demo, begin) -> None:
    repo.git("config", "relay.hardLimit", "0")
    demo.plays([*WORK, LIMIT])
    assert relay("start", "x", "--agent", "demo", cwd=repo.path).rc == 1
    demo.plays([HANG])
    running = begin(repo, "start", "y", "--agent", "demo")
    wait_for(lambda: "leg 1 demo" in said(repo))
    assert "interrupted" not in relay("status", cwd=repo.path).stderr
    running.send_signal(signal.SIGTERM)
    running.wait(60)


def test_of_two_resumes_at_once_one_goes_on_and_the_other_is_told(repo, relay, demo, begin, interrupted) -> None:
    demo.plays([*TAKE_OVER, {"do": "sleep", "seconds": 2}])
    both = [begin(repo, "resume", interrupted) for _ in range(2)]
    assert sorted(p.wait(120) for p in both) == [0, 1]
    assert f"another git relay is running the session {interrupted}" in said(repo, 1) + said(repo, 2)
    legs = [entry["leg"] for entry in states(repo.path, only_session(repo.path)) if entry["event"] == "launched"]
    assert legs == [1, 1]  # the second is recorded before it has taken over: it was started once
    assert relay("verify", "--all", cwd=repo.path).rc == 0
    assert processes_of(interrupted) == []


def test_a_leg_that_has_put_its_environment_away_is_ended_by_pid_and_start_time(tmp_path) -> None:
    mark = Mark(SessionId("x-0001"), tmp_path)
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as leg:
        began = int(psutil.Process(leg.pid).create_time() * 1000)
        assert end_tree(mark, still(leg.pid, began - 60_000), 1) == ()
        assert leg.poll() is None, "another process than the leg was ended"
        assert end_tree(mark, still(leg.pid, began), 1, reap=leg.poll) == ()
        assert leg.poll() == -signal.SIGTERM
