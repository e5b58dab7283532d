"""`note`: what must be in the next contract, said by who knows it, while the work goes on."""

from __future__ import annotations

import os
import sys

from relay_git.cli import context
from relay_git.cli.redacting import policy_here
from relay_git.contract.notes import MOST_TEXT, Kind, line
from relay_git.contract.redact import redact
from relay_git.errors import ExitCode, UserError, printable
from relay_git.ledger import journal
from relay_git.supervisor import noting
from relay_git.supervisor.run import stamp


def note(kind: str, text: str, word: str | None) -> int:
    """Keep a note for the next contract of the session that this runs in, or that the user names."""
    about = kind_named(kind)
    said = sys.stdin.read(MOST_TEXT + 1) if text == "-" else text
    said = " ".join(said.split())
    if not said or len(said) > MOST_TEXT:
        raise UserError(f"a note has 1 to {MOST_TEXT} characters", hint=f'git relay note {about} "in a sentence"')
    repo, store = context.open_repo()
    inside = os.environ.get("RELAY_SESSION")
    session = journal.find(store, word or inside)
    agent = session == inside
    entry = journal.tip(store, session).entry
    if not repo.worktree_git_dir(session).is_dir():
        raise UserError(f"the session {session} has no worktree any more", hint=f"git relay log {session}")
    noting.append(
        noting.file_of(repo, session, agent=agent),
        line(about, redact(said, policy_here())[0], entry.leg, stamp(context.now())),
    )
    print(f"noted for the next contract of {session}: {about}")
    return ExitCode.DONE


def kind_named(name: str) -> Kind:
    """The kind that a word names; raises UserError."""
    try:
        return Kind(name)
    except ValueError as error:
        raise UserError(f"there is no kind {printable(name)!r}", hint=f"one of: {', '.join(Kind)}") from error
