"""Telling the user what happens: one live line on a terminal, plain lines otherwise, always on stderr."""

from __future__ import annotations

import contextlib
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from relay_git.errors import printable

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text


def _print(line: str) -> None:
    # A terminal that was closed is no reason to leave a session half-way.
    with contextlib.suppress(OSError):
        print(line, file=sys.stderr, flush=True)


class ConsoleTeller:
    """Lines that stay, and one that changes. As a context manager it owns the live line while an agent works."""

    def __init__(self) -> None:
        self._live: Live | None = None
        self._leg, self._agent, self._doing, self._quota = 0, "", "", ""
        self._since = time.monotonic()

    def __enter__(self) -> ConsoleTeller:
        if sys.stderr.isatty():
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
            self._live.stop()
            self._live = None

    def say(self, text: str) -> None:
        """A line that stays."""
        line = printable(text)
        if self._live is not None:
            self._live.console.print(line, markup=False, highlight=False, soft_wrap=True)
        else:
            _print(line)

    def live(self, leg: int, agent: str, doing: str, quota: str = "") -> None:
        """What the agent is at right now; on a terminal it takes the place of what was said before."""
        told = (leg, agent, printable(doing).replace("\n", " ")[:200], printable(quota))
        before = (self._leg, self._agent, self._doing, self._quota)
        if told == before:
            return
        if told[:2] != before[:2]:
            self._since = time.monotonic()
        self._leg, self._agent, self._doing, self._quota = told
        if self._live is None and told[:3] != before[:3]:
            _print(f"leg {leg} {agent}: {self._doing}")

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
