"""Objects and refs, behind one small interface.

Promise: what is written has been fsynced when the call returns; a ref moves only from the value that the caller
saw. Today one implementation stands behind it (`libgit2.py`); a second on plain git (`cat-file --batch`) can follow for
SHA-256 and reftable repositories without a change to any caller.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NewType, Protocol

Oid = NewType("Oid", str)
ZERO = Oid("0" * 40)
AUTHOR = ("git relay", "git-relay@localhost")  # of the commits that git relay makes itself

TREE_MODE = stat.S_IFDIR
BLOB_MODE = stat.S_IFREG | 0o644
GITLINK_MODE = 0o160000


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One name in a tree; `mode` as git has it (0o100644, 0o040000, …)."""

    name: bytes
    mode: int
    oid: Oid


@dataclass(frozen=True, slots=True)
class Commit:
    """What a commit says; `message` decoded with replacement, `ours` where git relay made it and nobody amended it."""

    oid: Oid
    tree: Oid
    parents: tuple[Oid, ...]
    message: str
    when: int
    ours: bool


@dataclass(frozen=True, slots=True)
class RefUpdate:
    """Move `name` from `old` to `new`; ZERO as `old` means that it must not exist, as `new` that it goes."""

    name: str
    new: Oid
    old: Oid


class Store(Protocol):
    """Objects by id, refs by name; every method raises RepoError on a broken repository."""

    def exists(self, oid: Oid) -> bool:
        """Whether the object is there."""

    def blob(self, oid: Oid) -> bytes | None:
        """A blob's bytes, None where it is missing or no blob."""

    def blob_size(self, oid: Oid) -> int | None:
        """A blob's size in bytes without reading it."""

    def tree(self, oid: Oid) -> tuple[TreeEntry, ...] | None:
        """A tree's entries in git's order, None where it is missing or no tree."""

    def find(self, tree: Oid, path: bytes) -> TreeEntry | None:
        """The entry at a slash-separated path below a tree."""

    def commit(self, oid: Oid) -> Commit | None:
        """A commit, None where it is missing or no commit."""

    def write_blob(self, data: bytes) -> Oid:
        """Store a blob."""

    def write_tree(self, entries: Iterable[TreeEntry]) -> Oid:
        """Store a tree; the entries may come in any order."""

    def write_commit(self, tree: Oid, parents: Iterable[Oid], message: str, when: int) -> Oid:
        """Store a commit by git relay itself; `when` in seconds since 1970, UTC."""

    def ref(self, name: str) -> Oid | None:
        """What a full ref name points at, symbolic refs followed; None where it does not exist."""

    def refs(self, prefix: str) -> Iterator[tuple[str, Oid]]:
        """All refs below a prefix that can be read, by name."""

    def ref_names(self, prefix: str) -> list[str]:
        """The names of all refs below a prefix, also of those that cannot be read."""

    def changes(self, tips: Iterable[Oid], name: str) -> dict[Oid, tuple[Oid, ...]]:
        """Where a file changes on the first-parent chains of `tips`, and the parents in that pruned history."""

    def move(self, updates: Iterable[RefUpdate], reason: str) -> None:
        """Move all refs or none, each only from its `old`; raises LedgerConflict where one had another value."""
