"""`start` and `handoff`: the commands that carry a session."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from relay_git.agents import AGENTS, find_agent
from relay_git.agents.agent import Unready
from relay_git.cli import background, context, people, told
from relay_git.cli.teller import ConsoleTeller, lent
from relay_git.contract.lifecycle import RESTS, Event, State
from relay_git.errors import AgentError, ExitCode, LedgerConflict, RelayError, UserError
from relay_git.git.repo import Repo, no_work_tree
from relay_git.git.run import disk_error
from relay_git.git.store import Store
from relay_git.ledger import journal
from relay_git.ledger.journal import Entry
from relay_git.ledger.key import ensure, load
from relay_git.quota.entry import Account
from relay_git.session import SessionId
from relay_git.supervisor import handoff as halves
from relay_git.supervisor import login, opening, recover, request, stand
from relay_git.supervisor.carry import carry as carry_on
from relay_git.supervisor.handoff import fence
from relay_git.supervisor.request import HANDOFF, HUMAN, Request
from relay_git.supervisor.run import Run, Stop, take_up
from relay_git.supervisor.settings import Settings


def start(
    words: str | None,
    file: Path | None,
    agent: str | None,
    then: str | None,
    base: str,
    *,
    carry: bool,
    wait: bool = False,
    interactive: bool = False,
    detach: bool = False,
) -> int:
    """Open a session and carry it until it is at rest."""
    _refuse_both(interactive=interactive, detach=detach)
    untold = interactive and words is None and file is None  # the user tells the agent in its TUI
    task = "" if untold else opening.clean_task(_task_bytes(words, file))
    repo, store = context.open_repo(look=True)
    if repo.home is None:
        raise no_work_tree()
    settings = context.settings(repo)
    first, rest = _order(settings, agent, then)
    begins = context.account_named(first)
    for name in rest:
        context.account_named(name)
    verdict = context.ready(begins, settings.permission(begins.agent))
    if isinstance(verdict, Unready):
        raise AgentError(f"{first} cannot be started: {verdict.reason}", hint=verdict.hint or "git relay doctor")
    key = ensure(repo, store)
    teller = a_teller()
    with clean_stop() as stop, lent(teller, stop, wanted=interactive) as terminal:
        around = context.surroundings(repo, store, key, teller=teller, stop=stop, terminal=terminal)
        _say_first(repo, teller, carry=carry, rest=rest)
        order = opening.Order(task, first, rest, base, carry, wait=context.MOST_WAIT if wait else 0.0)
        with opening.open_session(around, order) as run:
            teller.say(f"session {run.session}: branch relay/{run.session}, worktree {run.worktree}")
            teller.say(f"leg 1: {find_agent(begins.agent).title}" + (f" ({begins})" if begins.label else ""))
            if not detach:
                return carry_to_rest(run, teller)
    return background.carry_aside(repo, store, run.session, ["resume", run.session])


def handoff(word: str | None, to: str | None, reason: str, *, interactive: bool = False, detach: bool = False) -> int:
    """Ask a running supervisor for a handoff, or carry a resting session on from here."""
    _refuse_both(interactive=interactive, detach=detach)
    repo, store = context.open_repo()
    session = journal.find(store, word)
    heir = context.account_named(to) if to is not None and to != HUMAN else None
    name = HUMAN if to == HUMAN else str(heir or "")
    entry = journal.tip(store, session).entry
    _refuse_if_over(entry)
    if not name and not entry.candidates and not entry.next_agent:
        raise UserError(
            f"no agent is named that could follow {entry.agent}", hint=f"git relay handoff {session} --to AGENT"
        )
    if heir is not None:
        verdict = context.ready(heir, context.settings(repo).permission(heir.agent))
        if isinstance(verdict, Unready):
            raise AgentError(f"{name} cannot be started: {verdict.reason}", hint=verdict.hint or "git relay doctor")
    if journal.is_running(repo, session):
        if interactive:
            raise UserError(
                f"{session} is carried by another git relay, and goes on where that one runs",
                hint=f"git relay handoff {session}   (without -i)",
            )
        request.put(repo, session, Request(HANDOFF, name, reason))
        told = "it is paused after its next commit, or at the end of a tool call"
        if entry.state is not State.RUNNING:
            told = "a handoff is under way; " + (f"{name} is next" if name else "nothing more is needed")
        print(f"{session}: asked {entry.agent}; {told}", file=sys.stderr)
        return ExitCode.DONE
    if os.environ.get("RELAY_SESSION") == session:
        raise UserError(
            f"you are inside a leg of {session}, and its supervisor is gone", hint="type it in another terminal"
        )
    if detach:
        more = [*(["--to", name] if name else []), *(["--reason", reason] if reason else [])]
        return background.carry_aside(repo, store, session, ["handoff", session, *more])
    status = _go_on(repo, store, session, name, reason, interactive=interactive)
    return people.show_page(session, status) if name == HUMAN else status


def resume(word: str | None, *, interactive: bool = False, detach: bool = False) -> int:
    """Carry a session on after a stop or a crash, with the agent that was at work or was next.

    A handoff that was asked for and not begun yet is what happens then; a stop is out of date.
    """
    _refuse_both(interactive=interactive, detach=detach)
    repo, store = context.open_repo()
    session = journal.find(store, word)
    entry = journal.tip(store, session).entry
    _refuse_if_over(entry)
    if journal.is_running(repo, session):
        raise LedgerConflict(f"another git relay is running the session {session}", hint=f"git relay status {session}")
    if detach:
        return background.carry_aside(repo, store, session, ["resume", session])
    request.clear_stop(repo, session)
    asked = request.get(repo, session)
    if asked is not None:
        return _go_on(repo, store, session, asked.to, asked.reason, interactive=interactive)
    if entry.state is State.WAITING:  # it goes on waiting; `handoff` is what ends that
        return _go_on(repo, store, session, "", "", interactive=interactive)
    name = entry.next_agent or _worker(store, entry)
    return _go_on(repo, store, session, name, "resumed by the user", interactive=interactive, fresh=True)


def _worker(store: Store, entry: Entry) -> str:
    """Who was at work; nobody where that was an agent which git relay never started: its heir goes on."""
    first = entry if entry.leg > 1 else list(journal.chain(store, entry.session_id))[-1].entry
    if first.event is not Event.ADOPTED:
        return str(Account(entry.agent, entry.account))
    if not entry.candidates:
        raise UserError(
            f"nobody is named that goes on after the adopted {entry.agent}",
            hint=f"git relay handoff {entry.session_id} --to AGENT",
        )
    return ""


def _go_on(
    repo: Repo, store: Store, session: SessionId, name: str, reason: str, *, interactive: bool, fresh: bool = False
) -> int:
    """Carry a session on that no supervisor holds, from wherever its journal stands.

    With `fresh` a session whose first agent was never started begins with that one.
    """
    teller = a_teller()
    with (
        clean_stop() as stop,
        lent(teller, stop, wanted=interactive) as terminal,
        journal.writer(repo, session),
    ):
        around = context.surroundings(repo, store, load(repo), teller=teller, stop=stop, terminal=terminal)
        recover.tidy(repo, store)
        run = take_up(around, session)
        entry = run.tip.entry
        _refuse_if_over(entry)  # it may have ended before we had the lock
        if fresh and entry.event is Event.STARTED and halves.started_as(run, entry.leg, entry.agent) is None:
            return carry_to_rest(run, teller)
        run.prefer = name
        if entry.state in RESTS or entry.state is State.RUNNING:
            fence(run, None)
            run.record(
                Event.HANDOFF_ASKED,
                pause_reason="handoff",
                reason=reason or "asked for by the user",
                safe_point="ended" if entry.state in RESTS else "",
                passed_over=(),
            )
        return carry_to_rest(run, teller)


def a_teller() -> ConsoleTeller:
    """Who tells the user; in the background it tells its file alone."""
    return ConsoleTeller(silent=os.environ.pop(background.ASIDE, "") == "1")


def _refuse_both(*, interactive: bool, detach: bool) -> None:
    if interactive and detach:
        raise UserError("--detach goes without the terminal that --interactive is for", hint="give one of the two")


def _refuse_if_over(entry: Entry) -> None:
    if entry.event is Event.DROPPED:
        raise UserError(f"the session {entry.session_id} is dropped", hint='git relay start "your task"')
    if entry.state is State.DONE:
        raise UserError(
            f"the session {entry.session_id} is DONE: there is nothing to hand over",
            hint=f"git relay land {entry.session_id}",
        )


def carry_to_rest(run: Run, teller: ConsoleTeller) -> int:
    """Carry the session until it rests, and tell how; the exit status. No agent is left alive on the way out."""
    teller.keep(told.file_of(run.around.repo, run.session))
    try:
        with teller:
            state = carry_on(run)
    except OSError as error:
        _leave(run)
        raise disk_error(error, "the session could not go on") from error
    except (RelayError, KeyboardInterrupt):
        _leave(run)
        raise
    return _tell_end(run, state)


def _leave(run: Run) -> None:
    """No agent may go on unwatched when the supervisor gives up; what is in the worktree stays as it is."""
    if run.state not in RESTS:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # ending it takes seconds at the most, and must be done
        fence(run, None)
        print(f"git relay: the session {run.session} is interrupted; its worktree is as it was", file=sys.stderr)
        print(f"hint: to go on: git relay resume {run.session}", file=sys.stderr)


def _tell_end(run: Run, state: State) -> int:
    entry, name = run.tip.entry, run.session
    say = run.around.teller.say
    match state:
        case State.DONE:
            say(f"{name} is done after {entry.leg} leg{'s' if entry.leg > 1 else ''}: {entry.reason}")
            end = entry.snapshot if entry.stands else f"relay/{name}"
            say(f"see it:  git log -p {entry.base_commit[:12]}..{end}")
            say(f"take it: {stand.way(run)}")
            return ExitCode.DONE
        case State.STOPPED:
            at_terminal = "" if run.around.terminal is None else " -i"
            say(f"{name} is stopped ({entry.reason}); the contract {entry.contract_id} is kept")
            say(f"go on:   git relay resume{at_terminal} {name}, or git relay handoff{at_terminal} {name} --to AGENT")
            if at_terminal:
                say(f"take it: git relay land {name}")
            return ExitCode.INTERRUPTED if run.around.stop.is_set() else ExitCode.DONE
        case State.FAILED:
            say(f"{name} has failed: {entry.reason}")
            return ExitCode.REFUSED
        case _:
            wanted = entry.pause_reason == HANDOFF and not entry.passed_over  # the user has asked for a person
            why = "" if wanted else ": no agent is left that can go on"
            say(f"{name} needs you{why}; the contract {entry.contract_id} is kept")
            out = entry.pause_reason == login.REASON
            if out:
                say(f"  {run.account}: {entry.reason}")
            for passed in entry.passed_over:
                say(f"  {passed.agent}: {passed.reason}")
            say(f"read it: git relay show {name}")
            same = f"git relay resume {name} once you have signed in, or " if out else ""
            if wanted:
                say(f"answer:  git relay answer {name} TEXT --to AGENT")
            say(f"go on:   {same}git relay handoff {name} --to AGENT")
            return ExitCode.FAILED


def _task_bytes(words: str | None, file: Path | None) -> bytes:
    if (words is None) == (file is None):
        raise UserError(
            "give the task once: as words, as - for standard input, or by --file", hint='git relay start "your task"'
        )
    if file is not None:
        try:
            with file.open("rb") as source:
                return source.read(opening.MAX_TASK + 1)
        except OSError as error:
            raise UserError(f"the task file {file} cannot be read: {error.strerror}", hint=f"ls -l {file}") from error
    if words == "-":
        return sys.stdin.buffer.read(opening.MAX_TASK + 1)
    return os.fsencode(words or "")


def _order(settings: Settings, agent: str | None, then: str | None) -> tuple[str, tuple[str, ...]]:
    """Who begins and who follows: what the user typed, else relay.agents, else the first real agent that is ready."""
    named = settings.agents
    if agent is not None:
        first = str(context.account_named(agent))
    elif named:
        first = named[0]
    else:
        first = _first_ready(settings)
    rest = context.agent_list(then) if then is not None else tuple(n for n in named if n != first)
    return first, rest


def _first_ready(settings: Settings) -> str:
    reasons = []
    for name, agent in AGENTS.items():
        if name == "demo":
            continue
        verdict = agent.check(os.environ, settings.permission(name))
        if not isinstance(verdict, Unready):
            return name
        reasons.append(f"{name}: {verdict.reason}")
    raise AgentError(
        f"no agent can be started here ({'; '.join(reasons)})",
        hint="git relay doctor; to see how it works: git relay demo",
    )


def _say_first(repo: Repo, teller: ConsoleTeller, *, carry: bool, rest: tuple[str, ...]) -> None:
    git = repo.git()
    if git.result("symbolic-ref", "--quiet", "HEAD").returncode != 0:
        teller.say("note: HEAD is detached; the session starts from that commit")
    left = opening.what_is_left_out(repo)
    if left and not carry:
        teller.say(
            f"note: {left} uncommitted change{'s are' if left > 1 else ' is'} not in the session (--carry copies them)"
        )
    if not git.text("config", "user.email", ok=(0, 1)) and not os.environ.get("GIT_AUTHOR_EMAIL"):
        teller.say(
            "note: user.email is not set, so the agent's commits may fail: git config user.email you@example.com"
        )
    if repo.git(safe=False).text("config", "--type=bool", "commit.gpgsign", ok=(0, 1)) == "true":
        teller.say("note: commit.gpgsign is on; an agent's commit may wait for a passphrase nobody types")
    if not rest:
        teller.say("note: no agent is named that could follow; name it with --then or git config relay.agents")


@contextmanager
def clean_stop() -> Iterator[Stop]:
    """The first Ctrl-C, TERM or HUP asks for a clean stop, a second Ctrl-C for one at once, a third interrupts."""
    stop = Stop()

    def ask(number: int, frame: FrameType | None) -> None:
        del frame
        if stop.hurry.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        if stop.is_set() and number != signal.SIGHUP:  # a terminal that is closed hangs up more than once
            stop.hurry.set()
        stop.set()

    before = {n: signal.signal(n, ask) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            # One more Ctrl-C after the stop has come to its end must not cut off its last words.
            signal.signal(number, signal.SIG_IGN if stop.is_set() and number == signal.SIGINT else handler)
