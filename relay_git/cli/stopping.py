"""`stop`: a session is brought to rest, wherever its supervisor runs, and if it has none any more."""

from __future__ import annotations

import os
import sys

from relay_git.cli import context
from relay_git.cli.background import follow
from relay_git.cli.going import a_teller, carry_to_rest, clean_stop
from relay_git.contract.lifecycle import RESTS, State
from relay_git.errors import ExitCode, UserError
from relay_git.git.repo import Repo
from relay_git.git.store import Store
from relay_git.ledger import journal
from relay_git.ledger.key import load
from relay_git.session import SessionId
from relay_git.supervisor import dispatch, recover, request
from relay_git.supervisor.request import STOP, STOP_NOW, Request
from relay_git.supervisor.run import take_up


def stop(word: str | None, *, now: bool) -> int:
    """Bring a session to rest at a safe point and wait until it does; also one whose supervisor is gone."""
    repo, store = context.open_repo()
    session = journal.find(store, word)
    state = journal.tip(store, session).entry.state
    if os.environ.get("RELAY_SESSION") == session:
        raise UserError(f"you are inside a leg of {session}, which ends with it", hint="type it in another terminal")
    if not journal.is_running(repo, session):
        if state in RESTS:
            _say(f"{session} rests already: {state}")
            return ExitCode.DONE
        return _rest(repo, store, session)
    request.put(repo, session, Request(STOP_NOW if now else STOP, reason="stopped by the user"))
    try:
        ended = follow(repo, store, session, fresh=True)
    except KeyboardInterrupt:
        _say(f"{session} is still asked to stop; see: git relay status {session}")
        return ExitCode.INTERRUPTED
    request.clear_stop(repo, session)
    if journal.tip(store, session).entry.state not in RESTS:  # its supervisor has died meanwhile
        return _rest(repo, store, session)
    return ExitCode.DONE if ended == ExitCode.INTERRUPTED else ended


def _rest(repo: Repo, store: Store, session: SessionId) -> int:
    """Bring a session to rest whose supervisor is gone: end its agent, take the snapshot, write the contract."""
    teller = a_teller()
    with clean_stop() as stop, journal.writer(repo, session):
        stop.set()
        recover.tidy(repo, store)
        run = take_up(context.surroundings(repo, store, load(repo), teller=teller, stop=stop), session)
        if run.state is State.DISPATCHED:
            dispatch.pass_over(run, "a stop was asked for")
        ended = carry_to_rest(run, teller)
    return ExitCode.DONE if ended == ExitCode.INTERRUPTED else ended


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
