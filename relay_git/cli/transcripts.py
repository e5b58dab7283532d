"""`read`: what git relay understands of a transcript, and so what it would hand over."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import Any

from relay_git.agents import TOOLS, find_tool
from relay_git.agents.agent import Tool
from relay_git.cli.render import print_json
from relay_git.errors import ExitCode, UserError, printable
from relay_git.session import SessionRecord, Usage

_LISTED = 20


def read(what: str, agent: str | None, *, as_json: bool) -> int:
    """The record of one transcript, named by its path or by the session's id."""
    tool, path, native_id = find(what, find_tool(agent) if agent is not None else None)
    following = tool.follow(path, native_id, Path())
    following.poll()
    record = following.record(ended=True)
    if as_json:
        print_json({"path": str(path), "sessions": list(tool.sessions(path))} | to_json(record))
    else:
        _print(record, path)
    return ExitCode.DONE


def find(what: str, only: Tool | None) -> tuple[Tool, Path, str]:
    """The tool, the place and the id of the session that a path or an id names; UserError where there is none."""
    tools = [only] if only is not None else list(TOOLS.values())
    path = Path(what)
    if os.path.lexists(path):
        return _at(path.absolute(), tools, only)
    hits = [(t, f.path, f.native_id) for t in tools for f in t.found(os.environ) if what in (f.native_id, f.path.stem)]
    near = hits or [
        (t, f.path, f.native_id) for t in tools for f in t.found(os.environ) if f.native_id.startswith(what)
    ]
    # Some tools keep many sessions in one place, or name a file by half of the id: the inside is asked last.
    near = near or [
        (t, f.path, what) for t in tools for f in t.found(os.environ) if not f.native_id and what in t.sessions(f.path)
    ]
    if len(near) == 1:
        return near[0]
    if near:
        names = ", ".join(f"{tool.name} {native_id}" for tool, _, native_id in near[:5])
        raise UserError(f"that can mean {len(near)} sessions ({names})", hint="git relay read ID --agent AGENT")
    raise UserError(
        f"{printable(what)} is neither a file nor the id of a session that an agent keeps here",
        hint="git relay detect --all",
    )


def _at(path: Path, tools: list[Tool], only: Tool | None) -> tuple[Tool, Path, str]:
    for tool in tools:
        if names := tool.sessions(path):
            return tool, path, names[-1]
    if only is not None:  # the user knows better: what is broken in it is told
        return only, path, ""
    raise UserError(
        f"{printable(str(path))} is no transcript that git relay knows",
        hint=f"git relay read {printable(str(path))} --agent AGENT",
    )


def to_json(record: SessionRecord) -> dict[str, Any]:
    """The whole record, under the names that docs/agents.md lists."""
    return {
        "agent": record.agent,
        "sessionId": record.native_id,
        "forkedFrom": record.forked_from or None,
        "subagents": list(record.subagents),
        "foreignSessions": list(record.foreign_sessions),
        "compactions": record.compactions,
        "cwd": record.cwd,
        "branch": record.branch,
        "model": record.model,
        "version": record.version,
        "started": _time(record.started),
        "lastActivity": _time(record.last_activity),
        "userPrompts": list(record.prompts),
        "abandonedPrompts": list(record.abandoned_prompts),
        "inheritedPrompts": list(record.inherited_prompts),
        "openPrompt": record.open_prompt or None,
        "assistantMessages": record.model_turns,
        "lastAssistantText": record.last_text,
        "turnComplete": record.turn_complete,
        "plan": [{"text": item.text, "status": str(item.status)} for item in record.plan],
        "commands": [
            {"command": c.command, "exitCode": c.exit_code, "outputSha256": c.output_sha256, "excerpt": c.excerpt}
            for c in record.commands
        ],
        "toolCalls": [{"id": c.id, "name": c.name, "target": c.target, "ok": c.ok} for c in record.calls],
        "pendingToolCalls": [{"id": c.id, "name": c.name, "command": c.target} for c in record.pending_calls],
        "filesTouched": sorted(record.files_touched),
        "skills": list(record.skills),
        "mcpServers": list(record.mcp_servers),
        "usage": _usage(record.usage),
        "usageActive": _usage(record.usage_active),
        "limits": [
            {"kind": str(n.kind), "window": n.window, "resetsAt": _time(n.resets_at), "evidence": n.evidence}
            for n in record.limits
        ],
        "quota": [
            {
                "window": reading.window,
                "used": reading.used,
                "at": _time(reading.at),
                "resetsAt": _time(reading.resets_at),
                "minutes": reading.minutes,
                "source": reading.source,
            }
            for reading in record.quota
        ],
        "limitEvents": len(record.limits),
        "atLimit": record.at_limit,
        "records": record.records,
        "skipped": [{"line": line} for line in record.skipped_lines],
        "skippedRecords": record.skipped,
        "unreadable": list(record.unreadable),
        "losses": list(record.losses),
        "lossReported": bool(record.losses),
    }


def _usage(usage: Usage) -> dict[str, int]:
    return {
        "input": usage.input,
        "output": usage.output,
        "cacheRead": usage.cache_read,
        "cacheWrite": usage.cache_write,
    }


def _time(when: datetime | None) -> str | None:
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z") if when is not None else None


def _print(record: SessionRecord, path: Path) -> None:
    """The record for a person: what is empty is left out."""
    told = {
        "session": f"{record.agent} {record.native_id}",
        "file": str(path),
        "forked from": record.forked_from,
        "where": f"{record.cwd}{f', branch {record.branch}' if record.branch else ''}",
        "model": f"{record.model}{f' ({record.agent} {record.version})' if record.version else ''}",
        "time": f"{_time(record.started)} to {_time(record.last_activity)}",
        "answers": f"{record.model_turns}{'' if record.turn_complete else '; the last turn did not end'}",
        "tokens": "{input} in, {output} out, {cacheRead} from cache".format(**_usage(record.usage)),
        "compactions": record.compactions or "",
        "last words": " ".join(record.last_text.split())[:400],
    }
    for name, value in told.items():
        if value:
            print(f"{name + ':':<13}{printable(str(value))}")
    lists: dict[str, list[str]] = {
        "asked": [" ".join(prompt.split())[:400] for prompt in record.prompts],
        "plan": [f"[{item.status}] {item.text}" for item in record.plan],
        "commands": [f"{c.command} (exit {'?' if c.exit_code is None else c.exit_code})" for c in record.commands],
        "without a result": [str(call) for call in record.pending_calls],
        "files": sorted(record.files_touched),
        "subagents": list(record.subagents),
        "skills": list(record.skills),
        "MCP servers": list(record.mcp_servers),
        "limits": [f"{n.kind} {n.window or ''} until {_time(n.resets_at) or 'unknown'}" for n in record.limits],
        "not understood": list(record.losses),
    }
    for name, values in lists.items():
        if not values:
            continue
        print(f"\n{name}:")
        for value in values[-_LISTED:]:
            print(f"  {printable(value)}")
        if len(values) > _LISTED:
            print(f"  … and {len(values) - _LISTED} before these (see --json)")
