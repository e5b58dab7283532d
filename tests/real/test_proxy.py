"""With `relay.proxy` Claude Code's requests pass through the proxy, and what the service says of limits is known."""

from __future__ import annotations

import json

import pytest

GOAL = "Add a farewell function next to greet and commit it"
COMMIT = "git add src/farewell.py && git commit -qm 'Add farewell'"
WORK = [
    {"text": "First.", "tools": [{"do": "write", "path": "{{cwd}}/src/farewell.py", "content": "BYE\n"}]},
    {"text": "Committing.", "tools": [{"do": "shell", "command": COMMIT}]},
    {"text": "All is done."},
]


@pytest.mark.agents("claude")
def test_what_the_service_says_to_claude_is_known_and_nothing_else_changes(
    lo, model, agent_repo, base_env, claude_env
) -> None:
    played = model({"claude": {"turns": WORK, "rate": "claude:0.62"}})
    env = base_env | claude_env(played)
    agent_repo.git("config", "relay.proxy", "true")

    def relay(*args: str):
        done = lo.run(["git-relay", *args], cwd=agent_repo.path, env=env, timeout=180)
        assert done.rc == 0, done
        return done

    assert "goes to its service without it" not in relay("start", GOAL, "--agent", "claude").stderr
    (account,) = [a for a in json.loads(relay("quota", "--json").stdout)["accounts"] if a["agent"] == "claude"]
    window = {w["name"]: w for w in account["windows"]}["five_hour"]
    assert (window["used"], window["source"]) == (0.62, "response headers")
    assert len(played.requests("claude")) >= len(WORK)
    assert lo.processes() == {} or not lo.sealed
