"""Names, readiness and launch of every adapter: one suite over all of them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import uuid
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay_git.agents import AGENTS, READ_ONLY, find_agent, find_tool
from relay_git.agents.agent import Launch, Permission, Place, Ready, Unready, Unsupported
from relay_git.agents.codex_sandbox import toml_string
from relay_git.errors import UserError

PROMPT = "-do the 'work'\x00\ud800 " + "x" * 200_000
REAL = pytest.mark.parametrize("name", ["claude", "codex"])
EVERY = pytest.mark.parametrize("name", sorted(AGENTS))


@pytest.fixture
def bin_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    for program in ("claude", "codex", "bwrap", "socat", "rg"):
        (folder / program).write_text("#!/bin/sh\n")
        (folder / program).chmod(0o755)
    return folder


@pytest.fixture
def env(tmp_path: Path, bin_dir: Path) -> dict[str, str]:
    return {"PATH": str(bin_dir), "HOME": str(tmp_path)}


def make_place(root: Path) -> Place:
    common = root / "repo" / ".git"
    for below in (
        "objects/info",
        "refs/heads/relay",
        "refs/tags",
        "logs/refs/heads/relay",
        "worktrees/s1",
        "hooks",
        "relay",
    ):
        (common / below).mkdir(parents=True)
    (common / "refs/heads/main").write_text("0\n")
    (common / "config").write_text("")
    return Place(root / "repo/.relay/sessions/s1", common / "worktrees/s1", common, "relay/s1", common / "relay/legs/1")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return make_place(tmp_path)


def launched(name: str, place: Place, env: dict[str, str], permission: Permission = Permission.SANDBOX) -> Launch:
    launch = AGENTS[name].launch(place, PROMPT, Ready(Path("/opt/bin/tool")), permission, env)
    assert isinstance(launch, Launch)
    return launch


# ---------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("said", "name"),
    [("claude", "claude"), ("claude-code", "claude"), ("codex-cli", "codex"), (" Codex ", "codex"), ("demo", "demo")],
)
def test_an_agent_is_found_by_our_name_and_by_its_own(said: str, name: str) -> None:
    assert find_agent(said).name == name


@pytest.mark.parametrize("name", [name for tool in READ_ONLY.values() for name in (tool.name, *tool.aliases)])
def test_a_tool_that_can_only_be_read_is_told_apart(name: str) -> None:
    assert find_tool(name).name in READ_ONLY
    with pytest.raises(UserError, match="cannot be started from here"):
        find_agent(name)


@pytest.mark.parametrize(
    ("said", "hint"), [("cluade", "did you mean claude?"), ("zzz", f"use one of: {', '.join(AGENTS)}")]
)
def test_an_unknown_name_gets_a_hint(said: str, hint: str) -> None:
    with pytest.raises(UserError, match=f"there is no agent named '{said}'") as caught:
        find_agent(said)
    assert caught.value.hint == hint


def test_importing_the_room_is_cheap() -> None:
    heavy = ["pygit2", "pydantic", "typer", "rich", "cryptography", "psutil", "asyncio", "subprocess"]
    code = f"""import sys; before = set(sys.modules)
import relay_git.agents; print([m for m in {heavy!r} if m in sys.modules and m not in before])"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


@EVERY
def test_every_adapter_says_who_it_is(name: str) -> None:
    agent = AGENTS[name]
    assert agent.name == name
    assert agent.title
    assert agent.last_seen


# ---------------------------------------------------------------------- readiness


@REAL
def test_a_missing_program_is_said_with_how_to_install_it(name: str) -> None:
    unready = AGENTS[name].check({"PATH": "/nowhere", "HOME": "/nowhere"}, Permission.SANDBOX)
    assert isinstance(unready, Unready)
    assert "is not installed" in unready.reason
    assert unready.hint.startswith("npm install -g ")


