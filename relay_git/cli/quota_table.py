"""The wallets as a table that is looked at rather than read: bars, and colours where there is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from relay_git.errors import printable
from relay_git.quota import forecast
from relay_git.quota.forecast import Forecast
from relay_git.quota.wallet import Wallet, Window

_CELLS = 16
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_WIDE = 200  # where there is no terminal, nothing is to be wrapped
_NOTHING = (
    "nothing is known yet of any account: a meter is read while an agent works, here or in its own terminal;\n"
    "a plan can be declared: git config --global relay.plan.claude '300 requests/5h'"
)


def show(wallets: Sequence[Wallet], troubles: Sequence[str], now: datetime) -> None:
    """Print the table once."""
    console = _console()
    console.print(_picture(wallets, troubles, now, console))


@contextmanager
def screen() -> Iterator[Callable[[Sequence[Wallet], Sequence[str], datetime], None]]:
    """The terminal's other screen, and what draws on it, until Ctrl-C."""
    console = _console()
    with Live(console=console, screen=True, auto_refresh=False) as live:

        def draw(wallets: Sequence[Wallet], troubles: Sequence[str], now: datetime) -> None:
            live.update(_picture(wallets, troubles, now, console, Text("Ctrl-C to leave", style="dim")), refresh=True)

        with suppress(KeyboardInterrupt):
            yield draw


def _console() -> Console:
    return Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else _WIDE)


def _picture(
    wallets: Sequence[Wallet], troubles: Sequence[str], now: datetime, console: Console, *below: Text
) -> Group | Table:
    parts: list[Table | Text] = [_table(wallets, now, console) if wallets else Text(_NOTHING)]
    parts += [Text(f"note: {printable(trouble)}", style="yellow") for trouble in troubles]
    return Group(*parts, *below)


def _table(wallets: Sequence[Wallet], now: datetime, console: Console) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("ACCOUNT", "WINDOW", "USED"):
        table.add_column(name, no_wrap=True)
    table.add_column("LEFT", justify="right", no_wrap=True)
    for name in ("BEGINS ANEW", "RUNS DRY", "KNOWN"):
        table.add_column(name)
    solid = console.encoding.lower().startswith("utf")
    for one in wallets:
        for number, window in enumerate(one.windows):
            said = forecast.of(window, now)
            table.add_row(
                Text(printable(str(one.account)) if number == 0 else "", style="bold"),
                printable(window.name).replace("_", " "),
                _bar(window, solid=solid),
                f"{window.left * 100:.0f} %",
                _anew(window, now),
                _dry(window, said, now),
                Text(_known(window, now), style="dim"),
            )
    return table


def _bar(window: Window, *, solid: bool) -> Text:
    used = min(window.used, 1.0)
    whole, part = divmod(round(used * _CELLS * 8), 8)
    bar = "█" * whole + (_EIGHTHS[part] if part else "") if solid else "#" * round(used * _CELLS)
    text = Text()
    text.append(bar, style=_colour(window.used))
    text.append(("░" if solid else ".") * (_CELLS - len(bar)), style="dim")
    text.append(f" {window.used * 100:3.0f} %", style=_colour(window.used))
    return text


def _colour(used: float) -> str:
    return "red" if used >= 0.9 else "yellow" if used >= 0.7 else "green"


def _anew(window: Window, now: datetime) -> str:
    if window.renewed is not None:
        return f"began anew {_clock(window.renewed, now)}"
    if window.resets_at is None:
        return "not told"
    return f"{_clock(window.resets_at, now)} (in {_span(window.resets_at - now)})"


def _dry(window: Window, said: Forecast | None, now: datetime) -> Text:
    if window.refused is not None:
        return Text("refused", style="red")
    if window.used >= 1.0:
        return Text("is dry", style="red")
    if said is None:
        return Text("-", style="dim")
    if said.early is None:
        return Text("not before", style="green")
    early = _clock(said.early, now, zone="")
    if said.dry is None:
        return Text(f"hardly before, {early} at the earliest", style="green")
    between = f"{early} to {_clock(said.late, now, zone='')}" if said.late else f"{early} at the earliest"
    return Text(f"about {_clock(said.dry, now)} ({between})", style="yellow")


def _known(window: Window, now: datetime) -> str:
    age = now - window.at
    return f"{_span(age)} ago, {printable(window.source)}" if age >= timedelta(minutes=1) else printable(window.source)


def _clock(moment: datetime, now: datetime, zone: str = " %Z") -> str:
    """The time where the user is, with the day where that is another."""
    there, here = moment.astimezone(), now.astimezone()
    if there.date() == here.date():
        return there.strftime(f"%H:%M{zone}")
    return there.strftime(f"%a %H:%M{zone}" if abs(moment - now) < timedelta(days=6) else f"%d %b %H:%M{zone}")


def _span(span: timedelta) -> str:
    minutes = max(0, int(span.total_seconds() // 60))
    if minutes < 60:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest:02} min" if hours < 24 else f"{hours // 24} d {hours % 24} h"
