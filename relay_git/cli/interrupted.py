"""Every command says which sessions a crash has left standing, since nobody else will."""

from __future__ import annotations

import contextlib
import sys

from relay_git.contract.lifecycle import RESTS
from relay_git.errors import RelayError
from relay_git.git.repo import Repo
from relay_git.git.store import Store
from relay_git.ledger import journal

_NAMED = 3


def tell(repo: Repo, store: Store) -> None:
    """A line on stderr for each interrupted session, with the way on; a damaged one is for `status` and `doctor`."""
    found = []
    for session in journal.sessions(store):
        with contextlib.suppress(RelayError):
            state = journal.tip(store, session).entry.state
            if state not in RESTS and not journal.is_running(repo, session):
                found.append((session, state))
    for session, state in found[:_NAMED]:
        print(f"note: {session} is interrupted while {state}; to go on: git relay resume {session}", file=sys.stderr)
    if len(found) > _NAMED:
        print(f"note: {len(found) - _NAMED} more are interrupted: git relay status", file=sys.stderr)
