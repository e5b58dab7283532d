"""The notes that stock git shows: the brief of each contract, on its snapshot commit.

Promise: `git log --notes='relay/*'` prints what the next agent was told. A note holds the brief alone; the signed
bytes stand in the journal, where nothing that git does to notes can reach them, and they hold the brief's SHA-256, so
that an edited note is found out. No note is ever read back into a handoff.
"""

from __future__ import annotations

from collections.abc import Iterator

from relay_git.git.repo import NOTES
from relay_git.git.store import BLOB_MODE, TREE_MODE, ZERO, Oid, RefUpdate, Store, TreeEntry
from relay_git.session import SessionId


def ref_of(session: SessionId) -> str:
    """The full name of the session's notes ref."""
    return NOTES + session


def write(
    store: Store, session: SessionId, commit: Oid, brief: bytes, when: int, *, only_missing: bool = False
) -> None:
    """Put the brief on the commit; a note that is there and the same is left alone, with `only_missing` any."""
    ref = ref_of(session)
    before = store.ref(ref)
    notes = dict(_notes(store, before))
    blob = store.write_blob(brief)
    if notes.get(commit) == blob or (only_missing and commit in notes):
        return
    entries = [TreeEntry(name.encode(), BLOB_MODE, oid) for name, oid in (notes | {commit: blob}).items()]
    note = store.write_commit(store.write_tree(entries), [before] if before else [], "Notes added by git relay", when)
    store.move([RefUpdate(ref, note, before or ZERO)], "relay: note")


def read(store: Store, session: SessionId) -> dict[Oid, bytes]:
    """The notes of a session by the commit that they stand on."""
    found = ((commit, store.blob(blob)) for commit, blob in listed(store, session).items())
    return {commit: data for commit, data in found if data is not None}


def listed(store: Store, session: SessionId) -> dict[Oid, Oid]:
    """The blob of each note of a session, unread, by the commit that it stands on."""
    return dict(_notes(store, store.ref(ref_of(session))))


def _notes(store: Store, tip: Oid | None) -> Iterator[tuple[Oid, Oid]]:
    commit = store.commit(tip) if tip is not None else None
    if commit is not None:
        yield from _walk(store, commit.tree, "")


def _walk(store: Store, tree: Oid, above: str) -> Iterator[tuple[Oid, Oid]]:
    """git spreads many notes over folders of two digits: a note's commit is the path without its slashes."""
    for entry in store.tree(tree) or ():
        name = above + entry.name.decode("ascii", "replace")
        if entry.mode == TREE_MODE and len(name) < len(tree):
            yield from _walk(store, entry.oid, name)
        elif len(name) == len(tree):
            yield Oid(name), entry.oid
