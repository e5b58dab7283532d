"""`git relay accounts`: add, list, log in, remove."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SECRET = "sk-test-MADE-UP-not-a-key"
LOGIN = """#!/bin/sh
printf '%s\\n' "$*" "$CLAUDE_CONFIG_DIR" "${ANTHROPIC_API_KEY-none}" > "$HOME/asked"
touch "$CLAUDE_CONFIG_DIR/.credentials.json"
"""


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "claude").write_text(LOGIN)
    (programs / "claude").chmod(0o755)
    (tmp_path / "home").mkdir()
    return {
        "HOME": str(tmp_path / "home"),
        "PATH": f"{programs}:{os.environ['PATH']}",
        "WORK_KEY": SECRET,
        "IS_SANDBOX": "1",  # Claude Code asks root for it
        "ANTHROPIC_API_KEY": "usual",
    }


def accounts(env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "relay_git", "accounts", *words]
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=False)


def test_an_account_is_added_signed_in_shown_and_forgotten(env, tmp_path) -> None:
    added = accounts(env, "add", "claude", "work", "--config-dir", str(tmp_path / "work"))
    assert (added.returncode, added.stdout) == (0, f"claude:work: {tmp_path / 'work'}\n")
    assert "git relay accounts login claude:work" in added.stderr
    assert accounts(env, "login", "claude:work").returncode == 0
    assert (tmp_path / "home" / "asked").read_text() == f"auth login\n{tmp_path / 'work'}\nnone\n"
    (shown,) = json.loads(accounts(env, "list", "--json").stdout)["accounts"]
    assert shown == {
        "account": "claude:work",
        "agent": "claude",
        "label": "work",
        "configDir": str(tmp_path / "work"),
        "apiKeyEnv": None,
        "keyring": None,
        "signedIn": f"{tmp_path / 'work' / '.credentials.json'} is there",
    }
    removed = accounts(env, "remove", "claude:work")
    assert removed.returncode == 0
    assert (tmp_path / "work" / ".credentials.json").exists()
    assert "no account has a label" in accounts(env, "list").stdout


def test_a_key_is_shown_by_its_name_alone(env, tmp_path) -> None:
    assert accounts(env, "add", "claude", "w", "--config-dir", str(tmp_path / "w"), "--api-key-env", "WORK_KEY").stdout
    said = [accounts(env, "list"), accounts(env, "list", "--json")]
    assert "$WORK_KEY" in said[0].stdout
    assert "ANTHROPIC_API_KEY is set" in said[0].stdout
    kept = (tmp_path / "home" / ".config" / "git-relay" / "accounts.json").read_text()
    assert not any(SECRET in text for text in (kept, *(out.stdout + out.stderr for out in said)))


def test_a_key_that_is_given_for_its_name_is_refused_and_not_repeated(env, tmp_path) -> None:
    out = accounts(env, "add", "claude", "w", "--config-dir", str(tmp_path / "w"), "--api-key-env", SECRET)
    assert (out.returncode, SECRET in out.stdout + out.stderr) == (2, False)
    assert not (tmp_path / "w").exists()


def test_a_file_that_is_torn_is_told_with_what_to_do(env, tmp_path) -> None:
    accounts(env, "add", "claude", "w", "--config-dir", str(tmp_path / "w"))
    file = tmp_path / "home" / ".config" / "git-relay" / "accounts.json"
    file.write_bytes(file.read_bytes()[:-20])
    for words in (["list"], ["remove", "claude:w"], ["login", "claude:w"]):
        out = accounts(env, *words)
        assert (out.returncode, out.stdout) == (1, "")
        assert f"hint: look at it, or: mv {file} {file}.old" in out.stderr
