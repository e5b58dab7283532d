"""How long a handoff takes: from the breach seen to the next process started, without the pause itself.

The supervisor runs in this process, with the demo agent as real child processes. The clock is read where it enters and
leaves the parts that are timed; nothing is left out or replaced. The agent commits work, leaves a changed and a new
file, and meets its pretend limit.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from bench.measure import Row, Table, run
from bench.place import repository
from relay_git.contract.lifecycle import State
from relay_git.git.repo import Repo
from relay_git.git.store import Store
from relay_git.ledger.key import ensure
from relay_git.supervisor import carry, dispatch, handoff, opening, process
from relay_git.supervisor.meter import Meter
from relay_git.supervisor.run import Stop, Surroundings
from relay_git.supervisor.settings import Settings

AIMS = {1_000: 0.3, 100_000: 1.5}
STEPS = {
    "legs": [
        [
            {"do": "plan", "items": [{"text": "Write refund()", "status": "in_progress"}]},
            {"do": "write", "path": "src/refund.py", "content": "def refund():\n    return 1\n"},
            {"do": "commit", "message": "Begin the refund flow", "paths": ["src/refund.py"]},
            {"do": "append", "path": "src/d0000/f00.py", "content": "changed = True\n"},
            {"do": "write", "path": "src/half_made.py", "content": "raise NotImplementedError\n"},
            {"do": "limit", "reset_in": 3600},
        ],
        [{"do": "accept"}, {"do": "say", "text": "done"}],
    ]
}
# What is timed, by the name that the caller knows it by; only the outermost of these counts, so that the parts add up.
PARTS = {
    "pause": (carry.pause, "hold"),
    "snapshot": (handoff, "take_snapshot"),
    "fence": (handoff, "fence"),
    "contract": (handoff, "write_contract"),
    "verify": (handoff, "verified"),
    "launch": (dispatch, "launch"),
}


class Clock:
    """When the breach was recorded, when the next process was started, and what the parts between took."""

    def __init__(self) -> None:
        self.breach = self.started = 0.0
        self.parts: dict[str, float] = {}
        self._inside = False
        self._kept: list[tuple[Any, str, Any]] = []

    def __enter__(self) -> Clock:
        for name, (room, function) in PARTS.items():
            self._wrap(room, function, name)
        self._wrap(carry, "_pause_for", None, before=self._saw_breach)
        self._wrap(process, "start", None, after=self._saw_start)
        return self

    def __exit__(self, *_: object) -> None:
        for room, function, original in reversed(self._kept):
            setattr(room, function, original)

    @property
    def latency(self) -> float:
        return self.started - self.breach - self.parts.get("pause", 0.0)

    def _saw_breach(self) -> None:
        self.breach, self.started, self.parts = time.perf_counter(), 0.0, {}

    def _saw_start(self) -> None:
        self.started = self.started or time.perf_counter()

    def _wrap(
        self,
        room: Any,
        function: str,
        part: str | None,
        before: Callable[[], None] = lambda: None,
        after: Callable[[], None] = lambda: None,
    ) -> None:
        original = getattr(room, function)

        def timed(*args: Any, **more: Any) -> Any:
            before()
            outermost = part is not None and not self._inside and self.breach and not self.started
            self._inside = self._inside or bool(outermost)
            began = time.perf_counter()
            try:
                return original(*args, **more)
            finally:
                after()
                if outermost and part is not None:
                    self._inside = False
                    self.parts[part] = self.parts.get(part, 0.0) + time.perf_counter() - began

        self._kept.append((room, function, original))
        setattr(room, function, timed)


class Silent:
    """A teller that nobody hears."""

    def say(self, text: str) -> None: ...

    def live(self, leg: int, agent: str, doing: str, quota: str = "") -> None: ...


def measure(scratch: Path, *, small: bool) -> Table:
    """Median over several sessions, in repositories of 1,000 and of 100,000 files."""
    sessions = 2 if small else 5
    table = Table(
        "handoff",
        "From the breach seen by the supervisor to the next process started, less the pause itself; demo agent,\n"
        f"supervisor in this process, median of {sessions} sessions. Peer: git add --all, write-tree and status once,\n"
        "in a worktree of that size.",
    )
    steps = scratch / "steps.json"
    steps.write_text(json.dumps(STEPS))
    env = {**os.environ, "RELAY_DEMO_STEPS": str(steps), "RELAY_DEMO_HOME": str(scratch / "demo-home")}
    for files, aim in AIMS.items():
        repo, store = repository(scratch / f"files-{files}", files)
        clocks = [_hand_over(repo, store, env) for _ in range(sessions)]
        latency = median(c.latency for c in clocks)
        assert repo.home is not None
        peer = median(_peer(repo.home) for _ in range(5))
        row = Row(f"{files:,} files", latency, peer, "add + write-tree + status", f"{aim} s", latency <= aim)
        table.rows.append(row)
        parts = {name: median(c.parts.get(name, 0.0) for c in clocks) for name in PARTS}
        told = ", ".join(f"{name} {seconds * 1000:.0f}" for name, seconds in parts.items())
        table.notes.append(f"{files:,} files, ms: {told} (the pause is not counted)")
    return table


def _hand_over(repo: Repo, store: Store, env: dict[str, str]) -> Clock:
    around = Surroundings(
        repo,
        store,
        ensure(repo, store),
        Settings(),
        env,
        lambda: datetime.now(UTC),
        Silent(),
        Stop(),
        Meter(None, lambda: datetime.now(UTC), print),
    )
    with (
        opening.open_session(around, opening.Order("Add a refund flow", "demo", ("demo",))) as session,
        Clock() as clock,
    ):
        state = carry.carry(session)
    if state is not State.DONE:
        raise SystemExit(f"the session ended {state}: {session.tip.entry.reason}")
    return clock


def _peer(home: Path) -> float:
    began = time.perf_counter()
    for words in (("add", "--all"), ("write-tree",), ("status", "--porcelain")):
        run("git", *words, cwd=home)
    return time.perf_counter() - began
