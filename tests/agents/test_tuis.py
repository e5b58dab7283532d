"""The TUIs: how each is started, and which of its sessions the user is in."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from relay_git.agents import AGENTS
from relay_git.agents.agent import HasTui, Launch, MetersItsTui, Permission, Place, Ready, Unsupported
from tests.agents.test_adapters import make_place

TUIS = sorted(name for name, agent in AGENTS.items() if isinstance(agent, HasTui))
EVERY = pytest.mark.parametrize("name", TUIS)
TOOL = Ready(Path("/opt/bin/tool"))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return make_place(tmp_path)


WORD = 'You work on a branch.\nSay "so".'


def started(name: str, place: Place, told: Path | str, permission: Permission = Permission.SANDBOX) -> Launch:
    launch = AGENTS[name].launch_tui(place, told, TOOL, permission, {"HOME": "/nowhere", "IS_SANDBOX": "1"})
    assert isinstance(launch, Launch)
    return launch


def test_claude_codex_and_the_demo_agent_have_one() -> None:
    assert {"claude", "codex", "demo"} <= set(TUIS)


@EVERY
def test_argv_points_to_the_brief_and_holds_nothing_of_it(name: str, place: Place) -> None:
    brief = place.git_dir / "relay" / "brief.md"
    launch = started(name, place, brief)
    assert str(brief) in launch.argv[-1]
    assert len(launch.argv[-1]) < len(str(brief)) + 200
    assert launch.stdin == b""


@EVERY
def test_without_a_task_the_tui_is_started_without_a_prompt(name: str, place: Place) -> None:
    begun, empty = started(name, place, Path("/brief")).argv, started(name, place, WORD).argv
    assert any("/brief" in word for word in begun)
    assert not any("/brief" in word for word in empty)
    assert "--" not in empty


def test_without_a_task_it_is_told_how_to_work_and_keeps_what_the_user_has_told_it(place: Place, tmp_path) -> None:
    claude = started("claude", place, WORD).argv
    assert claude[claude.index("--append-system-prompt") + 1] == WORD
    (tmp_path / "config.toml").write_text('developer_instructions = "Answer in Latin."\n')
    codex = AGENTS["codex"].launch_tui(place, WORD, TOOL, Permission.SANDBOX, {"CODEX_HOME": str(tmp_path)})
    (option,) = [word for word in codex.argv if word.startswith("developer_instructions=")]
    assert tomllib.loads(option) == {"developer_instructions": f"Answer in Latin.\n\n{WORD}"}


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_it_is_confined_as_a_headless_run(name: str, place: Place) -> None:
    launch, headless = started(name, place, WORD), AGENTS[name].launch(place, "x", TOOL, Permission.SANDBOX, {})
    if name == "claude":
        tui, run = (json.loads(plan.files["claude-settings.json"]) for plan in (launch, headless))
        assert tui["sandbox"] == run["sandbox"]
        assert tui["permissions"]["deny"] == run["permissions"]["deny"]
        assert tui["hooks"] == run["hooks"]
    else:
        confined = [word for word in headless.argv if "permissions" in word]
        assert len(confined) > 1
        assert set(confined) <= set(launch.argv)


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_what_it_asks_is_left_to_the_user(name: str, place: Place) -> None:
    words = " ".join(started(name, place, WORD).argv)
    assert "permission-mode" not in words
    assert "approval_policy" not in words


def test_claude_may_read_the_brief_without_a_question_and_nothing_else_of_ours(place: Place) -> None:
    brief = place.git_dir / "relay" / "brief.md"
    settings = json.loads(started("claude", place, brief).files["claude-settings.json"])
    assert settings["permissions"]["allow"] == [f"Read(/{brief})"]
    assert f"Read(/{place.common_dir}/relay/**)" in settings["permissions"]["deny"]


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_full_permission_is_the_tools_own(name: str, place: Place) -> None:
    launch = started(name, place, WORD, Permission.FULL)
    assert "no sandbox" in launch.grants[0]
    assert any("bypass" in word for word in launch.argv)


def test_without_the_folder_of_the_branches_codex_is_not_started(place: Place) -> None:
    (place.common_dir / "refs/heads/relay").rmdir()
    assert isinstance(AGENTS["codex"].launch_tui(place, WORD, TOOL, Permission.SANDBOX, {}), Unsupported)


# ---------------------------------------------------------------------- the session that the user is in

Write = Callable[..., None]
HERE = Path("/somewhere/.relay/sessions/s1")


def claude_file(home: Path, name: str, cwd: Path = HERE) -> tuple[Path, dict]:
    folder = home / ".claude/projects" / "".join(c if c.isalnum() else "-" for c in str(HERE))
    return folder / f"{name}.jsonl", {"type": "user", "parentUuid": None, "sessionId": name, "cwd": str(cwd)}


def codex_file(home: Path, name: str, cwd: Path = HERE, **more: str) -> tuple[Path, dict]:
    file = home / f".codex/sessions/2026/11/29/rollout-2026-11-29T18-44-02-{name}.jsonl"
    return file, {"type": "session_meta", "payload": {"id": name, "cwd": str(cwd), "thread_source": "user", **more}}


def demo_file(home: Path, name: str, cwd: Path = HERE) -> tuple[Path, dict]:
    file = home / f".local/state/git-relay/demo-agent/sessions/{name}.jsonl"
    return file, {"demo": True, "type": "session", "id": name, "cwd": str(cwd)}


FILES = {"claude": claude_file, "codex": codex_file, "demo": demo_file}


def put(written: tuple[Path, dict], at: float) -> None:
    file, record = written
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(record) + "\n")
    os.utime(file, (at, at))


def live(name: str, home: Path) -> str:
    return AGENTS[name].live(HERE, {"HOME": str(home)}, 1_000.0)


@pytest.mark.parametrize("name", sorted(FILES))
def test_it_is_the_one_that_was_written_last(name: str, tmp_path: Path) -> None:
    assert live(name, tmp_path) == ""
    put(FILES[name](tmp_path, "first"), 1_001)
    assert live(name, tmp_path) == "first"
    put(FILES[name](tmp_path, "second"), 1_002)
    assert live(name, tmp_path) == "second"
    put(FILES[name](tmp_path, "first"), 1_003)
    assert live(name, tmp_path) == "first"


@pytest.mark.parametrize("name", sorted(FILES))
def test_it_is_none_of_an_earlier_leg_or_of_another_folder(name: str, tmp_path: Path) -> None:
    put(FILES[name](tmp_path, "earlier"), 999)
    put(FILES[name](tmp_path, "elsewhere", Path("/somewhere/else")), 1_002)
    assert live(name, tmp_path) == ""


def test_it_is_no_subagent_of_codex(tmp_path: Path) -> None:
    put(codex_file(tmp_path, "own"), 1_001)
    put(codex_file(tmp_path, "helper", thread_source="subagent"), 1_002)
    assert live("codex", tmp_path) == "own"


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_broken_transcript_is_passed_over(name: str, tmp_path: Path) -> None:
    put(FILES[name](tmp_path, "good"), 1_001)
    file, _ = FILES[name](tmp_path, "bad")
    file.write_bytes(b"\xff\x00 not json\n")
    os.utime(file, (1_002, 1_002))
    assert live(name, tmp_path) == "good"


LIMITS = {"five_hour": {"used_percentage": 80, "resets_at": 1796033560}, "seven_day": {"used_percentage": 26.7}}


def status_line(place: Place, home: Path) -> dict[str, str]:
    """The status line that a TUI of Claude Code is started with."""
    env = {"HOME": str(home), "IS_SANDBOX": "1"}
    launch = AGENTS["claude"].launch_tui(place, WORD, TOOL, Permission.SANDBOX, env)
    assert isinstance(launch, Launch)
    return json.loads(launch.files["claude-settings.json"]).get("statusLine", {})


def run(command: str, said: str) -> str:
    done = subprocess.run(["sh", "-c", command], input=said, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


def metered(place: Place) -> list[tuple[str, float]]:
    claude = AGENTS["claude"]
    assert isinstance(claude, MetersItsTui)
    return [(one.window, one.used) for one in claude.metered(place.private_dir)]


def test_the_users_own_status_line_is_shown_and_what_it_is_told_of_quota_is_heard(place: Place, tmp_path: Path) -> None:
    own = {"type": "command", "padding": 0, "command": "tr '[:lower:]' '[:upper:]' && printf \"it's mine\""}
    for folder, line in ((tmp_path / ".claude", {"command": "echo outranked"}), (place.worktree / ".claude", own)):
        folder.mkdir(parents=True)
        (folder / "settings.json").write_text(json.dumps({"statusLine": line}))
    place.private_dir.mkdir(parents=True, exist_ok=True)
    line = status_line(place, tmp_path)
    assert line["padding"] == 0
    assert metered(place) == []
    assert run(line["command"], json.dumps({"rate_limits": LIMITS})).startswith('{"RATE_LIMITS"')
    assert metered(place) == [("five_hour", 0.8)], "a window without a reset is none"
    assert [(f.name, oct(f.stat().st_mode & 0o777)) for f in place.private_dir.iterdir()] == [
        ("claude-status.json", "0o600")
    ]
    # What is no word of Claude Code's own is heard of as nothing, and what is far too long is not kept.
    assert run(line["command"], "x" * 70_000).endswith("X\nit's mine")
    assert metered(place) == [("five_hour", 0.8)]
    for said in ("", "[]", '{"rate_limits": [7]}', '{"rate_limits": {"five_hour": {"used_percentage": 1e400}}}'):
        run(line["command"], said)
        assert metered(place) == []


def test_without_a_status_line_of_the_users_nothing_is_shown_and_one_of_another_kind_is_left_alone(
    place: Place, tmp_path: Path
) -> None:
    place.private_dir.mkdir(parents=True, exist_ok=True)
    assert run(status_line(place, tmp_path)["command"], json.dumps({"rate_limits": LIMITS})) == ""
    assert metered(place) == [("five_hour", 0.8)]
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/settings.json").write_text('{"statusLine": {"type": "built-in"}}')
    assert status_line(place, tmp_path) == {}
