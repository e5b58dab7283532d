"""The store on libgit2 (pygit2) for objects and reads, and on `git update-ref` for moves.

Promise: see `store`. libgit2 has no compare-and-swap for several refs that also waits for a foreign lock, and git's
own reflog and lock rules are what the user's other tools expect; so refs move with git itself.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pygit2

from relay_git.errors import RepoError, printable
from relay_git.git import fresh, history, refs
from relay_git.git.run import Git, failure
from relay_git.git.store import AUTHOR, OID, Commit, Oid, RefUpdate, TreeEntry, tree_entries

_FOLDERS = 16
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


class Libgit2Store:
    """Objects and refs of one repository through libgit2."""

    def __init__(self, common_dir: Path, repo: pygit2.Repository, git: Git) -> None:
        self._common_dir, self._repo, self._git = common_dir, repo, git
        self._fresh: fresh.Fresh | None = None
        self._odb = self._with_alternates(repo.odb)
        self._folders: dict[Oid, pygit2.Object | None] = {}

    def exists(self, oid: Oid) -> bool:
        return _is_oid(oid) and pygit2.Oid(hex=oid) in self._odb

    def blob(self, oid: Oid) -> bytes | None:
        return self._read(oid, _BLOB)

    def blob_size(self, oid: Oid) -> int | None:
        if not _is_oid(oid):
            return None
        try:
            kind, size = self._odb.read_header(pygit2.Oid(hex=oid))
        except KeyError:
            return None
        except pygit2.GitError as error:
            raise _unreadable(oid, error) from error
        return int(size) if kind == _BLOB else None

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

    def write_blob(self, data: bytes) -> Oid:
        return self._write("a blob", lambda: self._repo.create_blob(data))

    def write_tree(self, entries: Iterable[TreeEntry]) -> Oid:
        def build() -> pygit2.Oid:
            builder = self._repo.TreeBuilder()
            for e in entries:
                builder.insert(e.name.decode(), pygit2.Oid(hex=e.oid), pygit2.enums.FileMode(e.mode))
            return builder.write()

        return self._write("a tree", build)

    def write_commit(self, tree: Oid, parents: Iterable[Oid], message: str, when: int) -> Oid:
        who = pygit2.Signature(*AUTHOR, when, 0)
        ids: list[pygit2.Oid | str] = [pygit2.Oid(hex=p) for p in parents]
        text = message.rstrip("\n") + "\n"
        return self._write(
            "a commit", lambda: self._repo.create_commit(None, who, who, text, pygit2.Oid(hex=tree), ids)
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

    def changes(self, tips: Iterable[Oid], name: str) -> dict[Oid, tuple[Oid, ...]]:
        return history.changes(self._git, tips, name)

    def move(self, updates: Iterable[RefUpdate], reason: str) -> None:
        fresh.publish(self._fresh)
        refs.move(self._git, self.ref, updates, reason)
        fresh.publish(self._fresh)  # a prune that had looked before the move may have taken some

    def writing(self) -> Mapping[str, str]:
        if self._fresh is None:
            self._fresh = fresh.begin(self._common_dir, self._git)
            weakref.finalize(self, self._fresh.close)
            self._git = replace(self._git, extra=self._fresh.env)
            self._odb = self._with_alternates(pygit2.Odb(str(self._fresh.folder)))
            self._repo.set_odb(self._odb)
        return self._fresh.env

    def _with_alternates(self, odb: pygit2.Odb) -> pygit2.Odb:
        for folder in fresh.folders(fresh.top_of(self._common_dir)):
            odb.add_disk_alternate(str(folder))
        return odb

    def _get(self, oid: Oid) -> pygit2.Object | None:
        if not _is_oid(oid):
            return None
        try:
            return self._repo.get(pygit2.Oid(hex=oid))
        except pygit2.GitError as error:
            raise _unreadable(oid, error) from error

    def _read(self, oid: Oid, kind: int) -> bytes | None:
        if not _is_oid(oid):
            return None
        try:
            found, data = self._odb.read(oid)
        except KeyError:
            return None
        except pygit2.GitError as error:
            raise _unreadable(oid, error) from error
        return data if found == kind else None

    def _write(self, what: str, write: Callable[[], pygit2.Oid]) -> Oid:
        self.writing()
        try:
            return Oid(str(write()))
        except (pygit2.GitError, OSError) as error:
            raise failure(f"write of {what}", 1, f"fatal: {error}".encode(), self._git.cwd) from error


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
