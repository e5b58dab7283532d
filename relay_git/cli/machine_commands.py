"""The commands of the machine and of a repository as a whole: options and arguments; each body is one call."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from relay_git.cli.options import Detach, Json, accounts, app, limits


@app.command()
def read(
    what: Annotated[str, typer.Argument(metavar="PATH|ID", help="A transcript, or the id its tool gave the session.")],
    agent: Annotated[
        str | None, typer.Option("--agent", "-a", help="The tool that wrote it, where that is not plain.")
    ] = None,
    json: Json = False,
) -> int:
    """Show what git relay understands of an agent's transcript: what would be handed over. Nothing is changed."""
    from relay_git.cli import transcripts

    return transcripts.read(what, agent, as_json=json)


@app.command()
def detect(
    since: Annotated[
        str, typer.Option("--since", metavar="SPAN", help="How far back: 30m, 24h, 7d. What runs is always shown.")
    ] = "24h",
    here: Annotated[bool, typer.Option("--here", help="Only sessions in this repository's work trees.")] = False,
    all_: Annotated[bool, typer.Option("--all", help="Sessions of any age.")] = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Look again every two seconds, until Ctrl-C.")] = False,
    json: Json = False,
) -> int:
    """Find the agent sessions on this machine, whoever started them, and say what each is doing."""
    from relay_git.cli import detecting

    return detecting.detect(since, here=here, everything=all_, watch=watch, as_json=json)


@app.command()
def adopt(
    what: Annotated[
        str, typer.Argument(metavar="ID|PID", help="A session as `detect` shows it: its id, the beginning, or the pid.")
    ],
    to: Annotated[str, typer.Option("--to", metavar="AGENT", help="The agent that goes on.")],
    then: Annotated[
        str | None, typer.Option("--then", "-t", metavar="B,C", help="Who goes on after it, in this order.")
    ] = None,
    stop_it: Annotated[
        bool,
        typer.Option("--stop/--leave-running", help="End the agent there, at a safe point; else it is left as it is."),
    ] = False,
    here: Annotated[
        bool, typer.Option("--here", help="Its work is in the work tree you stand in, whatever it says itself.")
    ] = False,
    detach: Detach = False,
) -> int:
    """Take over the work of an agent that git relay did not start, and hand it to another.

    Its work tree, with what is uncommitted and untracked, is copied into a session; the original is not touched.
    """
    from relay_git.cli import adopting

    return adopting.adopt(what, to, then, stops=stop_it, here=here, detach=detach)


@app.command()
def quota(
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Look again every five seconds, until Ctrl-C.")] = False,
    json: Json = False,
) -> int:
    """Show what is left of every account, window by window, when it begins anew and when it runs dry."""
    from relay_git.cli import quota as wallets

    return wallets.quota(watch=watch, as_json=json)


@app.command()
def agents(json: Json = False) -> int:
    """Show each agent: installed, in which version, signed in by what, and what git relay can do with it."""
    from relay_git.cli import agents as known

    return known.agents(as_json=json)


@app.command()
def doctor(json: Json = False) -> int:
    """Check git, the key, the hook, the agents and the sessions, and say what to do about what is wrong."""
    from relay_git.cli import checkup

    return checkup.doctor(as_json=json)


@app.command()
def init(
    new_key: Annotated[
        bool, typer.Option("--new-key", help="Make a new signing key; the old one is kept beside it.")
    ] = False,
) -> int:
    """Prepare this repository: the signing key, and a line in .git/info/exclude. `start` does it by itself."""
    from relay_git.cli import setup

    return setup.init(new_key=new_key)


@app.command()
def demo(
    keep: Annotated[
        Path | None, typer.Option("--keep", metavar="DIR", help="Leave the demo's repository in this new folder.")
    ] = None,
) -> int:
    """Show a whole handoff with two scripted demo agents, in a repository of its own. No login, no network."""
    from relay_git.cli import demonstration

    return demonstration.demo(keep)


@app.command()
def uninstall(
    key: Annotated[
        bool, typer.Option("--key", help="Delete the signing key too; contracts can then no longer be verified.")
    ] = False,
) -> int:
    """Take out of this repository what git relay put in: hook, exclude line, locks, logs. Sessions and the key stay."""
    from relay_git.cli import setup

    return setup.uninstall(key=key)


@accounts.command("add")
def add_account(
    tool: Annotated[str, typer.Argument(metavar="AGENT", help="The tool that the login is for.")],
    label: Annotated[str, typer.Argument(metavar="LABEL", help="A short word of yours, such as work.")],
    config_dir: Annotated[
        Path, typer.Option("--config-dir", metavar="DIR", help="The tool's folder for this login; made if missing.")
    ],
    api_key_env: Annotated[
        str | None,
        typer.Option("--api-key-env", metavar="NAME", help="The variable with its key; THEIRS=NAME: under that name."),
    ] = None,
    keyring: Annotated[
        str | None, typer.Option("--keyring", metavar="SERVICE/USER", help="The entry of the keyring with its key.")
    ] = None,
) -> int:
    """Give a login of a tool a label. Nothing of it is read or copied; a key is only ever named."""
    from relay_git.cli import accounts as kept

    return kept.add(tool, label, config_dir, api_key_env, keyring)


@accounts.command("list")
def list_accounts(json: Json = False) -> int:
    """Show the accounts: folder, by what the key is found, and whether each is signed in."""
    from relay_git.cli import accounts as kept

    return kept.show(as_json=json)


@accounts.command("remove")
def remove_account(
    name: Annotated[str, typer.Argument(metavar="AGENT:LABEL", help="The account.")],
) -> int:
    """Forget a label. The folder and the login in it stay as they are."""
    from relay_git.cli import accounts as kept

    return kept.remove(name)


@accounts.command("login")
def login_account(
    name: Annotated[str, typer.Argument(metavar="AGENT:LABEL", help="The account.")],
) -> int:
    """Run the tool's own login at this terminal, in the account's folder."""
    from relay_git.cli import accounts as kept

    return kept.login(name)


@limits.command()
def explain(
    tool: Annotated[str, typer.Option("--tool", metavar="TOOL", help="The agent or service that said it.")] = "",
    source: Annotated[
        str, typer.Option("--source", metavar="S", help="stdout, stderr, transcript (its records) or header (JSON).")
    ] = "stdout",
    now: Annotated[
        str | None, typer.Option("--now", metavar="TIME", help="When it was said, in ISO form. Default: now.")
    ] = None,
    tz: Annotated[
        str | None, typer.Option("--tz", metavar="ZONE", help="The time zone of the machine. Default: this one's.")
    ] = None,
    status: Annotated[int | None, typer.Option("--status", help="The HTTP status, with --source header.")] = None,
    json: Json = False,
) -> int:
    """Say whether the text on standard input tells of a limit, of which kind, until when, and by what that was seen."""
    from relay_git.cli import limits as judged

    return judged.explain(tool, source, now, tz, status, as_json=json)
