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
        self._doing = ""
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

    def live(self, text: str) -> None:
        """What the agent is at right now; on a terminal it takes the place of what was said before."""
        line = printable(text).replace("\n", " ")[:200]
        if line == self._doing:
            return
        self._doing = line
        if self._live is None:
            _print(f"  {line}")

    def _line(self) -> Text:
        from rich.text import Text

        minutes, seconds = divmod(int(time.monotonic() - self._since), 60)
        return Text(f"{minutes}:{seconds:02d}  {self._doing or 'starting'}", overflow="ellipsis", no_wrap=True)
