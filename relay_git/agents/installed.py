"""What is installed of a tool, found without starting it: its program, and the version that lies beside it.

Promise: nothing is started and nothing is asked of a network. A version comes from the package that the program belongs
to, known by its name, or from a folder that a native installer names by it; else it is unknown, never guessed.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from relay_git.agents import AGENTS, jsonl, shelf
from relay_git.agents.agent import HasTui, Tool, Unsupported

_PROGRAMS = {
    **{name: name for name in ("claude", "codex", "opencode", "gemini", "qwen", "copilot", "cline", "aider")},
    "continue": "cn",
    "cursor": "cursor-agent",
}
_NPM = {
    "claude": ("@anthropic-ai/claude-code",),
    "codex": ("@openai/codex",),
    "opencode": ("opencode-ai",),
    "gemini": ("@google/gemini-cli",),
    "qwen": ("@qwen-code/qwen-code",),
    "copilot": ("@github/copilot",),
    "cline": ("cline", "@cline/cli"),
    "continue": ("@continuedev/cli",),
}
_PYTHON = {"aider": "aider_chat"}
_ABOVE = 8  # folders above a program in which its package is looked for
_VERSION = re.compile(r"v?(\d+\.\d+\.\d+(?:[-+.][0-9A-Za-z.-]+)?)")


@dataclass(frozen=True, slots=True)
class Installed:
    """A program on PATH, and its version; empty where nothing tells it."""

    program: Path
    version: str


def installed(tool: str, env: Mapping[str, str]) -> Installed | None:
    """What the tool's program on PATH is; None where there is none, or where git relay knows of no program."""
    name = _PROGRAMS.get(tool, "")
    found = shutil.which(name, path=env.get("PATH", "")) if name else None
    if found is None:
        return None
    program = Path(found)
    try:
        real = program.resolve()
    except (OSError, RuntimeError):  # a circle of links
        real = program
    return Installed(program, _of_npm(tool, real) or _of_python(tool, real) or _of_folder(tool, real))


def is_newer(version: str, verified: str) -> bool:
    """Whether a version is newer than the one that a tool was last verified with; False where either is unknown."""
    return bool(version and verified) and _numbers(version) > _numbers(verified)


def abilities(tool: Tool) -> dict[str, Unsupported | None]:
    """What git relay can do with a tool; where it cannot, why."""
    agent = AGENTS.get(tool.name)
    if agent is None:
        never = Unsupported(f"{tool.title} cannot be started from here; its sessions can be read and adopted")
        return {"read": None, "start": never, "resume": never, "sandbox": never, "tui": never}
    return {
        "read": None,
        "start": None,
        "resume": Unsupported(agent.unresumable) if agent.unresumable else None,
        "sandbox": Unsupported(agent.unconfined) if agent.unconfined else None,
        "tui": None
        if isinstance(agent, HasTui)
        else Unsupported(f"git relay cannot start the TUI of {agent.title} yet"),
    }


def _of_npm(tool: str, program: Path) -> str:
    for folder in list(program.parents)[:_ABOVE]:
        about = shelf.document(folder / "package.json")
        name = jsonl.text(about.get("name"))
        # The program itself may lie in a package for this machine alone, such as @cline/cli-linux-x64.
        if any(name == known or name.startswith(f"{known}-") for known in _NPM.get(tool, ())):
            return jsonl.text(about.get("version"))[:40]
    return ""


def _of_python(tool: str, program: Path) -> str:
    """A script lies in the `bin` of the environment that its package is in."""
    name = _PYTHON.get(tool)
    places = program.parent.parent.glob(f"lib/python3*/site-packages/{name}-*.dist-info") if name else ()
    found = [place.name.removeprefix(f"{name}-").removesuffix(".dist-info") for place in places]
    return max(found, key=_numbers, default="")


def _of_folder(tool: str, program: Path) -> str:
    """`…/claude/versions/2.1.332`, `…/Cellar/codex/0.171.0/bin/codex`: a version within the tool's own folder."""
    parts = program.parts
    for place, part in enumerate(parts):
        named = _VERSION.fullmatch(part)
        if named and any(tool in above for above in parts[max(0, place - 2) : place]):
            return named[1]
    return ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number[:9]) for number in re.findall(r"\d+", version.partition("-")[0])[:4])
