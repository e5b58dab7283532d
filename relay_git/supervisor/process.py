"""One agent process and everything that it starts: begun, heard, frozen, ended and proven gone.

Promise: the tree is known by more than its leader: group, session, children, and the session's mark in the environment,
which a double fork inherits. A process is named by pid and start time, never by pid alone. This is the only room
beside `git` that starts processes.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import psutil

from relay_git.errors import AgentError, printable
from relay_git.git.repo import make_private
from relay_git.git.run import OWN_READERS
from relay_git.session import SessionId
from relay_git.supervisor.output import Log, Output
from relay_git.supervisor.patience import Patience

_CLOCK_STEP = 2_000  # milliseconds by which a start time may seem to move when the clock is set
_SET_CHILD_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER, linux/prctl.h
_MARK, _MARK_PLACE = "RELAY_SESSION", "RELAY_DIR"

Child = subprocess.Popen[bytes]


@dataclass(frozen=True, slots=True)
class Mark:
    """What every process of a session carries in its environment: the session, and the repository it belongs to."""

    session: SessionId
    relay_dir: Path

    def environment(self) -> dict[str, str]:
        return {_MARK: self.session, _MARK_PLACE: str(self.relay_dir)}

    def is_on(self, process: psutil.Process) -> bool:
        env = _environment(process) or {}
        return env.get(_MARK) == self.session and env.get(_MARK_PLACE) == str(self.relay_dir)


@dataclass(frozen=True, slots=True)
class Ground:
    """A session's worktree, and when its last leg was started (milliseconds since 1970)."""

    place: Path
    since: int

    def strays(self) -> list[psutil.Process]:
        """Who stands there and can only be the leg's, though nothing ties it to that leg any more.

        A leg's child that put its environment away is known by its parents while a supervisor lives, which adopts
        orphans. After that: it was born after the leg began, is of this user, has no terminal and not even a HOME. A
        user's own shell, editor or server has one of the two, and is never touched (ADR 0017).
        """
        return [p for p in self.standing() if "HOME" not in (_environment(p) or {"HOME": ""})]

    def standing(self) -> list[psutil.Process]:
        """Whoever was born after the leg began, is of this user and without a terminal, and stands in the worktree."""
        return [process for process in psutil.process_iter() if self._holds(process)] if self.since else []

    def _holds(self, process: psutil.Process) -> bool:
        with contextlib.suppress(psutil.Error, OSError):
            return (
                os.getpid() not in (process.pid, process.ppid())
                and Path(process.cwd()).is_relative_to(self.place)
                and process.create_time() * 1000 >= self.since
                and process.uids().real == os.getuid()
                and process.terminal() is None
                and _alive(process)
            )
        return False


