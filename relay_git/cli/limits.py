"""`limits explain`: whether a text tells of a limit, by what git relay would decide it in a session."""

from __future__ import annotations

import sys
from datetime import datetime, tzinfo
from typing import Any

from relay_git.agents.jsonl import parse
from relay_git.agents.limits import Channel, Verdict, judge
from relay_git.agents.moments import Moment, zone_named
from relay_git.cli import context
from relay_git.cli.render import print_json
from relay_git.errors import ExitCode, UserError, printable

_MOST = 16 << 20


def explain(tool: str, source: str, now: str | None, zone: str | None, status: int | None, *, as_json: bool) -> int:
    """Judge what stands on standard input, and say by what."""
    there, channel = _zone(zone), _channel(source)
    data = sys.stdin.buffer.read(_MOST)
    moment = Moment(_moment(now, there), there)
    said: Any = parse(data) if channel is Channel.HEADER else data.decode("utf-8", "replace")
    if said is None:
        raise UserError("headers must be one JSON object", hint='echo \'{"retry-after": "30"}\' | git relay limits …')
    verdict = judge(tool, channel, said, moment, status)
    if as_json:
        print_json(_json(verdict))
    else:
        print(_words(verdict, there))
    return ExitCode.DONE


def _json(verdict: Verdict) -> dict[str, object]:
    notice = verdict.notice
    until = notice.resets_at if notice else None
    return {
        "isLimit": notice is not None,
        "kind": notice.kind if notice else "none",
        "resetsAt": until.isoformat().replace("+00:00", "Z") if until else None,
        "window": notice.window if notice else None,
        "evidence": notice.evidence if notice else "",
        "why": verdict.why,
    }


def _words(verdict: Verdict, zone: tzinfo | None) -> str:
    if (notice := verdict.notice) is None:
        return f"no limit: {verdict.why}"
    until = notice.resets_at
    when = f"{until.astimezone(zone):%Y-%m-%d %H:%M:%S %Z}, {until:%Y-%m-%d %H:%M:%SZ}" if until else "not told"
    lines = (f"kind: {notice.kind}", f"window: {notice.window or 'not told'}", f"resets: {when}")
    return printable("\n".join((*lines, f"by: {verdict.why}", f"evidence: {notice.evidence}")))


def _channel(name: str) -> Channel:
    try:
        return Channel(name)
    except ValueError as error:
        known = ", ".join(Channel)
        raise UserError(f"there is no source {name!r}", hint=f"--source is one of: {known}") from error


def _zone(name: str | None) -> tzinfo | None:
    zone = zone_named(name) if name is not None else None
    if name is not None and zone is None:
        raise UserError(f"there is no time zone {name!r}", hint="--tz Europe/Berlin")
    return zone


def _moment(text: str | None, zone: tzinfo | None) -> datetime:
    if text is None:
        return context.now()
    try:
        when = datetime.fromisoformat(text)
        return when if when.tzinfo else when.replace(tzinfo=zone) if zone else when.astimezone()
    except (ValueError, OverflowError) as error:
        raise UserError(f"--now {text!r} is no ISO time", hint="--now 2026-07-01T12:00:00Z") from error
