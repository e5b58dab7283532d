"""Keys in what a session changed: reported in the contract, never taken out, since a snapshot is the work as it is.

Promise: bounded in files, bytes and time; a key is named by its rule and its file, and never shown. Only the files of
the snapshot are looked at: what was committed and removed again is in the history all the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from relay_git.contract.placeholder import Policy
from relay_git.contract.redact import keys_in
from relay_git.errors import printable
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
        data = store.blob(oid) or b""
        counts = keys_in(data.decode("utf-8", "replace"), policy) if b"\0" not in data[:8000] else None
        if counts:
            name = printable(path.decode("utf-8", "replace"))
            found.append(
                f"{name} holds what looks like a secret ({', '.join(sorted(counts))}): take it out and change it"
            )
    if len(found) > _NAMED:
        found[_NAMED:] = [f"{len(found) - _NAMED} more files hold what looks like a secret"]
    if left_out:
        found.append(f"{left_out} large changed files were not searched for secrets")
    return found


def _changed(store: Store, work: WorkFacts) -> Iterator[tuple[bytes, Oid, int]]:
    """The changed files that are there, with their blobs and sizes."""
    for file in work.files:
        entry = store.find(Oid(work.snapshot_tree), file.path) if file.sha256 is not None else None
        size = store.blob_size(entry.oid) if entry is not None else None
        if entry is not None and size is not None:
            yield file.path, entry.oid, size
