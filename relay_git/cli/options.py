"""What the commands share: the application, and the arguments and options that more than one of them has."""

from __future__ import annotations

from typing import Annotated

import typer

from relay_git import __version__

app = typer.Typer(
    name="git relay",
    help="Hand a coding task from one AI agent CLI to the next, without losing what the first one knew.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

limits = typer.Typer(
    help="What counts as a limit: the judgement by which git relay hands over.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(limits, name="limits")

accounts = typer.Typer(
    help="Several logins of one tool, each in a folder of its own: AGENT:LABEL stands where AGENT does.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(accounts, name="accounts")

Session = Annotated[
    str | None,
    typer.Argument(
        metavar="[SESSION]", help="A session's id or a unique part of it; may be left out where there is one."
    ),
]
Thing = Annotated[
    str | None,
    typer.Argument(metavar="[SESSION|CONTRACT]", help="A session or a contract, by id or a unique part of it."),
]
Interactive = Annotated[
    bool, typer.Option("--interactive", "-i", help="In the agent's own TUI, here in this terminal.")
]
Detach = Annotated[
    bool, typer.Option("--detach", "-d", help="Go on in the background as soon as the agent works; see `attach`.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"git relay {__version__}")
        raise typer.Exit


@app.callback()
def top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Hand a coding task from one AI agent CLI to the next, without losing what the first one knew."""
