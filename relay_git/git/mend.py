"""A session's worktree after a power cut, or with an index or a HEAD that git cannot read: what was lost may be empty.

Promise: nothing that holds a byte is taken away. An empty object is removed, since git would take it for the real one
for ever; the branch goes back to its last commit that is whole; a tracked file that came back empty gets its last
stored content. Whatever was lost is named.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from relay_git.errors import RepoError, printable
from relay_git.git import worktree
from relay_git.git.repo import Repo
from relay_git.git.run import Git, disk_error
from relay_git.git.store import Oid
from relay_git.session import SessionId

_OBJECT_FOLDER = re.compile(r"[0-9a-f]{2}")
_NAMES = re.compile(rb"ref: refs/[^\0]+|[0-9a-f]{40}(?:[0-9a-f]{24})?")
_NAMED = 50


def is_readable(repo: Repo, session: SessionId) -> bool:
    """Whether git can read where the worktree stands, and its index."""
    git = repo.session_git(session)
    return all(
        git.result(*asked).returncode == 0
        for asked in (("rev-parse", "-q", "--verify", "HEAD^{commit}"), ("ls-files", "--stage"))
    )


def mend(repo: Repo, session: SessionId, known: tuple[Oid, ...]) -> tuple[str, ...]:
    """Make the worktree readable again; what was lost, in words. `known` are commits that were synced, newest first."""
    git = repo.session_git(session)
    known = tuple(oid for oid in known if git.result("cat-file", "-e", f"{oid}^{{commit}}").returncode == 0)
    try:
        lost = _drop_empty_objects(repo.common_dir / "objects")
        moved = _mend_head(repo, session, git, known)
        if lost or moved or git.result("ls-files", "--stage").returncode != 0:
            (repo.worktree_git_dir(session) / "index").unlink(missing_ok=True)
            git.run("read-tree", "--reset", "HEAD")
        return (*moved, *_refill(git))
    except OSError as error:
        raise disk_error(error, "the session's worktree could not be mended") from error


def _drop_empty_objects(objects: Path) -> int:
    """How many there were. An object is never empty: git writes it elsewhere and renames it when it is whole."""
    empty = [
        Path(entry.path)
        for folder in objects.iterdir()
        if _OBJECT_FOLDER.fullmatch(folder.name)
        for entry in os.scandir(folder)
        if not entry.name.startswith("tmp_") and _is_hollow(Path(entry.path))
    ]
    for file in empty:
        file.unlink()
    return len(empty)


def _mend_head(repo: Repo, session: SessionId, git: Git, known: tuple[Oid, ...]) -> tuple[str, ...]:
    """Have HEAD and the branch name a commit that is whole."""
    head, branch = repo.worktree_git_dir(session) / "HEAD", worktree.branch_of(session)
    if not head.exists() or (head.is_file() and not _NAMES.fullmatch(head.read_bytes().strip())):
        head.write_bytes(f"ref: {branch}\n".encode())
    loose = repo.common_dir / branch
    if loose.is_file() and _is_hollow(loose):
        loose.unlink()
    if _is_whole(git, "HEAD", known):
        return ()
    for commit in (*worktree.stood(repo.common_dir / "logs" / branch), *known):
        if _is_whole(git, commit, known):
            loose.unlink(missing_ok=True)
            git.run("update-ref", "--no-deref", "-m", "relay: back to what is whole", branch, commit)
            head.write_bytes(f"ref: {branch}\n".encode())
            return (f"commits after {commit[:12]} are not whole any more; the files in the worktree were kept",)
    raise RepoError(f"no commit of {session} is whole any more", hint="git fsck")


def _is_whole(git: Git, commit: str, known: tuple[Oid, ...]) -> bool:
    """Whether the commit is there with everything that it has beyond what was synced."""
    beyond = (f"^{oid}" for oid in known if oid != commit)
    return git.result("rev-list", "--quiet", "--objects", commit, *beyond).returncode == 0


def _refill(git: Git) -> tuple[str, ...]:
    """Give tracked files that are empty, and should not be, their last stored content."""
    nothing = git.run("hash-object", "--stdin").strip()
    hollow = []
    for line in git.run("ls-files", "-z", "--stage").split(b"\0"):
        head, _, path = line.partition(b"\t")
        words = head.split(b" ")
        full = len(words) == 3 and words[0].startswith(b"100") and words[1] != nothing
        if full and _is_hollow(git.cwd / os.fsdecode(path)):
            hollow.append(path)
    if hollow:
        git.run("checkout-index", "--force", "-z", "--stdin", input=b"\0".join([*hollow, b""]))
    told = [f"{printable(os.fsdecode(path))} came back empty and got its last stored content" for path in hollow]
    more = [f"so did {len(told) - _NAMED} more files"] if len(told) > _NAMED else []
    return (*told[:_NAMED], *more)


def _is_hollow(file: Path) -> bool:
    """Whether a file is there and holds nothing: no byte, or only NULs, as file systems leave it."""
    if file.is_symlink() or not file.is_file():
        return False
    try:
        with file.open("rb") as source:
            while chunk := source.read(1 << 16):
                if chunk.strip(b"\0"):
                    return False
    except PermissionError:
        return False
    return True