class LegProcess:
    """An agent's process: its output as lines, its exit status, and its tree."""

    def __init__(self, popen: Child, mark: Mark, log: Log | None = None) -> None:
        self._popen, self._mark = popen, mark
        self.pid = popen.pid
        self.started = _start_time(popen.pid)
        self.output = Output(popen.stdout, popen.stderr, log)
        self._afterwards: list[Callable[[], None]] = []

    def poll(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        return self._popen.poll()

    def complaint(self) -> str:
        """The last words on stderr, one line, fit for a message."""
        said = [line.decode("utf-8", "replace").strip() for line in self.output.last_errors()]
        return printable(" / ".join(s for s in said[-3:] if s))[:300]

    def freeze(self) -> None:
        """Stop every process of the tree where it stands; what is born meanwhile is caught in the next round."""
        stopped: set[int] = set()
        for _ in range(10):
            fresh = [p for p in tree(self._mark, self.pid) if p.pid not in stopped]
            if not fresh:
                return
            for process in fresh:
                _signal(process, signal.SIGSTOP)
                stopped.add(process.pid)

    def thaw(self) -> None:
        """Let a frozen tree go on."""
        for process in tree(self._mark, self.pid):
            _signal(process, signal.SIGCONT)

    def processor_seconds(self) -> float:
        """What the tree has used of the processor so far, with its ended children."""
        used = 0.0
        for process in tree(self._mark, self.pid):
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                used += times.user + times.system + times.children_user + times.children_system
        return used

    def end(self, grace: float) -> tuple[int, ...]:
        """End the tree: TERM, wait, KILL; the pids that are proven to be left afterwards, none on success."""
        left = end_tree(self._mark, self.pid, grace, reap=self._popen.poll)
        self.close()
        return left

    def afterwards(self, done: Callable[[], None]) -> None:
        """Have this done when the leg is over."""
        self._afterwards.append(done)

    def close(self) -> None:
        """Do what is to be done when the leg is over, and let go of the pipes."""
        while self._afterwards:
            self._afterwards.pop()()
        self.output.close()


def start(argv: tuple[str, ...], cwd: Path, env: Mapping[str, str], stdin: Path, log: Log, mark: Mark) -> LegProcess:
    """Start a leg in a session of its own, its prompt as a file on stdin; raises AgentError where it cannot be."""
    _adopt_orphans()
    try:
        make_private(log.folder)
        with stdin.open("rb") as prompt:
            popen = subprocess.Popen(
                argv,
                cwd=cwd,
                env={**env, **mark.environment()},
                stdin=prompt,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
    except OSError as error:
        raise _not_started(argv[0], error) from error
    return LegProcess(popen, mark, log)


def start_at_terminal(argv: tuple[str, ...], cwd: Path, env: Mapping[str, str], terminal: int, mark: Mark) -> Child:
    """Start a leg in a session of its own whose terminal this is, below `stand_in`; AgentError where it cannot be."""
    _adopt_orphans()
    try:
        return subprocess.Popen(
            (sys.executable, "-I", "-S", str(Path(__file__).with_name("stand_in.py")), *argv),
            cwd=cwd,
            env={**env, **mark.environment()},
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
        )
    except OSError as error:
        raise _not_started(argv[0], error) from error


def start_beside(argv: tuple[str, ...], env: Mapping[str, str]) -> Child:
    """Start a program of ours that serves this process, with pipes both ways: it is to end when its stdin does.

    It bears no session's mark and is no leg's, whatever ends.
    """
    try:
        child = subprocess.Popen(
            argv,
            env={name: value for name, value in env.items() if name not in (_MARK, _MARK_PLACE)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise _not_started(argv[0], error) from error
    OWN_READERS.add(child.pid)
    return child


def end_beside(child: Child) -> None:
    """End it at once."""
    child.kill()
    child.wait()
    OWN_READERS.discard(child.pid)
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


class Aside:
    """A git relay that outlives the one that started it; who is not waited for is init's in the end."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._status: int | None = None

    def poll(self) -> int | None:
        """The exit status; None while it runs."""
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._status = os.waitstatus_to_exitcode(status) if pid else None
        return self._status


def start_aside(argv: tuple[str, ...], env: Mapping[str, str], errors: Path) -> Aside:
    """Start a git relay without this one's terminal; what it cannot tell otherwise goes to the file `errors`."""
    new = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(errors), new, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    try:
        make_private(errors.parent)
        return Aside(os.posix_spawn(argv[0], argv, env, file_actions=actions, setsid=True))
    except OSError as error:
        raise _not_started(argv[0], error) from error


def at_terminal(argv: tuple[str, ...], env: Mapping[str, str]) -> int:
    """Run a program of the user's at this terminal until it ends; its exit status. Ctrl-C is the program's alone."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return subprocess.run(argv, env=env, check=False, restore_signals=True).returncode
    except OSError as error:
        raise _not_started(argv[0], error) from error
    finally:
        signal.signal(signal.SIGINT, before)


def _not_started(program: str, error: OSError) -> AgentError:
    return AgentError(f"{program} could not be started: {error.strerror or error}", hint="git relay doctor")


def tree(mark: Mark, leader: int = 0, ground: Ground | None = None) -> list[psutil.Process]:
    """Every live process of the session: the leader's group, session and children, and whoever carries the mark.

    With `ground`, which is for a leg whose supervisor died, the strays in the worktree too.
    """
    mine = {os.getpid(), *(p.pid for p in psutil.Process().parents())}
    found: dict[int, psutil.Process] = {}
    for process in psutil.process_iter():
        if process.pid in mine or not _alive(process):
            continue
        if (leader and _belongs(process, leader)) or mark.is_on(process):
            found[process.pid] = process
    # Whoever left group, session and environment behind is still a descendant: an orphan becomes our child.
    for process in _descendants(leader) if leader else ():
        found.setdefault(process.pid, process)
    for process in ground.strays() if ground is not None else ():
        if process.pid not in mine:
            found.setdefault(process.pid, process)
    return list(found.values())


def _descendants(leader: int) -> list[psutil.Process]:
    """What the leg has started, live; dead orphans among them are buried, so that none stays a zombie."""
    below = [p for p in psutil.Process().children(recursive=True) if p.pid not in OWN_READERS]
    live = [process for process in below if _alive(process)]
    for dead in {process.pid for process in below} - {process.pid for process in live} - {leader}:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(dead, os.WNOHANG)
    return live


@lru_cache(maxsize=1)
def _adopt_orphans() -> None:
    """Have descendants whose parent dies become our children (Linux), so that a double fork cannot leave the tree."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_tree(
    mark: Mark,
    leader: int,
    grace: float,
    reap: Callable[[], object] = lambda: None,
    ground: Ground | None = None,
) -> tuple[int, ...]:
    """TERM, wait, KILL, for every process of the session; the pids that are still there afterwards."""
    for how, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, 5.0)):
        patience = Patience(seconds)
        told: set[int] = set()
        while left := tree(mark, leader, ground):
            for process in left:
                if process.pid not in told:
                    _signal(process, how)
                    _signal(process, signal.SIGCONT)  # a frozen process could not act on it
                    told.add(process.pid)
            if patience.is_over:
                break
            reap()
            time.sleep(0.02)
        else:
            reap()
            return ()
    return tuple(p.pid for p in tree(mark, leader, ground))


def still(pid: int, started: int) -> int:
    """The pid, if the process that had it when it was recorded still lives; else 0, also where another one has it."""
    return pid if pid and abs(_start_time(pid) - started) <= _CLOCK_STEP else 0


def _start_time(pid: int) -> int:
    with contextlib.suppress(psutil.Error):
        return int(psutil.Process(pid).create_time() * 1000)
    return 0


def _belongs(process: psutil.Process, leader: int) -> bool:
    with contextlib.suppress(OSError):
        return leader in (process.pid, os.getpgid(process.pid), os.getsid(process.pid))
    return False


def _environment(process: psutil.Process) -> dict[str, str] | None:
    with contextlib.suppress(psutil.Error, OSError):
        return process.environ()
    return None


def _alive(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    return False


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    with contextlib.suppress(psutil.Error, OSError):
        process.send_signal(number)  # psutil refuses where the pid has been given to another process
