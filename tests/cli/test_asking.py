"""The outgoing agent is asked once what the next one must know: checked, bounded, never in the way of the handoff."""

from __future__ import annotations

import json

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
    shell,
    states,
    wait_for,
    write,
)
from tests.cli.test_crash import begin, kill

__all__ = ["begin"]  # the fixture

# The agent's own wish, left where `git relay handoff` leaves it: no second process is needed.
WISH = '{"kind": "handoff", "to": "", "reason": "I want another agent on it"}'
ASKS = shell("sh", "-c", f"echo '{WISH}' >$RELAY_DIR/spool/$RELAY_SESSION/request.json")
CHECK = shell("git", "fsck")
STARTED = ("start", "make it whole", "--agent", "demo", "--then", "demo")


@pytest.fixture
def asked(repo, demo, monkeypatch):
    """`asked(*steps)`: the demo agent works, wants to be relieved, and does this when it is asked."""
    monkeypatch.setenv("RELAY_DEMO_RESUMES", "1")
    for name, value in (("grace", "0"), ("hardLimit", "0"), ("termGrace", "0.3"), ("ownSession", "false")):
        repo.git("config", f"relay.{name}", value)

    def script(*steps) -> None:
        demo.script.write_text(json.dumps({"legs": [[*WORK, CHECK, ASKS, HANG], TAKE_OVER], "ask": steps}))

    yield script
    end_survivors(repo.path)


def contract_of(repo, relay) -> dict:
    return json.loads(relay("show", "--json", cwd=repo.path).stdout)["contract"]


def events(repo) -> list[str]:
    return [entry["event"] for entry in states(repo.path, only_session(repo.path))]


def test_its_answer_is_in_the_next_brief_and_what_git_does_not_show_is_marked(repo, relay, asked, demo) -> None:
    answer = {
        "done": [
            {"what": "The repository is whole", "proof": "git fsck"},
            {"what": "All tests pass", "proof": "make test"},
            {"what": "The server is deployed", "proof": "0123abc"},
        ],
        "decisions": [{"what": "Keep one table", "why": "the bank counts in cents"}],
        "constraints": ["Never touch the old route"],
        "doNotRedo": ["Sending the mails of commit 0123abc"],
        "openQuestions": ["Which tax?"],
        "nextAction": "Write half.txt",
        "files": [{"path": "./made.txt", "why": "the result"}, {"path": "nowhere/gone.py", "why": "the router"}],
    }
    asked(say(f"Gladly:\n```json\n{json.dumps(answer)}\n```"))
    ran = relay(*STARTED, cwd=repo.path)
    assert ran.rc == 0, ran
    contract, brief = contract_of(repo, relay), demo.prompts()[-1]
    source = "answer of the agent, asked at the handoff"
    assert (contract["nextAction"], contract["nextActionSource"]) == ("Write half.txt", source)
    assert contract["constraints"] == [{"rule": "Never touch the old route", "source": source}]
    decided = {"summary": "Keep one table", "rationale": "the bank counts in cents", "source": source}
    assert contract["decisions"] == [decided]
    once = [item["text"] for item in contract["doNotRedo"] if item["source"] == source]
    assert once == [
        "Done: The repository is whole (`git fsck` ended with 0)",
        "Sending the mails of commit 0123abc (no such commit here)",
    ]
    believed = "\n".join(item["text"] for item in contract["summary"]["hypotheses"])
    assert "nothing that git relay saw shows it:\n- All tests pass (its proof: make test)" in believed
    assert "- The server is deployed (its proof: commit 0123abc (no such commit here))" in believed
    assert "- ./made.txt: the result\n- nowhere/gone.py (not in the snapshot): the router" in believed
    assert [loss for loss in contract["losses"] if "when asked, named" in loss] == [
        "the agent, when asked, named files that are not in the snapshot: nowhere/gone.py",
        "the agent, when asked, named commits that are not there: 0123abc",
    ]
    for part in ("Write half.txt", "Never touch the old route", "Keep one table", "gone.py (not in the snapshot)"):
        assert part in brief, part
    assert contract["pause"]["detail"] == "I want another agent on it"
    told = relay("log", cwd=repo.path).stdout
    assert "it answered: 1 decision, 1 constraint, 2 do-not-redo, 1 next, 1 question, 2 hypothesis (110 tokens" in told
    assert contract["usage"]["input"] == 100 * sum(step["do"] == "say" for step in WORK)


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ([HANG], "it did not answer within 1 s"),
        ([say('{"constraints": "never"}')], "cannot be read: constraints is no list"),
        ([say("I would rather talk about it.")], "cannot be read: it is no JSON object"),
        ([LIMIT], "it came to its limit"),
        ([{"do": "crash"}], "it ended with status 70"),
        ([], "it ended with status 0 and no answer"),
        ([write("late.txt", "late\n"), say('{"constraints": ["x"]}')], "files changed meanwhile"),
    ],
)
def test_without_a_good_answer_the_handoff_goes_on_and_says_why(repo, relay, asked, steps, why) -> None:
    repo.git("config", "relay.contract.askTimeout", "1" if HANG in steps else "60")
    asked(*steps)
    ran = relay(*STARTED, cwd=repo.path)
    assert ran.rc == 0, ran
    contract = contract_of(repo, relay)
    assert [loss for loss in contract["losses"] if why in loss], contract["losses"]
    assert (contract["constraints"], events(repo).count("asked"), events(repo)[-1]) == ([], 1, "agent-done")
    assert contract["pause"]["detail"] == "I want another agent on it"
    snapshot = repo.git("ls-tree", "-r", "--name-only", contract["snapshotCommit"])
    assert ("late.txt" in snapshot) is ("files" in why)
    assert processes_of(only_session(repo.path)) == []


def test_a_supervisor_killed_while_it_asks_does_not_ask_again(repo, relay, asked, begin) -> None:
    asked(HANG)
    supervisor = begin(repo, *STARTED)
    wait_for(lambda: events(repo)[-1] == "asked")
    kill(supervisor)
    session = only_session(repo.path)
    assert processes_of(session) != []
    ran = relay("resume", cwd=repo.path)
    assert ran.rc == 0, ran
    assert (events(repo).count("asked"), events(repo)[-1]) == (1, "agent-done")
    assert "git relay ended before it had answered" in "\n".join(contract_of(repo, relay)["losses"])
    assert processes_of(session) == []


@pytest.mark.parametrize("why", ["never", "limit", "cannot"])
def test_it_is_not_asked_where_the_user_wants_that_at_a_limit_or_where_the_tool_cannot_be(
    repo, relay, asked, demo, monkeypatch, why
) -> None:
    asked(say('{"constraints": ["x"]}'))
    if why == "never":
        repo.git("config", "relay.contract.ask", "never")
    elif why == "limit":
        demo.plays([*WORK, LIMIT], TAKE_OVER)
    else:
        monkeypatch.delenv("RELAY_DEMO_RESUMES")
    ran = relay(*STARTED, cwd=repo.path)
    assert "asked" not in events(repo)
    assert "asked" not in "\n".join(contract_of(repo, relay)["losses"])
    assert ("is not asked what the next agent must know" in ran.stderr) is (why == "cannot")


def test_a_setting_that_means_nothing_is_named(repo, relay, asked) -> None:
    repo.git("config", "relay.contract.ask", "always")
    ran = relay(*STARTED, cwd=repo.path)
    assert (ran.rc, "hint: git config relay.contract.ask auto" in ran.stderr) == (2, True)
