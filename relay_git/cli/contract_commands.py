"""The command line of contracts as documents: options and arguments, as in `app`; each body is one call."""

from __future__ import annotations

from typing import Annotated

import typer

from relay_git.cli.app import Json, app


@app.command()
def redact(
    json: Json = False,
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help='One {"id", "text"} a line in, the same with the counts out.')
    ] = False,
) -> int:
    """Show what would be taken out of the text on standard input as a secret, and by which rule."""
    from relay_git.cli import redacting

    return redacting.redact(as_json=json, lines=jsonl)
