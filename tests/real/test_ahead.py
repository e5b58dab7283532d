"""Limits of real agents: left before the wall by what their service tells of quota, judged right where they come."""

from __future__ import annotations

import json

import pytest

from relay_git.contract.brief import TITLE
from tests.real.conftest import FAKE
from tests.real.test_accounts import OTHER, fingerprint
from tests.real.test_main_job import (
    ASKED,
    BEGIN,
    CLAUDE_LIMIT,
    FINISH,
    GOAL,
    Field,
    assert_answer_reached,
    field,
    text_of,
)

__all__ = ["field"]  # the fixture

# A reply that comes late enough for a look ahead, and then the commit that the pause waits for.
MORE = [
    {"delay": 12, "tools": [{"do": "write", "path": "{{cwd}}/src/more.py", "content": "MORE = 1\n"}]},
    {"tools": [{"do": "shell", "command": "git add src/more.py && git commit -qm 'Add more'"}]},
]


@pytest.mark.agents("claude", "codex")
def test_claude_leaves_an_account_before_a_refusal_then_the_other_then_hands_over_to_codex(
    lo, model, agent_repo, agent_home, base_env, claude_env, codex_env
) -> None:
    warned = [{**turn, "rate": "claude:0.93"} for turn in (BEGIN[1], *MORE)]
    told = model(
        {
            "claude": {
                "turns": [BEGIN[0], *warned, {**BEGIN[2], "rate": "claude:0.1"}, CLAUDE_LIMIT],
                "routes": [ASKED],
            },
            "codex": {"turns": FINISH},
        }
    )
    env = base_env | claude_env(told) | codex_env(told) | {"WORK_TOKEN": OTHER}
    at = Field(lo, agent_repo, env)
    folder = str(agent_home / "work")
    key = ("--api-key-env", "CLAUDE_CODE_OAUTH_TOKEN=WORK_TOKEN")
    assert at.relay("accounts", "add", "claude", "work", "--config-dir", folder, *key).rc == 0
    done = at.relay("start", GOAL, "--agent", "claude", "--then", "claude:work,codex")
    assert done.rc == 0, done
    assert "93 % of five_hour is used, the threshold is 90 %" in done.stderr, done.stderr
    session = at.assert_sound(legs=["claude", "claude", "codex"])
    assert [(leg["account"], leg["pausedBecause"]) for leg in session["legs"]] == [
        ("", "quota"),
        ("work", "usage-limit"),
        ("", ""),
    ], done.stderr
    asked = told.requests("claude")
    first = [request for request in asked if request["credential"] == fingerprint(FAKE)]
    second = [request for request in asked if request["credential"] == fingerprint(OTHER)]
    assert not any("preset" in request["answered"] for request in first)  # no refusal, before or after
    assert all(part in json.dumps(second[0]["messages"]) for part in (GOAL, "First.", "Committing."))
    assert TITLE in text_of(told.requests("codex")[0])
    assert_answer_reached(at, told.requests("codex")[0], later=True)
    assert agent_repo.git("show", f"{session['branch']}:src/more.py") == "MORE = 1"


@pytest.mark.agents("claude", "codex")
def test_codex_leaves_its_account_by_what_its_rollout_tells(field, model) -> None:
    warned = [{**turn, "rate": "codex:0.97"} for turn in (BEGIN[1], *MORE)]
    told = model({"codex": {"turns": [BEGIN[0], *warned], "routes": [ASKED]}, "claude": {"turns": FINISH}})
    at = field(told)
    done = at.relay("start", GOAL, "--agent", "codex", "--then", "claude")
    assert done.rc == 0, done
    session = at.assert_sound(legs=["codex", "claude"])
    assert session["legs"][0]["pausedBecause"] == "quota", done.stderr
    assert not any("preset" in request["answered"] for request in told.requests("codex"))
    assert_answer_reached(at, told.requests("claude")[0])


@pytest.mark.agents("claude", "codex")
@pytest.mark.parametrize(
    ("preset", "legs", "because"),
    [("anthropic-overloaded", ["claude"], ""), ("anthropic-credit", ["claude", "codex"], "billing-limit")],
)
def test_a_full_service_is_asked_again_and_low_credit_goes_to_the_next_at_once(
    field, model, preset, legs, because
) -> None:
    told = model({"claude": {"turns": [*BEGIN[:2], {"preset": preset}, *FINISH]}, "codex": {"turns": FINISH}})
    at = field(told)
    done = at.relay("start", GOAL, "--agent", "claude", "--then", "codex")
    assert done.rc == 0, done
    (session,) = at.json("status")["sessions"]
    assert [leg["agent"] for leg in session["legs"]] == legs
    assert (session["state"], session["legs"][0]["pausedBecause"]) == ("DONE", because)
    refused = [request for request in told.requests("claude") if "preset" in request["answered"]]
    assert len(refused) == 1
