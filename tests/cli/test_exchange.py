"""`export` and `import` as processes, over contracts that the program's own code has signed; no agent runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

THEIR_KEY = b"interop-vector-key-0123456789abc"


ROOT = Path(__file__).parents[2]
MAKE = """
import sys
from pathlib import Path
from bench.place import repository
from bench.sessions import write_sessions
write_sessions(*repository(Path(sys.argv[1]), 1), sessions=1, contracts=1)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one session and its contract."""
    folder = tmp_path_factory.mktemp("exchange") / "repo"
    subprocess.run([sys.executable, "-c", MAKE, folder], check=True, cwd=ROOT)
    return folder


@pytest.fixture(scope="module")
def contract(place: Path) -> dict[str, Any]:
    """That contract, as `show` prints it."""
    shown: dict[str, Any] = json.loads(relay(place, "show", "--json").stdout)["contract"]
    return shown


def relay(cwd: Path, *argv: str | Path, stdin: bytes = b"", **env: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "relay_git", *argv]
    given = os.environ | {name: value for name, value in env.items() if value}
    return subprocess.run(command, input=stdin, capture_output=True, check=False, cwd=cwd, env=given)


@pytest.mark.parametrize("form", ["dsse", "relay-v2"])
def test_what_is_exported_is_imported_with_its_key_and_refused_once_changed(
    place: Path, contract: dict[str, Any], form: str
) -> None:
    out = relay(place, "export", "--format", form)
    assert out.returncode == 0, out.stderr
    back = relay(place, "import", "-", "--json", stdin=out.stdout)
    assert back.returncode == 0, back.stderr
    assert json.loads(back.stdout)["format"] == form
    goal = contract["taskGoal"]
    assert json.loads(back.stdout)["contract"]["taskGoal"] == goal
    position = out.stdout.index(b'"payload": "') + 400 if form == "dsse" else out.stdout.index(goal[:8].encode())
    changed = out.stdout[:position] + bytes([out.stdout[position] ^ 1]) + out.stdout[position + 1 :]
    refused = relay(place, "import", "-", stdin=changed)
    assert (refused.returncode, refused.stdout) == (3, b"")
    assert b"hint: " in refused.stderr


def test_a_key_from_a_file_signs_and_verifies_and_another_does_not(place: Path, tmp_path: Path) -> None:
    key, other, file = tmp_path / "key", tmp_path / "other", tmp_path / "contract.json"
    key.write_bytes(THEIR_KEY)
    other.write_bytes(THEIR_KEY + b"\n")
    file.write_bytes(relay(place, "export", "--format", "relay-v2", "--key-file", key).stdout)
    shown = relay(tmp_path, "import", file, "--key-file", key)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith(b"# git relay brief: a task taken over from another tool\n")
    assert relay(tmp_path, "import", file, "--key-file", other).returncode == 3
    assert relay(place, "import", file).returncode == 3


def test_our_key_file_verifies_what_our_key_has_signed_and_the_other_way_round(place: Path) -> None:
    key = place / ".git" / "relay" / "key"
    for options in ((), ("--key-file", key)):
        out = relay(place, "export", "--format", "relay-v2", *options).stdout
        assert relay(place, "import", "-", stdin=out).returncode == 0
        assert relay(place, "import", "-", "--key-file", key, stdin=out).returncode == 0


def test_what_makes_no_sense_is_refused_with_a_hint(place: Path, tmp_path: Path) -> None:
    assert relay(place, "export", "--format", "smoke").returncode == 2
    assert relay(place, "export", "--key-file", tmp_path / "missing").returncode == 2
    assert relay(place, "import", tmp_path / "missing").returncode == 2
    junk = relay(place, "import", "-", stdin=b"\x00\xff")
    assert junk.returncode == 3
    assert b"is not a contract" in junk.stderr


def test_the_markdown_is_the_brief_and_evidence_is_shown_whole(place: Path, contract: dict[str, Any]) -> None:
    assert relay(place, "export", "--format", "md").stdout == relay(place, "show").stdout
    piece = contract["evidence"][0]
    assert json.loads(relay(place, "show", "--evidence", piece["id"], "--json").stdout) == piece
    missing = relay(place, "show", "--evidence", "e999")
    assert missing.returncode == 2
    assert b"has no evidence e999" in missing.stderr


def test_a_note_is_kept_without_secrets_where_its_writer_may_write(place: Path, contract: dict[str, Any]) -> None:
    secret = "gsk" + "_" + "Zq7Rk2Lm9Xw4Tn6Vb8Yc3Hd5Jf1Gp0Sa"
    refused = relay(place, "note", "gossip", "x")
    assert refused.returncode == 2
    assert b"one of: decision" in refused.stderr
    gone = relay(place, "note", "question", "x")
    assert b"has no worktree any more" in gone.stderr
    session = contract["sessionId"]
    folder = place / ".git" / "worktrees" / session
    folder.mkdir(parents=True)
    for inside, file in ((session, folder / "relay" / "notes"), ("", place / ".git/relay/spool" / session / "notes")):
        out = relay(place, "note", "constraint", f"never show {secret}", RELAY_SESSION=inside)
        assert out.returncode == 0, out.stderr
        kept = json.loads(file.read_bytes())["text"]
        assert re.fullmatch(r"never show \[redacted:groq-key#[0-9a-f]{8}\]", kept)
        assert file.stat().st_mode & 0o777 == 0o600


def test_lint_prints_a_score_and_its_reasons(place: Path, contract: dict[str, Any]) -> None:
    found = json.loads(relay(place, "lint", "--json").stdout)
    assert found["contractId"] == contract["contractId"]
    assert 0 < found["score"] <= 100
    assert {"rule", "weight", "met", "why"} == set(found["findings"][0])
