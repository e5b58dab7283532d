"""Sessions without their terminal: begun in the background, followed, stopped, and hung up on."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import time

import psutil
import pytest

from tests.cli.scene import (
    HANG,
    LIMIT,
    TAKE_OVER,
    WORK,
    end_survivors,
    only_session,
    processes_of,
    say,
    states,
    wait_for,
)
from tests.cli.test_crash import at_state, begin, said

__all__ = ["begin"]  # the fixture

BUSY = [*WORK, say("I think."), HANG]


@pytest.fixture(autouse=True)
def no_survivors(repo):
    yield
    for process in psutil.process_iter():
        if process.pid != os.getpid() and "relay_git" in " ".join(_argv(process)) and _stands_in(process, repo.path):
            process.kill()
    end_survivors(repo.path)


def _argv(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _stands_in(process: psutil.Process, path) -> bool:
    try:
        return process.cwd() == str(path)
    except psutil.Error:
        return False


def running(repo, relay) -> bool:
    return json.loads(relay("status", "--json", cwd=repo.path).stdout)["sessions"][0]["running"]


def test_a_detached_start_returns_when_the_agent_works_and_attach_tells_the_end_with_its_status(
    repo, relay, demo, tmp_path
) -> None:
    hold = {"do": "shell", "argv": ["sh", "-c", f"until [ -e {tmp_path}/go ]; do sleep 0.1; done"]}
    demo.plays([*WORK, hold, LIMIT], [*TAKE_OVER, {"do": "sleep", "seconds": 1}])
    ran = relay("start", "x", "--agent", "demo", "--then", "demo", "--detach", cwd=repo.path)
    assert ran.rc == 0, ran
    session = only_session(repo.path)
    assert ran.stdout == f"{session}\n"
    assert f"git relay attach {session}" in ran.stderr
    assert running(repo, relay)
    supervisor = states(repo.path, session)[-1]["supervisor"]
    assert os.getsid(supervisor) == supervisor
    (tmp_path / "go").touch()
    followed = relay("attach", cwd=repo.path)
    assert followed.rc == 0, followed
    assert "leg 2 (demo) has picked the work up" in followed.stderr
    assert f"{session} is done after 2 legs" in followed.stderr
    assert relay("attach", cwd=repo.path).rc == 0  # at rest: its last words, and the same status


def test_what_goes_wrong_before_the_agent_works_is_told_where_it_was_typed(repo, relay, demo) -> None:
    demo.plays([{"do": "crash", "code": 7}])
    ran = relay("start", "x", "--agent", "demo", "--detach", cwd=repo.path)
    assert ran.rc == 1, ran
    assert "it ended with status 7" in ran.stderr
    assert "needs you: no agent is left" in ran.stderr
    assert ran.stdout == ""
    refused = relay("start", "x", "--agent", "nobody", "--detach", cwd=repo.path)
    assert (refused.rc, "nobody" in refused.stderr) == (2, True)


def test_ctrl_c_leaves_an_attached_session_to_itself_and_says_so(repo, relay, demo, begin) -> None:
    demo.plays(BUSY)
    assert relay("start", "x", "--agent", "demo", "--detach", cwd=repo.path).rc == 0
    session = only_session(repo.path)
    following = begin(repo, "attach")
    wait_for(lambda: "leg 1 demo" in said(repo))
    following.send_signal(signal.SIGINT)
    assert following.wait(30) == 130
    assert f"{session} goes on" in said(repo)
    assert running(repo, relay)
    assert processes_of(session)


@pytest.mark.parametrize("how", ["calm", "now", "without a supervisor"])
def test_stop_brings_a_session_to_rest_wherever_it_runs_and_it_can_go_on(repo, relay, demo, how) -> None:
    repo.git("config", "relay.hardLimit", "300" if how == "now" else "1")
    demo.plays(BUSY)
    assert relay("start", "x", "--agent", "demo", "--detach", cwd=repo.path).rc == 0
    session = only_session(repo.path)
    if how == "without a supervisor":
        os.kill(states(repo.path, session)[-1]["supervisor"], signal.SIGKILL)
        wait_for(lambda: not running(repo, relay))
        assert processes_of(session), "the agent was to outlive its supervisor in this test"
    ran = relay("stop", *(["--now"] if how == "now" else []), cwd=repo.path)
    assert ran.rc == 0, ran
    assert states(repo.path, session)[-1]["state"] == "STOPPED"
    assert processes_of(session) == []
    contract = json.loads(relay("show", "--json", cwd=repo.path).stdout)["contract"]
    assert (contract["pause"]["reason"], contract["pause"]["safePoint"]) == ("stop", "interrupted")
    assert relay("stop", cwd=repo.path).rc == 0  # it rests already
    demo.plays(TAKE_OVER)
    assert relay("resume", "--detach", cwd=repo.path).rc == 0
    wait_for(lambda: states(repo.path, session)[-1]["state"] == "DONE")


def test_a_second_ctrl_c_does_not_wait_for_the_tool_call_but_leaves_a_contract(repo, relay, demo, begin) -> None:
    repo.git("config", "relay.hardLimit", "300")
    demo.plays([*WORK, {"do": "ignore_term"}, HANG])
    repo.git("config", "relay.termGrace", "0.2")
    supervisor = begin(repo, "start", "x", "--agent", "demo")
    session = at_state(repo, "RUNNING")
    wait_for(lambda: "hangs" in said(repo))
    supervisor.send_signal(signal.SIGINT)
    at_state(repo, "PAUSING")
    supervisor.send_signal(signal.SIGINT)
    assert supervisor.wait(60) == 130
    assert states(repo.path, session)[-1]["state"] == "STOPPED"
    assert relay("verify", "--all", cwd=repo.path).rc == 0
    assert processes_of(session) == []


@pytest.mark.parametrize("shell", ["with a shell that hangs up", "alone"])
def test_a_closed_terminal_stops_the_session_cleanly(repo, relay, demo, shell) -> None:
    repo.git("config", "relay.hardLimit", "1")
    demo.plays(BUSY)
    ours, theirs = pty.openpty()
    argv = ["setsid", "--ctty", "--wait", shutil.which("git-relay"), "start", "x", "--agent", "demo"]
    if shell != "alone":
        argv = ["setsid", "--ctty", "sh", "-c", "git-relay start x --agent demo; true"]
    process = subprocess.Popen(argv, cwd=repo.path, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    session = at_state(repo, "RUNNING")
    os.read(ours, 1000)
    os.close(ours)
    wait_for(lambda: states(repo.path, session)[-1]["state"] == "STOPPED")
    process.wait(30)
    assert processes_of(session) == []
    assert relay("verify", "--all", cwd=repo.path).rc == 0
    assert not running(repo, relay)


def test_what_is_kept_for_attach_is_bounded_and_private(repo, relay, demo) -> None:
    lines = [say("x" * 100 + str(i)) for i in range(300)]
    demo.plays([*lines, say("done")])
    assert relay("start", "x", "--agent", "demo", cwd=repo.path).rc == 0
    (told,) = (repo.git_dir / "relay" / "logs").glob("*/told")
    assert told.stat().st_mode & 0o777 == 0o600
    assert 0 < told.stat().st_size < 1 << 20
    assert time.time() >= told.stat().st_mtime
