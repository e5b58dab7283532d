"""Finding every agent session on this machine: the processes that run, joined to the transcripts that tools keep.

Promise: nothing is changed, started or signalled. How a process was matched to its transcript is always told: by the
tool's own registry or lock, an open file or the command line, else by place and time, which is a guess and called
one. Only transcripts that are young enough or alive are opened, and one that did not change is not read again.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path

import psutil

from relay_git.agents import AGENTS, TOOLS
from relay_git.agents.agent import Following, Found, HoldsMany, Many
from relay_git.agents.running import BY_ARGUMENT, Clue, Process, clue, tool_of
from relay_git.session import SessionRecord
from relay_git.supervisor.seen_before import SeenBefore

_HOMES = (
    *("HOME", "USERPROFILE", "APPDATA", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"),
    *("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "QWEN_HOME", "COPILOT_HOME", "CLINE_DATA_DIR"),
    *("CONTINUE_GLOBAL_DIR", "OPENCODE_DB", "RELAY_DEMO_HOME"),
)
_MARK = "RELAY_SESSION"
_ASKING = timedelta(seconds=5)  # a call that is neither answered nor at work for so long waits for the user's consent
_THINKING = timedelta(minutes=15)  # a model may be silent so long in the middle of a turn
_RECENT = timedelta(hours=1)
_WITHOUT_CHILD = ("Task", "Agent", "spawn_agent")


class State(StrEnum):
    """What a session is doing."""

    WORKING = "working"
    WAITS_FOR_USER = "waiting for you"
    WAITS_FOR_PERMISSION = "waiting for a permission"
    AT_LIMIT = "at its limit"
    IDLE = "idle"
    ENDED = "ended"
    CRASHED = "crashed in mid-turn"


@dataclass(frozen=True, slots=True)
class Detected:
    """One session of one tool.

    `pid` is 0 where no process is at it; `matched` says how the process was found, `relay` names the session of git
    relay that it belongs to. `path` is empty where a process has no transcript yet. `active` is its last sign of life.
    """

    tool: str
    native_id: str
    path: str
    state: State
    record: SessionRecord
    active: datetime
    pid: int = 0
    started: float = 0.0
    matched: str = ""
    relay: str = ""


@dataclass(slots=True)
class _Alive:
    """A process that runs a session, and what it has below it."""

    process: Process
    tool: str
    children: tuple[float, ...]  # when each process below it was started
    opened: frozenset[str] = frozenset()  # the real paths of its open files
    clue: Clue | None = None


@dataclass(slots=True)
class Detector:
    """Looks again and again; what did not change since the last look is not read again.

    `others` are environments of further logins, whose folders are looked through as well.
    """

    env: Mapping[str, str]
    seen: SeenBefore
    others: tuple[Mapping[str, str], ...] = ()
    _open: dict[tuple[str, Path, str], tuple[Following, tuple[int, float]]] = field(default_factory=dict)
    _many: dict[tuple[str, Path], Many] = field(default_factory=dict)

    def look(self, now: datetime, since: timedelta | None) -> list[Detected]:
        """Every session that runs or was active since then, the newest first; all where `since` is None."""
        alive = list(_alive())
        shelves: dict[tuple[str, ...], list[tuple[str, Found]]] = {}
        for env in (self.env, *self.others, *(a.process.env for a in alive if a.process.env)):
            home = tuple(env.get(name, "") for name in _HOMES)
            if home not in shelves:
                shelves[home] = [(name, found) for name, tool in TOOLS.items() for found in tool.found(env)]
        every = {(tool, f.path, f.native_id): f for shelf in shelves.values() for tool, f in shelf}
        oldest = 0.0 if since is None else (now - since).timestamp()
        every = self._unfolded(every, oldest, {one.tool for one in alive})
        taken = self._join(alive, every, now)
        rows = [self._running(a, every.get(key) if key else None, now) for a, key in taken]
        held = {key for _, key in taken}
        for key, found in every.items():
            if key not in held and found.modified >= oldest:
                rows.append(self._resting(key[0], found))
        self.seen.keep(every)
        return sorted(rows, key=lambda row: row.active, reverse=True)

    def _unfolded(
        self, every: dict[tuple[str, Path, str], Found], oldest: float, running: set[str]
    ) -> dict[tuple[str, Path, str], Found]:
        """The same, with each session of a file that holds many by itself; an old file that nobody is at stays shut."""
        unfolded: dict[tuple[str, Path, str], Found] = {}
        for key, found in every.items():
            name, tool = key[0], TOOLS[key[0]]
            inside: tuple[Found, ...] = ()
            if not found.native_id and isinstance(tool, HoldsMany) and (found.modified >= oldest or name in running):
                inside = self._many.setdefault((name, found.path), tool.inside(found)).listed()
            for one in inside or (found,):
                unfolded[name, one.path, one.native_id] = one
        return unfolded

    def _join(
        self, alive: list[_Alive], every: Mapping[tuple[str, Path, str], Found], now: datetime
    ) -> list[tuple[_Alive, tuple[str, Path, str] | None]]:
        """Who is at what: what the tools say themselves first, then the rest by place and time, each once."""
        joined: list[tuple[_Alive, tuple[str, Path, str] | None]] = []
        held: set[tuple[str, Path, str]] = set()
        for one in sorted(alive, key=lambda a: (a.clue is None, -a.process.started)):
            if one.clue is None or one.clue.how == BY_ARGUMENT:  # it may have gone on in another one since
                opened = next((k for k in every if k[0] == one.tool and os.path.realpath(k[1]) in one.opened), None)
                one.clue = Clue(opened[2], "its open transcript") if opened and opened[2] else one.clue
            wanted = one.clue.native_id if one.clue is not None else ""
            key = next((k for k in every if wanted and k[0] == one.tool and k[2] == wanted), None)
            if key is None and not wanted:
                key = self._nearest(one, every, held)
                if key is not None:
                    one.clue = Clue(key[2], "guess: its folder and time")
            if key is not None:
                held.add(key)
            joined.append((one, key))
        return joined

    def _nearest(
        self, one: _Alive, every: Mapping[tuple[str, Path, str], Found], held: set[tuple[str, Path, str]]
    ) -> tuple[str, Path, str] | None:
        """The newest transcript of the same tool and folder that was written since the process began."""
        young = [k for k, f in every.items() if k[0] == one.tool and f.modified >= one.process.started - 1]
        for key in sorted(young, key=lambda k: every[k].modified, reverse=True):
            if key not in held and _same_folder(self._record(key[0], every[key]).cwd, one.process.cwd):
                return key
        return None

    def _running(self, one: _Alive, found: Found | None, now: datetime) -> Detected:
        record = self._record(one.tool, found) if found is not None else SessionRecord(one.tool, cwd=one.process.cwd)
        began = datetime.fromtimestamp(one.process.started, UTC)
        active = max(began, _written(record, found)) if found is not None else began
        doing = one.clue.doing if one.clue is not None else ""
        return Detected(
            one.tool,
            record.native_id or (one.clue.native_id if one.clue is not None else ""),
            str(found.path) if found is not None else "",
            _state_alive(record, doing, one.children, active, now),
            record if record.cwd else replace(record, cwd=one.process.cwd),
            active,
            one.process.pid,
            one.process.started,
            one.clue.how if one.clue is not None else "",
            one.process.env.get(_MARK, ""),
        )

    def _resting(self, tool: str, found: Found) -> Detected:
        record = self._record(tool, found)
        return Detected(
            tool, record.native_id or found.native_id, str(found.path), state_at_rest(record), record,
            _written(record, found),
        )  # fmt: skip

    def _record(self, tool: str, found: Found) -> SessionRecord:
        """The record of a transcript: remembered where the file is as it was, else read on from where we were."""
        key, version = (tool, found.path, found.native_id), (found.size, found.modified)
        known = self._open.get(key)
        if known is None and (kept := self.seen.get(key, version)) is not None:
            return kept
        following = known[0] if known is not None else self._follow(tool, found)
        if known is None or known[1] != version:
            following.poll()
            self._open[key] = (following, version)
        record = following.record()
        self.seen.put(key, version, record)
        return record

    def _follow(self, tool: str, found: Found) -> Following:
        many = self._many.get((tool, found.path))
        if many is not None and found.native_id:
            return many.follow(found.native_id)
        return TOOLS[tool].follow(found.path, found.native_id, Path())


def _alive() -> Iterator[_Alive]:
    """The topmost process of every running session of this user."""
    seen: dict[int, tuple[psutil.Process, str]] = {}
    parents: dict[int, int] = {}
    mine = os.getuid() if hasattr(os, "getuid") else None
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            parents[process.pid] = process.ppid()
            if mine is None or process.uids().real == mine:
                argv = tuple(process.cmdline())
                if (tool := tool_of(argv)) and process.status() != psutil.STATUS_ZOMBIE:
                    seen[process.pid] = (process, tool)
    for pid, (process, tool) in seen.items():
        if any(above in seen and seen[above][1] == tool for above in _above(pid, parents)):
            continue  # a launcher's child: the session is counted once
        with contextlib.suppress(psutil.Error, OSError):
            yield _look_at(process, tool)


def _look_at(process: psutil.Process, tool: str) -> _Alive:
    below = process.children(recursive=True)
    env: Mapping[str, str] = {}
    cwd, opened = "", list[str]()
    with contextlib.suppress(psutil.Error, OSError):
        env = process.environ()
    with contextlib.suppress(psutil.Error, OSError):
        cwd = process.cwd()
    for one in (process, *(child for child in below if tool_of(tuple(_argv(child))) == tool)):
        with contextlib.suppress(psutil.Error, OSError):
            opened += [file.path for file in one.open_files()]
    found = Process(process.pid, process.ppid(), process.create_time(), tuple(process.cmdline()), cwd, env)
    born = [child.create_time() for child in below if _argv(child) and not tool_of(tuple(_argv(child)))]
    alive = _Alive(found, tool, tuple(born), frozenset(map(os.path.realpath, opened)))
    homes = {name: AGENTS[name].home(env) for name in ("claude", "codex", "copilot")} if env else {}
    pids = [found, *(replace(found, pid=child.pid, started=child.create_time()) for child in below)]
    clues = (clue(tool, one, tuple(opened), homes) for one in pids)
    alive.clue = next((c for c in clues if c is not None), None)
    return alive


def _argv(process: psutil.Process) -> list[str]:
    with contextlib.suppress(psutil.Error, OSError):
        return process.cmdline()
    return []


def _above(pid: int, parents: Mapping[int, int]) -> Iterable[int]:
    known: set[int] = set()
    while (pid := parents.get(pid, 0)) and pid not in known:
        known.add(pid)
        yield pid


def _same_folder(one: str, other: str) -> bool:
    return bool(one) and bool(other) and os.path.realpath(one) == os.path.realpath(other)


def _written(record: SessionRecord, found: Found) -> datetime:
    """When something was last written there: by the records' own word, else by the file's."""
    return record.last_activity or datetime.fromtimestamp(found.modified, UTC)


def _state_alive(
    record: SessionRecord, doing: str, children: tuple[float, ...], active: datetime, now: datetime
) -> State:
    silent = now - active
    if record.at_limit:
        return State.AT_LIMIT
    if record.pending_calls:
        at_work = any(born >= active.timestamp() - 1 for born in children)
        own = record.pending_calls[-1].name.startswith(_WITHOUT_CHILD)
        return State.WORKING if at_work or own or silent < _ASKING else State.WAITS_FOR_PERMISSION
    if record.turn_complete or doing == "idle":
        return State.WAITS_FOR_USER if silent < _RECENT else State.IDLE
    return State.WORKING if doing == "busy" or silent < _THINKING else State.IDLE


def state_at_rest(record: SessionRecord) -> State:
    """What a session that no process is at has come to."""
    if record.at_limit:
        return State.AT_LIMIT
    begun = record.pending_calls or record.open_prompt or (record.prompts and not record.turn_complete)
    return State.CRASHED if begun else State.ENDED
