"""The session record while a reader is still filling it.

Promise: memory stays bounded whatever the transcript's size. Every list has a cap; what falls out is counted and said
in the record's `losses`. A reader puts in what it understood, in its order; only here is it known how much is kept.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from relay_git.agents import jsonl
from relay_git.agents.jsonl import Record
from relay_git.agents.ran import Ran
from relay_git.session import Command, LimitNotice, PlanItem, PlanStatus, QuotaReading, SessionRecord, ToolCall, Usage

MAX_PROMPTS = 200
MAX_PROMPT_CHARS = 262_144
MAX_TEXT_CHARS = 65_536
MAX_KEPT_CHARS = 8_192
MAX_ALL_CHARS = 1_000_000
MAX_PLAN = 500
MAX_COMMANDS = 500
MAX_COMMAND_CHARS = 4_096
MAX_TARGET_CHARS = 400
MAX_FILES = 5_000
MAX_PENDING = 200
MAX_CALLS = 200
_UTC_TIME = len("2026-01-01T00:00:00.000Z")
MAX_LIMITS = 50
MAX_NAME_CHARS = 1_024
MAX_DOING = 2_000  # more than is shown: a secret that is cut in two is not known for one any more


def cut(value: str, most: int) -> str:
    """At most this many characters, with an ellipsis as the last where something was cut."""
    return value if len(value) <= most else value[: most - 1] + "…"


def plan_status(word: str) -> PlanStatus:
    """A tool's word for a plan item's status in ours; an unknown one counts as not begun."""
    match word:
        case "completed" | "done":
            return PlanStatus.COMPLETED
        case "in_progress":
            return PlanStatus.IN_PROGRESS
        case "cancelled" | "deleted":
            return PlanStatus.CANCELLED
        case _:
            return PlanStatus.PENDING


def plus(one: Usage, other: Usage) -> Usage:
    """The sum of two counts."""
    return Usage(
        one.input + other.input,
        one.output + other.output,
        one.cache_read + other.cache_read,
        one.cache_write + other.cache_write,
    )


def minus(one: Usage, other: Usage) -> Usage:
    """The difference of two counts, never below zero."""
    return Usage(
        max(one.input - other.input, 0),
        max(one.output - other.output, 0),
        max(one.cache_read - other.cache_read, 0),
        max(one.cache_write - other.cache_write, 0),
    )


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in the conversation that can be gone back to."""

    prompts: int
    commands: int
    files: int
    turns: int
    last_text: str
    plan: tuple[PlanItem, ...]
    usage: Usage
    texts: int = 0


