"""The fields of a contract, version 1: what each member is called and may hold.

Promise: every contract that `build` makes is an `Unsigned`, and every verified one a `Contract`; members that this
version does not know are kept. Names are camelCase in JSON and snake_case here. Nothing is ever signed or verified
through a model: the signature is over the stored bytes (`canonical`, `verify`). docs/format.md says what the members
mean.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

from relay_git.contract.pause import SafePoint
from relay_git.git.work import FileStatus
from relay_git.session import PlanStatus

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
ObjectId = Annotated[str, StringConstraints(pattern=r"^(?:[0-9a-f]{40}|[0-9a-f]{64})$")]
KeyId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
Instant = Annotated[str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]


class _Part(BaseModel):
    """Frozen, strict about types, and open to members of which this version knows nothing."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True, alias_generator=to_camel, populate_by_name=True)


class EvidenceKind(StrEnum):
    """What a piece of evidence is."""

    PROMPT = "prompt"
    LIMIT = "limit"
    OPEN_CALL = "open-call"
    COMMAND = "command"
    COMMIT = "commit"


class Previous(_Part):
    """The contract before this one, by id and by the SHA-256 of its stored bytes."""

    contract_id: str
    sha256: Sha256


class Party(_Part):
    """One agent with the account that it used."""

    agent: str
    account: str
    model: str


class Said(_Part):
    """A statement and where it comes from."""

    text: str
    source: str


class PlanEntry(Said):
    """A step of the plan and where it stands."""

    status: Annotated[PlanStatus, Field(strict=False)]


class Decision(_Part):
    """Something that was decided, and why where that was said."""

    summary: str
    rationale: str
    source: str


class Constraint(_Part):
    """A rule to keep, prohibitions among them."""

    rule: str
    source: str


class Summary(_Part):
    """What is known, what was only believed, and what is open."""

    facts: list[Said]
    hypotheses: list[Said]
    open_questions: list[Said]


class Evidence(_Part):
    """An excerpt, and the SHA-256 of the whole redacted text that it was taken from."""

    id: str
    kind: Annotated[EvidenceKind, Field(strict=False)]
    source: str
    excerpt: str
    sha256: Sha256


class Check(_Part):
    """A command that the agent ran, with the exit code of its latest run, and the leg of that run."""

    command: str
    exit_code: int
    output_sha256: Sha256 | None
    leg: int | None = None


class Acceptance(_Part):
    """A command that must succeed before the task counts as done."""

    command: str


class ManifestEntry(_Part):
    """A changed file; `path_base64` has the exact bytes of a name that is not UTF-8.

    With `path_redacted` the name holds a secret and is not told: the tree of the snapshot vouches for the file.
    """

    path: str
    path_base64: str | None = None
    path_redacted: bool = False
    status: Annotated[FileStatus, Field(strict=False)]
    sha256: Sha256 | None


class Snippet(_Part):
    """A piece of work since the last commit, as a unified diff."""

    path: str
    path_base64: str | None = None
    path_redacted: bool = False
    snippet: str
    truncated: bool


class Pause(_Part):
    """Why and at what point the leg was stopped."""

    reason: str
    detail: str
    safe_point: Annotated[SafePoint, Field(strict=False)]


class TokenUsage(_Part):
    """Tokens as the agent counts them."""

    input: int
    output: int
    cache_read: int
    cache_write: int


class Cut(_Part):
    """A section that the brief does not show whole: how many of how many entries, and by which rule."""

    section: str
    shown: int
    of: int
    rule: str


class Budget(_Part):
    """About how many tokens the brief may take, and what is left out of it for that."""

    tokens: int
    cuts: list[Cut]


class Unsigned(_Part):
    """A contract that is about to be signed."""

    format: Literal["git-relay-contract"]
    version: Literal[1]
    contract_id: str
    session_id: str
    task_id: str
    leg: int
    created_at: Instant
    previous: Previous | None
    sender: Party = Field(alias="from")
    receiver: Party | None = Field(alias="to")
    task_goal: str
    initial_prompt: str
    initial_prompt_bytes: int
    initial_prompt_sha256: Sha256 = Field(alias="initialPromptSha256")
    plan: list[PlanEntry]
    next_action: str
    next_action_source: str
    tasks_remaining: list[Said]
    do_not_redo: list[Said]
    decisions: list[Decision]
    constraints: list[Constraint]
    summary: Summary
    evidence: list[Evidence]
    checks: list[Check]
    acceptance: list[Acceptance]
    output_contract: str
    file_manifest: list[ManifestEntry]
    in_flight_code: list[Snippet]
    skills: list[str]
    base_commit: ObjectId
    head_commit: ObjectId
    snapshot_commit: ObjectId
    snapshot_tree: ObjectId
    branch: str
    pause: Pause
    usage: TokenUsage
    redactions: dict[str, int]
    losses: list[str]
    budget: Budget | None = None


class Contract(Unsigned):
    """One signed contract."""

    brief_sha256: Sha256 = Field(alias="briefSha256")
    key_id: KeyId
    signature: Sha256
