"""`show`, `verify` and `accept`: contracts, never believed before they are verified."""

from __future__ import annotations

import os
import sys
from typing import Any

from relay_git.cli import context
from relay_git.cli.render import print_json, print_table
from relay_git.contract.brief import brief
from relay_git.contract.lifecycle import TRANSITIONS, Event
from relay_git.contract.quote import visible
from relay_git.contract.verify import Refused, Verified
from relay_git.contract.verify import verify as verify_bytes
from relay_git.errors import ExitCode, RelayError, SignatureRefused, UserError, printable
from relay_git.git.repo import Repo, write_private
from relay_git.git.store import Store
from relay_git.ledger import journal, replay
from relay_git.ledger.key import load
from relay_git.ledger.replay import Checked, Found, RepoSnapshots
from relay_git.session import SessionId
from relay_git.supervisor.run import take_up


def show(word: str | None, *, as_json: bool, evidence: str | None = None) -> int:
    """Print a verified contract as the brief, or as JSON, or one piece of its evidence; a refused one is not shown."""
    verdict = verified(word)
    if evidence is not None:
        _print_evidence(verdict, evidence, as_json=as_json)
    elif as_json:
        print_json({"outcome": str(verdict.outcome), "contract": verdict.contract})
    else:
        sys.stdout.write(brief(verdict.contract))
    return ExitCode.DONE


def verified(word: str | None) -> Verified:
    """The contract that a word names, verified; raises SignatureRefused, and then nothing of it is to be shown."""
    repo, store = context.open_repo(look=True)
    found = _find(store, word)
    verdict = verify_bytes(found.stored, load(repo), found.place, RepoSnapshots(repo, store))
    if isinstance(verdict, Refused):
        raise SignatureRefused(
            f"the contract {found.contract_id} is not shown, it does not verify: {verdict.outcome} ({verdict.reason})",
            hint=f"its raw bytes: git cat-file blob {found.recorded.contract}",
        )
    return verdict


def _print_evidence(verdict: Verified, wanted: str, *, as_json: bool) -> None:
    pieces = {piece["id"]: piece for piece in verdict.contract["evidence"]}
    if wanted not in pieces:
        known = f"{next(iter(pieces))} to {list(pieces)[-1]}" if pieces else "none at all"
        raise UserError(
            f"{verdict.contract_id} has no evidence {printable(wanted)}, it has {known}",
            hint=f"git relay show {verdict.contract_id} --json",
        )
    if as_json:
        print_json(pieces[wanted])
    else:
        print(visible(pieces[wanted]["excerpt"]))


def verify(word: str | None, *, everything: bool, as_json: bool) -> int:
    """Print the verdict on each contract; refused ones make the exit status 3."""
    repo, store = context.open_repo(look=True)
    sessions = journal.sessions(store)
    if everything or (word is None and len(sessions) != 1):
        # Where there is no session there may never have been a key: it is asked for only when there is one.
        checked = replay.check_all(repo, store, load(repo), workers=os.cpu_count() or 1) if sessions else ()
        rows = [_line(row) for row in checked]
    else:
        found = _by_id(store, word)
        session = found.session_id if found is not None else _session(store, word)
        rows = [_line(row) for row in replay.check(repo, store, load(repo), session)]
        if found is not None:
            rows = [r for r in rows if r["contractId"] == found.contract_id]
    refused = sum(not r["outcome"].accepted for r in rows)
    if as_json:
        print_json({"contracts": rows, "refused": refused})
    elif not rows:
        print("no contract yet: the first is built at the first handoff")
    else:
        print_table(("CONTRACT", "SESSION", "LEG", "OUTCOME", "WHY"), [tuple(r.values()) for r in rows])
    return ExitCode.REFUSED if refused else ExitCode.DONE


def accept(word: str) -> int:
    """Leave the evidence that the work was taken over where the supervisor looks, or in the journal where none runs."""
    repo, store = context.open_repo()
    found = _find(store, word)
    if word != found.contract_id:
        raise UserError(
            f"accept needs the whole id of the contract, not {printable(word)}",
            hint="it stands in the brief after 'Contract:'",
        )
    supervised = os.environ.get("RELAY_SESSION") == found.session_id
    verdict = _verdict(repo, store, found, supervised=supervised)
    if isinstance(verdict, Refused):
        raise SignatureRefused(
            f"the contract does not verify: {verdict.outcome} ({verdict.reason})",
            hint=f"git relay verify {found.session_id}",
        )
    if verdict is not None and not found.place.is_latest:
        raise UserError(
            f"{word} is superseded by a newer contract of {found.session_id}", hint=f"git relay show {found.session_id}"
        )
    if supervised or journal.is_running(repo, found.session_id):
        write_private(repo.worktree_git_dir(found.session_id) / "relay" / "accepted", word.encode() + b"\n")
    else:
        _record_by_hand(repo, store, found)
    by = "verified" if verdict is not None else "verified by the supervisor before it was handed over"
    print(f"accepted {word} ({by}); session {found.session_id}, leg {found.recorded.entry.leg + 1}")
    return ExitCode.DONE


def _verdict(repo: Repo, store: Store, found: Found, *, supervised: bool) -> Verified | Refused | None:
    """None where the agent's sandbox hides the key: the supervisor has verified these bytes and watches this leg."""
    try:
        key = load(repo)
    except SignatureRefused:
        if supervised:
            return None
        raise
    return verify_bytes(found.stored, key, found.place, RepoSnapshots(repo, store))


def _record_by_hand(repo: Repo, store: Store, found: Found) -> None:
    with journal.writer(repo, found.session_id):
        run = take_up(context.surroundings(repo, store, load(repo)), found.session_id)
        if (run.state, Event.ACCEPTED) not in TRANSITIONS:
            raise UserError(
                f"the session {found.session_id} is {run.state}: nothing waits to be accepted",
                hint=f"git relay status {found.session_id}",
            )
        run.record(Event.ACCEPTED, reason="accepted by hand")


def _find(store: Store, word: str | None) -> Found:
    """The newest contract of the session that the word names, or the contract that it names itself."""
    by_id = _by_id(store, word)
    if by_id is not None:
        return by_id
    session = _session(store, word)
    found = replay.contracts(store, session)
    if not found:
        raise UserError(
            f"the session {session} has no contract yet: the first is built at its first handoff",
            hint=f"git relay log {session}",
        )
    return found[-1]


def _by_id(store: Store, word: str | None) -> Found | None:
    """The contract whose id begins so; a session whose journal is damaged is not in the way of the others."""
    if word is None or not word.startswith("c-"):
        return None
    readable = (found for _, found in replay.survey(store) if not isinstance(found, RelayError))
    hits = [f for found in readable for f in found if f.contract_id.startswith(word)]
    if len({(f.session_id, f.contract_id) for f in hits}) > 1:
        raise UserError(f"{printable(word)} can mean {len(hits)} contracts", hint="give more of its id")
    return hits[0] if hits else None


def _session(store: Store, word: str | None) -> SessionId:
    try:
        return journal.find(store, word)
    except UserError:
        if word is not None and word.startswith("c-"):
            raise UserError(f"no contract is named {printable(word)}", hint="git relay verify --all") from None
        raise


def _line(row: Checked) -> dict[str, Any]:
    """What is printed of a row: the contract itself is let go, since there may be many."""
    return {
        "contractId": row.contract_id,
        "sessionId": row.session_id,
        "leg": row.leg,
        "outcome": row.verdict.outcome,
        "reason": row.verdict.reason,
    }
