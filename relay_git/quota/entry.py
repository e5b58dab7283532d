"""What is known of one account, as a row of things that happened: readings of its meters, refusals, finished turns."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Self

from relay_git.session import LimitNotice, QuotaReading

HEADERS = "response headers"
DECLARED = "declared plan"


@dataclass(frozen=True, slots=True, order=True)
class Account:
    """One login of one agent; without a label, the one that the tool itself is signed in with."""

    agent: str
    label: str = ""

    def __str__(self) -> str:
        return f"{self.agent}:{self.label}" if self.label else self.agent

    @classmethod
    def parse(cls, text: str) -> Self:
        """The account in `AGENT` or `AGENT:ACCOUNT`."""
        agent, _, label = text.partition(":")
        return cls(agent, label)


@dataclass(frozen=True, slots=True)
class Refusal:
    """The service said no; `at` is aware UTC."""

    notice: LimitNotice
    at: datetime


@dataclass(frozen=True, slots=True)
class Spent:
    """The account answered: so many requests and tokens went through, in the time that ends at `at` (aware UTC)."""

    at: datetime
    requests: int = 1
    tokens: int = 0


Entry = QuotaReading | Refusal | Spent


def happened(entry: Entry) -> datetime:
    """When it happened."""
    return entry.at
