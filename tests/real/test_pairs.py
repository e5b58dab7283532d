"""Each of the six agents hands over to each other one, and the receiver's model is told what the contract says.

Six of the thirty pairs are played, a ring of those that no other test plays; RELAY_TEST_ALL_PAIRS=1 plays all.
"""

from __future__ import annotations

import os
from itertools import pairwise, permutations

import pytest

from tests.real.conftest import REAL
from tests.real.test_main_job import BEGIN, CLAUDE_LIMIT, CODEX_LIMIT, FINISH, GOAL, Field, assert_brief_reached
from tests.real.test_more_agents import API as MORE_API
from tests.real.test_more_agents import LIMITS as MORE_LIMITS

API = {"claude": "claude", "codex": "codex", **MORE_API}
LIMITS = {"claude": CLAUDE_LIMIT, "codex": CODEX_LIMIT, **{name: limit for name, (limit, _) in MORE_LIMITS.items()}}
RING = ("claude", "gemini", "codex", "copilot", "qwen", "opencode", "claude")
PAIRS = permutations(REAL, 2) if os.environ.get("RELAY_TEST_ALL_PAIRS") == "1" else pairwise(RING)


@pytest.mark.parametrize(
    ("first", "second"), [pytest.param(a, b, marks=pytest.mark.agents(a, b), id=f"{a}-{b}") for a, b in PAIRS]
)
def test_one_hands_over_to_the_other(lo, model, agent_repo, base_env, request, first, second) -> None:
    begins = model({API[first]: {"turns": [*BEGIN[:2], {**LIMITS[first], "sticky": True}]}})
    finishes = model({API[second]: {"turns": FINISH}})
    env = dict(base_env)
    for name, played in ((first, begins), (second, finishes)):
        env |= request.getfixturevalue(f"{name}_env")(played)
        if name in MORE_API:
            agent_repo.git("config", f"relay.{name}.permission", "full")
    at = Field(lo, agent_repo, env)
    done = lo.run(
        ["git-relay", "start", GOAL, "--agent", first, "--then", second], cwd=agent_repo.path, env=env, timeout=300
    )
    assert done.rc == 0, done
    session = at.assert_sound(legs=[first, second])
    assert_brief_reached(at, finishes.requests(API[second])[0])
    names = agent_repo.git("ls-tree", "-r", "--name-only", session["branch"]).split("\n")
    assert {"src/farewell.py", "src/rest.py"} <= set(names)
