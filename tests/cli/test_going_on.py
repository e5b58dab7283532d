"""Going on: a session that lost its worktree, its spool or its supervisor still does, and a wish counts once."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess

import pytest

from tests.cli.scene import (
    ACCEPT,
    HANG,
    LIMIT,
    TAKE_OVER,
    WORK,
    only_session,
    processes_of,
    say,
    states,
    wait_for,
    write,
)
from tests.cli.test_crash import at_state, begin, said

__all__ = ["begin"]  # the fixture


def resting(repo, relay, demo, *legs) -> str:
    """A session that waits for the user after its first leg; the later legs are what the next agents will do."""
    demo.plays([*WORK, LIMIT], *legs)
    assert relay("start", "the task\nwith a second line", "--agent", "demo", cwd=repo.path).rc == 1
    return only_session(repo.path)


def worktree_of(repo, session: str):
    return repo.path / ".relay" / "sessions" / session


def outcomes(repo, relay) -> list[str]:
    checked = json.loads(relay("verify", "--all", "--json", cwd=repo.path).stdout)["contracts"]
    return [c["outcome"] for c in checked]


def test_all_but_the_key_may_be_deleted_while_a_session_rests(repo, relay, demo) -> None:
    session = resting(repo, relay, demo, TAKE_OVER)
    for name in ("spool", "locks", "logs"):
        shutil.rmtree(repo.git_dir / "relay" / name)
    ran = relay("handoff", "--to", "demo", cwd=repo.path)
    assert ran.rc == 0, ran
    assert "with a second line" in demo.prompts()[-1]
    assert outcomes(repo, relay) == ["superseded", "valid"]
    assert repo.git("rev-parse", f"relay/{session}")


def test_a_session_whose_worktree_was_deleted_goes_on_from_its_branch_and_says_so(repo, relay, demo) -> None:
    session = resting(repo, relay, demo, TAKE_OVER)
    shutil.rmtree(worktree_of(repo, session))
    ran = relay("handoff", "--to", "demo", cwd=repo.path)
    assert ran.rc == 0, ran
    contract = json.loads(relay("show", "--json", cwd=repo.path).stdout)["contract"]
    assert any("made again from its branch" in loss for loss in contract["losses"])
    assert worktree_of(repo, session).is_dir()


def test_a_supervisor_killed_before_the_worktree_was_made_leaves_a_session_that_goes_on(repo, relay, demo) -> None:
    session = resting(repo, relay, demo, TAKE_OVER)
    first = repo.git("rev-list", "--first-parent", f"refs/relay/sessions/{session}").split("\n")[-1]
    repo.git("update-ref", f"refs/relay/sessions/{session}", first)
    repo.git("worktree", "remove", "--force", str(worktree_of(repo, session)))
    repo.git("update-ref", "-d", f"refs/heads/relay/{session}")
    repo.git("update-ref", "-d", f"refs/notes/relay/{session}")
    ran = relay("handoff", "--to", "demo", cwd=repo.path)
    assert ran.rc == 0, ran
    assert outcomes(repo, relay) == ["valid"]


def test_an_agent_that_deletes_its_own_worktree_does_not_take_the_session_with_it(repo, relay, demo) -> None:
    gone = {"do": "shell", "argv": ["sh", "-c", 'cd / && rm -rf "$OLDPWD"']}
    demo.plays([*WORK, gone, LIMIT], TAKE_OVER)
    ran = relay("start", "x", "--agent", "demo", "--then", "demo", cwd=repo.path)
    assert ran.rc == 0, ran
    assert outcomes(repo, relay) == ["valid"]


def test_a_wish_for_another_agent_while_one_takes_over_is_honoured_once(repo, relay, demo, begin) -> None:
    demo.plays([*WORK, LIMIT], [HANG], [ACCEPT, write("c.txt", "c\n"), say("done")])
    running = begin(repo, "start", "x", "--agent", "demo", "--then", "demo,demo")
    at_state(repo, "RESUMING")
    # The same agent is on its way: nothing more is to be done.
    assert relay("handoff", "--to", "demo", cwd=repo.path).rc == 0
    wait_for(lambda: not list((repo.git_dir / "relay" / "spool").glob("*/request.json")))
    assert states(repo.path, only_session(repo.path))[-1]["state"] == "RESUMING"
    os.kill(running.pid, signal.SIGTERM)
    assert running.wait(60) == 130
    assert said(repo).count("is passed over") == 1


def test_a_handoff_that_comes_when_the_session_has_just_ended_says_so(repo, relay, demo) -> None:
    demo.plays([*WORK, say("done")])
    assert relay("start", "x", "--agent", "demo", cwd=repo.path).rc == 0
    ran = relay("handoff", "--to", "demo", cwd=repo.path)
    assert (ran.rc, "nothing to hand over" in ran.stderr) == (2, True)


def test_many_handoffs_near_the_end_of_a_session_never_find_a_bug(repo, relay, demo, begin) -> None:
    demo.plays([*WORK, {"do": "sleep", "seconds": 0.4}, say("done")], TAKE_OVER, TAKE_OVER, TAKE_OVER)
    running = begin(repo, "start", "x", "--agent", "demo")
    session = at_state(repo, "RUNNING")
    argv = ["git-relay", "handoff", session, "--to", "demo"]
    asked = [subprocess.Popen(argv, cwd=repo.path, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL) for _ in range(6)]
    told = [(one.wait(90), one.communicate()[1]) for one in asked]
    running.wait(90)
    assert {rc for rc, _ in told} <= {0, 1, 2}, told
    assert states(repo.path, session)[-1]["state"] == "DONE"
    assert processes_of(session) == []


@pytest.mark.parametrize("times", [2, 4])
def test_ctrl_c_again_and_again_leaves_no_agent_alive(repo, demo, begin, times) -> None:
    demo.plays([*WORK, {"do": "ignore_term"}, write("deaf.txt", "from now on\n"), HANG])
    running = begin(repo, "start", "x", "--agent", "demo")
    session = at_state(repo, "RUNNING")
    wait_for((worktree_of(repo, session) / "deaf.txt").exists)  # before, it ends at the first word
    assert processes_of(session)
    for _ in range(times):
        os.kill(running.pid, signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):  # the second one stops it at once
            running.wait(0.6)
    assert running.wait(60) == 130
    assert processes_of(session) == []
    assert f"git relay resume {session}" in said(repo)


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_resume_goes_on_with_the_agent_that_was_at_work(repo, relay, demo, begin, how) -> None:
    repo.git("config", "relay.hardLimit", "1")
    demo.plays([*WORK, HANG], TAKE_OVER)
    running = begin(repo, "start", "x", "--agent", "demo")
    session = at_state(repo, "RUNNING")
    wait_for((worktree_of(repo, session) / "made.txt").exists)
    assert relay("resume", cwd=repo.path).rc == 1  # a supervisor runs: the second is told
    os.kill(running.pid, signal.SIGTERM if how == "stopped" else signal.SIGKILL)
    running.wait(60)
    assert f"git relay resume {session}" in relay("status", cwd=repo.path).stdout
    demo.plays(TAKE_OVER)
    ran = relay("resume", cwd=repo.path)
    assert ran.rc == 0, ran
    assert [
        leg["agent"] for leg in json.loads(relay("status", "--json", cwd=repo.path).stdout)["sessions"][0]["legs"]
    ] == [
        "demo",
        "demo",
    ]
    # A clean stop leaves a contract of its own.
    assert outcomes(repo, relay) == (["superseded"] if how == "stopped" else []) + ["valid"]
    assert relay("resume", cwd=repo.path).rc == 2  # it is done


def test_files_of_a_worktree_that_git_has_lost_are_moved_aside_and_named(repo, relay, demo) -> None:
    session = resting(repo, relay, demo, TAKE_OVER)
    (worktree_of(repo, session) / "precious.txt").write_text("a day's work\n")
    shutil.rmtree(repo.git_dir / "worktrees" / session)
    ran = relay("handoff", "--to", "demo", cwd=repo.path)
    assert ran.rc == 0, ran
    assert f"what lay there is kept in {session}.aside-1" in ran.stderr
    assert (worktree_of(repo, f"{session}.aside-1") / "precious.txt").read_text() == "a day's work\n"
