"""Why a leg was stopped, and at what point."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class SafePoint(StrEnum):
    """At what kind of moment the agent was stopped, the best first."""

    COMMIT = "commit"
    TOOL_BOUNDARY = "tool-boundary"
    ENDED = "ended"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class PauseFacts:
    """The reason in a word or two (`usage-limit`, `asked`), what there is to say about it, and the safe point.

    `unfinished` is what is true of a turn that did not come to its end.
    """

    reason: str
    safe_point: SafePoint
    detail: str = ""
    unfinished: str = "the agent was stopped before it ended its turn"
