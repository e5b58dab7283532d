"""Taking up what a dead supervisor left, before anything else is done with its session.

Promise: whoever is still alive of the session is ended, never doubled; what was half made is finished or taken away;
and work that an agent did without the journal knowing of its start is kept as that agent's.
"""

from __future__ import annotations

import contextlib
import shutil
from typing import Any

from relay_git.contract.lifecycle import Event, State
from relay_git.errors import LedgerConflict, RepoError
from relay_git.git import debris, durable, links
from relay_git.git.mend import is_readable, mend
from relay_git.git.repo import Repo, write_private
from relay_git.git.store import Oid, Store
from relay_git.ledger import journal
from relay_git.quota.entry import Account
from relay_git.session import SessionId
from relay_git.supervisor import handoff, source
from relay_git.supervisor.run import Run


def settle(run: Run) -> None:
    """End what a supervisor that died left behind, and look whether the worktree is still the snapshot."""
    links.clear_folders(run.around.repo, run.session)
    debris.sweep(run.hook_dir)
    _end_source(run)
    handoff.fence(run, None)
    handoff.restore_worktree(run)
    _mend(run)
    if run.state in (State.ENVELOPE_BUILT, State.DISPATCHED, State.WAITING) and not handoff.is_still_the_snapshot(run):
        keep_what_strayed(run)


def _mend(run: Run) -> None:
    """Where the machine has been off since a supervisor was last here: make good what was not on disk."""
    repo, entry, boot = run.around.repo, run.tip.entry, durable.boot_id()
    last = run.spool / "boot"
    same = boot and last.is_file() and last.read_text("ascii", "replace").strip() == boot
    if same and is_readable(repo, run.session):
        return
    known = (Oid(oid) for oid in (entry.snapshot, entry.base_commit) if oid)
    run.note(*mend(repo, run.session, tuple(dict.fromkeys(known))))
    note_boot(repo, run.session)


def note_boot(repo: Repo, session: SessionId) -> None:
    """From now on what is written in the session is lost only if the machine goes off again."""
    write_private(repo.spool_dir(session) / "boot", durable.boot_id().encode() + b"\n")


def tidy(repo: Repo, store: Store) -> None:
    """Take away what commands that were killed left of files, and of sessions that never came to be."""
    debris.sweep(repo.relay_dir)
    spool = repo.relay_dir / "spool"
    for name in sorted(p.name for p in spool.iterdir()) if spool.is_dir() else ():
        session = SessionId(name)
        if _came_to_be(repo, store, session):
            continue  # before its lock is asked for: to wait for those of all that run would take a second each
        # Who opens a session holds its lock from the first file on.
        with contextlib.suppress(LedgerConflict), journal.writer(repo, session):
            if not _came_to_be(repo, store, session):
                debris.break_locks(repo.common_dir, handoff.refs_of(session))
                clear_spool(repo, session)
                repo.lock_file(session).unlink(missing_ok=True)


def _came_to_be(repo: Repo, store: Store, session: SessionId) -> bool:
    return store.ref(journal.ref_of(session)) is not None or links.were_kept(repo, session)


def clear_spool(repo: Repo, session: SessionId) -> None:
    """Take away what only helps a session; an agent that was frozen to be adopted goes on."""
    adopted = source.kept(repo.spool_dir(session))
    if adopted is not None and adopted.stops:
        source.let_go(adopted)
    for place in (repo.spool_dir(session), repo.log_dir(session)):
        shutil.rmtree(place, ignore_errors=True)


def _end_source(run: Run) -> None:
    """End the agent that the session was adopted from, where the user said so."""
    adopted = source.kept(run.spool)
    if adopted is None or not adopted.stops or not adopted.processes():
        return
    left = source.end(adopted, run.around.settings.term_grace)
    if left:
        raise RepoError(
            f"processes of the adopted agent cannot be ended (pid {', '.join(map(str, left))})",
            hint=f"end them, then: git relay resume {run.session}",
        )
    run.around.teller.say(f"{adopted.title} (pid {adopted.pid}) is ended")


def keep_what_strayed(run: Run) -> None:
    """Files changed while no supervisor ran: by the next agent, if it had been started, else by whoever."""
    entry = run.tip.entry
    waiting = tuple(filter(None, (entry.next_agent, *entry.candidates)))
    why = "files changed in the worktree while no supervisor ran"
    changes: dict[str, Any] = {"candidates": waiting}
    started_as = handoff.started_as(run, entry.leg + 1, entry.next_agent) if entry.next_agent else None
    if started_as is not None:
        why = f"the supervisor ended while {entry.next_agent} was being started"
        who = Account.parse(entry.next_agent)
        changes |= {"leg": entry.leg + 1, "agent": who.agent, "account": who.label, "native_id": started_as}
    run.around.teller.say(f"leg {entry.leg} ({entry.agent}): {why}")
    run.record(
        Event.STRAYED,
        pause_reason="handoff",
        reason=why,
        safe_point="ended",
        next_agent="",
        passed_over=(),
        wait_until="",
        **changes,
    )
