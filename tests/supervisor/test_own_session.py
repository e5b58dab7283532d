"""A session is laid into the home of another account, where the same tool finds it; nothing there is overwritten."""

from __future__ import annotations

from pathlib import Path

import pytest

from relay_git.agents import AGENTS
from relay_git.agents.agent import Kept, Launch, Permission, Place, Ready, Unsupported
from relay_git.session import LimitKind, LimitNotice, SessionRecord, Usage
from relay_git.supervisor.own_session import Past, bring, note, noted

ID = "0b72ab1c-b60c-40a3-9877-ef470310ce7e"
# Where a tool keeps the session, and the variable by which an account has another home.
PLACES = {
    "claude": ("CLAUDE_CONFIG_DIR", f"projects/-w/{ID}.jsonl", f"projects/-w/{ID}/subagents/agent-1.jsonl"),
    "codex": ("CODEX_HOME", f"sessions/2026/11/29/rollout-2026-11-29T18-14-09-{ID}.jsonl"),
    "gemini": ("GEMINI_CLI_HOME", f".gemini/tmp/w/chats/session-2026-11-29T18-14-{ID[:8]}.jsonl"),
    "qwen": ("QWEN_HOME", f"projects/-w/chats/{ID}.jsonl"),
    "copilot": ("COPILOT_HOME", f"session-state/{ID}/events.jsonl", f"session-state/{ID}/workspace.yaml"),
    "continue": ("CONTINUE_GLOBAL_DIR", f"sessions/{ID}.json"),
}
LINE = f'{{"sessionId": "{ID}"}}\n'


@pytest.mark.parametrize("name", list(PLACES))
def test_a_session_is_found_in_the_home_that_it_was_brought_to(tmp_path: Path, name: str) -> None:
    variable, *paths = PLACES[name]
    one, other = ({variable: str(tmp_path / home), "HOME": "/nonexistent"} for home in ("one", "other"))
    for path in paths:
        (tmp_path / "one" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "one" / path).write_text(LINE)
    lock = tmp_path / "one" / Path(paths[0]).parent / "inuse.12.lock"
    lock.write_text("")
    agent = AGENTS[name]
    kept = agent.kept(ID, Path("/w"), one)
    assert isinstance(kept, Kept)
    assert agent.transcript(ID, Path("/w"), other) is None
    bring(kept, agent.home(other))
    assert agent.transcript(ID, Path("/w"), other) == tmp_path / "other" / paths[0]
    found = sorted(
        str(path.relative_to(tmp_path / "other")) for path in (tmp_path / "other").rglob("*.*") if path.is_file()
    )
    assert found == sorted(paths)


def test_what_is_longer_in_the_other_home_stays_and_what_is_shorter_is_made_whole(tmp_path: Path) -> None:
    for home, first, second in (("one", "abc", "abc"), ("other", "abcd", "a")):
        (tmp_path / home).mkdir()
        (tmp_path / home / "first").write_text(first)
        (tmp_path / home / "second").write_text(second)
    bring(Kept(tmp_path / "one", (tmp_path / "one/first", tmp_path / "one/second")), tmp_path / "other")
    assert (tmp_path / "other/first").read_text() == "abcd"
    assert (tmp_path / "other/second").read_text() == "abc"
    assert sorted(path.name for path in (tmp_path / "other").iterdir()) == ["first", "second"]


@pytest.mark.parametrize("name", sorted(set(AGENTS) - {"demo"}))
@pytest.mark.parametrize("native_id", ["", "-x", "--dangerously-skip-permissions", "../../etc/passwd", "a b"])
def test_an_id_that_is_none_never_stands_in_a_command_line(tmp_path: Path, name: str, native_id: str) -> None:
    place = Place(tmp_path, tmp_path, tmp_path, "relay/w", tmp_path)
    ready, env = Ready(Path("/opt/tool")), {"HOME": str(tmp_path), "IS_SANDBOX": "1"}
    plan = AGENTS[name].resume(place, native_id, "go on", ready, Permission.FULL, env)
    assert isinstance(plan, Unsupported)


@pytest.mark.parametrize("name", ["claude", "codex", "opencode", "qwen", "copilot"])
def test_what_it_is_told_is_no_argument(tmp_path: Path, name: str) -> None:
    place = Place(tmp_path, tmp_path, tmp_path, "relay/w", tmp_path)
    ready, env = Ready(Path("/opt/tool")), {"HOME": str(tmp_path), "IS_SANDBOX": "1"}
    plan = AGENTS[name].resume(place, ID, "the words", ready, Permission.FULL, env)
    assert isinstance(plan, Launch)
    assert plan.stdin == b"the words"
    assert any(ID in word for word in plan.argv)
    assert "the words" not in " ".join(plan.argv)


def test_what_a_leg_goes_on_from_is_noted_and_left_out_of_its_record(tmp_path: Path) -> None:
    old, new = (LimitNotice(LimitKind.USAGE, f"limit {n}") for n in (1, 2))
    past = Past("c-1", ID, turns=3, usage=(100, 10, 5, 1), limits=(f"usage None {old.evidence}",))
    note(tmp_path, past)
    assert noted(tmp_path) == past
    whole = SessionRecord("claude", model_turns=5, usage=Usage(150, 15, 5, 2), limits=(old, new))
    beyond = past.beyond(whole)
    assert (beyond.model_turns, beyond.usage, beyond.limits) == (2, Usage(50, 5, 0, 1), (new,))
    note(tmp_path, None)
    assert noted(tmp_path) is None
