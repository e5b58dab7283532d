"""Supervisors that are killed and agents that misbehave: nothing is lost, nobody survives, and the session goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import pytest

from tests.cli.scene import (
    ACCEPT,
    HANG,
    LIMIT,
    TAKE_OVER,
    WORK,
    commit,
    only_session,
    photograph,
    processes_of,
    say,
    states,
    wait_for,
    write,
)


@pytest.fixture
def begin():
    """`begin(repo, *args)`: the command in the background; whatever is left of it is ended after the test."""
    begun: list[subprocess.Popen[bytes]] = []

    def start(repo, *args: str) -> subprocess.Popen[bytes]:
        argv = ["git-relay", *args]
        with (repo.path.parent / f"stderr-{len(begun)}").open("wb") as log:
            begun.append(subprocess.Popen(argv, cwd=repo.path, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        return begun[-1]

    yield start
    for process in begun:
        process.kill()
        process.wait()


def at_state(repo, state: str) -> str:
    """Wait until the journal's tip stands in this state, launched where an agent works in it; the session's id."""

    def there() -> str | None:
        session = only_session(repo.path)
        tip = states(repo.path, session)[-1]
        launched = state not in ("RUNNING", "RESUMING") or tip["pid"] > 0
        return session if tip["state"] == state and launched else None

    return wait_for(there)


def said(repo, number: int = 0) -> str:
    return (repo.path.parent / f"stderr-{number}").read_text()


def kill(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


BUSY = [say("I begin."), write("made.txt", "made\n"), commit("Make it"), write("half.txt", "half\n"), HANG]


@pytest.mark.parametrize("state", ["RUNNING", "PAUSING", "RESUMING"])
def test_after_a_supervisor_was_killed_the_session_says_so_and_goes_on_with_all_its_work(
    repo, relay, demo, begin, state
) -> None:
    before = photograph(repo.path)
    legs = {"RESUMING": [[*BUSY[:-1], LIMIT], [HANG]]}
    demo.plays(*legs.get(state, [BUSY]))
    supervisor = begin(repo, "start", "x", "--agent", "demo", "--then", "demo")
    session = at_state(repo, "RUNNING" if state == "PAUSING" else state)
    wait_for(lambda: (repo.path / ".relay/sessions" / session / "half.txt").read_text() == "half\n")
    if state == "PAUSING":
        assert relay("handoff", cwd=repo.path).rc == 0
        at_state(repo, "PAUSING")
    kill(supervisor)
    assert processes_of(session), "the agent was to outlive its supervisor in this test"
    shown = json.loads(relay("status", "--json", cwd=repo.path).stdout)["sessions"][0]
    assert (shown["state"], shown["interrupted"], shown["running"]) == (state, True, False)
    assert f"{state} (interrupted)" in relay("status", cwd=repo.path).stdout
    assert f"interrupted while {state}" in relay("doctor", cwd=repo.path).stdout
    demo.plays(TAKE_OVER)
    ran = relay("handoff", session, "--to", "demo", cwd=repo.path)
    assert ran.rc == 0, ran.stderr
    assert processes_of(session) == []
    assert repo.git("show", f"relay/{session}:made.txt") == "made"
    assert repo.git("show", f"relay/{session}:half.txt") == "whole"
    assert relay("verify", "--all", cwd=repo.path).rc == 0
    assert photograph(repo.path) == before


@pytest.mark.parametrize(
    ("naughty", "why"),
    [
        ([{"do": "ignore_term"}, {"do": "spawn", "seconds": 600}, HANG], "it did not show in time"),
        ([{"do": "crash", "code": 7}], "it ended at start with status 7"),
        ([], "it ended at start with status 0"),
    ],
    ids=["hangs, deaf and with a child", "crashes", "ends without a turn"],
)
def test_a_candidate_that_does_not_take_over_is_passed_over_and_leaves_no_process(
    repo, relay, demo, naughty, why
) -> None:
    repo.git("config", "relay.ackTimeout", "3")
    repo.git("config", "relay.termGrace", "1")
    demo.plays([say("I begin."), write("made.txt", "made\n"), LIMIT], naughty)
    ran = relay("start", "x", "--agent", "demo", "--then", "demo", cwd=repo.path)
    session = only_session(repo.path)
    assert ran.rc == 1
    assert f"demo is passed over: {why}" in ran.stderr
    assert f"{session} needs you: no agent is left" in ran.stderr
    assert processes_of(session) == []
    demo.plays(TAKE_OVER)
    repo.git("config", "--unset", "relay.ackTimeout")
    assert relay("handoff", "--to", "demo", cwd=repo.path).rc == 0
    contract = json.loads(relay("show", "--json", cwd=repo.path).stdout)["contract"]
    assert contract["usage"]["output"] == 10  # the worker's own record, not the candidate's
    assert relay("verify", "--all", cwd=repo.path).rc == 0


def test_a_candidate_that_changes_files_without_taking_over_has_its_work_kept_as_a_leg_of_its_own(
    repo, relay, demo
) -> None:
    demo.plays([say("I begin."), LIMIT], [write("stray.txt", "stray\n"), {"do": "crash", "code": 9}], TAKE_OVER)
    ran = relay("start", "x", "--agent", "demo", "--then", "demo,demo", cwd=repo.path)
    session = only_session(repo.path)
    assert ran.rc == 0, ran.stderr
    assert "demo changed files without taking the session up" in relay("log", cwd=repo.path).stdout
    assert repo.git("show", f"relay/{session}:stray.txt") == "stray"
    assert states(repo.path, session)[-1]["leg"] == 3
    assert relay("verify", "--all", cwd=repo.path).rc == 0


@pytest.mark.parametrize(
    ("first", "why"),
    [
        ([say("I begin."), write("made.txt", "made\n"), {"do": "crash", "code": 7}], "it ended with status 7"),
        ([write("made.txt", "made\n")], "it ended without a single finished turn"),
    ],
    ids=["crashes", "ends without a turn"],
)
def test_an_agent_that_dies_is_followed_by_the_next_one_with_its_files(repo, relay, demo, first, why) -> None:
    demo.plays(first, TAKE_OVER)
    ran = relay("start", "x", "--agent", "demo", "--then", "demo", cwd=repo.path)
    assert ran.rc == 0, ran.stderr
    assert f"leg 1 (demo): {why}" in ran.stderr
    assert repo.git("show", f"relay/{only_session(repo.path)}:made.txt") == "made"


def test_a_daemon_that_an_agent_leaves_behind_is_ended_before_the_next_leg(repo, relay, demo) -> None:
    demo.plays([{"do": "ignore_term"}, {"do": "spawn", "seconds": 600}, say("I begin."), LIMIT], TAKE_OVER)
    ran = relay("start", "x", "--agent", "demo", "--then", "demo", cwd=repo.path)
    assert ran.rc == 0, ran.stderr
    assert processes_of(only_session(repo.path)) == []


def test_a_flood_on_stdout_fills_neither_memory_nor_disk(repo, demo) -> None:
    demo.plays([say("I begin."), {"do": "flood", "bytes": 200 << 20, "line": 3 << 20}, *WORK])
    code = (
        "import resource, subprocess, sys; rc = subprocess.call(sys.argv[1:]);"
        "print(rc, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    argv = ["python3", "-c", code, "git-relay", "start", "x", "--agent", "demo"]
    done = subprocess.run(argv, cwd=repo.path, capture_output=True, text=True, check=True)
    rc, kib = map(int, done.stdout.split())
    assert rc == 0, done.stderr
    assert kib < 300_000
    logs = [f.stat().st_size for f in (repo.path / ".git/relay/logs").rglob("*") if f.is_file()]
    assert 0 < sum(logs) <= (32 << 20) + 65536


def test_of_two_handoffs_at_once_one_wins_and_the_other_is_told(repo, relay, demo, begin) -> None:
    demo.plays([say("I begin."), LIMIT], [ACCEPT, say("I go on."), {"do": "sleep", "seconds": 4}])
    assert relay("start", "x", "--agent", "demo", cwd=repo.path).rc == 1
    session = only_session(repo.path)
    both = [begin(repo, "handoff", session, "--to", "demo") for _ in range(2)]
    codes = sorted(p.wait(60) for p in both)
    told = said(repo, 0) + said(repo, 1)
    assert codes[0] == 0
    assert f"another git relay is running the session {session}" in told or f"{session}: asked" in told
    assert "Traceback" not in told
    assert relay("verify", "--all", cwd=repo.path).rc == 0
    assert processes_of(session) == []


def test_ctrl_c_stops_cleanly_and_the_session_goes_on_later(repo, relay, demo, begin) -> None:
    demo.plays(BUSY)
    repo.git("config", "relay.hardLimit", "1")
    supervisor = begin(repo, "start", "x", "--agent", "demo")
    session = at_state(repo, "RUNNING")
    wait_for(lambda: (repo.path / ".relay/sessions" / session / "half.txt").read_text() == "half\n")
    os.kill(supervisor.pid, signal.SIGINT)
    assert supervisor.wait(120) == 130
    assert f"{session} is stopped (stopped by the user); the contract c-" in said(repo)
    assert processes_of(session) == []
    demo.plays(TAKE_OVER)
    assert relay("handoff", "--to", "demo", cwd=repo.path).rc == 0
    assert repo.git("show", f"relay/{session}:half.txt") == "whole"


def test_a_git_that_is_killed_while_a_session_is_opened_leaves_no_lock_behind(repo, relay, demo, tmp_path) -> None:
    dies = tmp_path / "dies"  # when git checks the new worktree out, as if it were killed while it makes the branch
    dies.write_text(f"#!/bin/sh\n: >{repo.git_dir}/refs/heads/relay/$RELAY_SESSION.lock\nkill -9 $PPID; sleep 1\n")
    dies.chmod(0o755)
    repo.commit("with a filter", {".gitattributes": "* filter=dies\n"})
    repo.git("config", "filter.dies.smudge", str(dies))
    demo.plays(WORK)
    ran = relay("start", "x", "--agent", "demo", cwd=repo.path)
    assert ran.rc == 1, ran
    assert not [*(repo.git_dir / "refs").rglob("*.lock"), *(repo.git_dir / "worktrees").glob("*")]
    repo.git("config", "filter.dies.smudge", "cat")
    assert relay("start", "x", "--agent", "demo", cwd=repo.path).rc == 0
