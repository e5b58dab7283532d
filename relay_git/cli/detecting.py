"""`detect`: every agent session on this machine, and what each is doing."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from relay_git.agents import AGENTS, TOOLS
from relay_git.cli import context
from relay_git.cli.render import print_json, print_table
from relay_git.cli.transcripts import to_json
from relay_git.contract.brief import without_order
from relay_git.errors import ExitCode, RelayError, UserError, printable
from relay_git.git.repo import discover
from relay_git.quota.entry import Account
from relay_git.session import PlanStatus, SessionRecord
from relay_git.supervisor.accounts import owner
from relay_git.supervisor.detect import Detected, Detector, State
from relay_git.supervisor.seen_before import SeenBefore

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_REFRESH = 2.0
_WHERE = 40  # characters; of a longer path the end says more
_HEAD = ("STATE", "AGENT", "SESSION", "PID", "AGE", "WHERE", "PLAN", "FILES", "TOKENS", "QUOTA", "TASK")


def detect(since: str, *, here: bool, everything: bool, watch: bool, as_json: bool) -> int:
    """The sessions that run or were active lately; with `watch`, again and again until Ctrl-C."""
    span = None if everything else _span(since)
    detector = a_detector()
    roots = _here() if here else ()

    def look() -> tuple[list[Detected], datetime]:
        now = context.now()
        rows = detector.look(now, span)
        return [row for row in rows if not roots or _below(row.record.cwd, roots)], now

    if not watch:
        _show(*look(), as_json=as_json)
        return ExitCode.DONE
    if as_json:
        raise UserError("--watch is for people, --json for programs", hint="git relay detect --json")
    with _screen():
        while True:
            rows, now = look()
            print("\x1b[H\x1b[J", end="")
            _show(rows, now, as_json=False)
            print("\nCtrl-C to leave", flush=True)
            time.sleep(_REFRESH)


def a_detector() -> Detector:
    """Who looks, with what was seen before, and through the folders of all accounts."""
    others = tuple(
        {**os.environ, AGENTS[login.agent].account.folder: str(login.folder)} for login in context.accounts().all()
    )
    return Detector(os.environ, SeenBefore(user_cache_path("git-relay") / "detect.json"), others)


def _show(rows: list[Detected], now: datetime, *, as_json: bool) -> None:
    logins = context.accounts().all()
    named = [(row, owner(logins, row.tool, row.path)) for row in rows]
    if as_json:
        print_json({"sessions": [_row_json(row, account, now) for row, account in named]})
    elif not rows:
        print(f"no session of {', '.join(t.title for t in TOOLS.values())} was active lately; older ones: --all")
    else:
        print_table(_HEAD, [_row(row, account, now) for row, account in named])


def _row(row: Detected, account: Account, now: datetime) -> tuple[str, ...]:
    record = row.record
    left = sum(item.status in (PlanStatus.PENDING, PlanStatus.IN_PROGRESS) for item in record.plan)
    task = f"[{row.relay}] " if row.relay else ""
    task += " ".join(without_order(record.prompts[-1] if record.prompts else "").split())[:60]
    return (
        _state(row, now),
        str(account),
        row.native_id[:13] or "?",
        f"{row.pid}{'?' if row.matched.startswith('guess') else ''}" if row.pid else "-",
        _age(now - row.active),
        _short(record.cwd) + (f" ({record.branch})" if record.branch else ""),
        f"{left} left" if record.plan else "-",
        str(len(record.files_touched)),
        _count(record.usage.input + record.usage.output + record.usage.cache_read + record.usage.cache_write),
        _quota(record, now),
        task,
    )


def _quota(record: SessionRecord, now: datetime) -> str:
    """How much of each window was used when the tool last told; a window that has begun anew since tells nothing."""
    told = (r for r in record.quota if r.resets_at is None or r.resets_at > now)
    return ", ".join(f"{reading.used:.0%} of {reading.window}" for reading in told) or "-"


def _state(row: Detected, now: datetime) -> str:
    resets = row.record.limits[-1].resets_at if row.record.limits else None
    if row.state is not State.AT_LIMIT or resets is None:
        return str(row.state)
    return f"{row.state} until {resets.astimezone():%H:%M}" if resets > now else "limit is over"


def _row_json(row: Detected, account: Account, now: datetime) -> dict[str, Any]:
    return {
        "agent": row.tool,
        "account": account.label or None,
        "sessionId": row.native_id,
        "state": str(row.state),
        "pid": row.pid or None,
        "matchedBy": row.matched or None,
        "relaySession": row.relay or None,
        "path": row.path or None,
        "ageSeconds": max(0, int((now - row.active).total_seconds())),
        "record": to_json(row.record),
    }


def _span(text: str) -> timedelta:
    found = re.fullmatch(r"(\d{1,5})([mhdw])", text.strip())
    if found is None:
        raise UserError(f"{printable(text)} is no span of time", hint="git relay detect --since 24h")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def _here() -> tuple[str, ...]:
    """The work trees of the repository that the user stands in, or the folder itself where there is none."""
    try:
        repo = discover(Path.cwd(), os.environ)
    except RelayError:
        return (os.path.realpath("."),)
    out = repo.git().run("worktree", "list", "--porcelain", "-z")
    return tuple(
        os.path.realpath(os.fsdecode(line.removeprefix(b"worktree ")))
        for line in out.split(b"\0")
        if line.startswith(b"worktree ")
    )


def _below(folder: str, roots: tuple[str, ...]) -> bool:
    real = os.path.realpath(folder) if folder else ""
    return any(real == root or real.startswith(root.rstrip("/") + "/") for root in roots)


def _short(folder: str) -> str:
    home = str(Path.home())
    named = f"~{folder.removeprefix(home)}" if folder == home or folder.startswith(home + "/") else folder
    return named if len(named) <= _WHERE else "…" + named[1 - _WHERE :]


def _age(span: timedelta) -> str:
    seconds = max(0, int(span.total_seconds()))
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def _count(number: int) -> str:
    return f"{number / 1e6:.1f}M" if number >= 1_000_000 else f"{number / 1e3:.0f}k" if number >= 1_000 else str(number)


@contextmanager
def _screen() -> Iterator[None]:
    """The terminal's other screen, so that what was there before is there again afterwards."""
    print("\x1b[?1049h", end="", flush=True)
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        print("\x1b[?1049l", end="", flush=True)
