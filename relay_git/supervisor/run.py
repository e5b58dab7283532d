"""One session being carried: where it lives, what was recorded last, and the one way to record more.

Promise: `record` asks the state machine first and writes the journal before anything else happens; an event that means
nothing in the present state is a bug and raises, it is never swallowed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from threading import Event as Flag
from typing import Any, Protocol

from relay_git.agents.agent import Place
from relay_git.contract.lifecycle import TRANSITIONS, Event, State, step
from relay_git.contract.placeholder import Policy
from relay_git.contract.redact import redact
from relay_git.contract.sign import Key, Sealed
from relay_git.git.durable import sync_disks
from relay_git.git.repo import Repo
from relay_git.git.snapshot import Snapshot
from relay_git.git.store import ZERO, Oid, RefUpdate, Store
from relay_git.ledger import journal, replay
from relay_git.ledger.journal import Entry, PassedOver, Recorded
from relay_git.quota.entry import Account
from relay_git.session import LimitNotice, SessionId
from relay_git.supervisor.accounts import Accounts
from relay_git.supervisor.meter import Meter
from relay_git.supervisor.output import Log
from relay_git.supervisor.process import Mark
from relay_git.supervisor.settings import Settings
from relay_git.supervisor.terminal import Terminal


class Teller(Protocol):
    """Who tells the user what happens; texts may hold foreign words and are made printable there."""

    def say(self, text: str) -> None:
        """A line that stays."""

    def live(self, leg: int, agent: str, doing: str, quota: str = "") -> None:
        """What the agent is at right now, and what is left of its quota where that is known."""


class Stop(Flag):
    """Set when the user wants a clean stop; `hurry` when that shall not wait for the end of a tool call."""

    def __init__(self) -> None:
        super().__init__()
        self.hurry = Flag()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a run is given from outside: repository, key, the user's settings and environment, clock, teller, quota."""

    repo: Repo
    store: Store
    key: Key
    settings: Settings
    env: Mapping[str, str]
    now: Callable[[], datetime]
    teller: Teller
    stop: Stop
    meter: Meter
    terminal: Terminal | None = None
    accounts: Accounts = field(default_factory=Accounts)

    @property
    def redaction(self) -> Policy:
        """How secrets are taken out of what this repository keeps."""
        return Policy(self.key.secret, self.settings.redact_allow)


# What such an entry names must outlive a power cut with it: commits that the agent's git has not synced, and the files.
_ANNOUNCING = frozenset({Event.SNAPSHOT_TAKEN, Event.AGENT_DONE, Event.LANDED, Event.DROPPED})


class Run:
    """A session under its one writer."""

    def __init__(self, around: Surroundings, tip: Recorded) -> None:
        self.around = around
        self.tip = tip
        self.mended: dict[str, None] = {}  # which links of the worktree were put back since the leg began
        self.last_snapshot: Snapshot | None = None  # one that was taken when nobody was left who could write
        self.limit: LimitNotice | None = None  # the last one that was acted upon
        self.prefer = ""  # the agent that the user named for the next leg, if any

    @property
    def session(self) -> SessionId:
        return self.tip.entry.session_id

    @property
    def state(self) -> State:
        return self.tip.entry.state

    @property
    def account(self) -> Account:
        """Whose quota the tip's leg uses."""
        return Account(self.tip.entry.agent, self.tip.entry.account)

    def env_of(self, account: Account) -> Mapping[str, str]:
        """The environment of a leg of this account; raises RelayError where its folder or its key is not to be had."""
        return self.around.accounts.environment(self.around.env, account.agent, account.label)

    def env_to_read(self, account: Account) -> Mapping[str, str]:
        """The environment in which the sessions of this account are found; its key is not asked for."""
        return self.around.accounts.to_read(self.around.env, account.agent, account.label)

    @property
    def mark(self) -> Mark:
        return Mark(self.session, self.around.repo.relay_dir)

    @property
    def worktree(self) -> Path:
        return self.around.repo.session_dir(self.session)

    @property
    def hook_dir(self) -> Path:
        """Where the post-commit hook and we leave word for each other."""
        return self.around.repo.worktree_git_dir(self.session) / "relay"

    @property
    def spool(self) -> Path:
        return self.around.repo.spool_dir(self.session)

    def place(self, leg: int, agent: str) -> Place:
        """Where a leg of this agent works, whichever account it uses."""
        repo = self.around.repo
        private = self.spool / f"leg-{leg}-{Account.parse(agent).agent}"
        return Place(
            self.worktree, repo.worktree_git_dir(self.session), repo.common_dir, f"relay/{self.session}", private
        )

    def record(self, event: Event, *, sealed: Sealed | None = None, **changes: Any) -> None:  # noqa: ANN401 - fields of Entry
        """Append what has happened to the journal; the state follows from the table alone."""
        if (self.state, event) not in TRANSITIONS:
            raise AssertionError(f"{event} means nothing in {self.state}")
        after = step(self.state, event)
        entry = replace(self.tip.entry, state=after, event=event, at=stamp(self.around.now()), **changes)
        # A reason quotes what an agent said on stderr, and refs must hold no secret.
        clean = self.clean
        passed = tuple(PassedOver(one.agent, clean(one.reason)) for one in entry.passed_over)
        entry = replace(entry, reason=clean(entry.reason), stands=clean(entry.stands), passed_over=passed)
        if event in _ANNOUNCING:
            sync_disks(self.around.repo.common_dir, self.worktree)
        self._put_back_journal()
        self.tip = journal.append(self.around.store, self.tip, entry, sealed)

    def note(self, *told: str) -> None:
        """What was mended: for the user now, and for the next contract."""
        for said in told:
            self.mended[said] = None
            self.around.teller.say(f"note: {said}")

    def _put_back_journal(self) -> None:
        """An agent's git can delete any ref; only who holds the session's lock has a right to this one."""
        store, ref = self.around.store, journal.ref_of(self.session)
        if store.ref(ref) is None and ref not in store.ref_names(ref):
            store.move([RefUpdate(ref, self.tip.oid, ZERO)], "relay: put back")
            self.note("the session's journal was gone, its ref was deleted, and was put back")

    def clean(self, text: str) -> str:
        """The text without secrets, as all that is kept of a session."""
        return redact(text, self.around.redaction)[0]

    def log(self, folder: Path) -> Log:
        """A log in this folder, within the user's bounds."""
        return Log(folder, self.around.settings.log_bytes, self.clean)


def begin(around: Surroundings, entry: Entry, also: tuple[RefUpdate, ...] = ()) -> Run:
    """The run of a new session, with its first entry written, and other refs of its own moved with it."""
    return Run(around, journal.append(around.store, None, entry, also=also))


def take_up(around: Surroundings, session: SessionId) -> Run:
    """The run of a session that exists, from its journal's tip; raises FormatTooNew where we would not read it all."""
    tip = journal.tip(around.store, session)
    replay.refuse_newer(around.store, tip)
    return Run(around, tip)


def stamp(now: datetime) -> str:
    """RFC 3339, UTC, whole seconds."""
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def base_of(run: Run) -> Oid:
    """The commit that the session began on."""
    return Oid(run.tip.entry.base_commit)
