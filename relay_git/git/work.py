"""What a session changed, as git tells it: the facts that a contract is built from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FileStatus(StrEnum):
    """What happened to a path between the base commit and the snapshot."""

    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"
    TYPE_CHANGED = "type-changed"


@dataclass(frozen=True, slots=True)
class FileChange:
    """One changed path; `sha256` is over the bytes that git stores, and None where the path is gone or a submodule."""

    path: bytes
    status: FileStatus
    sha256: str | None


@dataclass(frozen=True, slots=True)
class WorkCommit:
    """One commit since the base; `trailers` are (key, value) pairs in the order of the message."""

    oid: str
    subject: str
    trailers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Hunk:
    """The unified diff of one path between the last commit and the snapshot; `truncated` where it was cut."""

    path: bytes
    text: str
    truncated: bool


@dataclass(frozen=True, slots=True)
class WorkFacts:
    """Everything git knows of a session at its snapshot; commits oldest first, files by path, ids in hex."""

    branch: str
    base_commit: str
    head_commit: str
    snapshot_commit: str
    snapshot_tree: str
    commits: tuple[WorkCommit, ...] = ()
    files: tuple[FileChange, ...] = ()
    hunks: tuple[Hunk, ...] = ()
    losses: tuple[str, ...] = ()
