"""A session's journal with other bytes in it, as somebody could leave it who may write to the repository."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from relay_git.git.repo import discover
from relay_git.git.store import BLOB_MODE, RefUpdate, Store, TreeEntry, open_store
from relay_git.ledger import journal
from relay_git.ledger.journal import Recorded
from relay_git.session import SessionId


@dataclass(frozen=True, slots=True)
class Journal:
    """The journal of one session, with its true tip to return to."""

    store: Store
    session: SessionId
    true: Recorded

    @property
    def built(self) -> Recorded:
        """The entry that brought the newest contract."""
        chain = journal.chain(self.store, self.session)
        return next(r for r in chain if r.entry.event is journal.Event.CONTRACT_BUILT)

    def contracts(self) -> list[bytes]:
        """The stored bytes of every contract, oldest first."""
        chain = reversed(list(journal.chain(self.store, self.session)))
        oids = [r.contract for r in chain if r.entry.event is journal.Event.CONTRACT_BUILT]
        return [self.store.blob(oid) or b"" for oid in oids if oid is not None]

    def forge(self, files: dict[str, bytes], to: str = "") -> None:
        """Replace files from the entry that brought the newest contract to the tip; `to` another session's ref."""
        last = self.built.commit.parents[0]
        steps = []
        for recorded in journal.chain(self.store, self.session):
            steps.append(recorded)
            if recorded.oid == self.built.oid:
                break
        for recorded in reversed(steps):
            entries = {e.name: e for e in self.store.tree(recorded.commit.tree) or ()}
            for name, data in files.items():
                entries[name.encode()] = TreeEntry(name.encode(), BLOB_MODE, self.store.write_blob(data))
            tree = self.store.write_tree(entries.values())
            last = self.store.write_commit(tree, [last, *recorded.commit.parents[1:]], recorded.commit.message, 1)
        ref = journal.ref_of(SessionId(to or self.session))
        self.store.move([RefUpdate(ref, last, self.store.ref(ref) or ("0" * 40))], "forged")  # type: ignore[arg-type]

    def restore(self) -> None:
        """The true tip again."""
        ref = journal.ref_of(self.session)
        now = self.store.ref(ref)
        assert now is not None
        self.store.move([RefUpdate(ref, self.true.oid, now)], "restored")


def open_journal(repo: Path, session: str) -> Journal:
    store = open_store(discover(repo, os.environ).common_dir)
    return Journal(store, SessionId(session), journal.tip(store, SessionId(session)))
