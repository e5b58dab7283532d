"""Handoffs whose processes are killed at random moments: what is lost, doubled or stuck afterwards.

Every command and every agent is a process of its own, on the stage of the crash tests: a small repository and an agent
that does what is not done yet and bears witness of it on another disk. Supervisor, agents or both get SIGKILL at a
moment drawn from the time that a whole session takes, and what goes on afterwards may be struck again.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from bench.measure import Row, Table
from tests.chaos.stage import START, Job, Stage, Stuck, children, judge, open_stage, send
from tests.cli.scene import photograph

AGAIN = (1.0, 0.4, 0.3)  # how likely the first, the second and the third blow is
MOST_COMMANDS = 12
RUNNERS = 2


@dataclass
class Ended:
    """One handoff: how often it was struck, what is wrong, how long each resume took in seconds, what was said."""

    seed: int
    struck: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    resumes: list[float] = field(default_factory=list)
    said: str = ""


class Blow:
    """SIGKILL for some of a session, once, at its moment."""

    def __init__(self, stage: Stage, whom: str, after: float) -> None:
        self._stage, self.whom, self._at, self.fell = stage, whom, time.monotonic() + after, False

    def __call__(self, supervisor: int) -> None:
        if self.fell or time.monotonic() < self._at:
            return
        self.fell = True
        doomed = self._stage.marked() if self.whom != "supervisor" else []
        if self.whom != "agent":
            doomed = [supervisor, *(children(supervisor) if self.whom == "both" else ()), *doomed]
        send(doomed, signal.SIGKILL)


def measure(scratch: Path, *, small: bool, runs: int = 0) -> Table:
    """So many handoffs, shared by two processes."""
    runs = runs or (20 if small else 1_000)
    seed = int(os.environ.get("RELAY_BENCH_SEED", "0")) or random.randrange(1, 1 << 30)
    argv = [sys.executable, "-m", "bench.chaos"]
    runners = []
    for i in range(RUNNERS):
        (scratch / str(i)).mkdir()
        share = [str(seed + n) for n in range(i, runs, RUNNERS)]
        runners.append(subprocess.Popen([*argv, scratch / str(i), *share], stdout=subprocess.PIPE, text=True))
    ended = [Ended(**json.loads(line)) for r in runners for line in (r.communicate()[0] or "").splitlines()]
    return _table(runs, seed, ended)


def _table(runs: int, seed: int, ended: list[Ended]) -> Table:
    kinds = {kind: sum(any(_kind(w) == kind for w in e.wrong) for e in ended) for kind in ("lost", "doubled", "stuck")}
    told = ", ".join(f"{kind} {count}" for kind, count in kinds.items())
    blows = sum(len(e.struck) for e in ended)
    table = Table("chaos", f"SIGKILL for supervisor, agent or both at random moments; RELAY_BENCH_SEED={seed}.")
    resume = median([seconds for e in ended for seconds in e.resumes] or [0.0])
    good = len(ended) == runs and not any(kinds.values())
    table.rows.append(Row(f"resume, median of {sum(len(e.resumes) for e in ended)}", resume))
    table.notes.append(f"runs {len(ended)} of {runs}, blows {blows}, {told}: {'holds' if good else 'MISSED'}")
    table.notes += [f"seed {e.seed}, struck {', '.join(e.struck)}: {'; '.join(e.wrong)}" for e in ended if e.wrong]
    return table


def _kind(wrong: str) -> str:
    if "stuck" in wrong or wrong.startswith("the end is"):
        return "stuck"
    return "doubled" if any(word in wrong for word in ("DOUBLED", "twice", "alive")) else "lost"


class Pace:
    """How long a whole session takes, as the last ones that nobody struck say: a blow is to fall while it lasts."""

    def __init__(self, usual: float) -> None:
        self.usual = usual

    def took(self, seconds: float) -> None:
        self.usual += (seconds - self.usual) / 4


def play(stage: Stage, seed: int, pace: Pace) -> Ended:
    """One session, struck at least once and taken up again until it is done."""
    draw = random.Random(seed)
    while True:
        ended = _play_once(stage, draw, Ended(seed), pace)
        if ended.struck or ended.wrong:
            return ended


def _play_once(stage: Stage, draw: random.Random, ended: Ended, pace: Pace) -> Ended:
    job = Job("random", draw.choice(["limit", "stays"]))
    stage.set_up()
    env, argv = stage.environment(job), START
    before: dict[str, Any] = photograph(stage.repo)
    try:
        for number in range(MOST_COMMANDS):
            argv = stage.next_command() if number else START
            if argv is None:
                break
            _command(stage, env, argv, draw, pace, ended)
        else:
            ended.wrong.append(f"stuck: not done after {MOST_COMMANDS} commands")
        ended.wrong += judge(stage.end(), photograph(stage.repo) == before)
    except Stuck as stuck:
        ended.wrong.append(f"stuck: {stuck}")
    if ended.wrong:
        ended.said = stage.said()
    send(stage.marked(), signal.SIGKILL)
    return ended


def _command(stage: Stage, env: dict[str, str], argv: list[str], draw: random.Random, pace: Pace, ended: Ended) -> None:
    strikes = len(ended.struck) < len(AGAIN) and draw.random() < AGAIN[len(ended.struck)]
    blow = Blow(stage, draw.choice(["supervisor", "agent", "both"]), draw.uniform(0, pace.usual) if strikes else 1e9)
    began = time.monotonic()
    rc = stage.run(argv, env, f"command-{len(ended.resumes)}", meanwhile=blow)
    seconds = time.monotonic() - began
    if blow.fell:
        ended.struck.append(f"{blow.whom} in {argv[0]}")
    elif argv == START:
        pace.took(seconds)
    elif argv == ["resume"]:
        ended.resumes.append(seconds)
    if rc not in (0, 1, -signal.SIGKILL):
        ended.wrong.append(f"{argv[0]} ended with {rc}: {stage.said()}")


def main() -> None:
    stage = open_stage(Path(sys.argv[1]))
    first = stage.play(Job("none", "stays"))
    if first.wrong:
        raise SystemExit(f"the undisturbed run went wrong: {first.wrong}")
    began = time.monotonic()
    stage.set_up()
    stage.run(START, stage.environment(first.job), "to-time-it")
    pace = Pace(time.monotonic() - began)
    for word in sys.argv[2:]:
        print(json.dumps(play(stage, int(word), pace).__dict__), flush=True)


if __name__ == "__main__":
    main()
