"""Tools that have no sandbox of their own in which a session's work can be done.

Promise: such a tool is never started under `sandbox`; the user is told why, and what to type where they accept it.
"""

from __future__ import annotations

from dataclasses import replace

from relay_git.agents.agent import Launch, Unready, Unsupported


def not_confined(name: str, why: str) -> Unready:
    """What `check` says under `sandbox`."""
    return Unready(why, f"git config relay.{name}.permission full   (it may then do all that your user may do)")


def full_grants(name: str) -> tuple[str, ...]:
    """What an agent may do under `full`."""
    return (f"everything that your user may do: no sandbox, no questions (relay.{name}.permission is full)",)


def without_yolo(plan: Launch | Unsupported) -> Launch | Unsupported:
    """The same start of Gemini CLI, or of Qwen Code which comes from it, where no call that needs a leave gets one."""
    if isinstance(plan, Unsupported):
        return plan
    program, *words = (word for word in plan.argv if word != "--yolo")
    return replace(plan, argv=(program, "--approval-mode", "default", *words))
