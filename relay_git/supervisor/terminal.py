"""The user's terminal, lent to the TUI of one agent after another.

Promise: bytes pass untouched both ways, and no byte reaches an agent that the user did not type. The terminal is given
back as it was: its modes, and what the agent has left on. What the user typed for one agent never reaches the next.
Ctrl-Z, `fg`, a background job and a terminal that goes away work as they do for the agent's TUI alone. No screen is
kept on disk.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import signal
import termios
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import psutil

from relay_git.errors import UserError, printable
from relay_git.supervisor import process
from relay_git.supervisor.process import Child, LegProcess, Mark
from relay_git.supervisor.screen import Screen

_CHUNK = 1 << 16
_ROOM = 1 << 18  # bytes on their way to one side, before the other is left waiting
_PATIENCE = 1.0  # seconds that a terminal which takes nothing more (Ctrl-S) is waited for
_OURS = (signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT)


class Terminal:
    """As a context manager it is back in the user's hands at the end, whatever happens in between.

    `gone` is set when the terminal goes away, or by anybody who wants an end.
    """

    def __init__(self, gone: threading.Event) -> None:
        if not (os.isatty(0) and os.isatty(1)):
            raise _no_terminal()
        try:
            # Opened anew, so that what we set on it (O_NONBLOCK) is not set for the user's shell as well.
            self._tty = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise _no_terminal() from error
        self._gone = gone
        self._users = termios.tcgetattr(self._tty)
        self._screen = Screen()
        self._shovel: _Shovel | None = None
        self._master = -1
        self._handlers: dict[signal.Signals, object] = {}
        self._stop_asked = self._went_on = False
        self.was_lent = False

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.take_back()
        os.close(self._tty)

    def start(self, argv: tuple[str, ...], cwd: Path, env: Mapping[str, str], mark: Mark) -> LegAtTerminal:
        """Start an agent's TUI in the terminal; raises AgentError where it cannot be started."""
        self.take_back()
        with contextlib.ExitStack() as undo:
            self._master, slave = os.openpty()
            undo.callback(self.take_back)
            with os.fdopen(slave, "rb", buffering=0):
                os.set_blocking(self._master, False)
                termios.tcsetattr(slave, termios.TCSANOW, self._users)
                self._lend()
                leg = LegAtTerminal(process.start_at_terminal(argv, cwd, env, slave, mark), mark, self)
            undo.pop_all()
        return leg

    def tell(self, line: str) -> None:
        """One line to the user, between two agents."""
        self._write(printable(line).replace("\n", " ").encode("utf-8", "replace")[:1000] + b"\n")

    def take_back(self) -> None:
        """The agent is gone: show its last output, and give the user the terminal as it was."""
        if self._master < 0:
            return
        self._halt(ended=True)
        self._restore()
        self._screen = Screen()
        os.close(self._master)
        self._master = -1
        for number, handler in self._handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what signal.signal gave us
        self._handlers.clear()

    def tend(self, agent: psutil.Process) -> None:
        """Do what signals have asked for; where the agent has stopped itself, stop with it, and go on with it."""
        if self._stop_asked:
            self._stop_asked = False
            _signal_group(agent, signal.SIGTSTP)  # it puts its own house in order before it stops
        if agent.status() == psutil.STATUS_STOPPED:
            if not self._gone.is_set():
                self._suspend()
            _signal_group(agent, signal.SIGCONT)
        elif self._went_on:  # somebody stopped us and not the agent: the shell may have changed the terminal
            self._halt()
            self._take()

    def _suspend(self) -> None:
        """Stop our whole job, as the shell expects of one; it returns when the user wants to go on."""
        self._halt()
        self._restore()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        # Nobody could make us go on where no shell is above us: there the kernel ignores this, and that is right.
        os.killpg(0, signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._on_signal)
        self._take()
        self._write(self._screen.on())

    def _lend(self) -> None:
        self.was_lent = True
        self._handlers = {number: signal.signal(number, self._on_signal) for number in _OURS}
        self._take()

    def _take(self) -> None:
        """Make the terminal raw and begin to pass bytes. In the background this stops us, as it does any TUI."""
        self._went_on = False
        if not self._gone.is_set():
            self._set(raw=True)
            self._resize()
        self._shovel = _Shovel(self._tty, self._master, self._screen, self._gone)
        self._shovel.start()

    def _halt(self, *, ended: bool = False) -> None:
        if self._shovel is not None:
            self._shovel.halt(ended=ended)
            self._shovel = None

    def _restore(self) -> None:
        with contextlib.suppress(OSError):
            if os.tcgetpgrp(self._tty) == os.getpgrp():  # in the background it is another's, and was restored before
                # Whoever dies in the middle of a line may have left the rest of its screen below it.
                self._write(self._screen.off() + (b"\r\n\x1b[J" if self._screen.mid_line() else b""))
                self._set(raw=False)

    def _set(self, *, raw: bool) -> None:
        modes = _raw(self._users) if raw else self._users
        while True:
            try:
                # What was typed for an agent is for nobody else; neither are answers to what it asked the terminal.
                termios.tcflush(self._tty, termios.TCIFLUSH)
                termios.tcsetattr(self._tty, termios.TCSANOW, modes)
            except termios.error as error:
                if error.args[0] == errno.EINTR:
                    continue
            return

    def _write(self, data: bytes) -> None:
        until = time.monotonic() + _PATIENCE
        with contextlib.suppress(OSError):
            while data and (left := until - time.monotonic()) > 0:
                if select.select([], [self._tty], [], left)[1]:
                    data = data[os.write(self._tty, data) :]

    def _resize(self) -> None:
        with contextlib.suppress(OSError):
            size = fcntl.ioctl(self._tty, termios.TIOCGWINSZ, bytes(8))
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)  # the kernel tells the agent, if it is another size

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del frame
        match number:
            case signal.SIGWINCH:
                self._resize()
            case signal.SIGTSTP:
                self._stop_asked = True
            case _:
                self._went_on = True


