"""A session that is asked to hand over while its agent works, and what the contract then says."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.cli.scene import HANG, TAKE_OVER, Step, say, shell, wait_for, write
from tests.seal.repo import Repo

_UNTIL_PAUSED = 'until [ -f "$(git rev-parse --absolute-git-dir)/relay/pause" ]; do sleep 0.05; done; rm ask'
ASK_NOW = [write("ask", ""), shell("sh", "-c", _UNTIL_PAUSED)]
# After the pause is asked for, a second commit is replayed, and the rebase stands there long enough to be looked at.
REBASE_UNTIL_PAUSED = shell("git", "rebase", "-q", "-x", f"touch ask; {_UNTIL_PAUSED}; sleep 0.5", "HEAD~2")


@dataclass(frozen=True, slots=True)
class HandedOver:
    """The contract of the leg that was asked, what the user read meanwhile, and what `look` saw just before."""

    contract: dict[str, Any]
    said: str
    looked: Any


def hand_over(
    repo: Repo, relay: Callable[..., Any], demo: Any, steps: list[Step], look: Callable[[], Any] = lambda: None
) -> HandedOver:
    """Run a session whose first agent plays `steps`, in which ASK_NOW is where the handoff is asked for."""
    demo.plays([say("I begin."), *steps, HANG], TAKE_OVER)
    argv = ["git-relay", "start", "x", "--agent", "demo", "--then", "demo"]
    running = subprocess.Popen(argv, cwd=repo.path, stderr=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: list((repo.path / ".relay/sessions").glob("*/ask")), 120)
        looked = look()
        asked = relay("handoff", cwd=repo.path)
        _, said = running.communicate(timeout=300)
    finally:
        running.kill()
    assert (asked.rc, running.returncode) == (0, 0), (asked, said)
    return HandedOver(json.loads(relay("show", "--json", cwd=repo.path).stdout)["contract"], said, looked)
