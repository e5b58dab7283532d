"""How opencode, Gemini CLI, Qwen Code and Copilot CLI are found, checked and started."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from relay_git.agents import AGENTS
from relay_git.agents.agent import Launch, Permission, Place, Ready, Unready, Unsupported
from relay_git.agents.opencode import PLUGIN
from tests.agents.recordings import DATA

PROMPT = "- do not let this be seen by `ps`"
KEYS = {
    "opencode": "OPENROUTER_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "qwen": "DASHSCOPE_API_KEY",
    "copilot": "COPILOT_GITHUB_TOKEN",
}
LOGINS = {
    "opencode": ".local/share/opencode/auth.json",
    "gemini": ".gemini/oauth_creds.json",
    "qwen": ".qwen/oauth_creds.json",
    "copilot": ".copilot/config.json",
}
EVERY = pytest.mark.parametrize("name", sorted(KEYS))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    common = tmp_path / "repo" / ".git"
    return Place(tmp_path / "w", common / "worktrees/w", common, "relay/w", common / "relay/legs/w")


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A machine on which all four are installed and nobody has signed in."""
    for name in KEYS:
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    return {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path / "home")}


def launched(name: str, place: Place, env: dict[str, str]) -> Launch:
    launch = AGENTS[name].launch(place, PROMPT, Ready(Path("/opt/bin/tool")), Permission.FULL, env)
    assert isinstance(launch, Launch)
    return launch


@EVERY
def test_a_missing_program_is_said_with_how_to_install_it(name) -> None:
    unready = AGENTS[name].check({"PATH": "/nowhere", "HOME": "/nowhere"}, Permission.FULL)
    assert isinstance(unready, Unready)
    assert unready.hint.startswith("npm install -g ")


@EVERY
def test_it_is_signed_in_by_a_key_or_by_the_file_of_a_login_that_is_not_opened(name, env) -> None:
    agent = AGENTS[name]
    unready = agent.check(env, Permission.FULL)
    assert isinstance(unready, Unready)
    assert "signed in" in unready.reason
    ready = agent.check(env | {KEYS[name]: "made-up"}, Permission.FULL)
    assert isinstance(ready, Ready)
    assert KEYS[name] in ready.notes[0]
    assert "made-up" not in ready.notes[0]
    login = Path(env["HOME"], LOGINS[name])
    login.parent.mkdir(parents=True)
    login.touch(mode=0o000)
    assert isinstance(agent.check(env, Permission.FULL), Ready)


@EVERY
def test_it_cannot_be_confined_and_what_to_type_is_said(name, env, place) -> None:
    unready = AGENTS[name].check(env | {KEYS[name]: "made-up"}, Permission.SANDBOX)
    assert isinstance(unready, Unready)
    assert unready.hint.startswith(f"git config relay.{name}.permission full")
    ready = Ready(Path("/opt/bin/tool"))
    assert isinstance(AGENTS[name].launch(place, PROMPT, ready, Permission.SANDBOX, env), Unsupported)


@EVERY
def test_the_prompt_goes_in_by_stdin_and_what_it_may_do_is_said(name, env, place) -> None:
    launch = launched(name, place, env)
    assert launch.stdin.decode() == PROMPT
    assert PROMPT not in " ".join(launch.argv)
    assert "everything that your user may do" in launch.grants[0]
    assert launch.native_id in launch.argv or name == "opencode"


def test_opencodes_plugin_stands_beside_the_users_own_for_this_run(env, place) -> None:
    theirs = {"model": "p/m", "plugin": ["opencode-wakatime"]}
    launch = launched("opencode", place, env | {"OPENCODE_CONFIG_CONTENT": json.dumps(theirs)})
    ours = (place.private_dir / PLUGIN).as_uri()
    assert json.loads(launch.env["OPENCODE_CONFIG_CONTENT"]) == {**theirs, "plugin": ["opencode-wakatime", ours]}
    assert b"process.stdout.write" in launch.files[PLUGIN]


def test_a_configuration_that_is_no_json_is_left_to_opencode(env, place) -> None:
    launch = launched("opencode", place, env | {"OPENCODE_CONFIG_CONTENT": '{"model": "p/m", // mine\n}'})
    assert (launch.env, launch.files) == ({}, {})


def test_only_gemini_hides_gits_configuration_from_its_commands(env, place) -> None:
    assert [name for name in sorted(KEYS) if launched(name, place, env).hides_git_config] == ["gemini"]


@pytest.mark.parametrize(
    ("name", "variable", "below", "source"),
    [
        ("gemini", "GEMINI_CLI_HOME", ".gemini/tmp/repo/chats", "gemini/normal/repo/chats"),
        ("qwen", "QWEN_HOME", "projects/-home-dev-repo/chats", "qwen/normal"),
        ("copilot", "COPILOT_HOME", "session-state/fd650e03-5efa-4df2-9bd6-d5c46b594014", "copilot/normal"),
    ],
)
def test_sessions_are_found_where_the_tools_own_variable_says(tmp_path, name, variable, below, source) -> None:
    shutil.copytree(DATA / source, tmp_path / "moved" / below)
    (tmp_path / "moved" / below / "stdout.jsonl").unlink(missing_ok=True)
    moved = {"HOME": "/nowhere", variable: str(tmp_path / "moved")}
    agent = AGENTS[name]
    (found,) = agent.found(moved)
    (native_id,) = agent.sessions(found.path)
    assert found.native_id in ("", native_id)
    assert agent.transcript(native_id, Path("/home/dev/repo"), moved) == found.path
    assert agent.transcript("../../../etc/passwd", Path("/"), moved) is None
    assert list(agent.found({"HOME": "/nowhere"})) == []


def test_opencodes_databases_and_its_older_tree_are_found(tmp_path) -> None:
    data = tmp_path / "data" / "opencode"
    shutil.copytree(DATA / "cases/B31/home/.local/share/opencode", data)
    shutil.copy(DATA / "cases/B32/home/.local/share/opencode/opencode.db", data)
    os.mkfifo(data / "opencode-next.db")
    env = {"HOME": "/nowhere", "XDG_DATA_HOME": str(tmp_path / "data")}
    opencode = AGENTS["opencode"]
    assert [(f.path.name, f.native_id) for f in opencode.found(env)] == [("opencode.db", ""), ("ses_1.json", "ses_1")]
    assert {opencode.sessions(f.path) for f in opencode.found(env)} == {("ses_1",)}
    for found in opencode.found(env):
        following = opencode.follow(found.path, found.native_id, Path("/w/app"))
        following.poll()
        assert following.record(ended=True).prompts == ("split the view",)


def test_of_several_files_of_one_gemini_session_the_real_one_is_read(tmp_path) -> None:
    chats = tmp_path / ".gemini" / "tmp" / "repo" / "chats"
    shutil.copytree(DATA / "gemini/resume/repo/chats", chats)
    native_id = "11111111-2222-4333-8444-555555555555"
    head = json.dumps({"sessionId": native_id, "projectHash": "", "startTime": "", "kind": "main"})
    (chats / "session-2026-11-29T18-59-11111111.jsonl").write_text(head + "\n")
    found = AGENTS["gemini"].transcript(native_id, Path("/home/dev/repo"), {"HOME": str(tmp_path)})
    assert found == chats / "session-2026-11-29T18-23-11111111.jsonl"
