"""Cline and Continue: what their channels say, how their legs are named, and where their sessions are looked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from relay_git.agents import AGENTS
from relay_git.agents.agent import Doing, Ended, Heard, Launch, Limited, Permission, Place, Ready, Unready
from relay_git.session import LimitKind
from tests.agents.recordings import DATA
from tests.agents.samples import SAMPLES

THREE = pytest.mark.parametrize("name", ["aider", "cline", "continue"])


def heard(case: str) -> list[Heard]:
    lines = (DATA / "cline" / case / "stdout.jsonl").read_bytes().split(b"\n")
    return [said for line in lines for said in AGENTS["cline"].hear(line)]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A linked worktree, as git makes it."""
    common = tmp_path / "repo/.git"
    worktree, git_dir = tmp_path / "repo/.relay/sessions/s1", common / "worktrees/s1"
    for folder in (worktree, git_dir, common / "relay/spool/s1/leg-2-x", common / "info"):
        folder.mkdir(parents=True)
    (worktree / ".git").write_text(f"gitdir: {git_dir}\n")
    return Place(worktree, git_dir, common, "relay/s1", common / "relay/spool/s1/leg-2-x")


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """An environment in which all three are installed and have what they need."""
    bin_dir = tmp_path / "bin"
    bin_dir.mkdir()
    for program in ("aider", "cline", "cn"):
        (bin_dir / program).write_text("#!/bin/sh\n")
        (bin_dir / program).chmod(0o755)
    for login in (".cline/data/settings/providers.json", ".continue/config.yaml"):
        (tmp_path / login).parent.mkdir(parents=True)
        (tmp_path / login).write_text("{}")
    return {"PATH": str(bin_dir), "HOME": str(tmp_path), "OPENAI_API_KEY": "MADE-UP-KEY"}


def launched(name: str, place: Place, prompt: str = "do it") -> Launch:
    launch = AGENTS[name].launch(place, prompt, Ready(Path("/opt/bin/tool")), Permission.FULL, {})
    assert isinstance(launch, Launch)
    return launch


@THREE
def test_without_a_sandbox_it_is_ready_only_where_the_user_has_allowed_everything(
    name: str, env: dict[str, str]
) -> None:
    unready = AGENTS[name].check(env, Permission.SANDBOX)
    assert isinstance(unready, Unready)
    assert "has no sandbox" in unready.reason
    assert unready.hint.startswith(f"git config relay.{name}.permission full")
    ready = AGENTS[name].check(env, Permission.FULL)
    assert isinstance(ready, Ready)
    assert "MADE-UP-KEY" not in str(ready)


@THREE
def test_what_is_missing_is_said_before_what_is_allowed(name: str, env: dict[str, str], tmp_path: Path) -> None:
    alone = {"PATH": env["PATH"], "HOME": str(tmp_path / "elsewhere")}
    for given, said in (({**env, "PATH": "/nowhere"}, "is not installed"), (alone, "has no")):
        unready = AGENTS[name].check(given, Permission.FULL)
        assert isinstance(unready, Unready)
        assert said in unready.reason
        assert unready.hint


@THREE
def test_a_leg_s_session_is_found_by_the_name_that_it_was_given(
    name: str, place: Place, env: dict[str, str], tmp_path: Path
) -> None:
    launch = launched(name, place)
    assert AGENTS[name].transcript(launch.native_id, place.worktree, env) is None
    match name:
        case "aider":
            written = place.private_dir / f"{launch.native_id}.md"
            assert str(written) in launch.argv
            written.write_bytes(launch.files[written.name])
        case "cline":
            written = Path(launch.env["CLINE_SESSION_DATA_DIR"]) / "1795976791557_7iyn2"
            written.mkdir(parents=True)
        case _:
            assert launch.env["CONTINUE_CLI_TEST_SESSION_ID"] == launch.native_id
            written = tmp_path / f".continue/sessions/{launch.native_id}.json"
            written.parent.mkdir()
            written.write_text("{}")
    assert AGENTS[name].transcript(launch.native_id, place.worktree, env) == written


