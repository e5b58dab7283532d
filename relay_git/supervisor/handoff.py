"""The handoff's first half: snapshot, fence, contract, each recorded before the next begins.

Promise: the contract is built from what git and the transcript say after the old process tree is proven gone, and it is
in the journal before its note is written. Each step can be done again after a crash.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import replace
from pathlib import Path

from relay_git.agents import AGENTS, find_agent
from relay_git.agents.agent import PROMPT, TOLD, Identified
from relay_git.agents.leftovers import masks
from relay_git.contract.build import Identity, Party, Previous, build
from relay_git.contract.lifecycle import Event, State
from relay_git.contract.notes import Note
from relay_git.contract.pause import PauseFacts, SafePoint
from relay_git.contract.sign import seal
from relay_git.contract.task import acceptance, form
from relay_git.contract.verify import Verified, verify
from relay_git.errors import RepoError, SignatureRefused
from relay_git.git import debris, links, snapshot, work, worktree
from relay_git.git.mend import mend
from relay_git.git.repo import write_private
from relay_git.git.snapshot import Snapshot
from relay_git.git.store import Oid
from relay_git.git.work import WorkFacts
from relay_git.ledger import journal, notes, replay
from relay_git.quota.entry import Account
from relay_git.session import SessionId, SessionRecord
from relay_git.supervisor import committed, noting, own_session, pause, process, source
from relay_git.supervisor.process import Ground, end_tree
from relay_git.supervisor.run import Run, base_of
from relay_git.supervisor.watch import Watcher

STARTED_AS = "started-as"  # in the private folder of a leg: written just before it starts
BRIEF = "brief.md"  # in the hook's folder: what a TUI is told, which is to read it itself


def make_ready() -> None:
    """Load what a contract is built and signed with while the agent works, so that no handoff waits for it."""
    import cryptography.hazmat.primitives.hmac  # noqa: F401

    import relay_git.contract.brief
    import relay_git.contract.model  # noqa: F401


def take_snapshot(run: Run) -> Snapshot:
    """Store the worktree as it is; the session's branch follows where that disturbs nothing."""
    restore_worktree(run)
    entry = run.tip.entry
    text = f"relay: snapshot of {run.session} (leg {entry.leg}, {entry.agent})\n\nTaken by git relay at the pause."
    around, aside = run.around, masks(run.place(entry.leg, entry.agent))
    when, most = int(around.now().timestamp()), around.settings.max_file
    taken = snapshot.take(around.repo, around.store, run.session, text, when, aside, most)
    run.mended |= dict.fromkeys(taken.mended)
    return taken


def restore_worktree(run: Run) -> None:
    """Make the session's worktree again from its branch where it is gone, so that a session can always go on."""
    repo, store, session = run.around.repo, run.around.store, run.session
    run.note(*links.bring_back(repo, session), *links.own_folders(repo, session))
    last = Oid(run.tip.entry.snapshot) if run.tip.entry.snapshot else base_of(run)
    if worktree.is_whole(repo, session):
        if not (repo.worktree_git_dir(session) / "HEAD").exists():
            links.mend_links(repo, session)
            run.note("the worktree's git dir was gone and was made again", *mend(repo, session, (last, base_of(run))))
        if (stands := worktree.put_back_branch(repo, store, session, last)) is not None:
            run.note(f"the session's branch was gone and was put back at {stands[:12]}")
        return
    branch = store.ref(worktree.branch_of(session))
    worktree.add(repo, session, branch or last)
    if run.tip.entry.event not in (Event.STARTED, Event.ADOPTED):
        source = "its branch" if branch is not None else f"{last[:12]}, since its branch was gone too"
        said = f"the session's worktree was gone and was made again from {source}"
        aside = sorted(run.worktree.parent.glob(f"{session}.aside-*"))
        said += f"; what lay there is kept in {aside[-1].name}" if aside else ""
        run.note(said)


def is_still_the_snapshot(run: Run) -> bool:
    """Whether the worktree holds what the recorded snapshot holds."""
    recorded = run.around.store.commit(Oid(run.tip.entry.snapshot))
    return recorded is not None and take_snapshot(run).tree == recorded.tree


