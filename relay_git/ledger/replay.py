"""Reading the record again: which contracts a session has, and whether each may be believed.

Promise: a contract counts where the journal first brings it, and everything about that place is held against its
signed words: session, leg, snapshot, the contract before it, the brief beside it and the note on its snapshot.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from relay_git.contract.canonical import Malformed, strict_parse
from relay_git.contract.lifecycle import Event
from relay_git.contract.sign import Key
from relay_git.contract.verify import ExpectedPlace, Outcome, Refused, Verification, Verified, verify
from relay_git.errors import SignatureRefused
from relay_git.git.repo import Repo
from relay_git.git.store import Oid, Store
from relay_git.git.work import blob_sha256
from relay_git.ledger import journal, notes
from relay_git.ledger.journal import Recorded
from relay_git.session import ContractId, SessionId


@dataclass(frozen=True, slots=True)
class Found:
    """A contract at the place where the journal brings it; `contract_id` is what it says of itself, unverified."""

    session_id: SessionId
    contract_id: ContractId
    recorded: Recorded
    stored: bytes
    place: ExpectedPlace

    @property
    def sha256(self) -> str:
        """Over the stored bytes, as the next contract names them."""
        return hashlib.sha256(self.stored).hexdigest()


@dataclass(frozen=True, slots=True)
class Checked:
    """One row of `git relay verify`: a contract or a stray note, and the verdict on it."""

    session_id: SessionId
    contract_id: str
    leg: int
    verdict: Verification


class RepoSnapshots:
    """What verification asks of this repository."""

    def __init__(self, repo: Repo, store: Store) -> None:
        self._git, self._store = repo.git(), store
        self._hashes: dict[Oid, str | None] = {}  # an id names the same bytes for ever, and contracts share many files

    def tree_of(self, commit: str) -> str | None:
        found = self._store.commit(Oid(commit))
        # A commit whose tree is gone is no snapshot either.
        return found.tree if found is not None and self._store.exists(found.tree) else None

    def blob_sha256(self, tree: str, path: bytes) -> str | None:
        entry = self._store.find(Oid(tree), path)
        if entry is None:
            return None
        if entry.oid not in self._hashes:
            self._hashes[entry.oid] = blob_sha256(self._git, self._store, entry.oid)
        return self._hashes[entry.oid]


def contracts(store: Store, session: SessionId) -> list[Found]:
    """The contracts of a session, oldest first."""
    brought: list[Recorded] = []
    last: Oid | None = None
    for recorded in reversed(list(journal.chain(store, session))):
        # Also an entry that says it brings one and carries the old bytes: a replay must not pass for "no news".
        says_so = recorded.entry.event is Event.CONTRACT_BUILT
        if recorded.contract is not None and (recorded.contract != last or says_so):
            brought.append(recorded)
        last = recorded.contract or last
    return list(_found(store, session, brought))


def _found(store: Store, session: SessionId, brought: list[Recorded]) -> Iterator[Found]:
    previous: tuple[str, str] | None = None
    seen: frozenset[str] = frozenset()
    for i, recorded in enumerate(brought):
        stored = (store.blob(recorded.contract) if recorded.contract else None) or b""
        brief = (store.blob(recorded.brief) if recorded.brief else None) or b""
        named = _claimed_id(stored)
        latest = i == len(brought) - 1
        place = ExpectedPlace(session, recorded.entry.leg, recorded.snapshot or "", previous, seen, brief, latest)
        yield Found(session, named, recorded, stored, place)
        previous, seen = (named, hashlib.sha256(stored).hexdigest()), seen | {named}


def check(repo: Repo, store: Store, key: Key | None, session: SessionId) -> list[Checked]:
    """The verdict on every contract of a session, oldest first, and on notes that belong to none."""
    snapshots = RepoSnapshots(repo, store)
    found = contracts(store, session)
    written = notes.read(store, session)
    rows = [_row(f, verify(f.stored, key, f.place, snapshots), written) for f in found]
    at_home = {f.recorded.snapshot for f in found}
    for commit in written.keys() - at_home:
        stray = Refused(Outcome.MISPLACED, f"a note of this session lies on {commit[:12]}, which is no snapshot of it")
        rows.append(Checked(session, "(note)", 0, stray))
    return rows


def current(repo: Repo, store: Store, key: Key, session: SessionId) -> Verified:
    """The newest contract, read back from git and verified in its place; raises SignatureRefused otherwise."""
    found = contracts(store, session)
    if not found:
        raise SignatureRefused(f"the session {session} has no contract yet", hint=f"git relay log {session}")
    at_tip = journal.tip(store, session)
    verdict = verify(found[-1].stored, key, found[-1].place, RepoSnapshots(repo, store))
    if isinstance(verdict, Verified) and at_tip.contract != found[-1].recorded.contract:
        verdict = Refused(Outcome.MISPLACED, "the journal's tip holds another contract than the last one brought")
    if isinstance(verdict, Verified) and at_tip.entry.contract_id != verdict.contract_id:
        verdict = Refused(Outcome.MISPLACED, "the journal's tip names another contract than it holds")
    if isinstance(verdict, Refused):
        raise SignatureRefused(
            f"the contract {found[-1].contract_id} does not verify: {verdict.outcome} ({verdict.reason})",
            hint=f"git relay verify {session}",
        )
    return verdict


def _row(found: Found, verdict: Verification, written: dict[Oid, bytes]) -> Checked:
    note = written.get(found.recorded.snapshot or Oid(""))
    # Two legs may share one snapshot: its note then holds the brief of the later one.
    if isinstance(verdict, Verified) and found.place.is_latest and note not in (None, found.place.brief):
        verdict = Refused(Outcome.TAMPERED, "the note on its snapshot is not the brief that was signed")
    return Checked(found.session_id, found.contract_id, found.recorded.entry.leg, verdict)


def _claimed_id(stored: bytes) -> ContractId:
    try:
        named = strict_parse(stored).get("contractId")
    except Malformed:
        named = None
    return ContractId(named if isinstance(named, str) and len(named) <= 80 and named.isprintable() else "(unreadable)")
