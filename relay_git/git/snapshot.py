"""The snapshot: the commit that holds a session's worktree as it is now.

Promise: what git itself would have stored is what the snapshot stores (its own filters, attributes and ignore rules),
taken through a copied index, so that no hook runs, nothing is signed and a half-done merge or rebase stays as it is.
What could not be taken is named, never silently dropped; where nothing changed, HEAD is the snapshot.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from relay_git.errors import RepoError, printable
from relay_git.git import worktree
from relay_git.git.repo import Repo, make_private
from relay_git.git.run import Git, disk_error
from relay_git.git.store import Oid, RefUpdate, Store
from relay_git.session import SessionId

_TRIES = 4


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A worktree as one commit.

    `head` is the last commit of the agent's own below it, `branch` what HEAD named (empty where detached),
    `operation` a merge or rebase that stands half-done, `losses` what is not in it, in words, `mended` which of the
    worktree's links had to be put back first.
    """

    commit: Oid
    tree: Oid
    head: Oid
    branch: str
    operation: str
    losses: tuple[str, ...]
    mended: tuple[str, ...]


def take(
    repo: Repo, store: Store, session: SessionId, message: str, when: int, leave_out: tuple[Path, ...] = ()
) -> Snapshot:
    """Store the worktree as a commit and move the session's branch to it where that disturbs nothing.

    `leave_out` are files that are nobody's work, such as the mount points of a sandbox.
    """
    mended, losses = worktree.mend_links(repo, session), list[str]()
    git = repo.session_git(session)
    if not git.cwd.is_dir():
        raise RepoError(f"the session's worktree {git.cwd} is gone", hint=f"git relay drop {session}")
    head = _head(git)
    branch = git.text("symbolic-ref", "--quiet", "HEAD", ok=(0, 1))
    operation = worktree.operation(repo, session)
    index = repo.spool_dir(session) / f"index.{os.getpid()}"
    try:
        tree = tree_of(git, repo.worktree_git_dir(session) / "index", index, losses, leave_out)
        commit = store.commit(head)
        if commit is None:
            raise RepoError(f"the commit {head} that HEAD names is missing", hint="git fsck")
        taken = head if commit.tree == tree else store.write_commit(tree, [head], message, when)
        losses += _not_covered(git, index)
        if branch == worktree.branch_of(session) and not operation and (taken != head or commit.ours):
            _advance(repo, store, session, branch, head, taken, index)
    finally:
        for leftover in (index, index.with_name(index.name + ".lock")):
            leftover.unlink(missing_ok=True)
    return Snapshot(taken, tree, head, branch, operation, tuple(losses), mended)


def _head(git: Git) -> Oid:
    done = git.result("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if done.returncode != 0:
        raise RepoError(f"HEAD of the session's worktree {git.cwd} names no commit", hint=f"git -C {git.cwd} status")
    return Oid(done.stdout.decode().strip())


def tree_of(git: Git, source: Path, index: Path, losses: list[str], leave_out: tuple[Path, ...] = ()) -> Oid:
    """The tree that git would store for the work tree now; what it cannot store is added to `losses`.

    `source` is the index it has, `index` the copy that is worked on.
    """
    make_private(index.parent)
    try:
        # A copy keeps what the index knows of each file (speed, skip-worktree); a link could be led elsewhere.
        if source.is_file() and not source.is_symlink():
            before = source.stat()
            shutil.copyfile(source, index)
            # git trusts an entry only if the index is younger than the file: a copy that looks younger than its
            # original would hide an edit of the same size made in the second in which the original was written.
            os.utime(index, ns=(before.st_atime_ns, before.st_mtime_ns))
    except OSError as error:
        raise disk_error(error, "the index could not be copied") from error
    env = {"GIT_INDEX_FILE": str(index)}
    aside = {os.fsencode(path.relative_to(git.cwd)) for path in leave_out if path.is_relative_to(git.cwd)}
    skip: set[bytes] = set()
    for attempt in range(_TRIES):
        done = git.result(
            "add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul", input=_pathspec(skip | aside), env=env
        )
        if done.returncode == 0:
            break
        # One odd entry must not cost the whole snapshot: leave out what cannot be stored, by name, and try again.
        odd = _unstorable(git, env) - skip
        if not odd and attempt == _TRIES - 1:
            git.run("add", "--all", env=env)  # fails with git's own words
        skip |= odd
        index.with_name(index.name + ".lock").unlink(missing_ok=True)
    losses += [
        f"not in the snapshot, because git could not store it: {printable(os.fsdecode(p))}" for p in sorted(skip)
    ]
    return Oid(git.run("write-tree", env=env).decode().strip())


def _pathspec(skip: set[bytes]) -> bytes:
    return b"\0".join([b":/", *(b":(top,exclude,literal)" + p.rstrip(b"/") for p in sorted(skip))])


def _unstorable(git: Git, env: Mapping[str, str]) -> set[bytes]:
    """Untracked or changed entries that git cannot add: unreadable files and folders, repositories without a commit."""
    out = git.run("ls-files", "-z", "--others", "--modified", "--exclude-standard", env=env)
    return {name for name in out.split(b"\0") if name and not _storable(git, git.cwd / os.fsdecode(name))}


def _storable(git: Git, path: Path) -> bool:
    try:
        mode = path.lstat().st_mode
    except OSError:
        return True  # it vanished meanwhile: nothing to leave out
    if stat.S_ISDIR(mode):
        if not (path / ".git").exists():
            return os.access(path, os.R_OK | os.X_OK)
        inner = Git(path).result("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        return inner.returncode == 0
    return stat.S_ISLNK(mode) or os.access(path, os.R_OK)


def _not_covered(git: Git, index: Path) -> list[str]:
    """What a commit cannot hold: changes inside nested repositories, and edits hidden by index bits."""
    env = {"GIT_INDEX_FILE": str(index)}
    losses = []
    for line in git.run("ls-files", "-z", "-s", "-t", "-v", env=env).split(b"\0"):
        if line.startswith((b"H 100", b"H 120")):
            continue  # a plain file or link without any bit: in a large repository all but a few
        tag, _, rest = line.partition(b" ")
        path = os.fsdecode(rest.partition(b"\t")[2])
        name = printable(path)
        if rest.startswith(b"160000 "):
            losses.append(f"{name} is a repository of its own: only its commit id is recorded, not changes inside it")
        elif tag in (b"h", b"s") or (tag == b"S" and (git.cwd / path).exists()):
            losses.append(
                f"{name} is hidden by an index bit (skip-worktree, assume-unchanged): its edits are not handed over"
            )
        if len(losses) >= 100:
            return [*losses, "more entries of these kinds are not listed"]
    return losses


def _advance(repo: Repo, store: Store, session: SessionId, branch: str, head: Oid, taken: Oid, index: Path) -> None:
    """Move the branch and let the worktree's index follow, so that the next agent sees a clean tree.

    Done again after a crash in between, it mends the index. While a git of the agent's holds the index (it may stand
    frozen), both are left alone: the journal keeps the snapshot, and the one after the fence moves them.
    """
    real = repo.worktree_git_dir(session) / "index"
    if real.with_name("index.lock").exists():
        return
    if taken != head:
        store.move([RefUpdate(branch, taken, head)], "relay: snapshot")
    try:
        index.replace(real)
    except OSError as error:
        raise disk_error(error, "the worktree's index could not follow the snapshot") from error
