"""A command that an agent ran, kept as it came until someone asks for it.

Promise: what is told of an output is the SHA-256 of all of it and its end, which is where commands say how they fared.
"""

from __future__ import annotations

from typing import NamedTuple

from relay_git.agents import jsonl
from relay_git.session import Command

_EXCERPT_CHARS = 400


class Ran(NamedTuple):
    """A command; `output` is None where it is not known, `digest` is the tool's own where it shows a part only."""

    command: str
    code: int | None
    output: str | None
    digest: str = ""

    def told(self) -> Command:
        """What is handed on: in a long session most commands are forgotten before this is asked for."""
        known = self.digest or (None if self.output is None else jsonl.sha256(self.output))
        return Command(self.command, self.code, known, _excerpt((self.output or "").strip()))


def _excerpt(tail: str) -> str:
    return tail if len(tail) <= _EXCERPT_CHARS else "…" + tail[1 - _EXCERPT_CHARS :]
