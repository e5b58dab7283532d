"""The command as somebody whom file modes bind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Ran

_BARE = ["setpriv", "--securebits=+noroot", "--inh-caps=-all", "--bounding-set=-all"]


def as_plain_owner(*args: str | Path, cwd: Path) -> Ran:
    """Run the command as the owner of the files and nothing more: where we are root, without root's capabilities."""
    argv = without_privileges([sys.executable, "-m", "relay_git", *map(str, args)])
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False)
    return Ran(done.returncode, done.stdout, done.stderr)


def without_privileges(argv: list[str]) -> list[str]:
    """The command line that runs `argv` so; skips the test where that cannot be."""
    if os.getuid() != 0:
        return argv
    try:
        subprocess.run([*_BARE, "true"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("runs as root, and setpriv cannot take root's capabilities away here")
    return [*_BARE, *argv]
