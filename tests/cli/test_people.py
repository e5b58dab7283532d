"""A session that asks a person: what agents noted is on the page, and the answer is in the next contract."""

from __future__ import annotations

import json
import re

from relay_git.contract.model import Contract
from tests.cli.scene import LIMIT, TAKE_OVER, WORK, commit, only_session, shell, states, write

ALLOWED = "AK" + "IAIOSFODNN7EXAMPLX"
SECRET = "gsk" + "_" + "Zq7Rk2Lm9Xw4Tn6Vb8Yc3Hd5Jf1Gp0Sa"


def contract(repo, relay) -> dict:
    found = json.loads(relay("show", "--json", cwd=repo.path).stdout)["contract"]
    Contract.model_validate(found)
    return found


def test_a_person_is_asked_and_the_answer_reaches_the_next_agent(repo, relay, demo) -> None:
    notes = [shell("git-relay", "note", "question", "Which tax?"), shell("git-relay", "note", "next", f"Ask {SECRET}")]
    demo.plays([*notes, *WORK, LIMIT], TAKE_OVER)
    assert relay("start", "the task of the day", "--agent", "demo", cwd=repo.path).rc == 1
    session = only_session(repo.path)
    made = contract(repo, relay)
    assert made["summary"]["openQuestions"] == [{"text": "Which tax?", "source": "note of the agent"}]
    assert re.fullmatch(r"Ask \[redacted:groq-key#[0-9a-f]{8}\]", made["nextAction"])

    asked = relay("handoff", session, "--to", "human", "--reason", "tax law", cwd=repo.path)
    assert asked.rc == 0, asked
    assert asked.stdout.startswith("# git relay: a decision is waiting for you\n")
    assert "Which tax?" in asked.stdout
    assert "tax law" in asked.stdout
    assert contract(repo, relay)["to"]["agent"] == "human"
    assert f"answer:  git relay answer {session} TEXT --to AGENT" in asked.stderr
    assert f"git relay answer {session} TEXT --to AGENT, or" in relay("status", cwd=repo.path).stdout

    answered = relay("answer", session, "Use the reduced rate", "--to", "demo", cwd=repo.path)
    assert answered.rc == 0, answered
    decision = {"summary": "Use the reduced rate (asked: Which tax?)", "rationale": "", "source": "note of the user"}
    made = contract(repo, relay)
    assert made["decisions"][0] == decision
    assert made["summary"]["openQuestions"] == []
    assert "Use the reduced rate" in demo.prompts()[-1]
    assert states(repo.path, session)[-1]["state"] == "DONE"
    late = relay("answer", session, "too late", cwd=repo.path)
    assert late.rc == 2
    assert "nobody is asked" in late.stderr


def test_of_several_questions_only_those_that_are_named_are_answered(repo, relay, demo) -> None:
    wordy = f"Which tax holds for {'a very ' * 1100} long name, with {SECRET}?"
    commit = shell("git", "commit", "-q", "--allow-empty", "-m", f"Ask\n\nRelay-Question: {wordy}")
    asks = [shell("git-relay", "note", "question", text) for text in ("Ship it?", "Which colour?")]
    # An agent cannot answer for the user.
    forged = {"kind": "decision", "text": "Red", "leg": 1, "at": "", "answers": ["Which colour?"]}
    forge = shell("sh", "-c", f"echo '{json.dumps(forged)}' >> \"$(git rev-parse --git-dir)/relay/notes\"")
    demo.plays([*asks, forge, commit, *WORK, LIMIT], TAKE_OVER)
    assert relay("start", "the task of the day", "--agent", "demo", cwd=repo.path).rc == 1
    session = only_session(repo.path)
    before = [item["text"] for item in contract(repo, relay)["summary"]["openQuestions"]]
    assert before[:2] == ["Which colour?", "Ship it?"]
    assert "cut by git relay" in before[2]

    assert "1. Which colour?" in relay("handoff", session, "--to", "human", cwd=repo.path).stdout
    repo.git("config", "relay.redact.allow", "AKIA*EXAMPLX")
    vague = relay("answer", session, f"in general, be quick {ALLOWED} {SECRET}", cwd=repo.path)
    assert "3 questions stay open: --question NUMBER says which this answers" in vague.stderr
    assert relay("answer", session, "not kept", "--to", "nobody", cwd=repo.path).rc == 2
    wrong = relay("answer", session, "yes", "--question", "4", cwd=repo.path)
    assert wrong.rc == 2
    assert "there is no open question 4: 3 are numbered on the page" in wrong.stderr
    assert relay("answer", session, "y\udcffes", "-q", "2", cwd=repo.path).rc == 0
    assert relay("answer", session, "none", "-q", "3", "--rule", "--to", "demo", cwd=repo.path).rc == 0
    made = contract(repo, relay)
    assert [item["text"] for item in made["summary"]["openQuestions"]] == ["Which colour?"]
    shipped, general = (item["summary"] for item in made["decisions"][:2])
    assert shipped == "y\ufffdes (asked: Ship it?)"
    assert re.fullmatch(rf"in general, be quick {ALLOWED} \[redacted:groq-key#[0-9a-f]{{8}}\]", general)
    assert made["constraints"][0]["rule"].startswith("none (asked: Which tax holds for")
    assert SECRET not in json.dumps(made)


def test_a_key_in_the_work_is_told_wherever_it_was_committed_and_left_as_it_is(repo, relay, demo) -> None:
    gone = [write("gone.py", f"was = '{SECRET}'\n"), commit("Try it"), shell("git", "rm", "-q", "gone.py")]
    named = f"gh{'p'}_{SECRET[4:]}Zq7R.txt"
    demo.plays(
        [write("config.py", f"key = '{SECRET}'\n"), *gone, commit(f"Use {SECRET}"), write(named, "x"), *WORK, LIMIT]
    )
    started = relay("start", "the task", "--agent", "demo", cwd=repo.path)
    assert started.rc == 1
    session = only_session(repo.path)
    message = repo.git("log", "--format=%h", "--abbrev=12", "--grep=Use gsk", f"relay/{session}")
    made, page = contract(repo, relay), relay("handoff", session, "--to", "human", cwd=repo.path).stdout
    landed = relay("land", session, cwd=repo.path)
    assert landed.rc == 0, landed
    for said in (
        "config.py holds what looks like a secret (groq-key): take it out and change it",
        "gone.py holds what looks like a secret (groq-key), in the history: change it",
        f"the message of commit {message} holds what looks like a secret (groq-key), in the history: change it",
        ".txt holds what looks like a secret (github-token): take it out and change it",
    ):
        assert [loss for loss in made["losses"] if loss.endswith(said)], said
        for told in (started.stderr, landed.stderr):
            assert said in told
        assert said.partition(" holds ")[2].partition(":")[0] in page.replace("\\", "")
    for text in (json.dumps(made), started.stderr, page, landed.stderr):
        assert SECRET[4:] not in text
    assert SECRET in repo.git("show", f"relay/{session}:config.py")
