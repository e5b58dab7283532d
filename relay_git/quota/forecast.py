"""When a window runs dry, from the readings of its meter.

Promise: pure and total; without two readings that differ there is no forecast. The estimator is a burn rate that
returns to its mean: near the present the rate of the last minutes of *work* counts (a gap in the readings is idle time
and no slow work), far from it the rate of all the time that is known, nights included. `docs/quota.md` says why, and
`python -m bench forecast` how far it errs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median

from relay_git.quota.wallet import Sample, Window

MEMORY = 20 * 60.0  # seconds of work after which a reading counts e times less
PAUSE = 10 * 60.0  # a gap between readings longer than this is idle time, unless they are always so far apart
QUIET = 90.0  # a step longer than this was not made by one request after the other
PHASE = 15 * 60.0  # how long work goes on at one pace
STRETCH = 30 * 60.0  # of work, over which one pace is compared with the next
PERSISTS = 2 * 3600.0  # how long work goes on where nothing better is known
WIDTH = 2.0  # standard deviations to each side
METER = 0.01  # how far a meter is off: most tell whole percents
HORIZON = 40 * 86400.0


@dataclass(frozen=True, slots=True)
class Forecast:
    """How a window will go on.

    `per_hour` is the share that is used in an hour at the present pace, `mean` in all the time that is known, both as
    of `now`. `dry` is when the window is likely to be spent, `early` and `late` the range of it; each is None where
    that is not before the reset (or, without one, within `HORIZON`).
    """

    now: datetime
    per_hour: float
    mean: float
    dry: datetime | None
    early: datetime | None
    late: datetime | None

    @property
    def before_reset(self) -> bool:
        """Whether the window is likely to be spent before it begins anew."""
        return self.dry is not None


@dataclass(frozen=True, slots=True)
class _Burn:
    """Rates in shares a second, times in seconds.

    `unseen` is what was probably used since the last reading. `doubt` is the relative error of the pace, `runs` how
    many stretches of work were seen; `bursts` is the variance that a second adds by single requests, `swings` by
    phases of a different pace.
    """

    pace: float
    mean: float
    persists: float
    unseen: float
    idle: float
    doubt: float
    runs: int
    bursts: float
    swings: float

    def used_in(self, seconds: float) -> float:
        """The mean of what will have been used: the present pace fades, the mean stays."""
        fading = self.persists * -math.expm1(-seconds / self.persists)
        return self.unseen + self.mean * seconds + (self.pace - self.mean) * fading

    def error_in(self, seconds: float) -> float:
        """The standard deviation of that."""
        fading = self.persists * -math.expm1(-seconds / self.persists)
        sure = (self.doubt * self.pace * fading) ** 2 + (self.mean * (seconds - fading)) ** 2 / self.runs
        chance = self.bursts * (self.idle + seconds) + self.swings * max(0.0, seconds - PHASE)
        return math.sqrt(sure + chance + (self.doubt * self.unseen) ** 2 + METER**2)


def of(window: Window, now: datetime) -> Forecast | None:
    """How the window will go on from now; None where its readings do not tell, or it is spent."""
    burn = _burn(window, now)
    if burn is None or window.used >= 1.0:
        return None
    until = (window.resets_at - now).total_seconds() if window.resets_at is not None else HORIZON

    def when(width: float) -> datetime | None:
        seconds = _first(lambda s: burn.used_in(s) + width * burn.error_in(s) >= window.left, until)
        return now + timedelta(seconds=seconds) if seconds is not None else None

    return Forecast(now, burn.pace * 3600, burn.mean * 3600, when(0.0), when(WIDTH), when(-WIDTH))


def _burn(window: Window, now: datetime) -> _Burn | None:
    steps = [step for trail in window.trails for step in _steps(trail)]
    used = sum(share for _, share in steps)
    if used <= 0.0:
        return None
    pause = max(PAUSE, 2 * median(seconds for seconds, _ in steps))
    last = next(trail[-1].at for trail in reversed(window.trails) if trail)
    idle = max(0.0, (now - last).total_seconds())
    worked = sum(min(seconds, pause) for seconds, _ in steps)
    rate = used / max(1.0, worked)
    runs = 1 + sum(seconds > pause for seconds, _ in steps)
    mean = used / max(1.0, sum(seconds for seconds, _ in steps) + idle)
    pace, doubt = _pace(steps, pause)
    # Nobody works any more when no reading has come for longer than a pause.
    pace = mean + (pace - mean) * math.exp(-max(0.0, idle - pause) / MEMORY)
    return _Burn(
        pace,
        mean,
        (worked + PERSISTS) / runs,
        _unseen(steps) * min(idle, pause),
        min(idle, pause),
        doubt,
        runs,
        sum((share - rate * min(seconds, pause)) ** 2 for seconds, share in steps) / max(1.0, worked),
        _swings(steps, pause, rate),
    )


def _pace(steps: Sequence[tuple[float, float]], pause: float) -> tuple[float, float]:
    """The rate of the last work, and its relative error by how unevenly that work was done."""
    used = worked = age = 0.0
    weighed: list[tuple[float, float]] = []
    for seconds, share in reversed(steps):
        weight, work = math.exp(-age / MEMORY), min(seconds, pause)
        weighed.append((weight * share, weight * work))
        used += weight * share
        worked += weight * work
        age += work
    pace = used / max(1.0, worked)
    squares = sum((share - pace * work) ** 2 for share, work in weighed)
    return pace, math.sqrt(squares + METER**2) / used


def _unseen(steps: Sequence[tuple[float, float]]) -> float:
    """The rate at which the window was used while no reading came: by other sessions, or a meter that tells seldom."""
    long = [(seconds, share) for seconds, share in steps[-200:] if seconds > QUIET]
    return sum(share for _, share in long) / max(PAUSE, sum(seconds for seconds, _ in long))


def _swings(steps: Sequence[tuple[float, float]], pause: float, rate: float) -> float:
    """How much the use in stretches of work differs from the even one, as variance a second.

    Few stretches say little of how far the next may differ: until some hours were seen, by as much as the pace itself.
    """
    squares = worked = used = time = 0.0
    for seconds, share in steps:
        used += share
        time += min(seconds, pause)
        if time >= STRETCH:
            squares += (used - rate * time) ** 2
            worked += time
            used = time = 0.0
    return (squares + PERSISTS * rate**2 * STRETCH) / (worked + PERSISTS)


def _steps(trail: Sequence[Sample]) -> list[tuple[float, float]]:
    """How long each step of a meter took in seconds, and what was used in it; a meter that falls has used nothing."""
    steps, level = [], trail[0].used if trail else 0.0
    for before, after in pairwise(trail):
        share = max(0.0, after.used - level)
        level = max(level, after.used)
        steps.append(((after.at - before.at).total_seconds(), share))
    return steps


def _first(holds: Callable[[float], bool], until: float) -> float | None:
    """The first moment at which something holds, in seconds, to a part in a thousand; None where not before `until`."""
    after = 0.0
    seconds = 1.0
    while not holds(seconds):
        if seconds >= until:
            return None
        after, seconds = seconds, min(seconds * 1.25, until)
    while seconds - after > 1.0 and seconds - after > after / 1000:
        middle = (after + seconds) / 2
        after, seconds = (after, middle) if holds(middle) else (middle, seconds)
    return seconds
