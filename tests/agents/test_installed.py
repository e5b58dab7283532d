"""What is installed of a tool is found by looking at files: no program is started, and no secret is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from relay_git.agents import AGENTS, TOOLS
from relay_git.agents.agent import Permission, Ready, Unsupported
from relay_git.agents.installed import abilities, installed, is_newer

SECRET = "MADE-UP-SECRET-7f3a"


def program(path: Path) -> Path:
    """A program that leaves a trace if anybody starts it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n: > {path}.was-started\n")
    path.chmod(0o755)
    return path


def package(folder: Path, name: str, version: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text(json.dumps({"name": name, "version": version}))


def on_path(tmp_path: Path, name: str, target: Path) -> dict[str, str]:
    (tmp_path / "bin").mkdir(exist_ok=True)
    (tmp_path / "bin" / name).symlink_to(target)
    return {"PATH": str(tmp_path / "bin")}


def npm(tmp_path: Path) -> Path:
    package(tmp_path / "node_modules/@openai/codex", "@openai/codex", "0.172.1")
    return program(tmp_path / "node_modules/@openai/codex/bin/codex.js")


def npm_of_one_platform(tmp_path: Path) -> Path:
    package(tmp_path / "node_modules/@openai/codex-linux-x64", "@openai/codex-linux-x64", "0.172.1")
    return program(tmp_path / "node_modules/@openai/codex-linux-x64/vendor/bin/codex")


def cellar(tmp_path: Path) -> Path:
    return program(tmp_path / "Cellar/codex/0.172.1/bin/codex")


def native(tmp_path: Path) -> Path:
    return program(tmp_path / "share/codex/versions/0.172.1")


def within_somebody_s_project(tmp_path: Path) -> Path:
    package(tmp_path / "project", "my-project", "9.9.9")
    return program(tmp_path / "project/tools/codex")


def torn(tmp_path: Path) -> Path:
    (tmp_path / "package.json").write_text('{"name": "@openai/codex", "version": ')
    return program(tmp_path / "tools/codex")


@pytest.mark.parametrize(
    ("layout", "version"),
    [
        (npm, "0.172.1"),
        (npm_of_one_platform, "0.172.1"),
        (cellar, "0.172.1"),
        (native, "0.172.1"),
        (within_somebody_s_project, ""),
        (torn, ""),
    ],
)
def test_a_version_is_found_beside_the_program_or_is_unknown(tmp_path: Path, layout, version: str) -> None:
    target = layout(tmp_path)
    found = installed("codex", on_path(tmp_path, "codex", target))
    assert found is not None
    assert (found.program, found.version) == (tmp_path / "bin/codex", version)
    assert not Path(f"{target}.was-started").exists()


def test_a_python_tool_is_in_the_environment_of_its_script(tmp_path: Path) -> None:
    target = program(tmp_path / "venv/bin/aider")
    site = tmp_path / "venv/lib/python3.12/site-packages"
    for name in ("aider_chat-0.86.2.dist-info", "other-7.0.0.dist-info"):
        (site / name).mkdir(parents=True)
    found = installed("aider", on_path(tmp_path, "aider", target))
    assert found is not None
    assert found.version == "0.86.2"


def test_what_is_not_on_path_is_not_installed(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "codex").symlink_to("codex")  # a circle
    assert {name: installed(name, {"PATH": str(tmp_path / "bin")}) for name in TOOLS} == dict.fromkeys(TOOLS)


@pytest.mark.parametrize(
    ("version", "verified", "newer"),
    [
        ("2.1.333", "2.1.332", True),
        ("2.10.0", "2.9.9", True),
        ("2.1.332", "2.1.332", False),
        ("2.1.332-beta.9", "2.1.332", False),
        ("2.1.0", "2.1.332", False),
        ("", "2.1.332", False),
        ("1.0.0", "", False),
        ("nonsense", "1.0.0", False),
    ],
)
def test_newer_is_told_by_numbers_and_never_guessed(version: str, verified: str, newer: bool) -> None:
    assert is_newer(version, verified) is newer


LOGINS = {
    "claude": (".claude/.credentials.json", "ANTHROPIC_API_KEY"),
    "codex": (".codex/auth.json", "OPENAI_API_KEY"),
    "opencode": (".local/share/opencode/auth.json", "OPENAI_API_KEY"),
    "gemini": (".gemini/oauth_creds.json", "GEMINI_API_KEY"),
    "qwen": (".qwen/oauth_creds.json", "OPENAI_API_KEY"),
    "copilot": (".copilot/config.json", "GH_TOKEN"),
    "cline": (".cline/data/settings/providers.json", ""),
    "continue": (".continue/auth.json", "CONTINUE_API_KEY"),
    "aider": (".aider.conf.yml", "OPENAI_API_KEY"),
}


WAYS = [
    (name, by)
    for name, (_, variable) in LOGINS.items()
    for by in ("a file", "a variable")
    if variable or by == "a file"
]


@pytest.mark.parametrize(("name", "by"), WAYS)
def test_who_is_signed_in_is_told_by_what_without_reading_it(tmp_path: Path, name: str, by: str) -> None:
    file, variable = LOGINS[name]
    env = on_path(tmp_path, {"continue": "cn"}.get(name, name), program(tmp_path / "tools" / name))
    env |= {"HOME": str(tmp_path), "IS_SANDBOX": "1"}
    verdict = AGENTS[name].check(env, Permission.FULL)
    assert not isinstance(verdict, Ready)
    if by == "a file":
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(SECRET)
        (tmp_path / file).chmod(0)
    else:
        env[variable] = SECRET
    verdict = AGENTS[name].check(env, Permission.FULL)
    assert isinstance(verdict, Ready), verdict
    assert (file if by == "a file" else variable) in verdict.evidence
    assert SECRET not in repr(verdict)


@pytest.mark.parametrize("name", TOOLS)
def test_what_a_tool_cannot_do_has_a_reason(name: str) -> None:
    can = abilities(TOOLS[name])
    assert can["read"] is None
    assert (can["start"] is None) is (name in AGENTS)
    assert all(lack.reason for lack in can.values() if isinstance(lack, Unsupported))
