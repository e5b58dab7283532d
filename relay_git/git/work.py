"""What a session changed, as git tells it: the facts that a contract is built from."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from relay_git.git.made import STAMP, Stamp, made_here
from relay_git.git.run import Git
from relay_git.git.snapshot import Snapshot
from relay_git.git.store import AUTHOR, GITLINK_MODE, Oid, Store


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
    """One commit since the base; `trailers` are the (key, value) pairs of its `Relay-...:` lines, in their order.

    One that was made elsewhere, and came in by a merge, a rebase or a pick, is not the session's `own` and has none
    here: what it says was not said to this session.
    """

    oid: str
    subject: str
    trailers: tuple[tuple[str, str], ...] = ()
    own: bool = True


@dataclass(frozen=True, slots=True)
class Hunk:
    """The unified diff of one path between the last commit and the snapshot; `truncated` where it was cut."""

    path: bytes
    text: str
    truncated: bool


@dataclass(frozen=True, slots=True)
class WorkFacts:
    """Everything git knows of a session at its snapshot; ids in hex.

    `commits` are all since the base, oldest first, without snapshots of ours; `head_commit` is the last of them.
    `files` are against the base, by path. `operation` is a merge, rebase or the like that stands half-done, `unmerged`
    the paths that it waits for.
    """

    branch: str
    base_commit: str
    head_commit: str
    snapshot_commit: str
    snapshot_tree: str
    commits: tuple[WorkCommit, ...] = ()
    files: tuple[FileChange, ...] = ()
    hunks: tuple[Hunk, ...] = ()
    losses: tuple[str, ...] = ()
    operation: str = ""
    unmerged: tuple[bytes, ...] = ()


MANIFEST_FILES = 1000  # paths whose hash is taken; a contract would not hold more
HUNK_FILES = 20
HUNK_LINES = 60
HUNK_BYTES = 4000
_COMMITS = 200
_PATCH_BYTES = 1 << 20
_BODY = 1 << 16
_TRAILER = re.compile(r"^(Relay-[A-Za-z-]{1,40}):[ \t]*(\S.*(?:\n[ \t]+\S.*)*)", re.M | re.I)
_READ_WHOLE = 16 << 20
_STATUS = {"A": FileStatus.ADDED, "D": FileStatus.DELETED, "T": FileStatus.TYPE_CHANGED}


def collect(git: Git, store: Store, base: Oid, taken: Snapshot) -> WorkFacts:
    """All that git knows of the work between `base` and the snapshot; lists are bounded, and what is cut is named."""
    losses = list(taken.losses)
    head = _last_of_the_agents(store, base, taken.head)
    commits = _commits(git, base, head, made_here(git, taken.branch), losses)
    changes = _raw(git, base, taken.commit)
    if len(changes) > MANIFEST_FILES:
        losses.append(
            f"{len(changes) - MANIFEST_FILES} more changed files are not listed: git diff --stat {base} {taken.commit}"
        )
    files = tuple(
        FileChange(path, status, _sha256(git, store, mode, oid)) for path, status, mode, oid in changes[:MANIFEST_FILES]
    )
    hunks = _hunks(git, head, taken.commit, losses) if taken.commit != head else ()
    branch = taken.branch.removeprefix("refs/heads/")
    half = (taken.operation, _unmerged(git) if taken.operation else ())
    return WorkFacts(branch, base, head, taken.commit, taken.tree, commits, files, hunks, tuple(losses), *half)


def _unmerged(git: Git) -> tuple[bytes, ...]:
    lines = git.run("ls-files", "--unmerged", "-z").split(b"\0")
    return tuple(dict.fromkeys(line.partition(b"\t")[2] for line in lines if line))


def blob_sha256(git: Git, store: Store, oid: Oid) -> str | None:
    """SHA-256 over a blob's bytes as git stores them, in constant memory; None where it is missing."""
    size = store.blob_size(oid)
    if size is None:
        return None
    if size <= _READ_WHOLE:
        data = store.blob(oid)
        return None if data is None else hashlib.sha256(data).hexdigest()
    with git.stream("cat-file", "blob", oid) as source:
        return hashlib.file_digest(source, "sha256").hexdigest()  # type: ignore[arg-type]


