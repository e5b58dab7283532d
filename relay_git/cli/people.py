"""`handoff --to human` and `answer`: a session waits for a person, and what the person says is in the next contract."""

from __future__ import annotations

import sys

from relay_git.cli import context
from relay_git.cli.contracts import verified
from relay_git.cli.redacting import policy_here
from relay_git.contract.lifecycle import State
from relay_git.contract.notes import MOST_TEXT, Kind, line
from relay_git.contract.page import page
from relay_git.contract.redact import redact
from relay_git.errors import ExitCode, UserError
from relay_git.ledger import journal
from relay_git.session import SessionId
from relay_git.supervisor import noting
from relay_git.supervisor.run import stamp


def show_page(session: SessionId, status: int) -> int:
    """Print what a person has to decide, once the session waits for one; the exit status."""
    _, store = context.open_repo()
    if journal.tip(store, session).entry.state is not State.NEEDS_HUMAN:
        return status
    sys.stdout.write(page(verified(session).contract))
    return ExitCode.DONE


def answer(word: str, text: str, to: str | None, questions: list[int], *, rule: bool, detach: bool) -> int:
    """Keep the answer for the next contract; with an agent named, that goes on by it.

    It answers the open questions of those numbers, or else the one there is: what is answered is asked no more.
    """
    said = " ".join((sys.stdin.read(MOST_TEXT + 1) if text == "-" else text).split())
    if not said or len(said) > MOST_TEXT:
        raise UserError(f"an answer has 1 to {MOST_TEXT} characters", hint=f'git relay answer {word} "..."')
    repo, store = context.open_repo()
    session = journal.find(store, word)
    entry = journal.tip(store, session).entry
    if entry.state is not State.NEEDS_HUMAN:
        raise UserError(
            f"the session {session} is {entry.state}: nobody is asked",
            hint=f"git relay note constraint ... -s {session}",
        )
    if to is not None:
        context.account_named(to)  # before anything is kept: what is refused is typed again
    kind = Kind.CONSTRAINT if rule else Kind.DECISION
    still, answered = _asked(session, questions) if entry.contract_id else (0, ())
    noting.append(
        noting.file_of(repo, session, agent=False),
        line(kind, redact(said, policy_here())[0], entry.leg, stamp(context.now()), answered),
    )
    if still and not answered:
        print(f"{still} questions stay open: --question NUMBER says which this answers", file=sys.stderr)
    if to is None:
        print(f"kept: it is in the next contract of {session} as a {kind}")
        print(f"go on: git relay handoff {session} --to AGENT")
        return ExitCode.DONE
    from relay_git.cli import going

    return going.handoff(session, to, "answered by the user", detach=detach)


def _asked(session: SessionId, numbers: list[int]) -> tuple[int, tuple[str, ...]]:
    """How many questions are open in the newest contract, and the text of those that are meant, as it stands there."""
    open_ = [item["text"] for item in verified(session).contract["summary"]["openQuestions"]]
    if wrong := [number for number in numbers if not 1 <= number <= len(open_)]:
        raise UserError(
            f"there is no open question {wrong[0]}: {len(open_)} are numbered on the page",
            hint=f"git relay handoff {session} --to human",
        )
    meant = [open_[number - 1] for number in numbers] or (open_ if len(open_) == 1 else [])
    return len(open_), tuple(dict.fromkeys(meant))
