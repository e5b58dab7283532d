"""Going on in the agent's own session: the whole conversation instead of a brief, where the same tool follows itself.

Promise: it is tried once for a contract, and only with a transcript that was read to its end without a gap; whatever
speaks against it, the brief does. What the copied conversation had used before is not counted again. A session that was
adopted is never gone on in: its conversation speaks of files in the user's own work tree.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from relay_git.agents import find_agent
from relay_git.agents.agent import Kept, Launch, Unsupported
from relay_git.git.repo import write_private
from relay_git.quota.entry import Account
from relay_git.session import LimitNotice, SessionRecord, Usage
from relay_git.supervisor import source
from relay_git.supervisor.run import Run

NOTE = "goes-on-from"  # in the private folder of a leg


@dataclass(frozen=True, slots=True)
class Past:
    """The session that a leg goes on from, for the contract it was started on, and what that had in it by then."""

    contract_id: str
    native_id: str
    turns: int = 0
    usage: tuple[int, int, int, int] = (0, 0, 0, 0)
    limits: tuple[str, ...] = ()

    def beyond(self, record: SessionRecord) -> SessionRecord:
        """What the record of the leg tells beyond it."""
        fresh = tuple(notice for notice in record.limits if _name(notice) not in self.limits)
        left = (max(0, now - before) for now, before in zip(counts(record), self.usage, strict=True))
        turns = max(0, record.model_turns - self.turns)
        return replace(record, model_turns=turns, usage=Usage(*left), limits=fresh)

    def after(self, plan: Launch) -> Past:
        """The same, or with nothing to leave out where the transcript of such a leg does not repeat it."""
        return self if plan.repeats else Past(self.contract_id, self.native_id)


def may_go_on(run: Run) -> bool:
    """Whether the agent chosen next is the one that was at work, and has not been started in its session already."""
    entry, around = run.tip.entry, run.around
    if (
        Account.parse(entry.next_agent).agent != entry.agent
        or not around.settings.own_session
        or around.terminal is not None
    ):
        return False
    adopted = entry.leg == 1 and source.kept(run.spool) is not None
    return not (adopted or was_tried(run) or any(passed.agent == entry.next_agent for passed in entry.passed_over))


def past_of(run: Run, record: SessionRecord) -> Past | None:
    """What the agent goes on from, by all that its transcript tells; None where that has a gap or no answer in it."""
    if not record.model_turns or record.skipped or record.unreadable:
        return None
    limits = tuple(map(_name, record.limits))
    return Past(run.tip.entry.contract_id, record.native_id, record.model_turns, counts(record), limits)


def was_tried(run: Run) -> bool:
    """Whether the agent chosen next has been started in its own session on this contract."""
    entry = run.tip.entry
    past = noted(run.place(entry.leg + 1, entry.next_agent).private_dir) if entry.next_agent else None
    return past is not None and past.contract_id == entry.contract_id


def note(private_dir: Path, past: Past | None) -> None:
    """Write down, before it is started, what a leg goes on from; None: from the brief alone."""
    if past is None:
        (private_dir / NOTE).unlink(missing_ok=True)
    else:
        write_private(private_dir / NOTE, json.dumps(asdict(past)).encode())


def noted(private_dir: Path) -> Past | None:
    """What a leg was started from; None where that was a brief, or where nothing tells any more."""
    try:
        body = json.loads((private_dir / NOTE).read_bytes())
        first, second, third, fourth = body["usage"]
        limits = tuple(map(str, body["limits"]))
        usage = (int(first), int(second), int(third), int(fourth))
        return Past(str(body["contract_id"]), str(body["native_id"]), int(body["turns"]), usage, limits)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def brought(run: Run, account: Account, native_id: str) -> Unsupported | None:
    """Lay the session into the home of the account that goes on, if that is another one; why it cannot be, if so."""
    if account == run.account:
        return None
    agent = find_agent(account.agent)
    kept = agent.kept(native_id, run.worktree, run.env_to_read(run.account))
    if isinstance(kept, Unsupported):
        return kept
    try:
        bring(kept, agent.home(run.env_of(account)))
    except (OSError, ValueError) as error:
        return Unsupported(f"its session could not be laid into the account {account}: {error}")
    return None


def bring(kept: Kept, home: Path) -> None:
    """Lay a session's files into the home of another account, where the same tool then finds it.

    What is there already stays if it is as long: a session's files only grow.
    """
    for path in kept.files:
        target = home / path.relative_to(kept.home)
        with contextlib.suppress(OSError):
            if target.stat().st_size >= path.stat().st_size:
                continue
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            _copy(path, beside)
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)


def _copy(path: Path, target: Path) -> None:
    with path.open("rb") as source_file, target.open("xb") as file:
        os.fchmod(file.fileno(), 0o600)
        while chunk := source_file.read(1 << 20):
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())


def _name(notice: LimitNotice) -> str:
    return f"{notice.kind} {notice.resets_at} {notice.evidence}"


def counts(record: SessionRecord) -> tuple[int, int, int, int]:
    """The tokens that it used: read, said, read from a cache, written to one."""
    used = record.usage
    return used.input, used.output, used.cache_read, used.cache_write
