"""What a real agent can reach from its sandbox in a session's worktree, and what it cannot."""

from __future__ import annotations

import json

import pytest

GIT = "{{cwd}}/../../../.git"
TRIES = {
    "key": f"cat {GIT}/relay/key",
    "new key": f"echo {'0' * 64} > {GIT}/relay/key",
    "hook": f"echo 'touch /var/tmp/owned' >> {GIT}/hooks/post-commit",
    "config": "git config core.hooksPath /var/tmp",
    "config file": f"echo '[core]' >> {GIT}/config",
    "exclude": f"echo x >> {GIT}/info/exclude",
    "main": "git update-ref refs/heads/main HEAD",
    "main file": f"echo {'0' * 40} > {GIT}/refs/heads/main",
    "branch": "git branch evil",
    "journal": "git update-ref -d $(git for-each-ref --format='%(refname)' refs/relay/sessions/)",
    "main tree": "echo x >> {{cwd}}/../../../README.md",
    "home": "echo x >> $HOME/.bashrc",
}
COMMIT = [
    {"tools": [{"do": "write", "path": "{{cwd}}/a.txt", "content": "a\n"}]},
    {"tools": [{"do": "shell", "command": "git add a.txt && git commit -qm 'Add a'"}]},
    {"text": "Done."},
]


def face(repo) -> dict[str, object]:
    """All that no agent may change."""
    private = repo.git_dir / "relay"
    return {
        "refs": repo.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads/main", "refs/heads/evil"),
        "key": (private / "key").read_bytes(),
        "config": (repo.git_dir / "config").read_bytes(),
        "hooks": {f.name: f.read_bytes() for f in (repo.git_dir / "hooks").glob("*")},
        "exclude": (repo.git_dir / "info" / "exclude").read_bytes(),
        "readme": (repo.path / "README.md").read_bytes(),
    }


@pytest.mark.parametrize("agent", [pytest.param(a, marks=pytest.mark.agents(a)) for a in ("claude", "codex")])
def test_an_agent_commits_and_reaches_neither_key_hooks_config_nor_another_branch(
    agent, lo, model, agent_repo, agent_home, base_env, claude_env, codex_env
) -> None:
    attacks = [{"tools": [{"do": "shell", "command": command}]} for command in TRIES.values()]
    if agent == "claude":
        attacks.append({"tools": [{"do": "read", "path": f"{GIT}/relay/key"}]})
    # A commit first: it makes what sandboxes leave behind, and the face is taken when the agent has begun.
    played = model({agent: {"turns": [*attacks, *COMMIT]}})
    env = base_env | claude_env(played) | codex_env(played)

    def relay(*args: str):
        return lo.run(["git-relay", *args], cwd=agent_repo.path, env=env, timeout=180)

    assert relay("init").rc == 0
    # The session's hook block is there before the agent is: made by a session that ends at once.
    assert relay("start", "warm up", "--agent", "demo").rc == 0
    before = face(agent_repo)
    done = relay("start", "Add a", "--agent", agent)
    assert done.rc == 0, done
    assert face(agent_repo) == before
    assert not (agent_home / ".bashrc").exists()
    session = next(s for s in json.loads(relay("status", "--json").stdout)["sessions"] if s["agent"] == agent)
    assert session["state"] == "DONE"
    assert agent_repo.git("log", "--format=%s", "-1", session["branch"]) == "Add a"
    safe_points = agent_repo.git_dir / "worktrees" / session["id"] / "relay" / "safepoints"
    assert safe_points.read_text() == "commit\n"
    # The key's bytes never reached the model.
    assert before["key"].decode().strip() not in played.log.read_text()
    assert len(played.requests(agent)) == len(attacks) + len(COMMIT)


@pytest.mark.parametrize("agent", [pytest.param(a, marks=pytest.mark.agents(a)) for a in ("claude", "codex")])
def test_accept_works_from_inside_a_sandbox_that_hides_the_key(
    agent, lo, model, agent_repo, base_env, claude_env, codex_env, scratch
) -> None:
    steps = scratch / "steps.json"
    steps.write_text(json.dumps({"legs": [[{"do": "write", "path": "b.txt", "content": "b\n"}, {"do": "limit"}]]}))
    contract = "$(git log --notes='relay/*' --format=%N | sed -n 's/^Contract: //p' | head -n 1)"
    accept = {"tools": [{"do": "shell", "command": f"git relay accept {contract}"}]}
    # The first answer is held back until the marker could be seen, so that it is what counts.
    played = model({agent: {"turns": [accept, *COMMIT]}})
    env = base_env | claude_env(played) | codex_env(played) | {"RELAY_DEMO_STEPS": str(steps)}
    done = lo.run(
        ["git-relay", "start", "Add a", "--agent", "demo", "--then", agent], cwd=agent_repo.path, env=env, timeout=180
    )
    assert done.rc == 0, done
    answers = json.dumps(played.requests(agent)[-1]["messages"])
    assert "verified by the supervisor before it was handed over" in answers
