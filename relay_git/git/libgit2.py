"""The store on libgit2 (pygit2) for objects and reads, and on `git update-ref` for moves.

Promise: see `store`. libgit2 has no compare-and-swap for several refs that also waits for a foreign lock, and git's
own reflog and lock rules are what the user's other tools expect; so refs move with git itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pygit2

from relay_git.errors import RepoError, printable
from relay_git.git import fresh, refs
from relay_git.git.run import Git
from relay_git.git.store import (
    AUTHOR,
    OID,
    Commit,
    Oid,
    TreeEntry,
    tree_entries,
)
from relay_git.git.writer import Writer

T = TypeVar("T")
_FOLDERS, _WIDTH = 16, 40
_BLOB, _TREE = int(pygit2.enums.ObjectType.BLOB), int(pygit2.enums.ObjectType.TREE)


def open_store(common_dir: Path) -> Libgit2Store | None:
    """The store of this repository; None where libgit2 cannot work on it: SHA-256, reftable, what is yet to come."""
    pygit2.settings.enable_fsync_gitdir(True)
    pygit2.settings.set_extensions(["partialclone"])  # added to those that libgit2 knows by itself
    try:
        repo = pygit2.Repository(str(common_dir), pygit2.enums.RepositoryOpenFlag.NO_SEARCH)
    except pygit2.GitError:
        return None
    return Libgit2Store(common_dir, repo, Git(common_dir, git_dir=common_dir, fresh=fresh.top_of(common_dir)))


class Libgit2Store(Writer):
    """Objects and refs of one repository through libgit2."""

    def __init__(self, common_dir: Path, repo: pygit2.Repository, git: Git) -> None:
        super().__init__(common_dir, git, _WIDTH)
        self._repo = repo
        self._look_in(repo.odb)
        self._folders: dict[Oid, pygit2.Object | None] = {}

    def exists(self, oid: Oid) -> bool:
        return self._seek(oid, self._odb.read_header) is not None

    def blob(self, oid: Oid) -> bytes | None:
        return self._read(oid, _BLOB)

    def blob_size(self, oid: Oid) -> int | None:
        found = self._seek(oid, self._odb.read_header)
        return int(found[1]) if found is not None and found[0] == _BLOB else None

    def tree(self, oid: Oid) -> tuple[TreeEntry, ...] | None:
        data = self._read(oid, _TREE)
        return tuple(tree_entries(data, oid)) if data is not None else None

    def find(self, tree: Oid, path: bytes) -> TreeEntry | None:
        *folders, last = path.split(b"/")
        here = self._folder(tree)
        for name in folders:
            below = _member(here, name)
            here = self._folder(Oid(str(below.id))) if below is not None else None
        found = _member(here, last)
        return _entry(found) if found is not None else None

    def _folder(self, oid: Oid) -> pygit2.Object | None:
        """A tree for look-ups; the last few are kept, since one question about a snapshot follows another."""
        if oid not in self._folders:
            if len(self._folders) >= _FOLDERS:
                self._folders.clear()
            self._folders[oid] = self._get(oid)
        return self._folders[oid]

    def commit(self, oid: Oid) -> Commit | None:
        found = self._get(oid)
        if not isinstance(found, pygit2.Commit):
            return None
        message = found.raw_message.decode("utf-8", "replace")
        parents = tuple(Oid(str(p)) for p in found.parent_ids)
        return Commit(
            oid, Oid(str(found.tree_id)), parents, message, found.commit_time, found.committer.email == AUTHOR[1]
        )

    def ref(self, name: str) -> Oid | None:
        try:
            return Oid(str(self._repo.references[name].resolve().target))
        except (KeyError, ValueError, pygit2.GitError):
            return None

    def refs(self, prefix: str) -> Iterator[tuple[str, Oid]]:
        names = sorted(n for n in self._repo.references if n.startswith(prefix))
        found = ((n, self.ref(n)) for n in names)
        return ((n, oid) for n, oid in found if oid is not None)

    def ref_names(self, prefix: str) -> list[str]:
        names = {n for n in self._repo.references if n.startswith(prefix)}
        loose = refs.loose_names(Path(self._repo.path), prefix)  # libgit2 passes over a file with garbage in it
        return sorted(names | {n for n in loose if pygit2.reference_is_valid_name(n)})

    def _read_there_too(self, begun: fresh.Fresh) -> None:
        self._look_in(pygit2.Odb(str(begun.folder)))
        self._repo.set_odb(self._odb)

    def _look_in(self, odb: pygit2.Odb) -> None:
        """Read there, and where other stores write."""
        self._odb, self._read_too = odb, set[Path]()
        self._look_where_others_write()

    def _look_where_others_write(self) -> bool:
        """Whether there is a place where nobody has looked yet."""
        more = [folder for folder in fresh.folders(fresh.top_of(self._common_dir)) if folder not in self._read_too]
        for folder in more:
            self._odb.add_disk_alternate(str(folder))
        self._read_too.update(more)
        return more != []

    def _get(self, oid: Oid) -> pygit2.Object | None:
        return self._seek(oid, self._repo.get)

    def _read(self, oid: Oid, kind: int) -> bytes | None:
        found = self._seek(oid, self._odb.read)
        return found[1] if found is not None and found[0] == kind else None

    def _seek(self, oid: Oid, ask: Callable[[pygit2.Oid], T | None]) -> T | None:
        """What is known of an object; another store may have begun to write since this one was opened."""
        if not _is_oid(oid):
            return None
        try:
            while True:
                try:
                    found = ask(pygit2.Oid(hex=oid))
                except KeyError:
                    found = None
                if found is not None or not self._look_where_others_write():
                    return found
        except pygit2.GitError as error:
            raise _unreadable(oid, error) from error


def _unreadable(oid: Oid, error: pygit2.GitError) -> RepoError:
    return RepoError(f"object {oid} cannot be read: {printable(str(error))}", hint="git fsck")


def _member(tree: pygit2.Object | None, name: bytes) -> pygit2.Object | None:
    if not isinstance(tree, pygit2.Tree):
        return None
    try:
        return tree[name.decode()] if name else None
    except UnicodeDecodeError:  # libgit2 is asked by text only
        return next((e for e in tree if e.raw_name == name), None)
    except (KeyError, ValueError):
        return None


def _entry(e: pygit2.Object) -> TreeEntry:
    assert e.raw_name is not None  # noqa: S101 - entries of a tree always have a name
    return TreeEntry(e.raw_name, int(e.filemode), Oid(str(e.id)))


def _is_oid(text: str) -> bool:
    return len(text) == 40 and OID.fullmatch(text) is not None
