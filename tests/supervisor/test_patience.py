"""Patience counts the time in which we were awake, and nothing else."""

from __future__ import annotations

import pytest

from relay_git.supervisor import patience
from relay_git.supervisor.patience import Patience


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(patience, "time", made)
    return made


def looks(waiting: Patience, clock: Clock, step: float, times: int) -> list[bool]:
    seen = []
    for _ in range(times):
        clock.now += step
        seen.append(waiting.is_over)
    return seen


def test_time_that_passes_between_looks_counts(clock) -> None:
    assert looks(Patience(2), clock, 0.5, 5) == [False, False, False, True, True]


def test_a_sleep_of_hours_counts_as_no_more_than_a_look(clock) -> None:
    waiting = Patience(3)
    assert looks(waiting, clock, 7200, 2) == [False, False]
    assert looks(waiting, clock, 0.5, 2) == [False, True]


def test_no_patience_at_all_is_over_at_once(clock) -> None:
    assert Patience(0).is_over
