"""How every store writes, whatever it reads with: objects into a folder of their own, refs by git.

Promise: what is written lies where no prune can take it, and is in the repository before a ref names it (see `fresh`).
"""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from relay_git.git import fresh, history, refs
from relay_git.git.run import Git
from relay_git.git.store import Oid, RefUpdate, TreeEntry, commit_bytes, tree_bytes


class Writer(ABC):
    """The writing half of a store; `width` is the length of an id in hex."""

    def __init__(self, common_dir: Path, git: Git, width: int) -> None:
        self._common_dir, self._git, self._width = common_dir, git, width
        self._fresh: fresh.Fresh | None = None

    @abstractmethod
    def ref(self, name: str) -> Oid | None: ...

    @abstractmethod
    def _read_there_too(self, begun: fresh.Fresh) -> None:
        """From now on objects lie in this folder as well."""

    def write_blob(self, data: bytes) -> Oid:
        return self._write("blob", data)

    def write_tree(self, entries: Iterable[TreeEntry]) -> Oid:
        return self._write("tree", tree_bytes(entries))

    def write_commit(self, tree: Oid, parents: Iterable[Oid], message: str, when: int) -> Oid:
        return self._write("commit", commit_bytes(tree, parents, message, when))

    def writing(self) -> Mapping[str, str]:
        return self._written().env

    def holds(self, oid: Oid) -> bool:
        return self._fresh is not None and self._fresh.holds(oid)

    def changes(self, tips: Iterable[Oid], name: str) -> dict[Oid, tuple[Oid, ...]]:
        return history.changes(self._git, tips, name)

    def move(self, updates: Iterable[RefUpdate], reason: str) -> None:
        fresh.publish(self._fresh)
        refs.move(self._git, self.ref, updates, reason)
        fresh.publish(self._fresh)  # a prune that had looked before the move may have taken some

    def _written(self) -> fresh.Fresh:
        if self._fresh is None:
            self._fresh = fresh.begin(self._common_dir, self._git, self._width)
            weakref.finalize(self, self._fresh.close)
            self._git = replace(self._git, extra={**self._git.extra, **self._fresh.env})
            self._read_there_too(self._fresh)
        return self._fresh

    def _write(self, kind: str, data: bytes) -> Oid:
        return fresh.write(self._written(), kind, data)
