"""How far the forecast of a window errs, and whether handoffs come in time, on traces of which the truth is known."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from statistics import median

from bench.burn import KINDS, MINUTE, Trace, readings, when
from relay_git.quota import forecast, wallet
from relay_git.quota.entry import Account
from relay_git.quota.policy import Rules, near_words
from relay_git.session import QuotaReading

SEEDS = range(10_000, 10_100)  # of each kind; what was tuned was tuned on others, below 10,000
LEAD = 120.0  # seconds from the decision until the old agent has stopped; it goes on spending meanwhile
LOOK = 60.0  # a supervisor also looks at the clock between two readings
AWAY = 15 * MINUTE  # an agent that asks for nothing for so long is not at work
RULES = Rules()


def line(window: wallet.Window, now: datetime) -> datetime | None:
    """The plain way: a line through the last two readings."""
    trail = window.trails[-1]
    if len(trail) < 2 or trail[-1].used <= trail[-2].used:
        return None
    seconds = (trail[-1].at - trail[-2].at).total_seconds()
    end = now + timedelta(seconds=(1 - trail[-1].used) / (trail[-1].used - trail[-2].used) * seconds)
    return end if window.resets_at is None or end < window.resets_at else None


@dataclass
class Score:
    """What came of one way to forecast, over many traces of a kind."""

    errors: list[float] = field(default_factory=list)  # of the run-dry time, in shares of the window
    right: int = 0  # said rightly whether it runs dry before the reset
    asked: int = 0
    inside: int = 0
    handoffs: int = 0
    late: int = 0
    early: int = 0
    early_in_time: int = 0
    left: list[float] = field(default_factory=list)

    def judge(self, trace: Trace, at: float, dry: datetime | None) -> None:
        truth = trace.dry(at)
        self.asked += 1
        self.right += (dry is None) == (truth is None)
        if truth is not None and dry is not None:
            self.errors.append(abs((dry - when(truth)).total_seconds()) / trace.length)

    def hand_over(self, trace: Trace, at: float | None, dry: float | None) -> None:
        """A handoff at `at` (None: there was none) in the first window that runs dry at `dry` (None: none does)."""
        if at is None and dry is None:
            return
        self.handoffs += 1
        if at is None or (dry is not None and at + LEAD > dry):
            self.late += 1
            return
        left = 1.0 - trace.spent(trace.began(at), at + LEAD)
        self.left.append(left)
        self.early += left > 0.1 + trace.meter.step
        truth = trace.dry(at) or next(r for r in [*trace.resets, math.inf] if r > at)
        self.early_in_time += truth - at > trace.length / 10


def play(kind: str, seed: int, ours: Score, plain: Score) -> None:
    """One trace: ask at half and at three quarters of the window, and hand over when each way says so."""
    rng = Random(f"{kind} {seed}")
    trace = KINDS[kind](rng)
    dry = next((d for start in [0.0, *trace.resets] if (d := trace.dry(start)) is not None), None)
    asked: set[tuple[float, float]] = set()
    decided: dict[str, float] = {}
    for at, known in _looks(trace, rng):
        if dry is not None and at >= dry:
            break
        share = next((s for s in (0.75, 0.5) if trace.used(at) >= s), 0.0)
        asks = share > 0 and (share, trace.began(at)) not in asked
        if not asks and known[-1].used < RULES.threshold - RULES.reach:
            continue  # nobody hands over so far from the wall
        now = when(at)
        (window,) = wallet.build(Account("claude"), known, now).windows
        said, plainly = forecast.of(window, now), line(window, now)
        if asks:
            asked |= {(share, trace.began(at))}
            ours.judge(trace, at, said.dry if said else None)
            plain.judge(trace, at, plainly)
            ours.inside += _inside(said, None if (truth := trace.dry(at)) is None else when(truth))
        if near_words(window, said, 1.0, RULES, now):
            decided.setdefault("ours", at)
        soon = plainly is not None and plainly <= now + RULES.lead and window.used >= RULES.threshold - RULES.reach
        if window.used >= RULES.threshold or soon:
            decided.setdefault("plain", at)
        if len(decided) == 2 and trace.used(at) > 0.8:
            break
    for by, score in (("ours", ours), ("plain", plain)):
        at_ = decided.get(by)
        score.hand_over(trace, at_, dry if at_ is None else trace.dry(at_))


def _looks(trace: Trace, rng: Random) -> Iterator[tuple[float, list[QuotaReading]]]:
    """Each reading as it comes, and the moments between: a supervisor looks at the clock as well."""
    known: list[QuotaReading] = []
    before = 0.0
    for at, reading in readings(trace, rng):
        until = min(at, before + AWAY)
        while known and known[-1].used > RULES.threshold - RULES.reach and before + LOOK < until:
            before += LOOK
            yield before, known[-150:]
        # The history keeps the same reading once a minute.
        if known and reading.used == known[-1].used and reading.at - known[-1].at < timedelta(minutes=1):
            continue
        before = at
        known.append(reading)
        yield at, known[-150:]


def _inside(said: forecast.Forecast | None, truth: datetime | None) -> bool:
    if said is None:
        return truth is None
    if truth is None:
        return said.late is None
    return (said.early is not None and said.early <= truth) and (said.late is None or truth <= said.late)


@dataclass
class Report:
    rows: list[tuple[str, ...]]
    seeds: int

    def text(self) -> str:
        head = (
            "TRACES",
            "BY",
            "ERROR p50",
            "p90",
            "DRY OR NOT",
            "IN RANGE",
            "TOO LATE",
            "TOO EARLY",
            "(TIME)",
            "LEFT p50",
            "p95",
        )
        lines = [head, *self.rows]
        widths = [max(len(r[i]) for r in lines) for i in range(len(head))]
        return "\n".join(
            [
                f"== forecast: {self.seeds} traces, {len(KINDS)} kinds",
                "   ERROR: of the run-dry time, in percent of the window's length, asked at 50 % and 75 % used.",
                "   DRY OR NOT: said rightly whether it runs dry before the reset. IN RANGE: the truth lay in it.",
                f"   TOO LATE: spent before the handoff was done, {LEAD:.0f} s after the decision (aim: < 1 %).",
                "   TOO EARLY: by then more than 10 % was left, and what the meter rounds off (aim: < 5 %).",
                "   (IN TIME): by more than 10 % of its length, at 90 % of a window that then lasts as well.",
                *("  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in lines),
            ]
        )


def measure(scratch: Path, *, small: bool, seeds: range = SEEDS) -> Report:
    """Every kind on every seed, ours and the plain line side by side."""
    del scratch
    seeds = seeds[:5] if small else seeds
    rows, total = [], {"ours": Score(), "two samples": Score()}
    for kind in KINDS:
        scores = {"ours": Score(), "two samples": Score()}
        for seed in seeds:
            play(kind, seed, scores["ours"], scores["two samples"])
        rows += [_row(kind, by, score) for by, score in scores.items()]
        for by, score in scores.items():
            _add(total[by], score)
    rows += [_row("all", by, score) for by, score in total.items()]
    return Report(rows, len(KINDS) * len(seeds))


def _add(total: Score, score: Score) -> None:
    for name, value in vars(score).items():
        setattr(total, name, getattr(total, name) + value)


def _row(kind: str, by: str, score: Score) -> tuple[str, ...]:
    return (
        kind,
        by,
        _percent(median(score.errors) if score.errors else 0.0),
        _percent(_quantile(score.errors, 0.9)),
        _percent(score.right / max(1, score.asked)),
        _percent(score.inside / max(1, score.asked)) if by == "ours" else "",
        _percent(score.late / max(1, score.handoffs)),
        _percent(score.early / max(1, score.handoffs)),
        _percent(score.early_in_time / max(1, score.handoffs)),
        _percent(median(score.left) if score.left else 0.0),
        _percent(_quantile(score.left, 0.95)),
    )


def _quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else 0.0


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"
