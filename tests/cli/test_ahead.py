"""A session leaves an account before its wall, waits for a reset where it may, and never wanders between two."""

from __future__ import annotations

import json
import os
import signal

import pytest

from tests.cli.scene import (
    HANG,
    TAKE_OVER,
    WORK,
    commit,
    only_session,
    processes_of,
    say,
    states,
    write,
)
from tests.cli.test_crash import at_state, begin, said

__all__ = ["begin"]  # the fixture


def quota(used: float, reset_in: float = 3600):
    return {"do": "quota", "used": used, "reset_in": reset_in}


def limit(reset_in: float):
    return {"do": "limit", "reset_in": reset_in}


@pytest.fixture
def two(relay, tmp_path):
    """Two accounts of the demo agent, which have their quota, unlike the one without a name."""
    for label in ("a", "b"):
        words = ("accounts", "add", "demo", label, "--config-dir", str(tmp_path / label))
        assert relay(*words, cwd=tmp_path).rc == 0
    return ("--agent", "demo:a", "--then", "demo:b")


def legs(relay, repo) -> list[str]:
    (session,) = json.loads(relay("status", "--json", cwd=repo.path).stdout)["sessions"]
    return [leg["account"] for leg in session["legs"]]


def test_it_leaves_an_account_at_the_threshold_after_a_commit_and_before_any_refusal(repo, relay, demo, two) -> None:
    repo.git("config", "relay.grace", "20")
    last = [write("more.txt", "more\n"), {"do": "sleep", "seconds": 6}, commit("Make more"), HANG]
    demo.plays([*WORK, quota(0.93), *last], TAKE_OVER)
    ran = relay("start", "x", *two, cwd=repo.path)
    assert ran.rc == 0, ran
    assert "93 % of demo is used, the threshold is 90 %" in ran.stderr
    assert legs(relay, repo) == ["a", "b"]
    contract = json.loads(relay("show", "--json", cwd=repo.path).stdout)["contract"]
    assert (contract["pause"]["reason"], contract["pause"]["safePoint"]) == ("quota", "commit")


def test_below_the_threshold_and_at_a_falling_meter_it_goes_on(repo, relay, demo, two) -> None:
    demo.plays([*WORK, quota(0.5), quota(0.0), quota(0.6), {"do": "sleep", "seconds": 6}, say("done")])
    ran = relay("start", "x", *two, cwd=repo.path)
    assert ran.rc == 0, ran
    assert legs(relay, repo) == ["a"]


def test_no_account_with_more_room_means_that_it_goes_on_to_its_wall(repo, relay, demo, two) -> None:
    demo.plays([quota(0.95), {"do": "sleep", "seconds": 6}, *WORK, say("done")])
    assert relay("start", "x", "--agent", "demo:b", cwd=repo.path).rc == 0
    demo.plays([quota(0.93), *WORK, {"do": "sleep", "seconds": 6}, say("done")])
    ran = relay("start", "y", *two, cwd=repo.path)
    assert ran.rc == 0, ran
    assert "handing over" not in ran.stderr


def test_a_spent_account_is_not_asked_again_and_waited_for_where_the_user_allows_it(repo, relay, demo, two) -> None:
    demo.plays([*WORK, limit(3600)], [limit(7200)])
    ran = relay("start", "x", *two, cwd=repo.path)
    assert ran.rc == 1, ran
    assert "needs you" in ran.stderr
    # Another session does not even start the two, since it is known that they are spent.
    demo.plays([*WORK, limit(3600)])
    ran = relay("start", "y", "--agent", "demo", "--then", "demo:a,demo:b", cwd=repo.path)
    assert ran.rc == 1, ran
    assert "demo:a is passed over: its quota is used up (demo) until" in ran.stderr


