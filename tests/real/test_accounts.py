"""One tool, two accounts: the second is sent all of the first one's conversation, with other credentials."""

from __future__ import annotations

import hashlib
import json

import pytest

from relay_git.contract.brief import REMINDER, TITLE
from tests.real.conftest import FAKE
from tests.real.test_main_job import BEGIN, CLAUDE_LIMIT, CODEX_LIMIT, COMMIT, FINISH, GOAL, Field, text_of

OTHER = f"{FAKE}-of-the-other-account"
LIMITS = {"claude": CLAUDE_LIMIT, "codex": CODEX_LIMIT}


def fingerprint(credential: str) -> str:
    return hashlib.sha256(credential.encode()).hexdigest()


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.agents(name)) for name in LIMITS])
def test_the_other_account_of_a_tool_goes_on_with_the_same_conversation(
    lo, model, agent_repo, agent_home, base_env, claude_env, codex_env, name
) -> None:
    told = model({name: {"turns": [*BEGIN[:2], LIMITS[name], *FINISH]}})
    env, folder = base_env, agent_home / "work"
    if name == "claude":
        env = env | claude_env(told) | {"WORK_TOKEN": OTHER}
        more = ["--api-key-env", "CLAUDE_CODE_OAUTH_TOKEN=WORK_TOKEN"]
    else:
        codex_env(told, home=folder)
        file = folder / "config.toml"
        file.write_text(file.read_text().replace('"FAKE_KEY"', '"WORK_KEY"'))
        env, more = env | codex_env(told) | {"WORK_KEY": OTHER}, []
    at = Field(lo, agent_repo, env)
    assert at.relay("accounts", "add", name, "work", "--config-dir", str(folder), *more).rc == 0
    done = at.relay("start", GOAL, "--agent", name, "--then", f"{name}:work")
    assert done.rc == 0, done
    assert f"goes on in its own session, in the account {name}:work, with all of its conversation" in done.stderr
    session = at.assert_sound(legs=[name, name])
    assert [leg["account"] for leg in session["legs"]] == ["", "work"]
    # In the model's log: the same history, word for word as far as the first had come, and the other credential.
    asked = told.requests(name)
    first = [request for request in asked if request["credential"] == fingerprint(FAKE)]
    second = [request for request in asked if request["credential"] == fingerprint(OTHER)]
    assert (len(first), len(second)) == (3, len(FINISH))
    before, after = (json.dumps(request["messages"], ensure_ascii=False) for request in (first[-1], second[0]))
    for part in (GOAL, COMMIT[:40], "First.", "Committing."):
        assert before.count(part) == after.count(part) >= 1, part
    assert (after.count(REMINDER), text_of(second[0]).count(TITLE)) == (1, 0)
    # Neither the credential nor a login of the first is in what was brought.
    brought = [file for file in folder.rglob("*") if file.is_file()]
    assert not any(
        FAKE.encode() in data.replace(OTHER.encode(), b"") for data in (file.read_bytes() for file in brought)
    )


@pytest.mark.agents("claude")
def test_an_account_that_is_logged_out_in_mid_session_is_left_to_the_next_with_its_conversation(
    lo, model, agent_repo, agent_home, base_env, claude_env
) -> None:
    expired = {"type": "authentication_error", "message": "OAuth token has expired. Please obtain a new token."}
    refused = {"error": 401, "body": {"type": "error", "error": expired}, "times": 2}  # Claude Code asks twice
    told = model({"claude": {"turns": [*BEGIN[:2], refused, *FINISH]}})
    at = Field(lo, agent_repo, base_env | claude_env(told))
    other = at.second_claude()
    done = at.relay("start", GOAL, "--agent", "claude", "--then", other)
    assert done.rc == 0, done
    assert "its login is refused (Failed to authenticate. API Error: 401" in done.stderr
    assert "sign in: put a valid key into CLAUDE_CODE_OAUTH_TOKEN" in done.stderr
    assert f"goes on in its own session, in the account {other}, with all of its conversation" in done.stderr
    at.assert_sound(legs=["claude", "claude"])
    assert at.json("show")["contract"]["pause"]["reason"] == "signed-out"
    asked = told.requests("claude")
    assert [r["credential"] == fingerprint(FAKE) for r in asked] == [*[True] * 4, *[False] * len(FINISH)]
