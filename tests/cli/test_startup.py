"""What a command that only reads loads before it can answer."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.seal.environment import ROOT

LOADED = """
import sys
sys.path.insert(0, sys.argv[1])
from relay_git.cli import run
code = run(sys.argv[2:])
print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.parametrize("command", [("status",), ("status", "--json"), ("status", "--all")])
def test_status_loads_nothing_that_only_a_run_needs(repo, command):
    done = subprocess.run(
        [sys.executable, "-c", LOADED, str(ROOT), *command], cwd=repo.path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    loaded = set(done.stderr.splitlines()[-1].split())
    assert "pygit2" in loaded
    assert not loaded & {"pydantic", "cryptography", "psutil", "filelock", "rich", "click"}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("status", "--wrong"), "hint: git relay status -h"),
        (("wrong",), "hint: git relay -h"),
        (("accept",), "hint: git relay accept -h"),
        (("start", "- a task"), "hint: git relay start -h; a task that begins with -"),
    ],
)
def test_a_wrong_command_line_is_usage_and_no_bug(relay, repo, args, said):
    done = relay(*args, cwd=repo.path)
    assert done.rc == 2
    assert said in done.stderr


def test_without_a_command_the_help_is_shown(relay, repo):
    done = relay(cwd=repo.path)
    assert (done.rc, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: git relay ")
