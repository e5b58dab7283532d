"""Every command says which sessions a crash has left standing, since nobody else will."""

from __future__ import annotations

import contextlib
import sys

from relay_git.contract.lifecycle import RESTS, Event
from relay_git.errors import RelayError
from relay_git.git.repo import Repo
from relay_git.git.store import Store
from relay_git.ledger import journal
from relay_git.ledger.journal import Entry
from relay_git.ledger.lost import lost
from relay_git.session import SessionId

_NAMED = 3
LANDING = "landing"  # see `supervisor.halfway`, which takes longer to import than most commands to run


def tell(repo: Repo, store: Store) -> None:
    """A line on stderr for each interrupted session, with the way on; a damaged one is for `status` and `doctor`."""
    found = []
    for session in journal.sessions(store):
        with contextlib.suppress(RelayError):
            if (cut := cut_off(repo, session, journal.tip(store, session).entry)) is not None:
                found.append((session, *cut))
    for session, what, command in found[:_NAMED]:
        print(f"note: {session} {what}; to go on: {command}", file=sys.stderr)
    if len(found) > _NAMED:
        print(f"note: {len(found) - _NAMED} more are interrupted: git relay status", file=sys.stderr)
    for session in lost(repo, store)[:_NAMED]:
        print(f"note: the journal of {session} is gone, its ref was deleted; see: git relay doctor", file=sys.stderr)


def cut_off(repo: Repo, session: SessionId, entry: Entry) -> tuple[str, str] | None:
    """What of a session a crash has left half-done, as the end of a sentence, and the command that goes on."""
    spool = repo.spool_dir(session)
    if entry.state not in RESTS:
        found = (f"is interrupted while {entry.state}", f"git relay resume {session}")
    elif entry.event is Event.DROPPED and spool.exists():
        found = ("is dropped, but not all of it is gone", f"git relay drop {session}")
    elif (spool / LANDING).exists():
        found = ("is landed by half, or nobody wrote down that it is", f"git relay land {session}")
    else:
        return None
    return None if journal.is_running(repo, session) else found
