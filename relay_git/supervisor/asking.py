"""Asking the outgoing agent what the next one must know: one turn in a copy of its session, without leave to write.

Promise: only who watched a leg into a pause that was decided ahead asks, after the snapshot, when nobody of the leg is
left; so it is never done again after a crash. It is bounded in time and in what is said. Whatever goes wrong, the
handoff goes on without an answer and the contract says why. Where files change meanwhile they are in the snapshot, and
the answer is not taken. No process of it is left.
"""

from __future__ import annotations

import json
import os
import posixpath
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from relay_git.agents import find_agent
from relay_git.agents.agent import PROMPT, Askable, Launch, Unready, Unsupported
from relay_git.contract import answer
from relay_git.contract.answer import Answer, Found
from relay_git.contract.canonical import Malformed
from relay_git.contract.lifecycle import Event
from relay_git.contract.notes import Kind, Note
from relay_git.contract.redact import redact
from relay_git.errors import AgentError
from relay_git.git.repo import make_private, write_private
from relay_git.git.run import without_local_env
from relay_git.git.snapshot import Snapshot
from relay_git.session import SessionRecord
from relay_git.supervisor import handoff, own_session, process, request
from relay_git.supervisor.launching import check
from relay_git.supervisor.outlook import QUOTA
from relay_git.supervisor.own_session import Past
from relay_git.supervisor.patience import Patience
from relay_git.supervisor.run import Run
from relay_git.supervisor.watch import Seen, Watcher

_MOST_COMMITS = 10_000  # of a session's, which a proof may name
_KEPT = "answer"  # in the private folder of the asking, which lies in that of the leg
MOST_TOKENS = 8000  # of output; a whole answer has about 2,000
_STEP = 0.05
_CUT_OFF = "the agent was asked what the next one must know; git relay ended before it had answered"


@dataclass(frozen=True, slots=True)
class Heard:
    """What the contract gets of it: notes, and what is to be said of losses."""

    notes: tuple[Note, ...] = ()
    losses: tuple[str, ...] = ()


def ask(run: Run, watcher: Watcher, taken: Snapshot) -> Snapshot:
    """Ask the agent of the leg that has ended, where that is due; the snapshot as it is afterwards."""
    record = watcher.look().record
    past = own_session.past_of(run, record)
    if past is None or not _is_due(run, record):
        return taken
    plan = _plan(run, past)
    if isinstance(plan, Unsupported):
        run.around.teller.say(f"{watcher.agent.title} is not asked what the next agent must know: {plan.reason}")
        return taken
    try:
        asked = _start(run, plan, past)
    except AgentError as error:
        _keep(run, Heard(losses=(f"the agent could not be asked what the next one must know: {error}",)))
        return taken
    try:
        run.record(
            Event.ASKED,
            pid=asked.process.pid,
            pid_started=asked.process.started,
            supervisor=os.getpid(),
            reason=f"{watcher.agent.title} is asked what the next agent must know",
        )
        said, why_not = _listen(run, asked)
    finally:
        handoff.fence(run, asked)
    after = handoff.take_snapshot(run)
    if after.commit != taken.commit:
        why_not = "files changed meanwhile; they are in the snapshot"
    _conclude(run, said, why_not, record)
    if after.commit != taken.commit:
        run.record(Event.SNAPSHOT_TAKEN, snapshot=after.commit)
    return after


def heard(run: Run) -> Heard:
    """What came of asking the tip's leg, also where the supervisor that asked has died; nothing where nobody did."""
    try:
        body = json.loads((_private(run) / _KEPT).read_bytes())
        notes = tuple(Note(Kind(kind), str(text), run.tip.entry.leg, answer.SOURCE) for kind, text in body["notes"])
        return Heard(notes, tuple(map(str, body["losses"])))
    except (OSError, ValueError, TypeError, KeyError):
        return Heard(losses=(_CUT_OFF,) if (_private(run) / PROMPT).exists() else ())


def _is_due(run: Run, record: SessionRecord) -> bool:
    """Whether the handoff was decided ahead, so that there is headroom, and nobody is in a hurry."""
    around, reason = run.around, run.tip.entry.pause_reason
    ahead = reason in (request.HANDOFF, QUOTA) and not record.at_limit and not around.meter.spent(run.account)
    return around.settings.ask and ahead and not around.stop.is_set()


def _private(run: Run) -> Path:
    entry = run.tip.entry
    return run.place(entry.leg, entry.agent).private_dir / "ask"


def _plan(run: Run, past: Past) -> Launch | Unsupported:
    entry, agent = run.tip.entry, find_agent(run.account.agent)
    if not isinstance(agent, Askable):
        return Unsupported(agent.unresumable or "it cannot go on in a copy of its session without leave to write")
    ready = check(run, run.account)
    if isinstance(ready, Unready):
        return Unsupported(ready.reason)
    place = replace(run.place(entry.leg, entry.agent), private_dir=_private(run))
    return agent.ask(place, past.native_id, answer.QUESTION, ready, run.env_of(run.account))


