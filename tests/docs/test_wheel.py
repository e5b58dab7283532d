"""What is installed has all that it needs beside the code."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from tests.seal.environment import ROOT


def test_the_wheel_holds_the_hook_the_manual_page_and_the_licence(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    names = zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist()
    for wanted in (
        "relay_git/hooks/post-commit",
        "relay_git/hooks/status-line",
        "share/man/man1/git-relay.1",
        "licenses/LICENSE",
    ):
        assert any(name.endswith(wanted) for name in names), wanted
    assert not any(name.startswith(("tests/", "tools/", "bench/")) for name in names)