class LegAtTerminal(LegProcess):
    """An agent whose TUI has the terminal: it is heard by its transcript alone."""

    def __init__(self, child: Child, mark: Mark, terminal: Terminal) -> None:
        super().__init__(child, mark)
        self._terminal = terminal
        self._agent: psutil.Process | None = None
        self._frozen = False

    def poll(self) -> int | None:
        """The exit status, 128 + n for a signal; None while it runs. While the user has it suspended, so are we."""
        status = super().poll()
        if status is None and not self._frozen:
            with contextlib.suppress(psutil.Error, OSError):
                self._agent = self._agent or next(iter(psutil.Process(self.pid).children()), None)
                if self._agent is not None:
                    self._terminal.tend(self._agent)
        return status

    def freeze(self) -> None:
        """Stop every process of the tree where it stands, without stopping ourselves."""
        self._frozen = True
        super().freeze()

    def thaw(self) -> None:
        """Let a frozen tree go on."""
        super().thaw()
        self._frozen = False

    def close(self) -> None:
        """Take the terminal back."""
        super().close()
        self._terminal.take_back()


class _Shovel(threading.Thread):
    """Passes bytes between the user's terminal and an agent's, until it is halted or the agent's is closed."""

    def __init__(self, tty: int, master: int, screen: Screen, gone: threading.Event) -> None:
        super().__init__(name="terminal", daemon=True)
        self._tty, self._master, self._screen, self._gone = tty, master, screen, gone
        self._typed, self._shown = bytearray(), bytearray()
        self._there = not gone.is_set()
        self._open = True
        self._bell, self._ring = os.pipe()

    def halt(self, *, ended: bool) -> None:
        """Stop, once all that the agent has written is shown; with `ended`, its terminal is expected to close."""
        if ended:
            self.join(_PATIENCE)
        os.close(self._ring)
        self.join()
        os.close(self._bell)

    def run(self) -> None:
        """Pass bytes; no more is held than `_ROOM` for each side, whoever is slow."""
        halted = False
        while self._open and not halted:
            reads = [self._bell]
            reads += [self._master] if len(self._shown) < _ROOM else []
            reads += [self._tty] if self._there and len(self._typed) < _ROOM else []
            halted = self._bell in self._pass(reads, None)
        until = time.monotonic() + _PATIENCE
        while (left := until - time.monotonic()) > 0 and (self._open or self._shown):
            reads = [self._master] if self._open and len(self._shown) < _ROOM else []
            if not self._pass(reads, left if self._shown else 0) and not self._shown:
                break

    def _pass(self, reads: list[int], seconds: float | None) -> list[int]:
        """Wait for something to do and do it; what was ready to be read."""
        writes = [self._tty] if self._shown and self._there else []
        writes += [self._master] if self._typed and self._open else []
        readable, writable, _ = select.select(reads, writes, [], seconds)
        if self._master in readable:
            self._hear()
        if self._tty in readable:
            self._read_user()
        if self._tty in writable:
            self._show()
        if self._master in writable:
            self._type()
        if not self._there:
            self._shown.clear()
        return readable

    def _hear(self) -> None:
        try:
            data = os.read(self._master, _CHUNK)
        except BlockingIOError:
            return
        except OSError:  # Linux's way to say that nobody has the other end open
            data = b""
        self._open = bool(data)
        self._shown += data

    def _read_user(self) -> None:
        try:
            data = os.read(self._tty, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._typed += data
        if not data:
            self._lose()

    def _show(self) -> None:
        try:
            count = os.write(self._tty, self._shown[:_CHUNK])
        except BlockingIOError:
            return
        except OSError:
            self._lose()
        else:
            self._screen.feed(bytes(self._shown[:count]))
            del self._shown[:count]

    def _type(self) -> None:
        try:
            del self._typed[: os.write(self._master, self._typed[:_CHUNK])]
        except BlockingIOError:
            return
        except OSError:
            self._open = False

    def _lose(self) -> None:
        self._there = False
        self._gone.set()


def _raw(modes: list[Any]) -> list[Any]:
    """The same terminal with every byte passed on as it comes: no echo, no line editing, no signals from keys."""
    iflag, oflag, cflag, lflag, ispeed, ospeed, chars = modes
    iflag &= ~(termios.IGNBRK | termios.BRKINT | termios.PARMRK | termios.ISTRIP)
    iflag &= ~(termios.INLCR | termios.IGNCR | termios.ICRNL | termios.IXON)
    lflag &= ~(termios.ECHO | termios.ECHONL | termios.ICANON | termios.ISIG | termios.IEXTEN)
    cflag = cflag & ~(termios.CSIZE | termios.PARENB) | termios.CS8
    chars = [*chars]
    chars[termios.VMIN], chars[termios.VTIME] = 1, 0
    return [iflag, oflag & ~termios.OPOST, cflag, lflag, ispeed, ospeed, chars]


def _signal_group(agent: psutil.Process, number: signal.Signals) -> None:
    os.killpg(os.getpgid(agent.pid), number)


def _no_terminal() -> UserError:
    return UserError(
        "-i needs a terminal: standard input and output must be one",
        hint='type it in a terminal, or leave -i out: git relay start "your task"',
    )
