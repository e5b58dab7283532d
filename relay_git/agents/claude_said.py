"""What the human says to Claude Code but not by a prompt: answers, why a call is refused, words in mid-turn, commands.

Shapes as public tools that read these transcripts have them (Claude Code 2.0 to 2.1); none was recorded here. Promise:
only what Claude Code itself writes into the record counts. A tool's own output can say the same words, and is nobody's.
"""

from __future__ import annotations

import re

from relay_git.agents import jsonl
from relay_git.agents.cline_tasks import checklist
from relay_git.agents.draft import MAX_TARGET_CHARS, cut
from relay_git.agents.jsonl import Record
from relay_git.session import PlanItem, PlanStatus

ASKS, PLANS = "AskUserQuestion", "ExitPlanMode"
_REFUSED = "The user doesn't want to proceed with this tool use."
_MARKED = "User rejected tool use"
_REASON = re.compile(r"the user said:\s*(.*?)\s*(?:\n\nNote: The user's next message\b.*)?$", re.DOTALL)
_COMMAND = re.compile(r"<command-name>\s*(/?[\w:.-]{1,100})\s*</command-name>")
_ARGUMENTS = re.compile(r"<command-args>\s*(.*?)\s*</command-args>", re.DOTALL)
_STEP = re.compile(r"^(?:\d{1,3}[.)]|[-*+])[ \t]+(?:\*\*)?(\S.*?)(?:\*\*)?[ \t]*$", re.MULTILINE)
_NUMBERED = re.compile(r"^\d{1,3}[.)][ \t]", re.MULTILINE)


def meanwhile(record: Record) -> str:
    """What was typed while the agent was at work, of an `attachment` record; empty where it is something else."""
    queued = jsonl.record(record.get("attachment"))
    if queued.get("type") != "queued_command" or queued.get("isMeta") is True:
        return ""
    if queued.get("commandMode") != "prompt" or jsonl.record(queued.get("origin")).get("kind") not in (None, "human"):
        return ""
    prompt = queued.get("prompt")
    if isinstance(prompt, str):
        return jsonl.text(prompt).strip()
    return "\n".join(jsonl.text(part.get("text")) for part in jsonl.records(prompt)).strip()


def command(said: str) -> str:
    """A slash command with what was typed behind it; empty where nothing was: `/clear` is no word to the agent."""
    name, arguments = _COMMAND.search(said[:4096]), _ARGUMENTS.search(said)
    return f"/{name[1].lstrip('/')} {arguments[1]}" if name and arguments and arguments[1] else ""


def answers(outcome: object) -> str:
    """Questions that the agent asked by its tool, each with the answer; empty where none was given."""
    given = jsonl.record(jsonl.record(outcome).get("answers"))
    lines = []
    for question, answer in list(given.items())[:20]:
        parts = answer if isinstance(answer, list) else [answer]
        if told := ", ".join(jsonl.text(part) for part in parts if jsonl.text(part)):
            lines.append(f'Asked "{question}": {told}')
    return "\n".join(lines)


def reason(tool: str, printed: str, outcome: object) -> str:
    """Why the user refused a call, in the user's own words; an MCP server's error can read alike, and is none."""
    written = jsonl.text(outcome)
    marked = written == _MARKED or (written.startswith(f"Error: {_REFUSED}") and not tool.startswith("mcp__"))
    found = _REASON.search(printed) if marked and printed.startswith(_REFUSED) else None
    return found[1] if found else ""


def steps(outcome: object) -> list[PlanItem]:
    """The steps of a plan that the user approved: its checklist, else its numbered lines, else its points."""
    plan = jsonl.text(jsonl.record(outcome).get("plan"))
    if boxes := checklist(plan):
        return boxes
    numbered = bool(_NUMBERED.search(plan))
    found = [step for step in _STEP.finditer(plan) if not numbered or step[0][0].isdigit()]
    return [PlanItem(cut(step[1], MAX_TARGET_CHARS), PlanStatus.PENDING) for step in found]
