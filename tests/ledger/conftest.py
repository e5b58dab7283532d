"""A session with contracts in its journal, made by the ledger itself, without any agent."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import pytest

from relay_git.contract.lifecycle import Event, State
from relay_git.contract.sign import Key, Sealed, seal
from relay_git.ledger import journal, notes
from relay_git.ledger.journal import Entry, Recorded
from relay_git.ledger.key import ensure
from tests.git.conftest import WHEN, Session, open_session

AT = "2026-09-21T14:13:20Z"


@dataclass
class Written:
    """A session, its key, and the journal entries that brought its contracts."""

    session: Session
    key: Key
    tip: Recorded
    brought: list[Recorded]

    def step(self, event: Event, state: State, sealed: Sealed | None = None, **changes: Any) -> Recorded:
        entry = replace(self.tip.entry, event=event, state=state, at=AT, **changes)
        self.tip = journal.append(self.session.store, self.tip, entry, sealed)
        return self.tip

    def hand_over(self, text: str) -> Recorded:
        """One more leg: work, snapshot, contract, note, and the next agent at work."""
        session = self.session
        session.at.write("work.txt", text)
        taken = session.snapshot()
        leg = self.tip.entry.leg
        digest = hashlib.sha256(text.encode()).hexdigest()
        body = {
            "format": "git-relay-contract",
            "version": 1,
            "contractId": f"c-{session.id}-{leg}",
            "sessionId": session.id,
            "leg": leg,
            "snapshotCommit": taken.commit,
            "snapshotTree": taken.tree,
            "taskGoal": f"Task of {session.id}",
            "nextAction": text.strip(),
            "previous": self._previous(),
            "fileManifest": [{"path": "work.txt", "status": "added", "sha256": digest}],
        }
        sealed = seal(body, self.key)
        self.step(Event.SNAPSHOT_TAKEN, State.SNAPSHOTTED, snapshot=taken.commit)
        built = self.step(
            Event.CONTRACT_BUILT, State.ENVELOPE_BUILT, sealed, snapshot=taken.commit, contract_id=sealed.contract_id
        )
        notes.write(session.store, session.id, taken.commit, sealed.brief.encode(), WHEN)
        self.brought.append(built)
        self.step(Event.CHOSEN, State.DISPATCHED, next_agent="demo")
        self.step(Event.ACKNOWLEDGED, State.RUNNING, leg=leg + 1, next_agent="")
        return built

    def _previous(self) -> dict[str, str] | None:
        if not self.brought:
            return None
        last = self.brought[-1]
        stored = self.session.store.blob(last.contract)
        return {"contractId": last.entry.contract_id, "sha256": hashlib.sha256(stored).hexdigest()}


def write_session(session: Session, *texts: str) -> Written:
    """A session with one handed-over leg for each text."""
    key = ensure(session.repo, session.store)
    first = Entry(
        session.id, State.RUNNING, Event.STARTED, AT, 1, "demo", "a task", session.base, f"relay/{session.id}"
    )
    written = Written(session, key, journal.append(session.store, None, first), [])
    for text in texts:
        written.hand_over(text)
    return written


@pytest.fixture
def written(repo) -> Written:
    return write_session(open_session(repo), "one\n", "two\n")
