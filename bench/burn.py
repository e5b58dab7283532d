"""Made-up burn of one account, request by request, and what a meter shows of it.

The truth is made from when each request was answered and what it cost, by whom, with breaks, nights and resets. It
knows nothing of any forecast; the meter shows it rounded, late, noisy, with gaps and with zeros.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random

from relay_git.quota.entry import HEADERS
from relay_git.session import QuotaReading

START = datetime(2026, 3, 2, 7, tzinfo=UTC)  # a Monday
MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
Request = tuple[float, float]  # when it ends, in seconds, and the share of the window that it costs


@dataclass
class Meter:
    """What of the truth is shown, and when."""

    step: float = 0.01
    noise: float = 0.0
    zeros: float = 0.0
    every: float = 0.0  # seconds between two readings at least
    lost: float = 0.0


@dataclass
class Trace:
    """One account over time: what each request cost in truth, and which ones are our own and so bring a reading."""

    length: float
    resets: list[float]
    requests: list[tuple[float, float, bool]]
    meter: Meter
    times: list[float] = field(default_factory=list)
    sums: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.requests.sort()
        total = 0.0
        for at, cost, _ in self.requests:
            total += cost
            self.times.append(at)
            self.sums.append(total)

    def spent(self, start: float, until: float) -> float:
        """The share that was used from `start` (exclusive) to `until` (inclusive)."""
        a, b = bisect_right(self.times, start), bisect_right(self.times, until)
        return (self.sums[b - 1] if b else 0.0) - (self.sums[a - 1] if a else 0.0)

    def used(self, at: float) -> float:
        return self.spent(self.began(at), at)

    def began(self, at: float) -> float:
        index = bisect_right(self.resets, at)
        return self.resets[index - 1] if index else 0.0

    def dry(self, at: float) -> float | None:
        """When the window that is open at `at` is spent in truth; None where it is not before its reset."""
        start = self.began(at)
        end = next((r for r in self.resets if r > at), math.inf)
        first = bisect_right(self.times, start)
        base = self.sums[first - 1] if first else 0.0
        index = bisect_left(self.sums, base + 1.0, lo=first)
        return self.times[index] if index < len(self.times) and self.times[index] < end else None


def work(rng: Random, begin: float, end: float, per_hour: float, wild: float) -> Iterator[Request]:
    """One agent at work: a request after the other, each of a cost of its own; `wild` is how uneven they are."""
    pause = rng.uniform(8, 30)
    at = begin + rng.expovariate(1 / pause)
    while at < end:
        yield at, per_hour / HOUR * pause * rng.lognormvariate(-wild * wild / 2, wild)
        at += rng.expovariate(1 / pause) * 0.8 + 0.2 * pause


def bursts(rng: Random, begin: float, end: float, per_hour: float) -> Iterator[Request]:
    """Phases of very different pace, with breaks between."""
    at = begin
    while at < end:
        length = rng.expovariate(1 / (12 * MINUTE)) + MINUTE
        pace = rng.choice((0.0, 0.3, 0.6, 1.0, 1.4, 2.2))
        if pace:
            yield from work(rng, at, min(end, at + length), per_hour * pace, 0.8)
        at += length


def busy(rng: Random, begin: float, end: float, per_hour: float) -> Iterator[Request]:
    """An agent that is left to itself: work without long breaks, and commands that take a few minutes."""
    at = begin
    while at < end:
        length = rng.expovariate(1 / (8 * MINUTE)) + MINUTE
        yield from work(rng, at, at + length, per_hour * rng.choice((0.6, 1.0, 1.5)), 0.8)
        at += length + rng.uniform(0, 5) * MINUTE


def steady(rng: Random) -> Trace:
    return _trace(rng, 5 * HOUR, [work(rng, 0, 5 * HOUR, rng.uniform(0.15, 0.8), 0.5)])


def bursty(rng: Random) -> Trace:
    return _trace(rng, 5 * HOUR, [bursts(rng, 0, 10 * HOUR, rng.uniform(0.25, 0.65))])


def nights(rng: Random) -> Trace:
    """A week's window, worked at on most days, and at no night."""
    per_hour, runs = rng.uniform(0.025, 0.08), []
    for day in range(7):
        at = day * DAY + rng.uniform(0, 3) * HOUR
        while at < day * DAY + 11 * HOUR and (day % 7 < 5 or rng.random() < 0.2):
            length = rng.uniform(0.5, 3.5) * HOUR
            runs.append(bursts(rng, at, at + length, per_hour))
            at += length + rng.uniform(0.3, 2) * HOUR
    return _trace(rng, 7 * DAY, runs)


def two_sessions(rng: Random) -> Trace:
    """Ours, and another of which the meter tells only when we ask for something ourselves."""
    begin = rng.uniform(0, 2 * HOUR)
    other = bursts(rng, begin, begin + rng.uniform(0.5, 6) * HOUR, rng.uniform(0.15, 0.6))
    return _trace(rng, 5 * HOUR, [busy(rng, 0, 10 * HOUR, rng.uniform(0.1, 0.4))], [other])


def resets(rng: Random) -> Trace:
    """Work over several windows, of which some begin anew early."""
    trace = _trace(rng, 5 * HOUR, [bursts(rng, 0, 20 * HOUR, rng.uniform(0.2, 0.65))])
    at, found = rng.uniform(0.3, 4) * HOUR, []
    while at < 20 * HOUR:
        found.append(at)
        at += 5 * HOUR * (rng.uniform(0.3, 0.9) if rng.random() < 0.15 else 1.0)
    trace.resets = found
    return trace


def noisy(rng: Random) -> Trace:
    trace = bursty(rng) if rng.random() < 0.5 else steady(rng)
    trace.meter = Meter(0.01, rng.uniform(0.003, 0.01), rng.uniform(0, 0.05), rng.choice((0, 0, 120)), 0.1)
    return trace


def sparse(rng: Random) -> Trace:
    """A tool that shows its meter only now and then."""
    trace = bursty(rng) if rng.random() < 0.5 else steady(rng)
    trace.meter.every = rng.uniform(3, 8) * MINUTE
    return trace


KINDS: dict[str, Callable[[Random], Trace]] = {
    "steady": steady,
    "bursty": bursty,
    "idle nights": nights,
    "two sessions": two_sessions,
    "resets": resets,
    "noisy meter": noisy,
    "sparse meter": sparse,
}


def _trace(rng: Random, length: float, own: list[Iterator[Request]], others: Iterable[Iterator[Request]] = ()) -> Trace:
    requests = [(at, cost, True) for run in own for at, cost in run]
    requests += [(at, cost, False) for run in others for at, cost in run]
    ends = [length * n for n in range(1, 20)]
    return Trace(length, ends, requests, Meter(rng.choice((0.001, 0.01, 0.01))))


def readings(trace: Trace, rng: Random) -> Iterator[tuple[float, QuotaReading]]:
    """What the meter shows; the reading of a request comes with its answer."""
    meter, shown = trace.meter, -math.inf
    for at, _, own in trace.requests:
        if not own or at - shown < meter.every or rng.random() < meter.lost:
            continue
        shown = at
        used = max(0.0, trace.used(at) + rng.gauss(0, meter.noise)) if meter.noise else trace.used(at)
        used = math.floor(used / meter.step + 1e-9) * meter.step
        if rng.random() < meter.zeros:
            used = 0.0
        end = next(r for r in [*trace.resets, math.inf] if r > at)
        resets_at = when(trace.began(at) + trace.length if trace.began(at) else end)
        yield at, QuotaReading("w", used, when(at), resets_at, int(trace.length / 60), HEADERS)


def when(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)
