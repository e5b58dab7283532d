"""`land` and `drop`: the end of a session."""

from __future__ import annotations

import secrets

from relay_git.cli import context, interrupted
from relay_git.contract.sign import Key
from relay_git.errors import ExitCode, RepoError, SignatureRefused, UserError
from relay_git.git.repo import Repo
from relay_git.ledger import journal
from relay_git.ledger.key import load
from relay_git.session import SessionId
from relay_git.supervisor import dropping, landing
from relay_git.supervisor.halfway import How
from relay_git.supervisor.run import Surroundings, take_up


def land(word: str | None, *, merge: bool, squash: bool, rebase: bool) -> int:
    """Bring the work to the user's branch and print the way back."""
    chosen = [how for how, wanted in ((How.MERGE, merge), (How.SQUASH, squash), (How.REBASE, rebase)) if wanted]
    if len(chosen) > 1:
        raise UserError("give one of --merge, --squash and --rebase", hint="git relay land -h")
    repo, store = context.open_repo(look=True)
    session = journal.find(store, word)
    with journal.writer(repo, session):
        run = take_up(context.surroundings(repo, store, load(repo)), session)
        done = landing.land(run, chosen[0] if chosen else How.MERGE)
    if done.before == done.after:
        print(f"nothing to land: {done.branch} already has all of {session}")
        return ExitCode.DONE
    print(f"landed {session} on {done.branch}: {done.before[:12]} -> {done.after[:12]}")
    print(f"the way back: git reset --keep {done.before}")
    print(f"clean up:     git relay drop {session}")
    return ExitCode.DONE


def drop(word: str | None, *, force: bool, purge: bool) -> int:
    """Take the session away and say what went."""
    repo, store = context.open_repo()
    try:
        session = journal.find(store, word)
        with journal.writer(repo, session):
            around = context.surroundings(repo, store, _any_key(repo))
            for line in _drop(around, session, force=force, purge=purge):
                print(f"removed {line}")
    finally:
        interrupted.tell(repo, store)  # only now: the one that goes need not be named
    if not purge:
        print(f"kept the history: git relay log {session}")
    return ExitCode.DONE


def _any_key(repo: Repo) -> Key:
    """The key, or where it cannot be used one that is nobody's: a drop neither signs nor verifies."""
    try:
        return load(repo)
    except SignatureRefused:
        return Key(secrets.token_bytes(32))


def _drop(around: Surroundings, session: SessionId, *, force: bool, purge: bool) -> tuple[str, ...]:
    try:
        run = take_up(around, session)
    except RepoError as error:
        if force and purge:
            return dropping.raze(around, session)
        raise RepoError(
            str(error), hint=f"git fsck; to give it up: git relay drop --force --purge {session}"
        ) from error
    return dropping.drop(run, force=force, purge=purge)
