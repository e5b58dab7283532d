"""Timing in turns, and the table that it ends in."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median


@dataclass(frozen=True)
class Row:
    """One comparison; all times in seconds, `aim` in words, `holds` whether it is met (None: there is no aim)."""

    name: str
    measured: float
    peer: float | None = None
    peer_name: str = ""
    aim: str = ""
    holds: bool | None = None


@dataclass
class Table:
    """One topic: what was measured, and how."""

    title: str
    how: str
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def text(self) -> str:
        head = ("WHAT", "MEASURED", "PEER IN THE SAME RUN", "DIFFERENCE", "RATIO", "AIM", "")
        lines = [head, *map(_cells, self.rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
        table = ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines]
        return "\n".join([f"== {self.title}", *(f"   {line}" for line in self.how.splitlines()), *table, *self.notes])


def _cells(row: Row) -> tuple[str, ...]:
    verdict = {True: "holds", False: "MISSED", None: ""}[row.holds]
    if row.peer is None:
        return row.name, _time(row.measured), "", "", "", row.aim, verdict
    difference = f"{'+' if row.measured >= row.peer else '-'}{_time(abs(row.measured - row.peer))}"
    peer = f"{_time(row.peer)} {row.peer_name}"
    return row.name, _time(row.measured), peer, difference, f"{row.measured / row.peer:.2f}", row.aim, verdict


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.1f} ms"


def in_turns(rounds: int, **works: Callable[[], object]) -> dict[str, float]:
    """The median of each work's wall time, each run once a round, so that a busy moment falls on all of them."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for work in works.values():
        work()  # what the first run alone pays (cold caches, byte code) is not what is asked for
    for turn in range(rounds):
        names = list(works)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            began = time.perf_counter()
            works[name]()
            times[name].append(time.perf_counter() - began)
    return {name: median(found) for name, found in times.items()}


def run(*argv: str | Path, cwd: Path, env: Mapping[str, str] | None = None) -> bytes:
    """A command that must succeed, as a process; its stdout."""
    done = subprocess.run(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{argv[0]} {argv[1] if len(argv) > 1 else ''} failed: {done.stderr.decode()[:500]}")
    return done.stdout