def test_it_waits_for_the_first_reset_over_a_crash_and_resumes_once(repo, relay, demo, two, begin) -> None:
    demo.plays([*WORK, limit(12)], TAKE_OVER)
    supervisor = begin(repo, "start", "x", "--agent", "demo:a", "--wait")
    session = at_state(repo, "WAITING")
    assert processes_of(session) == []
    shown = relay("status", cwd=repo.path).stdout
    assert "waits for demo:a until" in shown
    os.kill(supervisor.pid, signal.SIGKILL)
    supervisor.wait()
    assert "interrupted" in relay("status", cwd=repo.path).stdout
    begin(repo, "resume", session).wait(120)
    tips = states(repo.path, session)
    assert tips[-1]["state"] == "DONE", said(repo, 1)
    assert [t["event"] for t in tips].count("acknowledged") == 1
    assert [t["event"] for t in tips].count("wait-begun") == 1
    assert repo.git("show", f"relay/{session}:half.txt") == "whole"


def test_a_wait_is_ended_by_a_stop_and_by_a_handoff(repo, relay, demo, two, begin) -> None:
    demo.plays([*WORK, limit(3600)], TAKE_OVER)
    supervisor = begin(repo, "start", "x", "--agent", "demo:a", "--wait")
    session = at_state(repo, "WAITING")
    assert relay("stop", cwd=repo.path).rc == 0
    supervisor.wait(30)
    assert states(repo.path, session)[-1]["state"] == "STOPPED"
    ran = relay("handoff", "--to", "demo:b", cwd=repo.path)
    assert ran.rc == 0, ran
    assert legs(relay, repo) == ["a", "b"]


def test_without_leave_to_wait_or_past_what_is_allowed_it_needs_a_human(repo, relay, demo, two) -> None:
    repo.git("config", "relay.wait", "30m")
    demo.plays([*WORK, limit(3600)])
    ran = relay("start", "x", "--agent", "demo:a", cwd=repo.path)
    assert (ran.rc, states(repo.path, only_session(repo.path))[-1]["state"]) == (1, "NEEDS_HUMAN"), ran
    repo.git("config", "relay.wait", "soon")
    ran = relay("start", "y", "--agent", "demo", cwd=repo.path)
    assert (ran.rc, "hint: git config relay.wait 8h" in ran.stderr) == (2, True)


def test_an_account_that_is_logged_out_in_mid_session_is_left_and_passed_over_until_it_is_named(
    repo, relay, demo, two
) -> None:
    logout = {"do": "logout"}
    demo.plays([*WORK, logout], TAKE_OVER)
    ran = relay("start", "x", *two, cwd=repo.path)
    assert ran.rc == 0, ran
    assert "its login is refused (demo: 401 Unauthorized" in ran.stderr
    assert "sign in: git relay accounts login demo:a" in ran.stderr
    assert legs(relay, repo) == ["a", "b"]
    contract = json.loads(relay("show", "--json", cwd=repo.path).stdout)["contract"]
    assert contract["pause"]["reason"] == "signed-out"
    # Another session does not ask it. Its successor is refused at its start: nobody is asked twice, nobody waits.
    demo.plays([*WORK, logout], [logout])
    ran = relay("start", "y", "--agent", "demo", "--then", "demo:a,demo:b", cwd=repo.path)
    assert ran.rc == 1, ran
    assert "demo:a is passed over: its login was refused at" in ran.stderr
    assert ran.stderr.count("handing over to") == 1
    told = ran.stderr.partition("needs you: no agent is left")[2]
    for part in ("  demo: its login is refused", "  demo:b: its login is refused", "accounts login demo:b"):
        assert part in told, part
    # The user has signed in again and says so by naming it.
    demo.plays([], TAKE_OVER)
    session = json.loads(relay("status", "--json", cwd=repo.path).stdout)["sessions"]
    (waiting,) = [one["id"] for one in session if one["state"] == "NEEDS_HUMAN"]
    assert relay("handoff", waiting, "--to", "demo:b", cwd=repo.path).rc == 0
