"""The snapshot: the commit that holds a session's worktree as it is now.

Promise: what git itself would have stored is what the snapshot stores (its own filters, attributes and ignore rules),
taken through a copied index, so that no hook runs, nothing is signed and a half-done merge or rebase stays as it is.
What could not be taken is named, never silently dropped; where nothing changed, HEAD is the snapshot.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from relay_git.errors import RepoError, printable
from relay_git.git import held, include, links, worktree
from relay_git.git.losses import MAX_FILE, survey
from relay_git.git.repo import Repo, make_private
from relay_git.git.run import Git, disk_error, failure
from relay_git.git.store import Oid, RefUpdate, Store
from relay_git.session import SessionId

_MOST_NAMED = 200


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

    def elsewhere(self, session: SessionId) -> str:
        """What HEAD names, in words, where that is not the session's own branch."""
        if self.branch == worktree.branch_of(session):
            return ""
        return f"branch {printable(self.branch.removeprefix('refs/heads/'))}" if self.branch else "a detached HEAD"

    def told(self, session: SessionId) -> str:
        """The same as the end of a sentence for the user."""
        where = self.elsewhere(session)
        return f"; its work stands on {where} at {self.commit[:12]}, not on relay/{session}" if where else ""


def take(
    repo: Repo,
    store: Store,
    session: SessionId,
    message: str,
    when: int,
    leave_out: tuple[Path, ...] = (),
    max_file: int = MAX_FILE,
) -> Snapshot:
    """Store the worktree as a commit and move the session's branch to it where that disturbs nothing.

    `leave_out` are files that are nobody's work, such as the mount points of a sandbox; one of more than `max_file`
    bytes is not taken.
    """
    mended, losses = links.mend_links(repo, session), list[str]()
    git = repo.session_git(session)
    if not git.cwd.is_dir():
        raise RepoError(f"the session's worktree {git.cwd} is gone", hint=f"git relay drop {session}")
    head = _head(git)
    branch = git.text("symbolic-ref", "--quiet", "HEAD", ok=(0, 1))
    operation = worktree.operation(repo, session)
    index = repo.spool_dir(session) / f"index.{os.getpid()}"
    try:
        source, copied = repo.worktree_git_dir(session) / "index", include.copied(repo, session)
        commit = store.commit(head)
        if commit is None:
            raise RepoError(f"the commit {head} that HEAD names is missing", hint="git fsck")
        tree = tree_of(git, store, commit.tree, source, index, losses, leave_out, max_file=max_file, copied=copied)
        taken = head if commit.tree == tree else store.write_commit(tree, [head], message, when)
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


def tree_of(
    git: Git,
    store: Store,
    before: Oid,
    source: Path,
    index: Path,
    losses: list[str],
    leave_out: tuple[Path, ...] = (),
    *,
    max_file: int = MAX_FILE,
    copied: frozenset[bytes] = frozenset(),
) -> Oid:
    """The tree that git would store for the work tree now; what it cannot store is added to `losses`.

    `before` is the tree of its HEAD, `source` the index it has, `index` the copy that is worked on.
    """
    make_private(index.parent)
    try:
        # A copy keeps what the index knows of each file (speed, skip-worktree); a link could be led elsewhere.
        if source.is_file() and not source.is_symlink():
            was = source.stat()
            shutil.copyfile(source, index)
            # git trusts an entry only if the index is younger than the file: a copy that looks younger than its
            # original would hide an edit of the same size made in the second in which the original was written.
            os.utime(index, ns=(was.st_atime_ns, was.st_mtime_ns))
    except OSError as error:
        raise disk_error(error, "the index could not be copied") from error
    aside = frozenset(os.fsencode(path.relative_to(git.cwd)) for path in leave_out if path.is_relative_to(git.cwd))
    adding = _Adding(git, {"GIT_INDEX_FILE": str(index), **store.writing()}, index)
    seen = survey(git, adding.env, max_file, aside, copied)
    adding.fill(aside | seen.kept_back, seen.nested)
    losses += [*seen.losses, *adding.losses(), *_unstage(git, adding.env, copied)]
    return held.write_tree(git, store, before, adding.env)


