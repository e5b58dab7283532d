"""Watching one leg: its output, its transcript, its commits, and what others ask meanwhile.

Promise: a limit is believed only from the tool's own channel (structured records on stdout and in the transcript); what
the agent says or reads never counts. One `look` is cheap and never blocks.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace

from relay_git.agents import find_agent, headers
from relay_git.agents.agent import (
    Doing,
    Ended,
    Following,
    HasTui,
    Heard,
    Identified,
    Limited,
    Metered,
    MetersItsTui,
    Retrying,
)
from relay_git.agents.moments import Moment
from relay_git.contract.lifecycle import State
from relay_git.git import hooks, worktree
from relay_git.git.hooks import HookPlan
from relay_git.git.store import Oid
from relay_git.quota.entry import Account
from relay_git.session import LimitKind, LimitNotice, QuotaReading, SessionRecord, Usage
from relay_git.supervisor import request
from relay_git.supervisor.own_session import Past
from relay_git.supervisor.patience import Patience
from relay_git.supervisor.process import LegProcess
from relay_git.supervisor.proxy import Proxy
from relay_git.supervisor.pulse import Pulse
from relay_git.supervisor.request import STOP_NOW, Request
from relay_git.supervisor.run import Run

_LASTING = (LimitKind.USAGE, LimitKind.BILLING)
_QUIT = (0, 130)  # how a TUI ends that its user has left, by a command or by Ctrl-C


@dataclass(frozen=True, slots=True)
class Seen:
    """What one look found."""

    exit: int | None
    limit: LimitNotice | None
    ended: Ended | None
    request: Request | None
    record: SessionRecord
    accepted: str
    held: bool
    committed: bool
    turn_ended: bool
    index_locked: bool
    stop: bool
    hurry: bool
    waits_out: LimitNotice | None
    hangs: bool
    quit: bool
    idle: bool

    @property
    def out_of_quota(self) -> LimitNotice | None:
        """A limit that waiting a moment does not cure, or that the tool has waited out for too long."""
        return self.limit if self.limit is not None and self.limit.kind in _LASTING else self.waits_out

    @property
    def resumed(self) -> bool:
        """Whether a finished turn of a real model shows that the agent has picked the work up."""
        return self.record.model_turns > 0


def _tokens(usage: Usage) -> int:
    return usage.input + usage.output + usage.cache_read + usage.cache_write


def _waits_for_the_user(record: SessionRecord) -> bool:
    return (record.turn_complete or not record.records) and not record.pending_calls


class Watcher:
    """The eyes on one leg; it keeps what was seen, so that later looks only read what is new."""

    def __init__(
        self,
        run: Run,
        account: Account,
        process: LegProcess,
        native_id: str,
        *,
        ends_turn: bool = False,
        hook: HookPlan | None = None,
        since: float | None = None,
        past: Past | None = None,
        proxy: Proxy | None = None,
    ) -> None:
        """`since` is the Unix time at which the leg was started at the terminal; None where it runs headless.

        `past` is what it goes on from, where it was not begun anew. `proxy` hears what its service says of limits.
        """
        self.past, self._proxy = past, proxy
        self.agent, self.process, self.native_id, self.ends_turn = (
            find_agent(account.agent),
            process,
            native_id,
            ends_turn,
        )
        self._run, self._hook = run, hook
        settings = run.around.settings
        # At the terminal silence is no hang: it may be the user who is silent.
        self._pulse = Pulse(process, settings.hang_timeout if since is None else 0, settings.max_wait)
        self._since, self._search = since, Patience(0)
        self._meter_due, self._metered = Patience(0), tuple[QuotaReading, ...]()
        self._lost: tuple[str, ...] = ()
        self._env = run.env_to_read(account)
        self._follower: Following | None = None
        self._record = SessionRecord(account.agent)
        self.account, self._began = account, run.around.now()
        self._left = run.around.meter.line(self.account)
        self._limit: LimitNotice | None = None
        self._ended: Ended | None = None
        self._marks, self._head = self._stood = self._safe_points(), self.head()
        entry = run.tip.entry
        self._leg = entry.leg + (entry.state is State.DISPATCHED)  # the journal counts a leg once it has taken over
        self.tell("starting")

    def look(self) -> Seen:
        """Read everything that is new and say how things stand."""
        status = self.process.poll()
        if status is not None:
            self.process.output.drain(2.0)
        said = False
        for line in self.process.output.lines():
            said = True
            for heard in self.agent.hear(line, Moment(self._run.around.now())):
                self._hear(heard)
        if self._since is not None:
            self._find(self._since)
            self._look_at_the_meter()
        self._follow(ended=status is not None)
        self._hear_service()
        run = self._run
        asked = request.get(run.around.repo, run.session)
        points, head = self._safe_points(), self.head()
        if said or (points, head) != self._stood:
            self._pulse.beat()
        if points == self._stood[0] and head != self._stood[1]:
            self._notice_lost_hook()
        self._stood = points, head
        return Seen(
            exit=status,
            limit=self._limit,
            ended=self._ended,
            request=asked,
            record=self._record,
            accepted=self._accepted(),
            held=(run.hook_dir / "held").exists(),
            # What a rebase has replayed so far is no safe point: it counts once it has come to its end.
            committed=points > self._marks or (head != self._head and not self.operation()),
            turn_ended=(run.hook_dir / "turn-ended").exists(),
            index_locked=(run.hook_dir.parent / "index.lock").exists(),
            stop=run.around.stop.is_set() or (asked is not None and asked.stops),
            hurry=run.around.stop.hurry.is_set() or (asked is not None and asked.kind == STOP_NOW),
            waits_out=self._pulse.limit(run.around.now()),
            hangs=self._pulse.hangs(),
            quit=self._since is not None and status in _QUIT,
            idle=self._since is not None and _waits_for_the_user(self._record),
        )

    def mark_commits(self) -> None:
        """Count commits from now on."""
        self._marks, self._head = self._safe_points(), self.head()

    def operation(self) -> str:
        """The merge, rebase or the like that stands half-done in the worktree, if any."""
        return worktree.operation(self._run.around.repo, self._run.session)

    def tell(self, doing: str) -> None:
        """Show the user what the leg is at; its files are named as in the repository."""
        doing = doing.replace(f"{self._run.worktree}/", "")
        self._run.around.teller.live(self._leg, self.agent.name, doing, self._left)

    def head(self) -> Oid | None:
        """The commit that the worktree stands on, on the session's branch or elsewhere."""
        return worktree.head(self._run.around.repo, self._run.around.store, self._run.session)

    def _notice_lost_hook(self) -> None:
        """Say it once where a commit came and the hook does not run any more; nobody's hook is written to for that."""
        repo, place = self._run.around.repo, self._run.worktree
        if self._hook is not None and (why := hooks.lost(repo, place, self._hook)):
            self._hook = None
            self._run.around.teller.say(f"note: the hook no longer marks commits: {why}; they are seen all the same")

    def _hear(self, heard: Heard) -> None:
        if isinstance(heard, Doing | Ended):
            self._pulse.works()
        match heard:
            case Identified(native_id):
                self.native_id = native_id
            case Doing(what):
                self.tell(what)
            case Limited(notice):
                self._note_limit(notice)
            case Retrying(notice, seconds, attempt, of):
                self._pulse.waits(heard)
                again = f" for {seconds:.0f} s" if seconds else ""
                tries = f", try {attempt} of {of}" if attempt and of else ""
                self.tell(f"waits{again}{tries}: {notice.evidence}")
            case Metered(readings):
                self._meter(readings)
            case Ended():
                # A tool may say why it failed, and then once more that it did.
                repeated = not heard.ok and not heard.detail and self._ended is not None and not self._ended.ok
                self._ended = self._ended if repeated else heard

    def _hear_service(self) -> None:
        """What the service says of limits goes to the meter; whether the leg is refused its tool says itself."""
        for answer in self._proxy.heard() if self._proxy is not None else ():
            now = self._run.around.now()
            if readings := headers.readings(answer.headers, now):
                self._meter(readings)
            notice = headers.notice(answer.headers, answer.status, now)
            if notice is not None and notice.kind in _LASTING:
                self._run.around.meter.refused(self.account, notice)

    def _look_at_the_meter(self) -> None:
        if self._meter_due.is_over and isinstance(self.agent, MetersItsTui):
            self._meter_due = Patience(1.0)
            readings = self.agent.metered(self._run.place(self._leg, self.agent.name).private_dir)
            if readings != self._metered:
                self._metered = readings
                self._meter(readings)

    def _find(self, since: float) -> None:
        """In a TUI the user may begin another of the tool's sessions at any moment, or go back to one."""
        if not self._search.is_over:
            return
        self._search = Patience(1.0 if self._follower is None else 5.0)
        live = self.agent.live(self._run.worktree, self._env, since) if isinstance(self.agent, HasTui) else ""
        if live and live != self.native_id:
            if self._record.records:
                self._lost = ("what was said before the user began another session in the TUI was not read",)
            self.native_id, self._follower, self._record = live, None, SessionRecord(self.agent.name)

    def _follow(self, *, ended: bool) -> None:
        if self._follower is None and self.native_id:
            path = self.agent.transcript(self.native_id, self._run.worktree, self._env)
            if path is not None:
                self._follower = self.agent.follow(path, self.native_id, self._run.worktree)
        if self._follower is None or not (self._follower.poll() or ended):
            return
        self._pulse.beat()
        known = len(self._record.limits)
        record = self._follower.record(ended=ended)
        record = self.past.beyond(record) if self.past is not None else record
        self._count(self._record, record)
        self._record = replace(record, losses=(*self._lost, *record.losses))
        if len(self._record.limits) > known:
            self._note_limit(self._record.limits[-1])
            if self._record.at_limit and not ended:  # it waits and asks again, perhaps without a word on stdout
                self._pulse.waits(Retrying(self._record.limits[-1]))

    def _count(self, before: SessionRecord, now: SessionRecord) -> None:
        """What the transcript tells of quota goes to the meter, and that the service has answered."""
        if now.quota != before.quota:  # a copied conversation tells of the account that it was held in
            self._meter(tuple(reading for reading in now.quota if reading.at >= self._began))
        turns = now.model_turns - before.model_turns
        if turns > 0:
            tokens = _tokens(now.usage) - _tokens(before.usage)
            self._run.around.meter.answered(self.account, turns, max(0, tokens))

    def _meter(self, readings: tuple[QuotaReading, ...]) -> None:
        meter = self._run.around.meter
        meter.heard(self.account, readings)
        self._left = meter.line(self.account, self._record.model)

    def _note_limit(self, notice: LimitNotice) -> None:
        self._run.around.meter.refused(self.account, notice)
        # The transcript and stdout tell of the same refusal: the one that says more is kept.
        if self._limit is None or notice.resets_at is not None or self._limit.resets_at is None:
            self._limit = notice

    def _safe_points(self) -> int:
        with contextlib.suppress(OSError):
            return (self._run.hook_dir / "safepoints").stat().st_size
        return 0

    def _accepted(self) -> str:
        with contextlib.suppress(OSError, UnicodeDecodeError), (self._run.hook_dir / "accepted").open("rb") as source:
            return source.read(200).decode("ascii").strip()
        return ""