def _sha256(git: Git, store: Store, mode: int, oid: Oid) -> str | None:
    return None if mode in (0, GITLINK_MODE) else blob_sha256(git, store, oid)


def _last_of_the_agents(store: Store, base: Oid, head: Oid) -> Oid:
    """The last commit that is no snapshot of ours: what came after it is work that no agent has committed yet."""
    here = head
    while here != base and (commit := store.commit(here)) is not None and commit.ours and commit.parents:
        here = commit.parents[0]
    return here


def _commits(
    git: Git, base: Oid, head: Oid, is_own: Callable[[Stamp], bool], losses: list[str]
) -> tuple[WorkCommit, ...]:
    form = f"%H%x00%P%x00%ce%x00{STAMP}%x00%s%x00%b%x00%x00"
    out = git.run(
        "log",
        "--topo-order",
        f"--max-count={_COMMITS + 1}",
        "--no-show-signature",
        f"--format=tformat:{form}",
        f"{base}..{head}",
    )
    found, here, unheard = [], str(head), 0
    for part in out.decode("utf-8", "replace").split("\0\0\n"):
        words = part.split("\0")
        if len(words) != 8:
            continue
        oid, parents, who, name, mail, at, subject, body = words
        on_branch = oid == here  # what a merge brought in speaks of somebody else's work
        here = parents.partition(" ")[0] if on_branch else here
        if who != AUTHOR[1]:
            own, said = on_branch and is_own((name, mail, at)), trailers(body)
            unheard += bool(said) and not own
            found.append(WorkCommit(oid, subject, said if own else (), own))
    if unheard:
        losses.append(f"{unheard} commits that were not made in this session have Relay- lines, which were left out")
    if len(found) > _COMMITS:
        losses.append(f"only the newest {_COMMITS} commits are listed: git log {base}..{head}")
    return tuple(reversed(found[:_COMMITS]))


def trailers(body: str) -> tuple[tuple[str, str], ...]:
    """The `Relay-...:` lines of a message, each with its continuation lines.

    Git takes for trailers only what stands in the last paragraph, and some agents add one of their own to every
    message, such as `Co-authored-by:`: what was said on purpose in the paragraph before it would be lost.
    """
    found = _TRAILER.finditer(body[:_BODY])
    return tuple((said[1], " ".join(said[2].split())) for said in found)


def _raw(git: Git, old: Oid, new: Oid) -> list[tuple[bytes, FileStatus, int, Oid]]:
    words = git.run("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old, new).split(b"\0")
    found = []
    for meta, path in zip(words[0::2], words[1::2], strict=False):
        _, mode, _, oid, status = meta.decode().removeprefix(":").split(" ")
        found.append((path, _STATUS.get(status[:1], FileStatus.MODIFIED), int(mode, 8), Oid(oid)))
    return found


def _hunks(git: Git, head: Oid, snapshot: Oid, losses: list[str]) -> tuple[Hunk, ...]:
    changed = _raw(git, head, snapshot)
    if len(changed) > HUNK_FILES:
        losses.append(f"{len(changed) - HUNK_FILES} more files were in work at the pause: git diff {head} {snapshot}")
    paths = [path for path, *_ in changed[:HUNK_FILES]]
    options = ("-r", "-p", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--no-prefix")
    with git.stream(
        "--literal-pathspecs", "diff-tree", *options, head, snapshot, "--", *map(os.fsdecode, paths)
    ) as source:
        patch = source.read(_PATCH_BYTES)
    # Lines of a patch start with a blank, +, - or \, so only a new file's header can start like this.
    parts = (b"\n" + patch).split(b"\ndiff --git ")[1:]
    return tuple(_hunk(path, part, len(patch) == _PATCH_BYTES) for path, part in zip(paths, parts, strict=False))


def _hunk(path: bytes, part: bytes, cut: bool) -> Hunk:
    lines = part.decode("utf-8", "replace").split("\n")
    start = next((i for i, line in enumerate(lines) if line.startswith(("@@", "Binary files"))), 1)
    kept = lines[start : start + HUNK_LINES]
    text = "\n".join(kept)[:HUNK_BYTES]
    return Hunk(path, text, truncated=cut or start + HUNK_LINES < len(lines) or len("\n".join(kept)) > HUNK_BYTES)
