"""The harness holds: the real CLIs work against the scripted model, sealed from the network, without git relay."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from tests.real.loopback import Loopback

CLAUDE = ["claude", "-p", "Add farewell", "--output-format", "stream-json", "--verbose"]
CLAUDE += ["--permission-mode", "bypassPermissions"]
CODEX = ["codex", "exec", "--json", "--dangerously-bypass-approvals-and-sandbox", "Add farewell"]
WORK = [
    {"tools": [{"do": "write", "path": "{{cwd}}/farewell.py", "content": "print('bye')\n"}]},
    {"tools": [{"do": "shell", "command": "git add farewell.py && git commit -qm 'Add farewell'"}]},
    {"text": "Done: farewell is written."},
]


@pytest.mark.agents("claude")
@pytest.mark.parametrize("subscription", [True, False])
def test_claude_edits_and_commits(lo, model, agent_repo, base_env, claude_env, subscription) -> None:
    played = model({"claude": {"turns": WORK, "rate": "claude:0.5"}})
    done = lo.run(CLAUDE, cwd=agent_repo.path, env=base_env | claude_env(played, subscription=subscription))
    assert done.rc == 0, done
    assert agent_repo.git("log", "-1", "--format=%s") == "Add farewell"
    assert agent_repo.git("show", "HEAD:farewell.py") == "print('bye')"
    assert [r["turn"] for r in played.requests("claude")] == ["turn 0", "turn 1", "turn 2"]


@pytest.mark.agents("claude")
def test_claude_ends_with_1_at_a_usage_limit(lo, model, agent_repo, base_env, claude_env) -> None:
    played = model({"claude": {"turns": [WORK[0], {"preset": "claude-usage-limit", "sticky": True}]}})
    done = lo.run(CLAUDE, cwd=agent_repo.path, env=base_env | claude_env(played))
    assert done.rc == 1
    assert [e["api_error"] for e in done.events() if e["type"] == "result"] == ["usage_limit_reached"]


@pytest.mark.agents("codex")
@pytest.mark.parametrize("codex_model", ["gpt-5.5", "gpt-6"])
def test_codex_edits_and_commits(lo, model, agent_repo, base_env, codex_env, codex_model) -> None:
    played = model({"codex": {"turns": WORK, "rate": "codex:0.5"}})
    done = lo.run(CODEX, cwd=agent_repo.path, env=base_env | codex_env(played, codex_model=codex_model))
    assert done.rc == 0, done
    assert agent_repo.git("log", "-1", "--format=%s") == "Add farewell"
    assert agent_repo.git("show", "HEAD:farewell.py") == "print('bye')"
    assert [r["turn"] for r in played.requests("codex")] == ["turn 0", "turn 1", "turn 2"]


@pytest.mark.agents("codex")
def test_codex_ends_with_1_at_a_usage_limit(lo, model, agent_repo, base_env, codex_env) -> None:
    played = model({"codex": {"turns": [WORK[0], {"preset": "codex-usage-limit", "sticky": True}]}})
    done = lo.run(CODEX, cwd=agent_repo.path, env=base_env | codex_env(played))
    assert done.rc == 1
    assert any("usage limit" in e["error"]["message"] for e in done.events() if e["type"] == "turn.failed")


@pytest.mark.agents("claude", "codex")
def test_one_model_plays_two_agents_side_by_side(lo, model, agent_repo, base_env, claude_env, codex_env) -> None:
    played = model({"claude": {"turns": [{"text": "I am one."}]}, "codex": {"turns": [{"text": "I am the other."}]}})
    env = base_env | claude_env(played) | codex_env(played)
    assert "I am one." in lo.run(CLAUDE, cwd=agent_repo.path, env=env).stdout
    assert "I am the other." in lo.run(CODEX, cwd=agent_repo.path, env=env).stdout


def test_the_namespace_reaches_nothing_but_itself(lo: Loopback, scratch: Path, base_env) -> None:
    if not lo.sealed:
        pytest.skip("this machine lets this user make no network namespace")
    ask = "import socket; socket.create_connection(('192.0.2.1', 80), timeout=5)"
    done = lo.run([sys.executable, "-c", ask], cwd=scratch, env=base_env)
    assert done.rc == 1
    assert "Network is unreachable" in done.stderr


def test_processes_of_the_namespace_are_seen_and_ended(scratch: Path, base_env) -> None:
    lo = Loopback(scratch)
    lo.open()
    if not lo.sealed:
        pytest.skip("this machine lets this user make no network namespace")
    lo.model({})
    lo.run(["sh", "-c", "setsid sleep 300 >/dev/null 2>&1 & exit 0"], cwd=scratch, env=base_env)
    assert ["sleep 300" in words for words in lo.processes().values()] == [True]
    left = next(iter(lo.processes()))
    lo.close()
    until = time.monotonic() + 10  # SIGKILL is sent by then; the kernel takes its own time to act on it
    while _lives(left) and time.monotonic() < until:
        time.sleep(0.02)
    assert not _lives(left)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()[0] not in ("Z", "X")
    except OSError:  # it may go between open and read
        return False
