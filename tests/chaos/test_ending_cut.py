"""`land` and `drop`, killed at every act of theirs and of git's: typed again, all is as if they had not been."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.chaos.test_cut_anywhere import PARTS, SHARE
from tests.seal.environment import ROOT


@pytest.mark.parametrize(
    ("words", "cuts", "within"),
    [
        ("land --merge", 30, 10),
        ("land --squash", 30, 8),
        ("land --rebase", 30, 10),
        ("drop --force", 40, 0),
    ],
)
@pytest.mark.parametrize("part", SHARE)
def test_an_end_that_is_cut_at_any_act_comes_to_the_same(tmp_path, words, cuts, within, part) -> None:
    argv = [sys.executable, "-m", "tests.chaos.ending", tmp_path, f"{part}/{PARTS}", *words.split()]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout)
    assert told["wrong"] == []
    assert told["cuts"] >= cuts
    assert told["within git"] >= within
