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
    """What kind of allowance ran out; `LOGIN` is none: the service does not take the login any more."""

    USAGE = "usage"
    RATE = "rate"
    OVERLOAD = "overload"
    BILLING = "billing"
    LOGIN = "login"


@dataclass(frozen=True, slots=True)
class LimitNotice:
    """A refusal that the agent's own channel reported; `resets_at` is aware UTC, or None where it was not said."""

    kind: LimitKind
    evidence: str
    window: str | None = None
    resets_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class QuotaReading:
    """How much of one window of an account was used at a moment, as the tool or its service said.

    `window` is the provider's own name for it, `minutes` its length where known. `used` is a share: 0.0 nothing, 1.0
    all; it may be more. `at` and `resets_at` are aware UTC. `source` says in words where the figure comes from.
    """

    window: str
    used: float
    at: datetime
    resets_at: datetime | None = None
    minutes: int | None = None
    source: str = ""


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
class ToolCall:
    """One call of a tool; `target` is the file or command it was about, `ok` is None where no result is known."""

    id: str
    name: str
    target: str = ""
    ok: bool | None = None

    def __str__(self) -> str:
        return f"{self.name}: {self.target}" if self.target else self.name


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

    `prompts` are the human's in the active conversation, in order, injected ones left out; those on a branch that was
    taken back are `abandoned_prompts`, those of the parent of a fork `inherited_prompts`, `open_prompt` is the last
    one where no answer followed. `texts` are the agent's own words in the active conversation, oldest first, the newest
    of them where there are too many. `model_turns` counts finished answers of a real model in the active conversation.
    `calls` are the newest tool calls with a result, `pending_calls` those without. `files_touched` are relative to
    `cwd` where they lie below it. `usage` counts every message once, subagents included, what a fork inherited not;
    `usage_active` is that of the active conversation alone. `losses` says in words what could not be read,
    `unreadable` names such files; `skipped` counts broken records, `skipped_lines` are the first of them. `quota` is
    the newest reading of each window. `at_limit` says that a limit is the newest that happened: the agent said and did
    nothing after it.
    """

    agent: str
    native_id: str = ""
    cwd: str = ""
    branch: str = ""
    model: str = ""
    version: str = ""
    forked_from: str = ""
    subagents: tuple[str, ...] = ()
    foreign_sessions: tuple[str, ...] = ()
    compactions: int = 0
    prompts: tuple[str, ...] = ()
    abandoned_prompts: tuple[str, ...] = ()
    inherited_prompts: tuple[str, ...] = ()
    open_prompt: str = ""
    last_text: str = ""
    texts: tuple[str, ...] = ()
    plan: tuple[PlanItem, ...] = ()
    commands: tuple[Command, ...] = ()
    files_touched: tuple[str, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    pending_calls: tuple[ToolCall, ...] = ()
    skills: tuple[str, ...] = ()
    mcp_servers: tuple[str, ...] = ()
    model_turns: int = 0
    turn_complete: bool = False
    usage: Usage = field(default_factory=Usage)
    usage_active: Usage = field(default_factory=Usage)
    limits: tuple[LimitNotice, ...] = ()
    quota: tuple[QuotaReading, ...] = ()
    at_limit: bool = False
    started: datetime | None = None
    last_activity: datetime | None = None
    records: int = 0
    skipped: int = 0
    skipped_lines: tuple[int, ...] = ()
    unreadable: tuple[str, ...] = ()
    losses: tuple[str, ...] = ()