@REAL
def test_an_agent_that_is_not_signed_in_is_said(name: str, env: dict[str, str]) -> None:
    if sys.platform == "darwin" and name == "claude":
        pytest.skip("the keychain is not ours to look into")
    unready = AGENTS[name].check(env, Permission.SANDBOX)
    assert isinstance(unready, Unready)
    assert "is not signed in" in unready.reason


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("claude", "ANTHROPIC_API_KEY"),
        ("claude", "ANTHROPIC_AUTH_TOKEN"),
        ("claude", "CLAUDE_CODE_OAUTH_TOKEN"),
        ("claude", "CLAUDE_CODE_USE_BEDROCK"),
        ("codex", "OPENAI_API_KEY"),
        ("codex", "CODEX_API_KEY"),
    ],
)
def test_a_credential_is_named_and_its_value_never_told(name: str, variable: str, env: dict[str, str]) -> None:
    ready = AGENTS[name].check({**env, variable: "sk-planted-secret"}, Permission.SANDBOX)
    assert isinstance(ready, Ready)
    assert variable in " ".join(ready.notes)
    assert "planted" not in repr(ready)


@pytest.mark.parametrize(
    ("name", "path", "text"),
    [
        ("claude", ".claude/.credentials.json", "{}"),
        ("claude", ".claude/settings.json", '{"apiKeyHelper": "/bin/key"}'),
        ("codex", ".codex/auth.json", "{}"),
        ("codex", ".codex/config.toml", 'model_provider = "mine"\n[model_providers.mine]\nenv_key = "MINE"\n'),
    ],
)
def test_a_login_on_disk_counts(name: str, path: str, text: str, env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / path).parent.mkdir()
    (tmp_path / path).write_text(text)
    assert isinstance(AGENTS[name].check(env, Permission.SANDBOX), Ready)


@pytest.mark.parametrize(("name", "variable", "file"), [
    ("claude", "CLAUDE_CONFIG_DIR", ".credentials.json"), ("codex", "CODEX_HOME", "auth.json")
])  # fmt: skip
def test_another_account_is_looked_for_where_it_lies(
    name: str, variable: str, file: str, env: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / file).write_text("{}")
    assert isinstance(AGENTS[name].check({**env, variable: str(tmp_path / "other")}, Permission.SANDBOX), Ready)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sandbox needs these programs on Linux only")
def test_claude_without_its_sandbox_names_both_ways_out(env: dict[str, str], bin_dir: Path) -> None:
    (bin_dir / "bwrap").unlink()
    (bin_dir / "rg").unlink()
    unready = AGENTS["claude"].check({**env, "ANTHROPIC_API_KEY": "x"}, Permission.SANDBOX)
    assert isinstance(unready, Unready)
    assert "bubblewrap, ripgrep" in unready.reason
    assert "apt install bubblewrap ripgrep" in unready.hint
    assert "git config relay.claude.permission full" in unready.hint


@REAL
@pytest.mark.parametrize("text", ["", "{", "[]", "\x00", "model_provider = 3\n[model_providers]\n3 = 4\n"])
def test_broken_settings_of_the_user_are_no_login_and_no_crash(
    name: str, text: str, env: dict[str, str], tmp_path: Path
) -> None:
    for path in (".claude/settings.json", ".codex/config.toml"):
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_text(text)
    assert AGENTS[name].check(env, Permission.SANDBOX)


# ---------------------------------------------------------------------- launch


@EVERY
@pytest.mark.parametrize("permission", list(Permission))
def test_the_prompt_goes_in_by_stdin_or_a_file_and_never_by_argv(
    name: str, permission: Permission, place: Place, env: dict[str, str]
) -> None:
    args = (place, PROMPT, Ready(Path("/opt/bin/tool")), permission, {**env, "IS_SANDBOX": "1"})
    launch = AGENTS[name].launch(*args)
    if isinstance(launch, Unsupported):
        assert permission is Permission.SANDBOX
        assert launch.reason
        return
    (words,) = (words for words in (launch.stdin, *launch.files.values()) if b"the 'work'" in words)
    assert words.startswith(b"-do the 'work'\x00? x")
    assert len(words) > 200_000
    assert not any("work'" in word for word in launch.argv)
    assert sum(map(len, launch.argv)) < 10_000
    assert launch.grants


