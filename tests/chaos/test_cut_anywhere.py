"""A whole handoff, cut at every point there is: nothing is lost, nothing is doubled, nobody survives, it goes on.

Each of these runs a session with a handoff from start to end in real processes, strikes once, types what the program
says until the session is done, and compares ledger, branch, files and processes with the undisturbed run: see `stage`.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.seal.environment import ROOT

PARTS = 4
# Every run cuts everywhere. Where nobody else is alive that can move on, what a killed supervisor leaves behind is just
# what is on disk, so pictures of one run show it for all of these points; where somebody is, it is killed for real. Of
# the other blows a run strikes one part of the points, another one each time, and all of them, and for real, with
# RELAY_TEST_ALL_CUTS=1 (`make chaos`).
ALL = bool(os.environ.get("RELAY_TEST_ALL_CUTS"))
_RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID", "")[:8]  # the same in all workers
PART = int(_RUN, 16) % PARTS if _RUN else random.randrange(PARTS)
SHARE = range(PARTS) if ALL else [PART]
NAMESPACE = ("unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child")


class Company:
    """The stage as a process: jobs in, results out."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.has_small_disk = json.loads(self._line())["full"]

    def play(self, **job: Any) -> list[dict[str, Any]]:
        assert self._process.stdin is not None
        print(json.dumps(job), file=self._process.stdin, flush=True)
        return list(iter(lambda: json.loads(self._line()), {}))

    def points(self, ends: str, *, with_agent: bool = False) -> list[str]:
        """Every point of an undisturbed run; those at which an agent lives, if asked for."""
        [run] = self.play(mode="none", ends=ends)
        assert run["wrong"] == [], run
        seen = [line.split("\t") for line in run["points"]]
        return [name for who, name in seen if who == "agent" or not with_agent]

    def real_points(self, ends: str) -> list[str]:
        """Those points at which an agent, or a git that was just started, outlives its supervisor; or simply all."""
        alive = set(self.points(ends, with_agent=True))
        return [name for name in self.points(ends) if ALL or name in alive or " runs #" in name]

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline() or pytest.fail("the stage has broken down")


@pytest.fixture
def company(tmp_path) -> Iterator[Company]:
    with _company(tmp_path) as made:
        yield made


@contextmanager
def _company(folder) -> Iterator[Company]:
    may = subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode == 0
    argv = [*(NAMESPACE if may else ()), sys.executable, "-m", "tests.chaos.stage", folder]
    argv += ["--small-disk"] if may else []
    # A pipe that is not closed when a command is killed is no message for a user: only -W shows it.
    env = {k: v for k, v in os.environ.items() if k != "PYTHONWARNINGS"}
    with subprocess.Popen(argv, cwd=ROOT, env=env, stdin=-1, stdout=-1, text=True) as process:
        yield Company(process)
        assert process.stdin is not None
        process.stdin.close()


def strike(company: Company, mode: str, ends: str, points: Collection[str]) -> None:
    """Strike at each of these points, and again where other threads were quicker this time.

    How often the user is told something depends on who is quicker: of such points a few may stay away for good.
    """
    never = []
    for at in points:
        for _ in range(3):
            [result] = company.play(mode=mode, ends=ends, at=at)
            assert result["wrong"] == [], f"struck {at}: {result['wrong']}\n{result['said']}"
            if result["reached"]:
                break
        else:
            never.append(at)
    assert len([at for at in never if "/told #" in at]) <= 2, f"never reached again: {never}"
    assert [at for at in never if "/told #" not in at] == []


@pytest.mark.parametrize("part", range(PARTS))
def test_a_supervisor_killed_at_any_point_costs_nothing(company, part) -> None:
    points = company.real_points("stays")
    assert len(points) > 80
    strike(company, "supervisor", "stays", points[part::PARTS])


def test_a_supervisor_killed_at_any_point_after_a_limit_costs_nothing(company) -> None:
    # Before and after these the run is the same as one that is asked for a handoff.
    points, real = company.points("limit"), company.real_points("limit")
    begin, end = points.index("before journal limit-seen #1"), points.index("after journal contract-built #1")
    assert end - begin > 40
    strike(company, "supervisor", "limit", [p for p in points[begin : end + 1] if p in real])


def test_a_supervisor_killed_while_it_asks_the_agent_costs_nothing_and_asks_nobody_twice(company) -> None:
    points = company.points("asks")  # else the run is as that of an agent which stays
    begin, end = points.index("after journal snapshot-taken #1"), points.index("before journal contract-built #1")
    asking = points[begin:end]
    assert len(asking) > 50
    always = ["after agent runs #2", "after journal asked #1", "after journal ask-over #1"]
    strike(company, "supervisor", "asks", asking if ALL else {*always, *random.sample(asking, 4)})


@pytest.mark.parametrize("part", SHARE)
def test_an_agent_killed_at_any_point_costs_nothing(company, part) -> None:
    points = company.points("stays", with_agent=True)[part::PARTS]
    assert len(points) > 10
    strike(company, "agent", "stays", [p for p in points if not p.startswith("torn")])


@pytest.mark.parametrize("part", range(PARTS))
def test_supervisor_and_agent_killed_at_any_point_cost_nothing(company, part) -> None:
    results = company.play(mode="both", ends="stays", part=part, parts=PARTS)
    for result in results:
        assert result["wrong"] == [], f"struck {result['job']['at']}: {result['wrong']}\n{result['said']}"
    # A run that stands still at each point looks around less often in between.
    assert len(results) >= 0.8 * len(company.points("stays")) // PARTS


@pytest.mark.parametrize("part", SHARE)
def test_a_disk_that_is_full_from_any_point_on_is_named_and_costs_nothing(company, part) -> None:
    if not company.has_small_disk:
        pytest.skip("a small disk needs a mount namespace, which only root can make here")
    points = company.points("stays")[part::PARTS]
    strike(company, "full", "stays", [p for p in points if not p.startswith("torn")])  # torn: as before the open


def test_a_resume_that_is_killed_too_costs_nothing(company) -> None:
    seed = int(os.environ.get("RELAY_TEST_SEED", "0")) or random.randrange(1, 1 << 30)
    draw, points = random.Random(seed), company.points("stays")
    for at, then in [(draw.choice(points), draw.randrange(1, 200)) for _ in range(48 if ALL else 12)]:
        [result] = company.play(mode="supervisor", ends="stays", at=at, then=then)
        told = f"RELAY_TEST_SEED={seed}: struck {at}, and the resume at its point {then}"
        assert result["wrong"] == [], f"{told}: {result['wrong']}\n{result['said']}"
