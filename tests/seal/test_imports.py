"""The import rules bite: each of these wrong imports is refused by the very configuration that `make check` uses."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.seal.environment import ROOT

LINT = [
    sys.executable,
    "-c",
    "from importlinter.cli import lint_imports_command as run; run()",
    "--no-cache",
    "--no-logo",
]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "relay_git", tmp_path / "relay_git", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def lint(copy: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(LINT, cwd=copy, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("room", "line", "refused"),
    [
        ("errors", "import relay_git.cli", "relay_git.errors is not allowed to import relay_git.cli"),
        ("contract", "import relay_git.agents", "relay_git.contract is not allowed to import relay_git.agents"),
        ("agents", "import relay_git.contract", "relay_git.agents is not allowed to import relay_git.contract"),
        ("quota", "import relay_git.agents", "relay_git.quota is not allowed to import relay_git.agents"),
        ("agents", "import relay_git.quota", "relay_git.agents is not allowed to import relay_git.quota"),
        ("quota", "import relay_git.git", "relay_git.quota is not allowed to import relay_git.git"),
        ("ledger", "import relay_git.supervisor", "relay_git.ledger is not allowed to import relay_git.supervisor"),
        ("ledger", "import pygit2", "relay_git is not allowed to import pygit2"),
        ("contract", "import subprocess", "relay_git is not allowed to import subprocess"),
        ("supervisor", "import pty", "relay_git is not allowed to import pty"),
        ("ledger", "import rich", "relay_git is not allowed to import rich"),
    ],
)
def test_a_wrong_import_is_refused(copy: Path, room: str, line: str, refused: str) -> None:
    file = copy / "relay_git" / f"{room}.py"
    file = file if file.exists() else copy / "relay_git" / room / "__init__.py"
    file.write_text(f"{file.read_text()}\n{line}\n")
    done = lint(copy)
    assert done.returncode == 1
    assert refused in done.stdout


@pytest.mark.parametrize("room", ["pipeline"])
def test_a_room_that_comes_later_is_held_to_its_place(copy: Path, room: str) -> None:
    folder = copy / "relay_git" / room
    folder.mkdir(exist_ok=True)
    (folder / "__init__.py").write_text("import relay_git.cli\n")
    done = lint(copy)
    assert done.returncode == 1
    assert f"relay_git.{room} is not allowed to import relay_git.cli" in done.stdout


@pytest.mark.parametrize("call", ["os.execv('a', [])", "os.system('a')", "os.fork()", "os.chdir('a')"])
def test_other_ways_to_start_a_program_are_refused_by_the_linter(copy: Path, call: str) -> None:
    file = copy / "relay_git/ledger/bad.py"
    file.write_text(f"import os\n\n{call}\n")
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", "--output-format", "concise", str(file)]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "TID251" in done.stdout
