"""`git relay agents`, and what `doctor` says of a tool that is newer than what git relay was verified with."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from relay_git.agents import AGENTS, TOOLS
from tests.agents.test_installed import SECRET, package, program


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A codex on PATH that is a year younger than the one that is known, and opencode as it is known."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, spec, version in (
        ("codex", "@openai/codex", "9.0.0"),
        ("opencode", "opencode-ai", AGENTS["opencode"].last_seen),
    ):
        package(tmp_path / name, spec, version)
        (folder / name).symlink_to(program(tmp_path / name / "bin" / name))
    return {"PATH": f"{folder}:{os.environ['PATH']}", "OPENAI_API_KEY": SECRET}


def test_every_tool_is_listed_with_what_can_be_known_of_it(tmp_path: Path, relay, env) -> None:
    ran = relay("agents", "--json", cwd=tmp_path, env=env)  # no repository is needed
    assert ran.rc == 0, ran.stderr
    rows = {row["agent"]: row for row in json.loads(ran.stdout)["agents"]}
    assert set(rows) == set(TOOLS)
    codex = rows["codex"]
    assert (codex["installed"], codex["version"], codex["newerThanVerified"]) == (True, "9.0.0", True)
    assert codex["signedInBy"] == "OPENAI_API_KEY is set"
    assert rows["opencode"]["newerThanVerified"] is False
    assert rows["opencode"]["ready"]["full"]["ready"] is True
    assert "relay.opencode.permission full" in rows["opencode"]["ready"]["sandbox"]["hint"]
    assert rows["opencode"]["supports"]["sandbox"]["reason"].startswith("opencode has no sandbox")
    assert rows["cursor"]["supports"]["start"]["supported"] is False
    assert (rows["codex"]["accounts"], rows["gemini"]["accounts"]) == (["default"], [])
    assert rows["codex"]["supports"]["resume"] == {"supported": True}
    assert "only at a terminal" in rows["cline"]["supports"]["resume"]["reason"]
    assert (rows["codex"]["toldBy"], rows["cursor"]["toldBy"]) == ("the prompt on its standard input", None)
    assert rows["gemini"]["installed"] is False
    assert SECRET not in ran.stdout
    assert not list(tmp_path.rglob("*.was-started"))


def test_the_table_names_the_newer_one(tmp_path: Path, relay, env) -> None:
    shown = relay("agents", cwd=tmp_path, env=env).stdout
    (codex,) = [line for line in shown.split("\n") if line.startswith("codex ")]
    assert "9.0.0 (newer)" in codex
    assert "  default  " in codex
    assert "opencode: no sandbox: opencode has no sandbox" in shown
    assert SECRET not in shown


def test_doctor_warns_of_a_tool_that_is_newer_than_what_was_verified(repo, relay, env) -> None:
    found = json.loads(relay("doctor", "--json", cwd=repo.path, env=env).stdout)["findings"]
    (newer,) = [f for f in found if f["check"].endswith(" version")]
    assert (newer["check"], newer["verdict"]) == ("codex version", "note")
    assert "9.0.0 is newer than" in newer["text"]


def test_the_accounts_that_were_added_stand_beside_the_tools_own_login(tmp_path: Path, relay, env) -> None:
    added = relay("accounts", "add", "codex", "work", "--config-dir", str(tmp_path / "work"), cwd=tmp_path, env=env)
    assert added.rc == 0, added.stderr
    rows = json.loads(relay("agents", "--json", cwd=tmp_path, env=env).stdout)["agents"]
    assert {row["agent"]: row["accounts"] for row in rows}["codex"] == ["default", "work"]
