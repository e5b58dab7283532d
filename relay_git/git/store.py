"""Objects and refs, behind one small interface.

Promise: what is written has been fsynced when the call returns; a ref moves only from the value that the caller
saw. Two implementations stand behind it and write the same bytes: `libgit2.py`, which is fast, and `plain.py`, which
asks git itself and so reads every repository that git reads.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NewType, Protocol

from relay_git.errors import RepoError

Oid = NewType("Oid", str)
ZERO = Oid("0" * 40)  # in every repository, however long its ids are
OID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")  # SHA-1 or SHA-256
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

    def writing(self) -> Mapping[str, str]:
        """The environment in which a git of ours writes objects as this store does: apart, until a ref moves."""

    def holds(self, oid: Oid) -> bool:
        """Whether the object lies where this store writes, so that no prune can take it: git adds none that it has."""

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


def open_store(common_dir: Path) -> Store:
    """The store of this repository: on libgit2 where that can read it, else on git itself."""
    from relay_git.git import libgit2, plain

    return libgit2.open_store(common_dir) or plain.open_store(common_dir)


def tree_entries(data: bytes, tree: Oid) -> Iterator[TreeEntry]:
    """The entries in the bytes of a tree: mode in octal, blank, name, NUL, id, and again; raises RepoError."""
    here, width = 0, len(tree) // 2
    while here < len(data):
        end = data.find(b"\0", here)
        mode, _, name = data[here:end].partition(b" ")
        here = end + 1 + width
        if end < 0 or here > len(data) or not name or not mode.isdigit():
            raise RepoError(f"the tree {tree} is damaged", hint="git fsck")
        yield TreeEntry(name, int(mode, 8), Oid(data[end + 1 : here].hex()))


def tree_bytes(entries: Iterable[TreeEntry]) -> bytes:
    """The bytes of the tree of these entries, in git's order: a folder sorts as if its name ended in a slash."""
    ordered = sorted(entries, key=lambda e: e.name + b"/" if e.mode == TREE_MODE else e.name)
    return b"".join(b"%o %s\0" % (e.mode, e.name) + bytes.fromhex(e.oid) for e in ordered)


def commit_bytes(tree: Oid, parents: Iterable[Oid], message: str, when: int) -> bytes:
    """The bytes of a commit by git relay itself."""
    who = f"{AUTHOR[0]} <{AUTHOR[1]}> {when} +0000"
    head = [f"tree {tree}", *(f"parent {p}" for p in parents), f"author {who}", f"committer {who}"]
    return "\n".join([*head, "", message.rstrip("\n"), ""]).encode()
