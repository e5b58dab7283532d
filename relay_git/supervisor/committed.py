"""Keys in what a session changed, which are reported and never taken out, and in what a push would send.

Promise: a key is named by its rule and its file, and never shown. Of a session the files of the snapshot are looked at,
bounded in files, bytes and time: what was committed and removed again is in the history all the same. Of a push it is
every object that is small enough, those of the history too, and how many were not is told.
"""

from __future__ import annotations

from collections.abc import Iterator

from relay_git.contract.placeholder import Policy
from relay_git.contract.redact import keys_in
from relay_git.errors import printable
from relay_git.git.outgoing import Push, outgoing
from relay_git.git.run import Git
from relay_git.git.store import Oid, Store
from relay_git.git.work import WorkFacts

_MOST_FILE = 1 << 20
_MOST_BYTES = 8 << 20
_NAMED = 20


def keys(store: Store, work: WorkFacts, policy: Policy) -> list[str]:
    """A sentence for each changed file that holds a key, and one where not all could be looked at."""
    found, left_out, room = list[str](), 0, _MOST_BYTES
    for path, oid, size in _changed(store, work):
        if size > min(room, _MOST_FILE):
            left_out += 1
            continue
        room -= size
        if rules := _rules(store.blob(oid) or b"", policy):
            name = printable(path.decode("utf-8", "replace"))
            found.append(f"{name} holds what looks like a secret ({rules}): take it out and change it")
    if len(found) > _NAMED:
        found[_NAMED:] = [f"{len(found) - _NAMED} more files hold what looks like a secret"]
    if left_out:
        found.append(f"{left_out} large changed files were not searched for secrets")
    return found


def leaving(store: Store, git: Git, push: Push, remote: str, policy: Policy) -> tuple[list[str], int]:
    """Where a push would send a key, and by which rule, each place once; and how many objects were not searched."""
    known = [oid for _, oid in store.refs(f"refs/remotes/{remote}/")] if remote else []
    found, left_out = dict[str, None](), 0
    for item in outgoing(git, push, known, _MOST_FILE):
        if item.data is None:
            left_out += 1
        elif rules := _rules(item.data, policy):
            name = printable(item.path.decode("utf-8", "replace")) or item.oid[:12]
            found.setdefault(f"{name if item.kind == 'blob' else f'the message of {item.kind} {name}'}: {rules}")
    return list(found), left_out


def _rules(data: bytes, policy: Policy) -> str:
    """By which rules a file holds keys; empty where it holds none, or is no text."""
    return ", ".join(sorted(keys_in(data.decode("utf-8", "replace"), policy))) if b"\0" not in data[:8000] else ""


def _changed(store: Store, work: WorkFacts) -> Iterator[tuple[bytes, Oid, int]]:
    """The changed files that are there, with their blobs and sizes."""
    for file in work.files:
        entry = store.find(Oid(work.snapshot_tree), file.path) if file.sha256 is not None else None
        size = store.blob_size(entry.oid) if entry is not None else None
        if entry is not None and size is not None:
            yield file.path, entry.oid, size