def test_a_git_file_that_is_none_leads_nowhere_and_a_relative_one_does(place: Place, env: dict[str, str]) -> None:
    launch = launched("aider", place)
    (place.private_dir / f"{launch.native_id}.md").write_text("")
    for content in ("", "gitdir: /", "gitdir: x", "gitdir: /a/b/c", "gitdir: /a\0/worktrees/s1", "\0\xff"):
        (place.worktree / ".git").write_text(content)
        assert AGENTS["aider"].transcript(launch.native_id, place.worktree, env) is None
    (place.worktree / ".git").write_text("gitdir: ../../../.git/worktrees/s1\n")
    assert AGENTS["aider"].transcript(launch.native_id, place.worktree, env)


@pytest.mark.parametrize("words", ["/run rm -rf x", "!rm -rf x"])
def test_a_task_is_never_a_command_to_aider(words: str, place: Place) -> None:
    (message,) = (data for data in launched("aider", place, words).files.values() if data)
    assert message == f" {words}".encode()


def test_aider_makes_a_map_only_where_git_ignores_its_cache(place: Place) -> None:
    assert "--map-tokens" in launched("aider", place).argv
    (place.common_dir / "info/exclude").write_text("/.relay/\n.aider*\n")
    assert "--map-tokens" not in launched("aider", place).argv


def test_a_refusal_for_good_is_heard_and_ends_the_run() -> None:
    said = heard("rate-limit-429")
    assert [s.notice.kind for s in said if isinstance(s, Limited)] == [LimitKind.RATE] * 2
    assert said[-1] == Ended(False, "Rate limit reached for requests. Please try again in 20s.")


@pytest.mark.parametrize(("case", "ok"), [("normal", True), ("disconnect", False)])
def test_other_ends_are_no_limit(case: str, ok: bool) -> None:
    said = heard(case)
    assert not [s for s in said if isinstance(s, Limited)]
    assert isinstance(said[-1], Ended)
    assert said[-1].ok is ok
    assert Doing("editor /home/dev/repo/src/farewell.py") in said


@pytest.mark.parametrize(
    "event",
    [
        {"type": "agent_event", "event": {"type": "content_end", "contentType": "text", "text": "usage limit reached"}},
        {"type": "agent_event", "event": {"type": "error", "error": {"message": "429"}, "recoverable": True}},
        {
            "type": "agent_event",
            "event": {"type": "content_end", "contentType": "tool", "output": "rate limit reached"},
        },
        {"type": "run_result", "finishReason": "completed", "text": "Rate limit reached for requests."},
        {"type": "usage", "text": "Rate limit reached"},
    ],
)
def test_prose_tool_output_and_what_is_tried_again_are_no_limit(event: object) -> None:
    assert not [s for s in AGENTS["cline"].hear(json.dumps(event).encode()) if isinstance(s, Limited)]


def test_only_the_model_speaks_on_continue_s_stdout() -> None:
    assert AGENTS["continue"].hear(b'{"type": "error", "message": "Rate limit reached"}') == ()


def test_a_folder_of_sessions_gives_the_one_that_was_written_last(tmp_path: Path) -> None:
    sample = SAMPLES["cline"](tmp_path)
    following = AGENTS["cline"].follow(sample.entry.parent, "", Path("/home/dev/repo"))
    following.poll()
    assert following.record().native_id == sample.native_id


def test_a_leg_s_session_is_followed_from_before_its_first_word(tmp_path: Path) -> None:
    sample = SAMPLES["cline"](tmp_path)
    folder = tmp_path / "private" / "1795976791557_7iyn2"
    folder.mkdir(parents=True)
    following = AGENTS["cline"].follow(folder, "c8a3ba6c-4e0e-4c5b-9d4e-0c8f0d3a7a11", Path("/home/dev/repo"))
    assert not following.poll()
    for file in sample.files:
        (folder / file.name).write_bytes(file.read_bytes())
        following.poll()
    assert following.record().native_id == sample.native_id
    assert following.record().model_turns == 3
