"""The commands of a session: options and arguments; each body is one call."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from relay_git.cli.options import Detach, Interactive, Json, Session, Thing, app


@app.command()
def start(
    task: Annotated[
        str | None, typer.Argument(metavar="TASK|-", help="The task in words, or - to read it from standard input.")
    ] = None,
    file: Annotated[Path | None, typer.Option("--file", "-F", help="Read the task from this file.")] = None,
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent",
            "-a",
            help="Who begins (claude, codex, demo). Default: the first of relay.agents, else the first installed.",
        ),
    ] = None,
    then: Annotated[
        str | None,
        typer.Option(
            "--then", "-t", metavar="B,C", help="Who goes on, in this order. Default: the rest of relay.agents."
        ),
    ] = None,
    base: Annotated[str, typer.Option("--base", metavar="REV", help="The commit to start from.")] = "HEAD",
    carry: Annotated[
        bool, typer.Option("--carry", help="Copy your uncommitted work into the session; the original stays.")
    ] = False,
    interactive: Interactive = False,
    wait: Annotated[
        bool,
        typer.Option("--wait", help="Where nobody can go on, wait for the first quota to come back; see relay.wait."),
    ] = False,
    detach: Detach = False,
) -> int:
    """Start a task with one agent and hand it over when that agent runs out of quota.

    The agent works in a worktree of its own, on the branch relay/<session>; your work tree is not touched.
    """
    from relay_git.cli import going

    return going.start(task, file, agent, then, base, carry=carry, wait=wait, interactive=interactive, detach=detach)


@app.command()
def handoff(
    session: Session = None,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="AGENT", help="Who goes on: an agent, or human. Default: the next of --then."),
    ] = None,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Why, for the journal and the contract.")
    ] = "",
    interactive: Interactive = False,
    detach: Detach = False,
) -> int:
    """Hand a session over now: a running agent is paused after its next commit, a resting session goes on."""
    from relay_git.cli import going

    return going.handoff(session, to, reason, interactive=interactive, detach=detach)


@app.command()
def resume(session: Session = None, interactive: Interactive = False, detach: Detach = False) -> int:
    """Go on after a stop or a crash, from where the journal stands, with the agent that was at work."""
    from relay_git.cli import going

    return going.resume(session, interactive=interactive, detach=detach)


@app.command()
def attach(session: Session = None) -> int:
    """Follow a session that runs elsewhere, until it rests. Ctrl-C leaves it to itself; the exit status is its own."""
    from relay_git.cli import background

    return background.attach(session)


@app.command()
def stop(
    session: Session = None,
    now: Annotated[bool, typer.Option("--now", help="Do not wait for the end of a tool call.")] = False,
) -> int:
    """Bring a session to rest at a safe point, wherever it runs, and wait until it does. `resume` goes on."""
    from relay_git.cli import stopping

    return stopping.stop(session, now=now)


@app.command()
def status(
    session: Session = None,
    json: Json = False,
    all_: Annotated[bool, typer.Option("--all", help="Show dropped sessions too.")] = False,
) -> int:
    """Show the sessions of this repository: where each stands and what to type next."""
    from relay_git.cli import reading

    return reading.status(session, as_json=json, everything=all_)


@app.command()
def log(session: Session = None, json: Json = False) -> int:
    """Show the history of a session, one line a transition."""
    from relay_git.cli import reading

    return reading.log(session, as_json=json)


@app.command()
def show(
    what: Thing = None,
    md: Annotated[bool, typer.Option("--md", help="Print the brief as Markdown (the default).")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the contract as JSON.")] = False,
    evidence: Annotated[
        str | None, typer.Option("--evidence", metavar="ID", help="Print one piece of evidence whole, such as e3.")
    ] = None,
) -> int:
    """Show a contract, after verifying it: the newest of a session, or one by its id."""
    from relay_git.cli import contracts

    return contracts.show(what, as_json=json and not md, evidence=evidence)


@app.command()
def verify(
    what: Thing = None,
    all_: Annotated[bool, typer.Option("--all", help="Verify every contract of every session.")] = False,
    json: Json = False,
) -> int:
    """Verify contracts: signature, place in the journal, snapshot and file hashes. Exit status 3 if one is refused."""
    from relay_git.cli import contracts

    return contracts.verify(what, everything=all_, as_json=json)


@app.command()
def accept(
    contract: Annotated[str, typer.Argument(metavar="CONTRACT", help="The contract's id, as the brief gives it.")],
) -> int:
    """Say that the contract has been read and the work taken over; for the agent (or person) that goes on."""
    from relay_git.cli import contracts

    return contracts.accept(contract)


@app.command()
def land(
    session: Session = None,
    merge: Annotated[bool, typer.Option("--merge", help="With a merge commit (the default).")] = False,
    squash: Annotated[bool, typer.Option("--squash", help="As one commit.")] = False,
    rebase: Annotated[bool, typer.Option("--rebase", help="Commit by commit on top of your branch.")] = False,
) -> int:
    """Bring a session's work to the branch you stand on. Conflicts are found before anything is touched."""
    from relay_git.cli import ending

    return ending.land(session, merge=merge, squash=squash, rebase=rebase)


@app.command()
def drop(
    session: Session = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Also where the work is not landed, a state is broken, or files that no commit has are lost.",
        ),
    ] = False,
    purge: Annotated[
        bool, typer.Option("--purge", help="The journal and the notes go too, with the commits that only they keep.")
    ] = False,
) -> int:
    """Take a session's worktree and branch away, once its work is landed. The journal stays and keeps its commits."""
    from relay_git.cli import ending

    return ending.drop(session, force=force, purge=purge)