@dataclass(slots=True)
class Draft:
    """What a reader knows so far; `worktree` is what file paths are made relative to, or "." for the session's cwd."""

    agent: str
    worktree: str
    native_id: str = ""
    forked_from: str = ""
    cwd: str = ""
    branch: str = ""
    model: str = ""
    version: str = ""
    last_text: str = ""
    plan: tuple[PlanItem, ...] = ()
    turns: int = 0
    turn_complete: bool = False
    usage: Usage = field(default_factory=Usage)
    started: datetime | None = None
    last_activity: datetime | None = None
    records: int = 0
    lines: int = 0
    skipped: int = 0
    skipped_lines: list[int] = field(default_factory=list)
    unreadable: dict[str, None] = field(default_factory=dict)
    compactions: int = 0
    subagents: dict[str, None] = field(default_factory=dict)
    foreign: dict[str, None] = field(default_factory=dict)
    abandoned: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_PROMPTS))
    inherited: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_PROMPTS))
    open_prompt: str = ""
    at_limit: bool = False
    spent_in_vain: Usage = field(default_factory=Usage)
    prompts: list[str] = field(default_factory=list)
    prompts_left_out: int = 0
    texts: deque[str] = field(default_factory=deque)
    texts_seen: int = 0
    _texts_chars: int = 0
    commands: deque[Command] = field(default_factory=deque)
    _ran: deque[Ran | Command] = field(default_factory=deque)  # what came since the last record
    commands_seen: int = 0
    files: dict[str, None] = field(default_factory=dict)
    pending: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    calls: deque[ToolCall] = field(default_factory=lambda: deque(maxlen=MAX_CALLS))
    limits: dict[LimitNotice, None] = field(default_factory=dict)
    quota: dict[str, QuotaReading] = field(default_factory=dict)
    skills: dict[str, None] = field(default_factory=dict)
    mcp_servers: dict[str, None] = field(default_factory=dict)
    _latest: str = ""
    _earliest: str = ""
    _losses: dict[str, int] = field(default_factory=dict)

    def take(self, line: bytes) -> Record | None:
        """The record on the next line; a broken one is counted and named, and a whole one after it is not lost."""
        self.lines += 1
        found = jsonl.parse(line)
        return found if found is not None or not line.strip() else self._rest(line)

    def _rest(self, line: bytes) -> Record | None:
        found = jsonl.after_a_cut(line)
        if found is None:
            self.skip()
        else:
            self.lose("a record was cut by the next one on its line")
        return found

    def skip(self) -> None:
        """Count the present line as broken."""
        self.skipped += 1
        if len(self.skipped_lines) < MAX_LIMITS:
            self.skipped_lines.append(self.lines)

    def cannot_read(self, name: str) -> None:
        """Name a file that belongs to the session and could not be read."""
        if len(self.unreadable) < MAX_LIMITS:
            self.unreadable[cut(name, MAX_NAME_CHARS)] = None
        self.lose("a file of the session could not be read")

    def saw(self, when: datetime | None) -> None:
        """Count a record and keep the first and the last time."""
        self.records += 1
        if when is None:
            return
        if self.started is None or when < self.started:
            self.started = when
        if self.last_activity is None or when > self.last_activity:
            self.last_activity = when

    def saw_at(self, when: object) -> None:
        """The same for the text of a time; of two in UTC of one length only the earliest and the latest are parsed."""
        if not (isinstance(when, str) and len(when) == _UTC_TIME and when.endswith("Z") and self.started is not None):
            self.saw(jsonl.iso_time(when))
            return
        self.records += 1
        if not self._latest:
            self._latest = self._earliest = when
        elif when > self._latest:
            self._latest = when
        elif when < self._earliest:
            self._earliest = when

    def _settle_times(self) -> None:
        self.records -= bool(self._latest) + bool(self._earliest)  # they are counted already
        for when in filter(None, (self._latest, self._earliest)):
            self.saw(jsonl.iso_time(when))

    def lose(self, what: str) -> None:
        """Say in words that something could not be kept or read; the same words are counted."""
        if what in self._losses or len(self._losses) < MAX_LIMITS:
            self._losses[what] = self._losses.get(what, 0) + 1

    def prompt(self, said: str) -> None:
        """Add a prompt; the first and the newest are kept when there are too many."""
        if len(said) > MAX_PROMPT_CHARS:
            self.lose(f"a prompt was cut to {MAX_PROMPT_CHARS} characters")
        self.prompts.append(cut(said, MAX_PROMPT_CHARS))
        self.open_prompt = self.prompts[-1]
        if len(self.prompts) > MAX_PROMPTS:
            del self.prompts[1]
            self.prompts_left_out += 1

    def say(self, said: str) -> None:
        """Take the newest words of the assistant."""
        self.last_text = cut(said, MAX_TEXT_CHARS)
        self.state(said)
        self.open_prompt, self.at_limit = "", False

    def state(self, said: str) -> None:
        """Keep what was stated, by the assistant or one of its subagents, for what it says of the work."""
        if said:
            self.texts.append(said[-MAX_KEPT_CHARS:])
            self.texts_seen += 1
            self._texts_chars += len(self.texts[-1])
        while self._texts_chars > MAX_ALL_CHARS:
            self._texts_chars -= len(self.texts.popleft())

    def set_plan(self, plan: list[PlanItem]) -> None:
        """Replace the plan."""
        if len(plan) > MAX_PLAN:
            self.lose(f"a plan was cut to {MAX_PLAN} items")
        self.plan = tuple(plan[:MAX_PLAN])

    def ran(self, command: str, code: int | None, output: str | None = None, digest: str = "") -> None:
        """Add a command; the newest are kept. `output` is None where it is not known, `digest` is that of all of it."""
        ran = Ran(cut(command, MAX_COMMAND_CHARS), code, output, digest)
        if len(self.commands) + len(self._ran) == MAX_COMMANDS:
            (self.commands or self._ran).popleft()
        self._ran.append(ran if len(output or "") <= MAX_KEPT_CHARS else ran.told())
        self.commands_seen += 1

    def touch(self, path: str) -> None:
        """Add a file, relative to the worktree where it lies below it."""
        if not path:
            return
        if len(self.files) >= MAX_FILES:
            self.lose(f"only the first {MAX_FILES} files touched are named")
            return
        self.files[self.relative(path)] = None

    def relative(self, path: str) -> str:
        """The path as seen from the worktree, or as it is where it lies elsewhere."""
        path = cut(path, 4096)
        base = self.cwd if self.worktree == "." else self.worktree
        if not path.startswith("/") or not base.startswith("/"):
            return os.path.normpath(path)
        whole, above = os.path.normpath(path).lstrip("/"), os.path.normpath(base).lstrip("/")
        if whole == above:
            return "."
        inside = whole.removeprefix(above + "/") if above else whole
        return path if above and inside == whole else inside

    def called(self, call: str, name: str, target: str = "") -> None:
        """A tool call began."""
        self.open_prompt, self.at_limit = "", False
        if not call:
            return
        if len(self.pending) >= MAX_PENDING:
            self.lose(f"only the first {MAX_PENDING} tool calls without a result are named")
            return
        self.pending[call] = cut(call, MAX_NAME_CHARS), cut(name, MAX_NAME_CHARS), cut(target, MAX_TARGET_CHARS)

    def awaited(self, call: str) -> str:
        """The name of the tool whose result is to come; empty where none is known."""
        return self.pending[call][1] if call in self.pending else ""

    def returned(self, call: str, *, ok: bool | None) -> None:
        """A tool call has its result; None where the tool does not tell whether it went well."""
        began = self.pending.pop(call, None)
        if began is not None:
            self.calls.append(ToolCall(*began, ok))

    def limit(self, notice: LimitNotice) -> None:
        """Add a limit, each once."""
        self.at_limit = True
        self.limits.pop(notice, None)  # said again, it is the newest
        if len(self.limits) < MAX_LIMITS:
            self.limits[notice] = None
        else:
            self.lose(f"only the first {MAX_LIMITS} limits are named")

    def meter(self, readings: Iterable[QuotaReading]) -> None:
        """Take the newest reading of each window."""
        for reading in readings:
            if reading.window in self.quota or len(self.quota) < MAX_LIMITS:
                self.quota[reading.window] = reading

    def use_skill(self, name: str) -> None:
        """Add a skill that was used."""
        if name and len(self.skills) < MAX_LIMITS:
            self.skills[cut(name, MAX_NAME_CHARS)] = None

    def use_mcp_server(self, name: str) -> None:
        """Add an MCP server that was called."""
        if name and len(self.mcp_servers) < MAX_LIMITS:
            self.mcp_servers[cut(name, MAX_NAME_CHARS)] = None

    def meet_subagent(self, name: str) -> None:
        """A subagent was at work."""
        if name and len(self.subagents) < MAX_CALLS:
            self.subagents[cut(name, MAX_NAME_CHARS)] = None

    def meet_stranger(self, name: str) -> None:
        """A record of another session stands in this one's file."""
        if name and len(self.foreign) < MAX_LIMITS:
            self.foreign[cut(name, MAX_NAME_CHARS)] = None
        self.lose("records of another session in the same file were left out")

    def mark(self) -> Mark:
        """Where the conversation stands."""
        return Mark(
            self.prompts_left_out + len(self.prompts),
            self.commands_seen,
            len(self.files),
            self.turns,
            self.last_text,
            self.plan,
            self.usage,
            self.texts_seen,
        )

    def go_back(self, mark: Mark) -> None:
        """Forget what was said and done after a mark: the human took it back. Tokens stay spent, limits stay met."""
        while len(self.prompts) > 1 and self.prompts_left_out + len(self.prompts) > mark.prompts:
            self.abandoned.append(self.prompts.pop())
        if mark.prompts == 0:
            self.abandoned.extend(self.prompts)
            self.prompts.clear()
        while (newest := self._ran or self.commands) and self.commands_seen > mark.commands:
            newest.pop()
            self.commands_seen -= 1
        while self.texts and self.texts_seen > mark.texts:
            self._texts_chars -= len(self.texts.pop())
            self.texts_seen -= 1
        while len(self.files) > mark.files:
            self.files.popitem()
        self.pending.clear()
        self.spent_in_vain = minus(self.usage, mark.usage)
        self.turns, self.last_text, self.plan = mark.turns, mark.last_text, mark.plan

    def record(self) -> SessionRecord:
        """Everything so far, as it can be handed on."""
        self._settle_times()
        self.commands.extend(ran if isinstance(ran, Command) else ran.told() for ran in self._ran)
        self._ran.clear()
        return SessionRecord(
            agent=self.agent,
            native_id=cut(self.native_id, MAX_NAME_CHARS),
            cwd=cut(self.cwd, 4096),
            branch=cut(self.branch, MAX_NAME_CHARS),
            forked_from=cut(self.forked_from, MAX_NAME_CHARS),
            subagents=tuple(self.subagents),
            foreign_sessions=tuple(self.foreign),
            compactions=self.compactions,
            model=cut(self.model, MAX_NAME_CHARS),
            version=cut(self.version, MAX_NAME_CHARS),
            prompts=tuple(self.prompts),
            abandoned_prompts=tuple(self.abandoned),
            inherited_prompts=tuple(self.inherited),
            open_prompt=self.open_prompt,
            last_text=self.last_text,
            texts=tuple(self.texts),
            plan=self.plan,
            commands=tuple(self.commands),
            files_touched=tuple(self.files),
            pending_calls=tuple(ToolCall(*call) for call in self.pending.values()),
            calls=tuple(self.calls),
            skills=tuple(self.skills),
            mcp_servers=tuple(self.mcp_servers),
            model_turns=self.turns,
            turn_complete=self.turn_complete,
            usage=self.usage,
            usage_active=minus(self.usage, self.spent_in_vain),
            limits=tuple(self.limits),
            quota=tuple(self.quota.values()),
            at_limit=self.at_limit,
            started=self.started,
            last_activity=self.last_activity,
            records=self.records,
            skipped=self.skipped,
            skipped_lines=tuple(self.skipped_lines),
            unreadable=tuple(self.unreadable),
            losses=self._all_losses(),
        )

    def _all_losses(self) -> tuple[str, ...]:
        said = [what if times == 1 else f"{what} ({times} times)" for what, times in self._losses.items()]
        if self.skipped:
            said.append(f"{self.skipped} broken records were passed over")
        if self.prompts_left_out:
            said.append(f"{self.prompts_left_out} prompts between the first and the newest were left out")
        if self.texts_seen > len(self.texts):
            said.append(f"the agent's words before its newest {len(self.texts)} messages were left out")
        older = self.commands_seen - len(self.commands)
        if older > 0:
            said.append(f"{older} commands before the newest {len(self.commands)} were left out")
        return tuple(said)