def test_claude_gets_a_session_id_of_ours_and_its_settings_by_file(place: Place, env: dict[str, str]) -> None:
    launch = launched("claude", place, env)
    assert launch.argv == (
        "/opt/bin/tool", "-p", "--output-format", "stream-json", "--verbose", "--session-id", launch.native_id,
        "--permission-mode", "acceptEdits", "--settings", str(place.private_dir / "claude-settings.json"),
    )  # fmt: skip
    assert uuid.UUID(launch.native_id).version == 4
    assert list(launch.files) == ["claude-settings.json"]


def test_claudes_sandbox_must_start_and_cannot_be_left(place: Place, env: dict[str, str]) -> None:
    settings = json.loads(launched("claude", place, env).files["claude-settings.json"])
    sandbox, common = settings["sandbox"], place.common_dir
    assert {key: sandbox[key] for key in sandbox if key != "filesystem"} == {
        "enabled": True,
        "failIfUnavailable": True,
        "autoAllowBashIfSandboxed": True,
        "allowUnsandboxedCommands": False,
    }
    files = sandbox["filesystem"]
    assert str(common / "relay") in files["denyRead"]
    denied = {"relay", "hooks", "config", "packed-refs", "refs/heads/main", "refs/tags", "worktrees/s1/HEAD"}
    assert {str(common / name) for name in denied} <= set(files["denyWrite"])
    assert not {str(common / name) for name in ("objects", "refs", "logs")} & set(files["denyWrite"])
    assert str(place.git_dir) in files["allowWrite"]
    assert settings["permissions"]["deny"] == [f"Read(/{common}/relay/**)", f"Edit(/{common}/relay/**)"]


def test_a_private_folder_elsewhere_is_hidden_too(place: Place, env: dict[str, str], tmp_path: Path) -> None:
    away = Place(place.worktree, place.git_dir, place.common_dir, place.branch, tmp_path / "private (1)")
    settings = json.loads(launched("claude", away, env).files["claude-settings.json"])
    assert str(tmp_path / "private (1)") in settings["sandbox"]["filesystem"]["denyRead"]
    assert f"Read(/{tmp_path}/private \\(1\\)/**)" in settings["permissions"]["deny"]
    assert f'{toml_string(str(away.private_dir))}="deny"' in " ".join(launched("codex", away, env).argv)


@pytest.mark.parametrize("odd", ["re*po", "re[p]o", "re{p}o", "re\npo"])
def test_a_path_that_claude_would_take_for_a_pattern_is_refused(odd: str, tmp_path: Path, env: dict[str, str]) -> None:
    refused = AGENTS["claude"].launch(make_place(tmp_path / odd), "x", Ready(Path("/c")), Permission.SANDBOX, env)
    assert isinstance(refused, Unsupported)


@REAL
def test_without_the_folder_of_the_branches_nothing_is_started(name: str, place: Place, env: dict[str, str]) -> None:
    (place.common_dir / "refs/heads/relay").rmdir()
    refused = AGENTS[name].launch(place, "x", Ready(Path("/c")), Permission.SANDBOX, env)
    assert isinstance(refused, Unsupported)
    assert "does not exist" in refused.reason


def options(launch: Launch) -> dict[str, object]:
    """Codex's `-c` options as it reads them: each a dotted key and a TOML value."""
    pairs = [launch.argv[at + 1] for at, word in enumerate(launch.argv) if word == "-c"]
    return {key: tomllib.loads(f"v = {value}")["v"] for key, _, value in (pair.partition("=") for pair in pairs)}


@pytest.mark.parametrize("odd", ["repo", "we ird (x) 'ü", 'a"b\\c', "new\nline\ttab\x7f", "[a]{b}=#,"])
def test_codex_is_granted_what_a_commit_needs_at_any_path(odd: str, tmp_path: Path, env: dict[str, str]) -> None:
    place = make_place(tmp_path / odd)
    common, own = str(place.common_dir), str(place.git_dir)
    launch = launched("codex", place, env)
    assert launch.argv[:3] == ("/opt/bin/tool", "exec", "--json")
    assert launch.argv[-1] == "-"
    assert options(launch) == {
        "tools.update_plan.enabled": True,
        "approval_policy": "never",
        "default_permissions": "git-relay",
        "permissions.git-relay.filesystem": {
            ":root": "read",
            ":tmpdir": "write",
            ":slash_tmp": "write",
            ":workspace_roots": {".": "write"},
            own: "write",
            f"{common}/objects": "write",
            f"{common}/refs/heads/relay": "write",
            f"{common}/logs/refs/heads/relay": "write",
            f"{own}/HEAD": "read",
            f"{own}/commondir": "read",
            f"{own}/gitdir": "read",
            f"{own}/config.worktree": "read",
            f"{common}/objects/info": "read",
            f"{common}/relay": "deny",
        },
    }