def fence(run: Run, watcher: Watcher | None) -> None:
    """End the leg's whole process tree; raises RepoError where one cannot be: nobody else may write then."""
    grace, entry = run.around.settings.term_grace, run.tip.entry
    if watcher is not None:
        left = watcher.process.end(grace)
    else:  # known by its mark; a leader that has put its environment away by pid and start time
        ground = None if entry.supervisor in (0, os.getpid()) else Ground(run.worktree, entry.pid_started)
        left = end_tree(run.mark, process.still(entry.pid, entry.pid_started), grace, ground=ground)
        for other in ground.standing() if ground is not None else ():
            run.around.teller.say(
                f"note: process {other.pid} stands in the worktree and is none of the leg's; it stays"
            )
    if left:
        pids = ", ".join(map(str, left))
        raise RepoError(
            f"processes of the last leg cannot be ended (pid {pids})",
            hint=f"end them, then: git relay handoff {run.session}",
        )
    pause.lower_flag(run)
    _clean_words(run)
    _clear_masks(run)
    dead = worktree.clear_dead_locks(run.around.repo, run.session)
    dead += debris.break_locks(run.around.repo.common_dir, refs_of(run.session))
    if dead:
        run.around.teller.say(f"a git that was ended had left its lock ({', '.join(dead)}); it is removed")


def _clean_words(run: Run) -> None:
    """Take the secrets out of what the agent of a leg that is over was told; the task stays whole until one has it."""
    told = [run.hook_dir / BRIEF, *(file for name in (PROMPT, TOLD) for file in run.spool.glob(f"leg-*/**/{name}"))]
    if run.tip.entry.event is not Event.STARTED:
        told.append(run.spool / "task")
    for file in told:
        # An agent that may write there may have put anything in a file's place.
        if file.is_symlink() or not file.is_file():
            continue
        said = file.read_bytes()
        kept = run.clean(said.decode("utf-8", "replace")).encode("utf-8", "replace")
        if kept != said:
            write_private(file, kept)


def refs_of(session: SessionId) -> tuple[str, ...]:
    """All that git relay moves for a session."""
    return worktree.branch_of(session), journal.ref_of(session), notes.ref_of(session)


def _clear_masks(run: Run) -> None:
    """Take away what the dead leg's sandbox left behind; in the common git dir only if no other session can need it."""
    repo, entry = run.around.repo, run.tip.entry
    others = (s for s in journal.sessions(run.around.store) if s != run.session)
    shared = any(journal.is_running(repo, s) for s in others)
    for path in masks(run.place(entry.leg, entry.agent)):
        if not (shared and path.parent == repo.common_dir):
            path.unlink(missing_ok=True)


def write_contract(
    run: Run, taken: Snapshot, watcher: Watcher | None, asked: tuple[Note, ...] = (), losses: tuple[str, ...] = ()
) -> None:
    """Build, sign and record the contract of the leg that has just ended, then its note.

    `asked` is what its agent answered when it was asked, `losses` what else could not come along.
    """
    around, entry = run.around, run.tip.entry
    found = replay.contracts(around.store, run.session)
    previous = _previous(run, found[-1] if found else None)
    if watcher is not None:
        record = watcher.look().record
    else:
        native_id = entry.native_id or started_as(run, entry.leg, entry.agent) or ""
        record = read_record(run, native_id)
    facts = work.collect(around.repo.session_git(run.session), around.store, base_of(run), taken)
    said, unread = noting.read(around.repo, run.session)
    leaked = _leaked(run, facts)
    facts = replace(facts, losses=(*leaked, *run.mended, *losses, *unread, *facts.losses))
    words = task(run, previous) or _said_in_the_tui(run, record)
    to = Account.parse(run.prefer or (entry.candidates[0] if entry.candidates else ""))
    identity = Identity(
        session_id=run.session,
        task_id=task_id(words),
        leg=entry.leg,
        created_at=around.now(),
        task=words,
        sender=Party(entry.agent, entry.account, record.model),
        receiver=Party(to.agent, to.label) if to.agent else None,
        acceptance=acceptance(words),
        output_contract=form(words),
    )
    reason = _pause_words(run)
    why = PauseFacts(entry.pause_reason, SafePoint(entry.safe_point or SafePoint.ENDED), reason)
    adopted = source.kept(run.spool) if entry.leg == 1 else None
    if adopted is not None and not adopted.stops:
        why = replace(why, unfinished=adopted.unfinished)
    budget = around.settings.contract_budget
    unsigned = build(identity, why, record, facts, previous, around.redaction, budget, noting.in_order(said, asked))
    sealed = seal(unsigned, around.key)
    run.record(
        Event.CONTRACT_BUILT,
        sealed=sealed,
        contract_id=sealed.contract_id,
        snapshot=taken.commit,
        passed_over=(),
        reason=reason,
    )
    write_note(run)


def _leaked(run: Run, facts: WorkFacts) -> list[str]:
    """What looks like a key in all that the session brings, told to the user."""
    repo, store = run.around.repo, run.around.store
    known = [Oid(facts.base_commit), *(oid for _, oid in store.refs("refs/remotes/"))]
    found = committed.keys(store, repo.git(), Oid(facts.snapshot_commit), known, run.around.redaction)
    for said in committed.in_short(found):
        run.around.teller.say(f"note: {said}")
    return found


