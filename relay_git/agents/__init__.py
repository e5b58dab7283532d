"""The tools: one adapter for each agent CLI, found by its name.

Promise: a name gives the same adapter everywhere; adapters are stateless and cheap to import, and none starts anything.
"""

from __future__ import annotations

import difflib

from relay_git.agents.agent import Agent
from relay_git.agents.claude import Claude
from relay_git.agents.codex import Codex
from relay_git.agents.demo import Demo
from relay_git.errors import UserError

AGENTS: dict[str, Agent] = {"claude": Claude(), "codex": Codex(), "demo": Demo()}

# Agents that git relay has a name for and cannot start yet, with the names that their tools go by.
PLANNED: dict[str, tuple[str, ...]] = {
    "opencode": ("opencode-ai",),
    "gemini": ("gemini-cli",),
    "qwen": ("qwen-code",),
    "copilot": ("copilot-cli",),
    "cline": ("cline-cli",),
    "continue": ("continue-cli", "cn"),
    "aider": ("aider-chat",),
    "cursor": ("cursor-agent", "cursor-cli"),
    "antigravity": ("antigravity-cli",),
    "copilot-chat": ("vscode-copilot-chat",),
}


def find_agent(name: str) -> Agent:
    """The adapter of an agent by our name or its tool's own; UserError where there is none, or none yet."""
    wanted = name.strip().lower()
    for agent in AGENTS.values():
        if wanted == agent.name or wanted in agent.aliases:
            return agent
    for planned, aliases in PLANNED.items():
        if wanted == planned or wanted in aliases:
            raise UserError(f"the agent {planned} is not supported yet", hint=f"use one of: {', '.join(AGENTS)}")
    known = [alias for agent in AGENTS.values() for alias in (agent.name, *agent.aliases)]
    known += [alias for planned, aliases in PLANNED.items() for alias in (planned, *aliases)]
    near = difflib.get_close_matches(wanted, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"use one of: {', '.join(AGENTS)}"
    raise UserError(f"there is no agent named {name!r}", hint=hint)
