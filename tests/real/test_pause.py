"""A pause on the real thing: the agent's own hook ends its turn after the tool call that runs."""

from __future__ import annotations

import time

import pytest

from tests.real.test_main_job import BEGIN, FINISH, GOAL, field

__all__ = ["field"]  # the fixture


@pytest.mark.agents("claude", "codex")
def test_a_handoff_without_a_commit_ends_claudes_turn_cleanly_after_the_running_call(field, model, scratch) -> None:
    go = scratch / "go"
    wait = {"do": "shell", "command": f"while ! [ -e '{go}' ]; do sleep 0.1; done; echo it is over"}
    played = model(
        {"claude": {"turns": [BEGIN[0], {"tools": [wait]}, {"text": "Never asked."}]}, "codex": {"turns": FINISH}}
    )
    at = field(played)
    at.repo.git("config", "relay.grace", "0")
    at.repo.git("config", "relay.contract.ask", "never")
    running = at.lo.start(
        ["git-relay", "start", GOAL, "--agent", "claude", "--then", "codex"], cwd=at.repo.path, env=at.env
    )
    played.wait_for(2, "claude")
    assert at.relay("handoff").rc == 0
    flags = at.repo.git_dir / "worktrees"
    while not list(flags.glob("*/relay/end-turn")):
        time.sleep(0.05)
    go.touch()
    done = at.lo.finish(running)
    assert done.rc == 0, done
    at.assert_sound(legs=["claude", "codex"], committed=False)
    contract = at.json("show")["contract"]
    assert (contract["pause"]["reason"], contract["pause"]["safePoint"]) == ("handoff", "tool-boundary")
    assert [c["exitCode"] for c in contract["checks"]] == [0]
    assert not [e for e in contract["evidence"] if e["kind"] == "open-call"]
    assert len(played.requests("claude")) == 2
    (said,) = (at.repo.git_dir / "relay" / "logs").glob("*/leg-1-claude/stdout")
    assert (
        '"type":"result"' in said.read_text().splitlines()[-1]
    )  # it was neither frozen nor killed: it came to its end
    assert not list(flags.glob("*/relay/end-turn"))