def _pause_words(run: Run) -> str:
    """Why the leg was paused: what was recorded while it was asked speaks of the asking."""
    chain = journal.back_from(run.around.store, run.tip)
    return next(r.entry.reason for r in chain if r.entry.state is not State.SNAPSHOTTED)


def write_note(run: Run, *, only_missing: bool = False) -> None:
    """Put the current contract's brief on its snapshot; doing it again changes nothing."""
    brief = run.around.store.blob(run.tip.brief) if run.tip.brief else None
    if brief is not None:
        when = int(run.around.now().timestamp())
        snapshot_commit = Oid(run.tip.entry.snapshot)
        notes.write(run.around.store, run.session, snapshot_commit, brief, when, only_missing=only_missing)


def read_record(run: Run, native_id: str) -> SessionRecord:
    """The record of the tip's leg from its transcript alone, for a leg that nobody watched to its end."""
    entry = run.tip.entry
    past = own_session.noted(run.place(entry.leg, entry.agent).private_dir)
    record = read_transcript(run, native_id)
    return past.beyond(record) if past is not None else record


def read_transcript(run: Run, native_id: str) -> SessionRecord:
    """All that the transcript of the tip's leg tells, also of an earlier session that the leg went on from."""
    entry = run.tip.entry
    adopted = source.kept(run.spool) if entry.leg == 1 else None
    if adopted is not None:
        return adopted.record()
    agent = AGENTS.get(entry.agent)
    path = (
        agent.transcript(native_id, run.worktree, run.env_to_read(run.account))
        if agent is not None and native_id
        else None
    )
    if agent is None or path is None:
        return SessionRecord(entry.agent, native_id=native_id, losses=("the leg's transcript was not found",))
    follower = agent.follow(path, native_id, run.worktree)
    follower.poll()
    return follower.record(ended=True)


def started_as(run: Run, leg: int, agent: str) -> str | None:
    """The tool's id of a leg of whose start the journal may not know, empty if unknown; None where it never started."""
    place = run.place(leg, agent).private_dir / STARTED_AS
    try:
        chosen = place.read_text("ascii", "replace").strip()
    except OSError:
        return None
    return chosen or _said_id(run, leg, agent)


def _said_id(run: Run, leg: int, agent: str) -> str:
    """The id in what the leg said on stdout, as its log has it."""
    with contextlib.suppress(OSError), (log_dir(run, leg, agent) / "stdout").open("rb") as said:
        for line in said.read(1 << 20).split(b"\n"):
            for heard in find_agent(Account.parse(agent).agent).hear(line):
                if isinstance(heard, Identified):
                    return heard.native_id
    return ""


def log_dir(run: Run, leg: int, agent: str) -> Path:
    """Where the output of a leg is kept."""
    return run.around.repo.log_dir(run.session) / f"leg-{leg}-{agent}"


def task(run: Run, previous: Previous | None = None) -> str:
    """The user's task, verbatim until a leg was over; where the spool was cleaned, what a contract or the title has."""
    try:
        return (run.spool / "task").read_text("utf-8", "replace")
    except OSError:
        kept = previous.words.get("initialPrompt") if previous is not None and previous.words else ""
        return str(kept or run.tip.entry.title)


def _said_in_the_tui(run: Run, record: SessionRecord) -> str:
    """The task of a session that was begun without one: what the user first told the agent. It is kept as the task."""
    words = next((said for said in record.prompts if said.strip()), "")
    if words:
        words = run.clean(words)
        write_private(run.spool / "task", words.encode("utf-8", "replace"))
    return words or "The user began without a task in words; see what was done so far."


def task_id(text: str) -> str:
    """The id of a task: the same words are the same task, in whatever session."""
    return "t-" + hashlib.sha256(text.encode()).hexdigest()[:12]


def _previous(run: Run, last: replay.Found | None) -> Previous | None:
    """The contract before this one: named by what lies there, its words carried on only if it verifies."""
    if last is None:
        return None
    verdict = verify(last.stored, run.around.key, last.place, replay.RepoSnapshots(run.around.repo, run.around.store))
    words = verdict.contract if isinstance(verdict, Verified) else None
    return Previous(last.contract_id, last.sha256, words)


def verified(run: Run) -> Verified:
    """The current contract, read back from git and verified; raises SignatureRefused."""
    around = run.around
    try:
        verdict = replay.current(around.repo, around.store, around.key, run.session)
    except RepoError as error:
        raise SignatureRefused(str(error), hint=error.hint) from error
    if verdict.contract_id != run.tip.entry.contract_id:
        raise SignatureRefused(
            f"the journal now holds {verdict.contract_id}, not {run.tip.entry.contract_id}, which was built",
            hint=f"git relay log {run.session}",
        )
    return verdict
