"""What one agent did, in our words: the SessionRecord and the types it is made of.

Promise: nothing here knows any agent's own format, reads a clock, or touches a disk. `agents` fills a record,
`contract` reads it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NewType

SessionId = NewType("SessionId", str)
ContractId = NewType("ContractId", str)


class PlanStatus(StrEnum):
    """Where a plan item stands."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


class LimitKind(StrEnum):
    """What kind of allowance ran out."""

    USAGE = "usage"
    RATE = "rate"
    OVERLOAD = "overload"
    BILLING = "billing"


@dataclass(frozen=True, slots=True)
class LimitNotice:
    """A refusal that the agent's own channel reported; `resets_at` is aware UTC, or None where it was not said."""

    kind: LimitKind
    evidence: str
    window: str | None = None
    resets_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class PlanItem:
    """One step of the agent's plan."""

    text: str
    status: PlanStatus


@dataclass(frozen=True, slots=True)
class Command:
    """A shell command that the agent ran; `exit_code` is None where the tool does not tell it."""

    command: str
    exit_code: int | None
    output_sha256: str | None
    excerpt: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the tool counts them, each message once."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """What one agent's transcript says that it did.

    `prompts` are the human's, in order, injected ones left out. `model_turns` counts finished answers of a real
    model, `pending_calls` names tool calls without a result. `files_touched` are relative to `cwd` where they lie
    below it. `losses` says in words what could not be read; `skipped` counts records that were passed over as broken.
    """

    agent: str
    native_id: str = ""
    cwd: str = ""
    branch: str = ""
    model: str = ""
    version: str = ""
    prompts: tuple[str, ...] = ()
    last_text: str = ""
    plan: tuple[PlanItem, ...] = ()
    commands: tuple[Command, ...] = ()
    files_touched: tuple[str, ...] = ()
    pending_calls: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    model_turns: int = 0
    turn_complete: bool = False
    usage: Usage = field(default_factory=Usage)
    limits: tuple[LimitNotice, ...] = ()
    started: datetime | None = None
    last_activity: datetime | None = None
    records: int = 0
    skipped: int = 0
    losses: tuple[str, ...] = ()
