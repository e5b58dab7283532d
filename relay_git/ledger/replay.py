"""Reading the record again: which contracts a session has, and whether each may be believed.

Promise: a contract counts where `contract.json` changes in the journal, and everything about that place is held against
its signed words: session, leg, snapshot, the contract before it, the brief beside it and the note on its snapshot. The
newest must be the one that the journal's tip holds and names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from relay_git.contract.canonical import glance
from relay_git.contract.sign import Key
from relay_git.contract.verify import VERSION, ExpectedPlace, Outcome, Refused, Verification, Verified, verify
from relay_git.errors import FormatTooNew, RelayError, SignatureRefused
from relay_git.git.repo import Repo
from relay_git.git.store import Oid, Store, open_store
from relay_git.git.work import blob_sha256
from relay_git.ledger import journal, notes
from relay_git.ledger.journal import Recorded
from relay_git.session import ContractId, SessionId

CONTRACT = "contract.json"
_MANY = 24  # sessions: with fewer, more processes cost more than they save
Changes: TypeAlias = dict[Oid, tuple[Oid, ...]]


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
    """The contracts of a session, oldest first; raises RelayError where its journal is damaged."""
    tip = journal.tip(store, session)
    return list(_found(store, session, tip, _brought(store, tip, store.changes([tip.oid], CONTRACT))))


def survey(store: Store, known: list[SessionId] | None = None) -> Iterator[tuple[SessionId, list[Found] | RelayError]]:
    """The contracts of these sessions (None: of every one), or what is wrong with a journal; git is asked once."""
    tips: dict[SessionId, Recorded | RelayError] = {}
    for session in journal.sessions(store) if known is None else known:
        try:
            tips[session] = journal.tip(store, session)
        except RelayError as error:
            tips[session] = error
    changes = _changes(store, [tip.oid for tip in tips.values() if isinstance(tip, Recorded)])
    for session, tip in tips.items():
        yield session, _contracts_or_error(store, session, tip, changes)


def _changes(store: Store, tips: list[Oid]) -> Changes | None:
    """None where one of the journals stops git: then each is asked for alone."""
    try:
        return store.changes(tips, CONTRACT)
    except RelayError:
        return None


def _contracts_or_error(
    store: Store, session: SessionId, tip: Recorded | RelayError, changes: Changes | None
) -> list[Found] | RelayError:
    if isinstance(tip, RelayError):
        return tip
    try:
        alone = changes if changes is not None else store.changes([tip.oid], CONTRACT)
        return list(_found(store, session, tip, _brought(store, tip, alone)))
    except RelayError as error:
        return error


def _brought(store: Store, tip: Recorded, changes: Changes) -> list[Recorded]:
    """The entries where `contract.json` comes, changes or goes, oldest first."""
    here: Oid | None = tip.oid
    while here is not None and here not in changes:
        parents = journal.parents(store, here)
        here = parents[0] if parents else None
    found: list[Recorded] = []
    while here is not None:
        found.append(tip if here == tip.oid else journal.read(store, here))
        before = changes[here][:1]
        # The first change of all has only its snapshot left as a parent there.
        here = before[0] if before and before[0] in changes else None
    return found[::-1]


def _found(store: Store, session: SessionId, tip: Recorded, brought: list[Recorded]) -> Iterator[Found]:
    previous: tuple[str, str] | None = None
    seen: set[str] = set()
    for i, recorded in enumerate(brought):
        stored = (store.blob(recorded.contract) if recorded.contract else None) or b""
        brief = (store.blob(recorded.brief) if recorded.brief else None) or b""
        named = _claimed_id(stored)
        latest = i == len(brought) - 1
        again = frozenset({named} & seen)
        fault = _fault(tip, recorded, named) if latest else ""
        place = ExpectedPlace(
            session, recorded.entry.leg, recorded.snapshot or "", previous, again, brief, latest, fault
        )
        found = Found(session, named, recorded, stored, place)
        yield found
        previous = (named, found.sha256)
        seen.add(named)


def _fault(tip: Recorded, last: Recorded, named: str) -> str:
    """What is wrong at the journal's tip: an older contract put in a newer one's place changes nothing on its way."""
    if tip.contract != last.contract:
        return "the journal's tip holds another contract than the last one brought"
    if tip.entry.contract_id != named:
        return "the journal's tip names another contract than it holds"
    return ""


def check(repo: Repo, store: Store, key: Key | None, session: SessionId) -> list[Checked]:
    """The verdict on every contract of a session, oldest first, and on notes that belong to none."""
    try:
        found: list[Found] | RelayError = contracts(store, session)
    except RelayError as error:
        found = error
    return _rows(store, key, session, found, RepoSnapshots(repo, store))


def check_all(repo: Repo, store: Store, key: Key | None, workers: int = 1) -> Iterator[Checked]:
    """The verdicts on the contracts of every session; a session whose journal is damaged has a row that says so.

    Of many sessions each of so many processes takes a part; a verdict that comes from there is without its contract.
    """
    known = journal.sessions(store)
    if workers < 2 or len(known) < _MANY:
        yield from _check_some(repo, store, key, known)
        return
    from concurrent.futures import ProcessPoolExecutor  # 30 ms that few sessions are not worth

    size = -(-len(known) // (4 * workers))
    parts = [known[i : i + size] for i in range(0, len(known), size)]
    with ProcessPoolExecutor(workers) as pool:
        for rows in pool.map(_check_part, [(repo, key, part) for part in parts]):
            yield from rows


def _check_part(part: tuple[Repo, Key | None, list[SessionId]]) -> list[Checked]:
    repo, key, known = part
    rows = _check_some(repo, open_store(repo.common_dir), key, known)
    return [replace(r, verdict=replace(r.verdict, contract={})) if isinstance(r.verdict, Verified) else r for r in rows]


def _check_some(repo: Repo, store: Store, key: Key | None, known: list[SessionId]) -> Iterator[Checked]:
    snapshots = RepoSnapshots(repo, store)
    for session, found in survey(store, known):
        yield from _rows(store, key, session, found, snapshots)


def current(repo: Repo, store: Store, key: Key, session: SessionId) -> Verified:
    """The newest contract, read back from git and verified in its place; raises SignatureRefused otherwise."""
    found = contracts(store, session)
    if not found:
        raise SignatureRefused(f"the session {session} has no contract yet", hint=f"git relay log {session}")
    verdict = verify(found[-1].stored, key, found[-1].place, RepoSnapshots(repo, store))
    if isinstance(verdict, Refused):
        raise SignatureRefused(
            f"the contract {found[-1].contract_id} does not verify: {verdict.outcome} ({verdict.reason})",
            hint=f"git relay verify {session}",
        )
    return verdict


def refuse_newer(store: Store, tip: Recorded) -> None:
    """Raises FormatTooNew where the current contract follows rules that this version does not know.

    To go on from it would leave out what only a newer git relay can read.
    """
    version = glance((store.blob(tip.contract) if tip.contract else None) or b"").get("version")
    if type(version) is int and version > VERSION:
        raise FormatTooNew(
            f"the contract {tip.entry.contract_id} was written by a newer git relay", hint=journal.UPGRADE
        )


def _rows(
    store: Store, key: Key | None, session: SessionId, found: list[Found] | RelayError, snapshots: RepoSnapshots
) -> list[Checked]:
    if isinstance(found, RelayError):
        return [_damaged(session, found)]
    try:
        written = notes.listed(store, session)
        rows = [_row(store, f, verify(f.stored, key, f.place, snapshots), written) for f in found]
        at_home = {f.recorded.snapshot for f in found}
        if not found:
            rows += _lacking(session, journal.tip(store, session))
        for commit in written.keys() - at_home:
            stray = f"a note of this session lies on {commit[:12]}, which is no snapshot of it"
            rows.append(Checked(session, "(note)", 0, Refused(Outcome.MISPLACED, stray)))
    except RelayError as error:  # an object that cannot be read
        return [_damaged(session, error)]
    return rows


def _lacking(session: SessionId, tip: Recorded) -> list[Checked]:
    """A row where the journal holds no contract and its tip says that there is one."""
    if not tip.entry.contract_id and tip.contract is None:
        return []
    gone = Refused(Outcome.MISPLACED, "the journal's tip names a contract, and the journal brings none")
    return [Checked(session, "(journal)", tip.entry.leg, gone)]


def _damaged(session: SessionId, error: RelayError) -> Checked:
    outcome = Outcome.UNSUPPORTED_VERSION if isinstance(error, FormatTooNew) else Outcome.MALFORMED
    return Checked(session, "(journal)", 0, Refused(outcome, str(error)))


def _row(store: Store, found: Found, verdict: Verification, written: dict[Oid, Oid]) -> Checked:
    note = written.get(found.recorded.snapshot or Oid(""))
    # Two legs may share one snapshot: its note then holds the brief of the later one.
    if isinstance(verdict, Verified) and found.place.is_latest and note not in (None, found.recorded.brief):
        verdict = Refused(Outcome.TAMPERED, "the note on its snapshot is not the brief that was signed")
    elif isinstance(verdict, Refused) and found.recorded.contract is None:
        verdict = Refused(Outcome.MALFORMED, "the journal holds a contract no longer from here on")
    return Checked(found.session_id, found.contract_id, found.recorded.entry.leg, verdict)


def _claimed_id(stored: bytes) -> ContractId:
    named = glance(stored).get("contractId")
    return ContractId(named if isinstance(named, str) and len(named) <= 80 and named.isprintable() else "(unreadable)")
