"""A session that is lifted from an agent which git relay did not start: where it lies, and its processes.

Promise: a source's files are only read. Its processes are touched only where the user said so, each known by pid and
start time; a process that is frozen is noted in the spool before, so that whoever comes after a crash ends it or lets
it go on. Processes that left the source's tree and group are not found: they are none of ours to end.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import psutil

from relay_git.agents import TOOLS
from relay_git.agents.agent import Following
from relay_git.contract.pause import SafePoint
from relay_git.git.repo import write_private
from relay_git.session import SessionRecord
from relay_git.supervisor.patience import Patience
from relay_git.supervisor.process import still

ADOPTED = "adopted"  # the reason of such a pause, and the file in the session's spool
_STEP = 0.05
_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class Source:
    """What a session was adopted from.

    `top` is the work tree that its files are named from. `pid` and `started` (milliseconds since 1970) name its
    process, 0 where none runs; `stops` says that it is to be ended. `losses` is what could not come along, in words.
    """

    tool: str
    path: str
    native_id: str
    top: str
    pid: int = 0
    started: int = 0
    stops: bool = False
    losses: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return TOOLS[self.tool].title

    @property
    def unfinished(self) -> str:
        """What is true of a turn in it that had not come to its end, where nobody has stopped it."""
        if self.pid:
            return "the agent was in the middle of its turn, and was left running"
        return "the turn of the agent did not come to its end"

    def keep(self, spool: Path) -> None:
        """Note it down for whoever carries the session on."""
        write_private(spool / ADOPTED, json.dumps(asdict(self)).encode())

    def losing(self, losses: Iterable[str]) -> Source:
        """The same, with more that could not come along."""
        return replace(self, losses=(*self.losses, *losses))

    def follow(self) -> Following:
        """Its transcript."""
        return TOOLS[self.tool].follow(Path(self.path), self.native_id, Path(self.top))

    def record(self) -> SessionRecord:
        """What it did, with what a fork was told before it was one, and with what could not come along."""
        following = self.follow()
        following.poll()
        record = following.record(ended=True)
        prompts = (*record.inherited_prompts, *record.prompts)
        return replace(record, prompts=prompts, inherited_prompts=(), losses=(*self.losses, *record.losses))

    def processes(self) -> list[psutil.Process]:
        """Its live process, what that has below it, and what is in the group that it leads."""
        lives = bool(still(self.pid, self.started))
        if not self.pid or (not lives and psutil.pid_exists(self.pid)):
            return []
        found = {p.pid: p for p in psutil.process_iter() if _group(p.pid) == self.pid}
        with contextlib.suppress(psutil.Error):
            leader = psutil.Process(self.pid)
            found |= {p.pid: p for p in (leader, *leader.children(recursive=True))}
        return [p for p in found.values() if p.pid != os.getpid() and _is_alive(p)]


def kept(spool: Path) -> Source | None:
    """What the session of this spool was adopted from; None where it was not, or where nothing tells any more."""
    try:
        body = json.loads((spool / ADOPTED).read_bytes())
        return Source(**{**body, "losses": tuple(body["losses"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def hold(source: Source, seconds: float, hurry: Callable[[], bool]) -> SafePoint:
    """Freeze a source between two calls, or, once the time is over or the user is in a hurry, where it stands.

    The word returned says truthfully where that was.
    """
    following, patience = source.follow(), Patience(seconds)
    while source.processes():
        following.poll()
        late = patience.is_over or hurry()
        if late or not following.record().pending_calls:
            freeze(source)
            time.sleep(_STEP)  # what was written before the freeze must reach the transcript's reader
            following.poll()
            between = not following.record().pending_calls
            if between or late:
                return SafePoint.TOOL_BOUNDARY if between else SafePoint.INTERRUPTED
            let_go(source)
        time.sleep(_STEP)
    return where_it_stands(replace(source, pid=0))


def where_it_stands(source: Source) -> SafePoint:
    """Where a source stands that nobody holds."""
    if source.record().pending_calls:
        return SafePoint.INTERRUPTED
    return SafePoint.TOOL_BOUNDARY if source.pid else SafePoint.ENDED


def freeze(source: Source) -> None:
    """Stop every process of it where it stands; what is born meanwhile is caught in the next round."""
    stopped: set[int] = set()
    for _ in range(_ROUNDS):
        fresh = [p for p in source.processes() if p.pid not in stopped]
        if not fresh:
            return
        for process in fresh:
            with contextlib.suppress(psutil.Error):
                process.suspend()
            stopped.add(process.pid)


def let_go(source: Source) -> None:
    """Let a frozen source go on."""
    for process in source.processes():
        with contextlib.suppress(psutil.Error):
            process.resume()


def end(source: Source, grace: float) -> tuple[int, ...]:
    """TERM, wait, KILL; the pids that are there all the same afterwards, none on success."""
    known = source.processes()
    for how, seconds in ((psutil.Process.terminate, grace), (psutil.Process.kill, 5.0)):
        for process in known:
            with contextlib.suppress(psutil.Error):
                how(process)
                process.resume()  # a frozen process could not act on it
        known = [p for p in psutil.wait_procs(known, timeout=seconds)[1] if _is_alive(p)]
        known = list({p.pid: p for p in (*known, *source.processes())}.values())
        if not known:
            break
    return tuple(p.pid for p in known)


def _group(pid: int) -> int:
    with contextlib.suppress(OSError):
        return os.getpgid(pid)
    return 0


def _is_alive(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return process.is_running() and process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    return False
