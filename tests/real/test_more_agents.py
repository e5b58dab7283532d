"""The main job on opencode, Gemini CLI, Qwen Code and Copilot CLI: each begins a task, meets its limit, and the next of
them finishes it, having been told all that the contract says.

Each has a model of its own, so that it is known who was told what.
"""

from __future__ import annotations

import pytest

from tests.real.test_main_job import BEGIN, FINISH, GOAL, Field, assert_brief_reached

# How the providers refuse for good, and what the contract calls it.
LIMITS = {
    "opencode": ({"preset": "openai-429-two-hours"}, "usage-limit"),
    "gemini": ({"preset": "gemini-quota"}, "usage-limit"),
    "qwen": ({"preset": "openai-quota"}, "billing-limit"),
    "copilot": (
        {"error": 402, "body": {"error": {"message": "You have no quota", "code": "quota_exceeded"}}},
        "usage-limit",
    ),
}
API = {"opencode": "chat", "gemini": "gemini", "qwen": "chat", "copilot": "chat"}
PAIRS = [("opencode", "gemini"), ("gemini", "qwen"), ("qwen", "copilot"), ("copilot", "opencode")]


@pytest.fixture
def envs(opencode_env, gemini_env, qwen_env, copilot_env):
    return {"opencode": opencode_env, "gemini": gemini_env, "qwen": qwen_env, "copilot": copilot_env}


@pytest.fixture
def field(lo, agent_repo, base_env, envs):
    """`field({agent: model})`: the command in the namespace, these agents signed in and allowed to do all."""

    def make(models):
        env = dict(base_env)
        for name, model in models.items():
            agent_repo.git("config", f"relay.{name}.permission", "full")
            env |= envs[name](model)
        return Field(lo, agent_repo, env)

    return make


def relay(at: Field, *args: str):
    return at.lo.run(["git-relay", *args], cwd=at.repo.path, env=at.env, timeout=600)


@pytest.mark.parametrize(
    ("first", "second"), [pytest.param(a, b, marks=pytest.mark.agents(a, b), id=f"{a}-{b}") for a, b in PAIRS]
)
def test_one_finishes_what_the_other_began(field, model, first, second) -> None:
    limit, reason = LIMITS[first]
    begins = model({API[first]: {"turns": [*BEGIN, {**limit, "sticky": True}]}})
    finishes = model({API[second]: {"turns": FINISH}})
    at = field({first: begins, second: finishes})
    done = relay(at, "start", GOAL, "--agent", first, "--then", second)
    assert done.rc == 0, done
    session = at.assert_sound(legs=[first, second])
    assert_brief_reached(at, finishes.requests(API[second])[0])
    assert at.json("show")["contract"]["pause"]["reason"] == reason
    names = at.repo.git("ls-tree", "-r", "--name-only", session["branch"]).split("\n")
    assert {"src/farewell.py", "src/half.py", "src/rest.py"} <= set(names)


@pytest.mark.agents("qwen", "gemini")
def test_a_model_that_qwen_asks_again_and_again_without_a_word_is_handed_over(field, model) -> None:
    error = {"type": "requests", "message": "Rate limit reached for requests.", "code": "rate_limit_exceeded"}
    busy = {"error": 429, "headers": {"retry-after": "2"}, "body": {"error": error}, "sticky": True}
    begins = model({"chat": {"turns": [*BEGIN, busy]}})
    finishes = model({"gemini": {"turns": FINISH}})
    at = field({"qwen": begins, "gemini": finishes})
    at.repo.git("config", "relay.maxWait", "5")
    done = relay(at, "start", GOAL, "--agent", "qwen", "--then", "gemini")
    assert done.rc == 0, done
    at.assert_sound(legs=["qwen", "gemini"])
    assert_brief_reached(at, finishes.requests("gemini")[0])
    assert len(begins.requests("chat")) < 28  # it would have asked on


@pytest.mark.agents("opencode")
@pytest.mark.parametrize("name", ["opencode"])
def test_without_full_permission_it_is_not_started_and_what_to_type_is_said(lo, agent_repo, base_env, name) -> None:
    env = base_env | {"OPENAI_API_KEY": "sk-test-not-a-key"}
    done = lo.run(["git-relay", "start", GOAL, "--agent", name], cwd=agent_repo.path, env=env, timeout=300)
    assert done.rc == 1, done
    assert f"git config relay.{name}.permission full" in done.stderr