def _start(run: Run, plan: Launch, past: Past) -> Watcher:
    """Begin to ask; raises AgentError where the tool cannot be started."""
    around, entry, private = run.around, run.tip.entry, _private(run)
    make_private(private)
    (private / _KEPT).unlink(missing_ok=True)
    for name, data in {**plan.files, PROMPT: plan.stdin}.items():
        write_private(private / name, data)
    theirs = without_local_env(run.env_of(run.account))
    env = {name: value for name, value in theirs.items() if name not in plan.drop_env}
    env |= {"RELAY_LEG": str(entry.leg)} | dict(plan.env)
    told = f"{find_agent(entry.agent).title} is asked what the next agent must know"
    around.teller.say(f"leg {entry.leg} ({entry.agent}): {told}")
    if around.terminal is not None:
        around.terminal.tell(f"{told}, for {around.settings.ask_timeout:.0f} s at most")
    log = around.repo.log_dir(run.session) / f"ask-{entry.leg}-{entry.agent}"
    started = process.start(plan.argv, run.worktree, env, private / PROMPT, run.log(log), run.mark)
    return Watcher(run, run.account, started, plan.native_id, past=past.after(plan))


def _listen(run: Run, asked: Watcher) -> tuple[SessionRecord, str]:
    """Wait for the end of the turn; what was said in it, and why that is no answer, if so."""
    patience = Patience(run.around.settings.ask_timeout)
    while True:
        seen = asked.look()
        why_not = _why_not(asked, seen)
        if not why_not and seen.exit is None and patience.is_over:
            why_not = f"it did not answer within {run.around.settings.ask_timeout:.0f} s"
        if why_not or seen.exit is not None:
            return seen.record, why_not
        time.sleep(_STEP)


def _why_not(asked: Watcher, seen: Seen) -> str:
    if seen.stop:
        return "a stop was asked for"
    if seen.record.usage.output > MOST_TOKENS:
        return f"it said more than {MOST_TOKENS} tokens"
    good = seen.exit == 0 and seen.resumed and (seen.ended is None or seen.ended.ok)
    if seen.out_of_quota is not None or (seen.exit is not None and seen.limit is not None and not good):
        return "it came to its limit"
    if seen.exit is not None and not good:
        return f"it ended with status {seen.exit} and no answer: {asked.process.complaint() or 'no message'}"
    return ""


def _conclude(run: Run, said: SessionRecord, why_not: str, leg: SessionRecord) -> None:
    """Keep what came of it for the contract, then record it."""
    result = Heard(losses=(f"the agent was asked what the next one must know, without an answer: {why_not}",))
    if not why_not:
        result = _read(run, said.last_text, leg)
    _keep(run, result)
    told = f"it answered: {_counted(result.notes)}" if result.notes or not result.losses else result.losses[0]
    told += f" ({sum(own_session.counts(said))} tokens, {said.usage.output} of them said)"
    run.around.teller.say(f"leg {run.tip.entry.leg} ({run.tip.entry.agent}): {told}")
    run.record(Event.ASK_OVER, pid=0, pid_started=0, reason=told)


def _read(run: Run, text: str, leg: SessionRecord) -> Heard:
    try:
        found = answer.parse(text)
    except Malformed as error:
        return Heard(losses=(f"the agent's answer to what the next one must know cannot be read: {error.reason}",))
    notes, losses = answer.noted(found, _looked_up(run, found, leg), run.tip.entry.leg)
    return Heard(tuple(replace(note, text=redact(note.text, run.around.redaction)[0]) for note in notes), losses)


def _keep(run: Run, result: Heard) -> None:
    body = {"notes": [(note.kind, note.text) for note in result.notes], "losses": result.losses}
    write_private(_private(run) / _KEPT, json.dumps(body).encode())


def _counted(notes: Iterable[Note]) -> str:
    kinds = [note.kind for note in notes]
    return ", ".join(f"{kinds.count(kind)} {kind}" for kind in Kind if kind in kinds) or "nothing to add"


def _looked_up(run: Run, found: Answer, leg: SessionRecord) -> Found:
    """What of it is in the repository and in the leg's record."""
    entry = run.tip.entry
    exits = {command.command: command.exit_code for command in leg.commands}
    named = {path: _inside(run, path) for path in found.paths}
    outside = frozenset(path for path, inside in named.items() if not inside)
    paths = {path: f"{entry.snapshot}:{inside}" for path, inside in named.items() if inside}
    commits = {oid: f"{oid}^{{commit}}" for oid in found.commits}
    made = run.around.repo.session_git(run.session).text(
        "rev-list", f"--max-count={_MOST_COMMITS}", entry.snapshot, f"^{entry.base_commit}"
    )
    return Found(outside | _missing(run, paths), _missing(run, commits), tuple(made.split()), exits)


def _inside(run: Run, path: str) -> str:
    """The path as it is named in the repository; empty for one that leads out of it."""
    inside = posixpath.normpath(path.removeprefix(f"{run.worktree}/"))
    return "" if inside.startswith(("/", "..")) else inside


def _missing(run: Run, objects: dict[str, str]) -> frozenset[str]:
    """Those whose object is not in the repository."""
    if not objects:
        return frozenset()
    asked = "".join(f"{name}\n" for name in objects.values())
    told = run.around.repo.session_git(run.session).run("cat-file", "--batch-check", input=asked.encode())
    lines = told.decode("utf-8", "replace").split("\n")
    return frozenset(
        name for name, line in zip(objects, lines, strict=False) if line.endswith((" missing", " ambiguous"))
    )
