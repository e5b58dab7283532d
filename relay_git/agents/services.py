"""Where each tool's requests go, and by which variable it is told to send them elsewhere.

A tool that is not here takes no address from its environment, or keeps to another way of signing in that does not
follow it. Claude Code was seen to keep its sign-in and to read its quota with the variable set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Service:
    """`variable` holds the address that the tool sends to, `usual` is where it sends without."""

    variable: str
    usual: str

    def address(self, env: Mapping[str, str]) -> str:
        """Where the tool would send with this environment."""
        return env.get(self.variable) or self.usual


SERVICES: Mapping[str, Service] = {
    "claude": Service("ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
    "gemini": Service("GOOGLE_GEMINI_BASE_URL", "https://generativelanguage.googleapis.com"),
    "qwen": Service("OPENAI_BASE_URL", "https://api.openai.com/v1"),
}
