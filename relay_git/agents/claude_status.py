"""Claude Code's status line as a meter: at the terminal nothing else tells how much of its windows is used.

Promise: it is set for one run alone, and the user's own status line is shown as without git relay; where that is none
we know how to run, nothing is set. What Claude Code said last lies in the leg's private folder and nowhere else.

Seen with 2.1.332: `--settings` outranks the settings of user and project; `rate_limits` comes with a subscription,
after the first answer; the command runs once the folder is trusted, and not in headless runs.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from relay_git.agents import jsonl, meters, shelf
from relay_git.session import QuotaReading

STATUS_FILE = "claude-status.json"


def status_line(private: Path, settings: Iterable[Path]) -> dict[str, object]:
    """Settings that keep what the status line is told; `settings` are the user's own files, what outranks first."""
    from relay_git.git.hooks import script  # which starts programs, so reading a transcript does without it

    theirs = next((found["statusLine"] for file in settings if "statusLine" in (found := shelf.document(file))), {})
    own = jsonl.record(theirs)
    command = jsonl.text(own.get("command"))
    if own and (own.get("type") != "command" or not command):
        return {}
    ours = shlex.join(["sh", str(script("status-line")), str(private / STATUS_FILE), command])
    return {"statusLine": {**own, "type": "command", "command": ours}}


def status_readings(private: Path) -> tuple[QuotaReading, ...]:
    """What Claude Code last told its status line of its windows, as of when it did."""
    file = private / STATUS_FILE
    stamp = shelf.identity(file)
    if not stamp:
        return ()
    at = datetime.fromtimestamp(stamp[-1] / 1e9, UTC)
    return meters.claude_status(jsonl.record(shelf.document(file).get("rate_limits")), at)
