"""The tools: one adapter for each agent CLI, found by its name.

Promise: a name gives the same adapter everywhere; adapters are stateless and cheap to import, and none starts anything.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from relay_git.agents.agent import Agent, Tool
from relay_git.agents.aider import Aider
from relay_git.agents.antigravity import Antigravity
from relay_git.agents.claude import Claude
from relay_git.agents.cline import Cline
from relay_git.agents.codex import Codex
from relay_git.agents.continue_ import Continue
from relay_git.agents.copilot import Copilot
from relay_git.agents.copilot_chat import CopilotChat
from relay_git.agents.cursor import Cursor
from relay_git.agents.demo import Demo
from relay_git.agents.gemini import Gemini
from relay_git.agents.opencode import Opencode
from relay_git.agents.qwen import Qwen
from relay_git.errors import UserError

AGENTS: dict[str, Agent] = {
    "claude": Claude(),
    "codex": Codex(),
    "opencode": Opencode(),
    "gemini": Gemini(),
    "qwen": Qwen(),
    "copilot": Copilot(),
    "cline": Cline(),
    "continue": Continue(),
    "aider": Aider(),
    "demo": Demo(),
}

# Tools whose transcripts can be read, and which cannot be started from here.
READ_ONLY: dict[str, Tool] = {"cursor": Cursor(), "antigravity": Antigravity(), "copilot-chat": CopilotChat()}

TOOLS: dict[str, Tool] = {**AGENTS, **READ_ONLY}


def find_agent(name: str) -> Agent:
    """The adapter of an agent by our name or its tool's own; UserError where there is none."""
    tool = find_tool(name, AGENTS)
    if tool.name not in AGENTS:
        raise UserError(
            f"{tool.title} cannot be started from here; its sessions can be read",
            hint=f"use one of: {', '.join(AGENTS)}",
        )
    return AGENTS[tool.name]


def find_tool(name: str, meant: Mapping[str, Tool] = TOOLS) -> Tool:
    """The reader of a tool by our name or its own; UserError, which proposes one of `meant`, where there is none."""
    wanted = name.strip().lower()
    for tool in TOOLS.values():
        if wanted == tool.name or wanted in tool.aliases:
            return tool
    known = [alias for tool in meant.values() for alias in (tool.name, *tool.aliases)]
    near = difflib.get_close_matches(wanted, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"use one of: {', '.join(meant)}"
    raise UserError(f"there is no agent named {name!r}", hint=hint)
