"""An agent that follows itself goes on in its own session: all of its conversation and a reminder, else the brief."""

from __future__ import annotations

import json

import pytest

from relay_git.contract.brief import REMINDER, TITLE
from tests.cli.scene import ACCEPT, HANG, LIMIT, TAKE_OVER, WORK, end_survivors, only_session, shell, states, wait_for
from tests.cli.test_crash import at_state, begin, kill
from tests.seal.records import records

__all__ = ["begin"]  # the fixture

TASK = "the task, in words of the user's"


@pytest.fixture
def remembers(repo, demo, monkeypatch):
    """The demo agent, which pretends to remember what it did in the session before; none of it outlives the test."""
    monkeypatch.setenv("RELAY_DEMO_RESUMES", "1")
    yield demo
    end_survivors(repo.path)


def told(demo) -> list[list[str]]:
    """What was said to each run of the agent, by its transcript, in the order in which they began."""
    found = []
    for file in (demo.home / "sessions").glob("*.jsonl"):
        said = records(file)
        begun = [r["at"] for r in said if r["type"] == "session"]
        found.append((begun[-1], [r["text"] for r in said if r["type"] == "prompt"]))
    return [prompts for _, prompts in sorted(found)]


def contract_of(repo, relay) -> dict:
    return json.loads(relay("show", "--json", cwd=repo.path).stdout)["contract"]


def at_rest(repo, relay, demo, *later) -> None:
    demo.plays([*WORK, LIMIT], *later)
    assert relay("start", TASK, "--agent", "demo", cwd=repo.path).rc == 1


def test_an_agent_that_follows_itself_is_told_a_reminder_and_has_its_conversation(repo, relay, remembers) -> None:
    at_rest(repo, relay, remembers, [ACCEPT, *TAKE_OVER, LIMIT])
    assert relay("resume", cwd=repo.path).rc == 1
    (_, (task, reminder)) = told(remembers)
    assert task.startswith(TASK)
    assert reminder.startswith(REMINDER)
    assert TASK not in reminder
    second = contract_of(repo, relay)
    assert f"git relay accept {second['previous']['contractId']}\n" in reminder
    # What the copied conversation had used is in the first contract, and the reminder is no word of the user's.
    assert second["usage"]["input"] == 100 * sum(step["do"] == "say" for step in TAKE_OVER)
    assert [e["kind"] for e in second["evidence"] if e["kind"] == "prompt"] == []
    outcomes = [c["outcome"] for c in json.loads(relay("verify", "--all", "--json", cwd=repo.path).stdout)["contracts"]]
    assert outcomes == ["superseded"] * (len(outcomes) - 1) + ["valid"]


@pytest.mark.parametrize("why", ["torn", "unwanted", "other"])
def test_the_brief_is_told_where_the_conversation_is_not_whole_not_wanted_or_another_agents(
    repo, relay, remembers, monkeypatch, why
) -> None:
    at_rest(repo, relay, remembers, TAKE_OVER)
    (transcript,) = (remembers.home / "sessions").glob("*.jsonl")
    if why == "torn":
        transcript.write_bytes(transcript.read_bytes() + b'{"demo": tr')
    elif why == "unwanted":
        repo.git("config", "relay.ownSession", "false")
    else:
        monkeypatch.delenv("RELAY_DEMO_RESUMES")
    assert relay("resume", cwd=repo.path).rc == 0
    (brief,) = told(remembers)[-1]
    assert brief.startswith(TITLE)
    assert TASK in brief


def test_an_agent_that_cannot_go_on_in_its_own_session_is_started_once_more_on_the_brief(
    repo, relay, remembers, tmp_path
) -> None:
    dies_once = shell("sh", "-c", f"test -e {tmp_path}/died || {{ touch {tmp_path}/died; kill -9 $PPID; }}")
    at_rest(repo, relay, remembers, [dies_once, *TAKE_OVER])
    ran = relay("resume", cwd=repo.path)
    assert ran.rc == 0, ran
    assert "did not go on in its own session, and gets the brief" in ran.stderr
    first, second, third = told(remembers)
    assert first == second[:1]
    assert second[1].startswith(REMINDER)
    assert [text.startswith(TITLE) for text in third] == [True]
    session = json.loads(relay("status", "--json", cwd=repo.path).stdout)["sessions"][0]
    assert (session["state"], len(session["legs"])) == ("DONE", 2)


def test_a_supervisor_killed_while_the_agent_takes_up_its_own_session_does_not_tell_it_twice(
    repo, relay, remembers, begin
) -> None:
    at_rest(repo, relay, remembers, [HANG])
    supervisor = begin(repo, "resume")
    at_state(repo, "RESUMING")
    wait_for(lambda: len(told(remembers)) == 2)
    kill(supervisor)
    remembers.plays([*WORK, LIMIT], TAKE_OVER)
    ran = relay("resume", cwd=repo.path)
    assert ran.rc == 0, ran
    assert [len(prompts) for prompts in told(remembers)] == [1, 2, 1]
    assert told(remembers)[-1][0].startswith(TITLE)
    assert states(repo.path, only_session(repo.path))[-1]["state"] == "DONE"
