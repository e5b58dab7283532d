"""The commands of contracts as documents: options and arguments; each body is one call."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from relay_git.cli.options import Json, Thing, app


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


@app.command("pre-push")
def pre_push(
    remote: Annotated[str, typer.Argument(metavar="REMOTE", help="What git gives a pre-push hook: the remote.")],
    url: Annotated[str, typer.Argument(metavar="URL", help="And its address.")] = "",
) -> int:
    """Stop a push that would send a key: for the last line of your own pre-push hook.

    Standard input is what git gives the hook. Every commit that the remote does not have yet is searched.
    """
    from relay_git.cli import pushing

    return pushing.pre_push(remote, url)


KeyFile = Annotated[
    Path | None, typer.Option("--key-file", metavar="K", help="The file with the key. Default: this repository's key.")
]


@app.command()
def export(
    what: Thing = None,
    form: Annotated[
        str, typer.Option("--format", metavar="F", help="json (the signed bytes), md, dsse or relay-v2.")
    ] = "json",
    key_file: KeyFile = None,
) -> int:
    """Print a contract for other tools, after verifying it: relay-v2 is what the tool named Relay reads."""
    from relay_git.cli import exchange

    return exchange.export(what, exchange.form_named(form), key_file)


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE|-", help="A contract of git relay, of Relay, or an envelope.")],
    key_file: KeyFile = None,
    json: Json = False,
) -> int:
    """Show a contract that a file holds, if it verifies. Exit status 3 if it does not; then nothing of it is shown."""
    from relay_git.cli import exchange

    return exchange.import_(file, key_file, as_json=json)


@app.command()
def note(
    kind: Annotated[
        str,
        typer.Argument(metavar="KIND", help="decision, constraint, do-not-redo, next, question or hypothesis."),
    ],
    text: Annotated[str, typer.Argument(metavar="TEXT|-", help="A sentence, or - to read it from standard input.")],
    session: Annotated[
        str | None, typer.Option("--session", "-s", metavar="SESSION", help="Default: the one that this runs in.")
    ] = None,
) -> int:
    """Keep what the next contract must say, for an agent at work or a person beside it."""
    from relay_git.cli import noting

    return noting.note(kind, text, session)


@app.command()
def lint(what: Thing = None, json: Json = False) -> int:
    """Say how well a contract hands its task over: a score of 100, rule by rule, and what is thin."""
    from relay_git.cli import linting

    return linting.check(what, as_json=json)


@app.command()
def answer(
    session: Annotated[str, typer.Argument(metavar="SESSION", help="A session that waits for a person.")],
    text: Annotated[str, typer.Argument(metavar="TEXT|-", help="The answer, or - to read it from standard input.")],
    question: Annotated[
        list[int] | None,
        typer.Option("--question", "-q", metavar="N", help="Which open question it answers. Default: the only one."),
    ] = None,
    rule: Annotated[bool, typer.Option("--rule", help="A rule to keep from now on, not one decision.")] = False,
    to: Annotated[
        str | None, typer.Option("--to", metavar="AGENT", help="Who goes on by it, now. Default: nobody yet.")
    ] = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Go on in the background.")] = False,
) -> int:
    """Answer a session that waits for you: what you say is in the next contract, as a decision or a rule."""
    from relay_git.cli import people

    return people.answer(session, text, to, question or [], rule=rule, detach=detach)
