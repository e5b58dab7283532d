"""The power goes off, at every moment that matters of a whole handoff: what was announced is there, and it goes on."""

from __future__ import annotations

import subprocess

import pytest

from tests.chaos.power import PROGRAM
from tests.chaos.test_cut_anywhere import PARTS, SHARE, company

__all__ = ["company"]  # the fixture


def may_trace() -> bool:
    """Whether strace is here and may be used."""
    return PROGRAM is not None and subprocess.run([PROGRAM, "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("part", SHARE)
def test_of_what_was_not_synced_when_the_power_went_nothing_that_was_announced_is_missed(company, part) -> None:
    if not may_trace():
        pytest.skip("what is written and synced is seen by strace, which is not here or may not trace")
    results = company.play(mode="power", ends="limit", part=part, parts=PARTS)
    assert len(results) > 40
    for result in results:
        assert result["wrong"] == [], f"{result['job']['at']}: {result['wrong']}\n{result['said']}"
