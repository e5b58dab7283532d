"""A session that asks a person: what agents noted is on the page, and the answer is in the next contract."""

from __future__ import annotations

import json

from tests.cli.scene import LIMIT, TAKE_OVER, WORK, only_session, shell, states, write

SECRET = "gsk" + "_" + "Zq7Rk2Lm9Xw4Tn6Vb8Yc3Hd5Jf1Gp0Sa"


def contract(repo, relay) -> dict:
    return json.loads(relay("show", "--json", cwd=repo.path).stdout)["contract"]


def test_a_person_is_asked_and_the_answer_reaches_the_next_agent(repo, relay, demo) -> None:
    notes = [shell("git-relay", "note", "question", "Which tax?"), shell("git-relay", "note", "next", f"Ask {SECRET}")]
    demo.plays([*notes, *WORK, LIMIT], TAKE_OVER)
    assert relay("start", "the task of the day", "--agent", "demo", cwd=repo.path).rc == 1
    session = only_session(repo.path)
    made = contract(repo, relay)
    assert made["summary"]["openQuestions"] == [{"text": "Which tax?", "source": "note of the agent"}]
    assert made["nextAction"].startswith("Ask [redacted:groq-key")

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
    decision = {"summary": "Use the reduced rate", "rationale": "", "source": "note of the user"}
    assert contract(repo, relay)["decisions"][0] == decision
    assert "Use the reduced rate" in demo.prompts()[-1]
    assert states(repo.path, session)[-1]["state"] == "DONE"
    late = relay("answer", session, "too late", cwd=repo.path)
    assert late.rc == 2
    assert "nobody is asked" in late.stderr


def test_a_key_in_the_work_is_named_and_left_as_it_is(repo, relay, demo) -> None:
    demo.plays([write("config.py", f"key = '{SECRET}'\n"), *WORK, LIMIT])
    assert relay("start", "the task", "--agent", "demo", cwd=repo.path).rc == 1
    session = only_session(repo.path)
    made = contract(repo, relay)
    said = "config.py holds what looks like a secret (groq-key): take it out and change it"
    assert said in made["losses"]
    assert SECRET not in json.dumps(made)
    assert SECRET in repo.git("show", f"relay/{session}:config.py")
