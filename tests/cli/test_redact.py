"""`git relay redact`: what would be taken out, for a user who doubts a rule."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.seal.repo import Repo

SECRET = "ghp" + "_" + "Zq7Rk2Lm9Xw4Tn6Vb8Yc3Hd5Jf1Gp0Sa" + "1234"


def redact(said: str, *options: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "relay_git", "redact", *options]
    return subprocess.run(argv, input=said, capture_output=True, text=True, check=False, cwd=cwd)


def test_the_text_comes_back_without_its_secrets_and_they_are_counted(tmp_path: Path) -> None:
    out = redact(f"token {SECRET}, and the rest\n", cwd=tmp_path)
    assert (out.returncode, out.stdout) == (0, "token [redacted:github-token], and the rest\n")
    assert out.stderr == "taken out: 1 github-token\n"
    assert redact("nothing\n", cwd=tmp_path).stderr == "nothing looks like a secret\n"
    found = json.loads(redact(SECRET, "--json", cwd=tmp_path).stdout)
    assert found == {"text": "[redacted:github-token]", "counts": {"github-token": 1}}


def test_lines_of_json_come_back_one_by_one_with_their_ids(tmp_path: Path) -> None:
    said = "".join(json.dumps({"id": n, "text": text}) + "\n" for n, text in ((1, f"a {SECRET}"), ("two", "b\nc")))
    lines = [json.loads(line) for line in redact(said, "--jsonl", cwd=tmp_path).stdout.splitlines()]
    assert lines == [
        {"id": 1, "text": "a [redacted:github-token]", "counts": {"github-token": 1}},
        {"id": "two", "text": "b\nc", "counts": {}},
    ]
    out = redact('{"id": 1}\n', "--jsonl", cwd=tmp_path)
    assert out.returncode == 2
    assert "line 1 is not an object with a text" in out.stderr


def test_what_the_repository_allows_stays(tmp_path: Path) -> None:
    repo = Repo(tmp_path)
    repo.git("init", "-q")
    repo.git("config", "--add", "relay.redact.allow", "never-this")
    repo.git("config", "--add", "relay.redact.allow", "ghp_Zq7*")
    assert redact(SECRET, cwd=tmp_path).stdout == SECRET
