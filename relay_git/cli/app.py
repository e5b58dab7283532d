"""The command line: options and arguments of every command; each body is one call."""

from __future__ import annotations

from pathlib import Path
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
def quota(
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Look again every five seconds, until Ctrl-C.")] = False,
    json: Json = False,
) -> int:
    """Show what is left of every account, window by window, when it begins anew and when it runs dry."""
    from relay_git.cli import quota as wallets

    return wallets.quota(watch=watch, as_json=json)


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


import relay_git.cli.contract_commands  # noqa: E402, F401 - the commands of the other half