def test_codex_keeps_what_the_user_said_of_temp_folders_and_network(place: Place, env: dict[str, str]) -> None:
    config = Path(env["HOME"]) / ".codex" / "config.toml"
    config.parent.mkdir()
    config.write_text(
        "[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\nnetwork_access = true\n"
    )
    said = options(launched("codex", place, env))
    files = said["permissions.git-relay.filesystem"]
    assert isinstance(files, dict)
    assert not {":tmpdir", ":slash_tmp"} & set(files)
    assert said["permissions.git-relay.network"] == {"enabled": True}


@given(st.text())
def test_any_text_survives_as_a_toml_string(value: str) -> None:
    clean = value.encode("utf-8", "replace").decode()
    assert tomllib.loads(f"v = {toml_string(clean)}")["v"] == clean


def test_full_permission_is_said_in_plain_words(place: Place, env: dict[str, str]) -> None:
    claude = launched("claude", place, {**env, "IS_SANDBOX": "1"}, Permission.FULL)
    codex = launched("codex", place, env, Permission.FULL)
    assert claude.argv[claude.argv.index("--permission-mode") + 1] == "bypassPermissions"
    assert "--dangerously-bypass-approvals-and-sandbox" in codex.argv
    assert all("sandbox" not in json.loads(data) for name, data in claude.files.items() if name.endswith(".json"))
    assert "no sandbox" in claude.grants[0]
    assert "no sandbox" in codex.grants[0]


def test_claude_as_root_is_refused_full_permission(
    place: Place, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    refused = AGENTS["claude"].launch(place, "x", Ready(Path("/c")), Permission.FULL, env)
    assert isinstance(refused, Unsupported)
    assert "IS_SANDBOX=1" in refused.reason
    assert isinstance(AGENTS["claude"].check({**env, "ANTHROPIC_API_KEY": "x"}, Permission.FULL), Unready)


# ---------------------------------------------------------------------- transcripts on disk


def test_transcripts_are_found_by_id(env: dict[str, str], tmp_path: Path) -> None:
    claude = tmp_path / ".claude/projects/-odd-name/11111111-2222-4333-8444-555555555555.jsonl"
    codex = tmp_path / ".codex/sessions/2026/11/29/rollout-2026-11-29T18-16-05-01a2.jsonl"
    demo = tmp_path / ".local/state/git-relay/demo-agent/sessions/d1.jsonl"
    for path in (claude, codex, demo):
        path.parent.mkdir(parents=True)
        path.write_text("")
    worktree = Path("/w")
    assert AGENTS["claude"].transcript("11111111-2222-4333-8444-555555555555", worktree, env) == claude
    assert AGENTS["codex"].transcript("01a2", worktree, env) == codex
    assert AGENTS["demo"].transcript("d1", worktree, env) == demo


@EVERY
@pytest.mark.parametrize("native_id", ["", "*", "../../x", "a/b", "x" * 500, "none-such"])
def test_an_id_that_names_no_transcript_finds_none(name: str, native_id: str, env: dict[str, str]) -> None:
    assert AGENTS[name].transcript(native_id, Path("/w"), env) is None


def test_the_demo_agent_says_everywhere_that_it_is_one(place: Place, env: dict[str, str]) -> None:
    agent = AGENTS["demo"]
    ready = agent.check(env, Permission.SANDBOX)
    assert isinstance(ready, Ready)
    assert agent.title == "demo agent (scripted, no model)"
    for words in (*ready.notes, *launched("demo", place, env).grants):
        assert re.search("demo|sandbox", words)
