"""Telling the user what happens: one live line on a terminal, plain lines otherwise, always on stderr, never a secret.

Once the terminal has been lent to an agent's TUI nothing is told but by the terminal itself, until the run is over.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from relay_git.cli.told import keep
from relay_git.errors import printable

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator
    from pathlib import Path

    from rich.live import Live
    from rich.text import Text

    from relay_git.supervisor.terminal import Terminal

_LIVE = 120  # characters of what an agent is doing


def _shown(text: str) -> str:
    """The text as it can be shown: what the user sees is often a log too."""
    from relay_git.contract.redact import redact

    return printable(redact(text)[0])


def _shortened(doing: str) -> str:
    return doing if len(doing) <= _LIVE else f"{doing[: _LIVE - 1]}…"


def _print(line: str) -> None:
    with _whether_it_is_there_or_not():
        print(line, file=sys.stderr, flush=True)


@contextlib.contextmanager
def _whether_it_is_there_or_not() -> Iterator[None]:
    """A terminal that was closed is no reason to leave a session half-way; from then on nothing is written to it."""
    try:
        yield
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for out in (1, 2):  # else Python fails at its end, over what it could not write
            os.dup2(nowhere, out)
        os.close(nowhere)


@contextlib.contextmanager
def lent(teller: ConsoleTeller, stop: threading.Event, *, wanted: bool) -> Iterator[Terminal | None]:
    """The user's terminal for the agents' TUIs, if that is wanted; UserError where there is none."""
    if not wanted:
        yield None
        return
    from relay_git.supervisor.terminal import Terminal

    with Terminal(stop) as terminal:
        teller.leave_to(terminal)
        yield terminal


class ConsoleTeller:
    """Lines that stay, and one that changes. As a context manager it owns the live line while an agent works."""

    def __init__(self, *, silent: bool = False) -> None:
        self._live: Live | None = None
        self._silent = silent
        self._file: Path | None = None
        self._terminal: Terminal | None = None
        self._inside = False
        self._leg, self._agent, self._doing, self._quota = 0, "", "", ""
        self._since = time.monotonic()

    def __enter__(self) -> ConsoleTeller:
        self._inside = True
        if self._terminal is None and sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(
                get_renderable=self._line, console=Console(stderr=True), refresh_per_second=4, transient=True
            )
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            with _whether_it_is_there_or_not():
                self._live.stop()
            self._live = None
        if self._terminal is not None:
            self._terminal.take_back()
        self._inside = False

    def keep(self, file: Path) -> None:
        """From now on all that is told is kept in this file too, and there alone if nothing is to be shown."""
        self._file = file

    def leave_to(self, terminal: Terminal) -> None:
        """From now on the terminal is an agent's as soon as it takes it."""
        self._terminal = terminal

    def say(self, text: str) -> None:
        """A line that stays."""
        line = _shown(text)
        self._keep(line)
        if (self._inside and self._terminal is not None and self._terminal.was_lent) or self._is_elsewhere:
            return
        if self._live is not None:
            with _whether_it_is_there_or_not():
                self._live.console.print(line, markup=False, highlight=False, soft_wrap=True)
        else:
            _print(line)

    def live(self, leg: int, agent: str, doing: str, quota: str = "") -> None:
        """What the agent is at right now; on a terminal it takes the place of what was said before."""
        told = (leg, agent, _shortened(_shown(doing).replace("\n", " ")), printable(quota))
        before = (self._leg, self._agent, self._doing, self._quota)
        if told == before:
            return
        if told[:2] != before[:2]:
            self._since = time.monotonic()
        self._leg, self._agent, self._doing, self._quota = told
        if told[:3] == before[:3]:
            return
        line = f"leg {leg} {agent}: {self._doing}"
        self._keep(line)
        if self._live is None and self._terminal is None and not self._is_elsewhere:
            _print(line)

    @property
    def _is_elsewhere(self) -> bool:
        return self._silent and self._file is not None

    def _keep(self, line: str) -> None:
        if self._file is not None:
            keep(self._file, line)

    def _line(self) -> Text:
        """The live line in the width that there is: what the agent is doing gives way first."""
        from rich.text import Text

        if not self._leg:
            return Text("starting")
        minutes, seconds = divmod(int(time.monotonic() - self._since), 60)
        begin = f"leg {self._leg} · {self._agent} · "
        end = "".join(f" · {word}" for word in (self._quota, f"{minutes}:{seconds:02d}") if word)
        doing = Text(self._doing)
        width = self._live.console.width if self._live is not None else 80
        doing.truncate(max(1, width - Text(begin + end).cell_len), overflow="ellipsis")
        return Text.assemble(begin, doing, end, overflow="ellipsis", no_wrap=True)
