"""`agents`: what is installed, in which version, signed in by what evidence, and what git relay can do with it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from relay_git.agents import AGENTS, TOOLS
from relay_git.agents.agent import Permission, Ready, Tool, Unready
from relay_git.agents.installed import Installed, abilities, installed, is_newer
from relay_git.cli import context
from relay_git.cli.render import print_json, print_table
from relay_git.errors import ExitCode

_HEAD = ("AGENT", "INSTALLED", "VERSION", "VERIFIED WITH", "SIGNED IN", "ACCOUNTS", "CAN", "CANNOT", "TOLD BY")
_DEFAULT = "default"  # the login that the tool uses when nobody says which


@dataclass(frozen=True, slots=True)
class _Seen:
    """One tool on this machine; `verdicts` by permission, none where it cannot be started from here.

    `accounts` are those that git relay can start it with, the tool's own login among them where there is one.
    """

    tool: Tool
    at: Installed | None
    verdicts: dict[Permission, Ready | Unready]
    labels: tuple[str, ...]

    @property
    def accounts(self) -> tuple[str, ...]:
        return (*([_DEFAULT] if self.evidence else []), *self.labels)

    @property
    def channel(self) -> str:
        agent = AGENTS.get(self.tool.name)
        return agent.channel if agent is not None else ""

    @property
    def evidence(self) -> str:
        return next((v.evidence for v in self.verdicts.values() if isinstance(v, Ready)), "")


def agents(*, as_json: bool) -> int:
    """Every tool that git relay knows; nothing is started to find out."""
    seen = [_look(tool) for tool in TOOLS.values()]
    if as_json:
        print_json({"agents": [_json(one) for one in seen]})
        return ExitCode.DONE
    print_table(_HEAD, [_row(one) for one in seen])
    for one in seen:
        for what, lack in abilities(one.tool).items():
            if lack is not None and one.at is not None:
                print(f"{one.tool.name}: no {what}: {lack.reason}")
    return ExitCode.DONE


def _look(tool: Tool) -> _Seen:
    agent = AGENTS.get(tool.name)
    verdicts = {p: agent.check(os.environ, p) for p in Permission} if agent is not None else {}
    return _Seen(tool, installed(tool.name, os.environ), verdicts, context.accounts().known(tool.name))


def _row(one: _Seen) -> tuple[str, ...]:
    can = abilities(one.tool)
    version = one.at.version or "unknown" if one.at is not None else "-"
    reasons = [v.reason for v in one.verdicts.values() if isinstance(v, Unready)]
    return (
        one.tool.name,
        str(one.at.program) if one.at is not None else "with git relay" if one.tool.name == "demo" else "no",
        version + (" (newer)" if is_newer(version, one.tool.last_seen) else ""),
        one.tool.last_seen or "not seen live",
        one.evidence or (reasons[-1] if one.at is not None and reasons else "-"),
        ", ".join(one.accounts) or "-",
        ", ".join(what for what, lack in can.items() if lack is None),
        ", ".join(what for what, lack in can.items() if lack is not None) or "-",
        one.channel or "-",
    )


def _json(one: _Seen) -> dict[str, Any]:
    version = one.at.version if one.at is not None else ""
    return {
        "agent": one.tool.name,
        "title": one.tool.title,
        "installed": one.at is not None or one.tool.name == "demo",
        "program": str(one.at.program) if one.at is not None else None,
        "version": version or None,
        "verifiedWith": one.tool.last_seen or None,
        "newerThanVerified": is_newer(version, one.tool.last_seen),
        "signedInBy": one.evidence or None,
        "accounts": list(one.accounts),
        "toldBy": one.channel or None,
        "ready": {
            str(permission): {"ready": isinstance(verdict, Ready)}
            | ({"reason": verdict.reason, "hint": verdict.hint} if isinstance(verdict, Unready) else {})
            for permission, verdict in one.verdicts.items()
        },
        "supports": {
            what: {"supported": lack is None} | ({"reason": lack.reason} if lack is not None else {})
            for what, lack in abilities(one.tool).items()
        },
    }
