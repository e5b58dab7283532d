"""The store on git itself, for repositories that libgit2 refuses: SHA-256, reftable, extensions that are yet to come.

Promise: see `store`; what it writes has the same bytes as from `libgit2`. Objects are read through one `git cat-file`
that lives as long as the store, so that a question costs no process; it never fetches what a partial clone lacks.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from relay_git.errors import RepoError
from relay_git.git import fresh, refs
from relay_git.git.run import Conversation, Git
from relay_git.git.store import (
    AUTHOR,
    OID,
    TREE_MODE,
    Commit,
    Oid,
    TreeEntry,
    tree_entries,
)
from relay_git.git.writer import Writer

_FOLDERS = 16


def open_store(common_dir: Path) -> PlainStore:
    """The store of this repository; raises RepoError where git itself cannot read it."""
    git = Git(common_dir, git_dir=common_dir, extra={"GIT_NO_LAZY_FETCH": "1"}, fresh=fresh.top_of(common_dir))
    return PlainStore(common_dir, git, 64 if git.text("rev-parse", "--show-object-format") == "sha256" else 40)


class PlainStore(Writer):
    """Objects and refs of one repository through git."""

    def __init__(self, common_dir: Path, git: Git, width: int) -> None:
        super().__init__(common_dir, git, width)
        self._reader: Conversation | None = None
        self._folders_read: list[Path] = []
        self._folders: dict[Oid, dict[bytes, TreeEntry]] = {}

    def exists(self, oid: Oid) -> bool:
        return self._ask(oid, "info") is not None

    def blob(self, oid: Oid) -> bytes | None:
        return self._read(oid, "blob")

    def blob_size(self, oid: Oid) -> int | None:
        found = self._ask(oid, "info")
        return found[1] if found is not None and found[0] == "blob" else None

    def tree(self, oid: Oid) -> tuple[TreeEntry, ...] | None:
        data = self._read(oid, "tree")
        return tuple(tree_entries(data, oid)) if data is not None else None

    def find(self, tree: Oid, path: bytes) -> TreeEntry | None:
        here = TreeEntry(b"", TREE_MODE, tree)
        for name in path.split(b"/"):
            below = self._folder(here.oid).get(name) if here.mode == TREE_MODE else None
            if below is None:
                return None
            here = below
        return here

    def _folder(self, oid: Oid) -> dict[bytes, TreeEntry]:
        """A tree for look-ups; the last few are kept, since one question about a snapshot follows another."""
        if oid not in self._folders:
            if len(self._folders) >= _FOLDERS:
                self._folders.clear()
            self._folders[oid] = {e.name: e for e in self.tree(oid) or ()}
        return self._folders[oid]

    def commit(self, oid: Oid) -> Commit | None:
        data = self._read(oid, "commit")
        if data is None:
            return None
        head, _, message = data.partition(b"\n\n")
        fields = [line.partition(b" ")[::2] for line in head.split(b"\n") if not line.startswith(b" ")]
        who, _, when = dict(fields).get(b"committer", b"").rpartition(b"> ")
        try:
            tree, moment = Oid(dict(fields)[b"tree"].decode()), int(when.split(b" ")[0])
        except (KeyError, ValueError) as error:
            raise RepoError(f"the commit {oid} is damaged", hint="git fsck") from error
        parents = tuple(Oid(value.decode()) for key, value in fields if key == b"parent")
        ours = who.rpartition(b"<")[2] == AUTHOR[1].encode()
        return Commit(oid, tree, parents, message.decode("utf-8", "replace"), moment, ours)

    def ref(self, name: str) -> Oid | None:
        done = self._git.result("show-ref", "--verify", "--hash", "--", name)
        return Oid(done.stdout.decode().strip()) if done.returncode == 0 else None

    def refs(self, prefix: str) -> Iterator[tuple[str, Oid]]:
        out = self._git.run("for-each-ref", "--format=%(objectname) %(refname)", prefix).decode("utf-8", "replace")
        lines = (line.partition(" ") for line in out.split("\n") if line)
        return ((name, Oid(oid)) for oid, _, name in lines)

    def ref_names(self, prefix: str) -> list[str]:
        names = {name for name, _ in self.refs(prefix)}
        # git passes over a file with garbage in it.
        loose = refs.loose_names(self._common_dir, prefix) - names
        return sorted(names | {n for n in loose if self._git.result("check-ref-format", n).returncode == 0})

    def _read_there_too(self, begun: fresh.Fresh) -> None:
        self._reader = None  # the one that runs looks in the repository alone

    def _read(self, oid: Oid, kind: str) -> bytes | None:
        found = self._ask(oid, "info")
        if found is None or found[0] != kind:
            return None
        whole = self._ask(oid, "contents")
        return whole[2] if whole is not None else None

    def _ask(self, oid: Oid, what: str) -> tuple[str, int, bytes] | None:
        """Kind, size and, for `contents`, the bytes; None where there is no such object."""
        if len(oid) != self._width or OID.fullmatch(oid) is None:
            return None
        found = self._ask_once(oid, what)
        if found is None and fresh.folders(fresh.top_of(self._common_dir)) != self._folders_read:
            self._reader = None  # it was begun before others began to write
            found = self._ask_once(oid, what)
        return found

    def _ask_once(self, oid: Oid, what: str) -> tuple[str, int, bytes] | None:
        if self._reader is None:
            self._folders_read = fresh.folders(fresh.top_of(self._common_dir))
            self._reader = self._git.converse("cat-file", "--batch-command")
        answer = self._reader.ask(f"{what} {oid}\n".encode(), body_size if what == "contents" else None)
        if answer is None:
            self._reader = None  # git ends on an object that it cannot read
            raise RepoError(f"object {oid} cannot be read", hint="git fsck")
        head, data = answer
        words = head.decode("ascii", "replace").split()
        return (words[1], int(words[2]), data) if len(words) == 3 and words[2].isdigit() else None


def body_size(head: bytes) -> int:
    """How many bytes follow the first line of an answer: the object and a line end, or nothing where it is missing."""
    size = head.rsplit(b" ", 1)[-1].strip()
    return int(size) + 1 if size.isdigit() else 0