def _unstage(git: Git, env: Mapping[str, str], copied: frozenset[bytes]) -> list[str]:
    """Take out of the index what came along by `.worktreeinclude` and was added by force since."""
    if not copied:
        return []
    out = git.run("diff-index", "--cached", "--name-only", "--no-renames", "--diff-filter=A", "-z", "HEAD", env=env)
    staged = sorted(copied.intersection(out.split(b"\0")))
    if staged:
        git.run("update-index", "--force-remove", "-z", "--stdin", input=b"\0".join(staged), env=env)
    return [f"{printable(os.fsdecode(path))} came along by .worktreeinclude: it is not handed over" for path in staged]


class _Adding:
    """One index being filled by git, and what git refused to take into it."""

    def __init__(self, git: Git, env: dict[str, str], index: Path) -> None:
        self.git, self.env, self.refused = git, env, list[str]()
        self._lock = index.with_name(index.name + ".lock")

    def fill(self, aside: frozenset[bytes], nested: tuple[bytes, ...]) -> None:
        """Add everything but `aside`; of `nested` repositories the commit that each stands on.

        To find changes in them `git add` would run a git inside each, by a configuration that is an agent's to write.
        """
        spec = [b":/", *(b":(top,exclude,literal)" + path for path in sorted({*aside, *nested}))]
        if self._add(b"\0".join(spec)):
            # One odd entry must not cost the whole snapshot: find what git cannot store, and take all the rest. But
            # where git can store nothing at all, that is no snapshot.
            self.git.run("hash-object", "-w", "--stdin", input=os.urandom(16), env=self.env)
            self.each([path for path in self.changed(nested) if path.rstrip(b"/") not in aside])
        if nested:
            self.git.run("update-index", "--add", "--remove", "-z", "--stdin", input=b"\0".join(nested), env=self.env)

    def losses(self) -> list[str]:
        """What git could not store, in words."""
        more = len(self.refused) - _MOST_NAMED
        named = [*self.refused[:_MOST_NAMED], *([f"{more} more"] if more > 0 else [])]
        return [f"not in the snapshot, because git could not store it: {what}" for what in named]

    def changed(self, nested: tuple[bytes, ...]) -> list[bytes]:
        """Every path that the index lacks or has otherwise and that can be read; a new repository as one path."""
        out = self.git.run("ls-files", "-z", "--others", "--modified", "--deleted", "--exclude-standard", env=self.env)
        paths = sorted({path for path in out.split(b"\0") if path and path not in nested})
        return [path for path in paths if not self._is_unreadable(path)]

    def _is_unreadable(self, path: bytes) -> bool:
        """Asked beforehand: each file that git fails on costs several runs, and of these there may be thousands."""
        file = self.git.cwd / os.fsdecode(path)
        if not file.is_file() or file.is_symlink() or os.access(file, os.R_OK):
            return False
        self.refused.append(f"{printable(os.fsdecode(path))} (Permission denied)")
        return True

    def each(self, paths: list[bytes]) -> None:
        """Add these, by halves where git refuses, until every path is in or known to be refused."""
        failed = self._add(b"\0".join(b":(top,literal)" + path for path in paths)) if paths else ""
        if not failed:
            return
        if len(paths) > 1:
            middle = len(paths) // 2
            self.each(paths[:middle])
            self.each(paths[middle:])
        elif os.path.lexists(self.git.cwd / os.fsdecode(paths[0])):  # else it vanished meanwhile
            self.refused.append(f"{printable(os.fsdecode(paths[0]))} ({failed})")

    def _add(self, spec: bytes) -> str:
        """git's last words, empty where it took everything."""
        done = self.git.result(
            "add", "--all", "--ignore-errors", "--pathspec-from-file=-", "--pathspec-file-nul", input=spec, env=self.env
        )
        lines = printable(done.stderr.decode("utf-8", "replace")).split("\n")
        said = [line for line in lines if line.strip() and not line.startswith("hint:")]
        # A folder that cannot be read is only a warning to git, and would be left out without a word.
        self.refused += [line for line in said if "could not open directory" in line and line not in self.refused]
        if done.returncode == 0:
            return ""
        self._lock.unlink(missing_ok=True)
        failed = failure("add", done.returncode, done.stderr, self.git.cwd)
        if "No space left" in str(failed):
            raise failed
        if any("sparse-checkout" in line for line in said):
            return "it lies outside of what the sparse checkout shows"
        return (said or ["no message"])[-1][:200]


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
