"""A disk that is full: after so many KiB, one write after the other fails, and none of them may cost anything."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.scene import TAKE_OVER, TO_THE_LIMIT

# With git 2.39 the whole session needs 280 KiB. Each level meets another write: key, exclude file, journal, worktree,
# hook, index, snapshot, contract, note, brief. All of them: seq 0 8 288.
LEVELS = [(0, 24, 104, 160), (8, 64, 144, 208)]
HINT = "hint: free some disk space (df -h .), then run the command again"


def _may_mount() -> bool:
    done = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False)
    return os.getuid() == 0 and done.returncode == 0


@pytest.mark.parametrize("levels", LEVELS, ids=str)
def test_a_full_disk_is_named_costs_nothing_and_the_session_goes_on_once_there_is_room(tmp_path, demo, levels) -> None:
    if not _may_mount():
        pytest.skip("a small disk needs a mount namespace, which only root can make here")
    demo.plays(TO_THE_LIMIT, TAKE_OVER)
    driver = Path(__file__).with_name("full_disk.py")
    argv = ["unshare", "--mount", sys.executable, str(driver), str(tmp_path), *map(str, levels)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    met = [json.loads(line) for line in done.stdout.splitlines()]
    assert [m["level"] for m in met] == list(levels)
    assert sum(m["rc"] == 1 for m in met) >= len(levels) - 1  # the last may have had room enough
    for m in met:
        assert (m["stdout"], m["untouched"], m["still untouched"]) == ("", True, True), m
        if m["rc"] != 0:
            assert m["rc"] == 1, m
            assert "No space left on device" in m["stderr"], m
            assert m["stderr"].splitlines()[-1] == HINT, m
            assert "Traceback" not in m["stderr"]
        assert m["left"] == [] or m["sessions"], m  # either nothing is left, or a session that can go on
        assert m["again"]["rc"] == 0, m
        assert m["verified"] == 0, m
        assert set(m["states"]) == {"DONE"}, m
