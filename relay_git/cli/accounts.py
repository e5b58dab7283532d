"""`accounts`: several logins of one tool, each in a folder of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from relay_git.agents import AGENTS, find_agent
from relay_git.agents.agent import Permission, Ready
from relay_git.agents.installed import installed
from relay_git.cli import context
from relay_git.cli.render import print_json, print_table
from relay_git.errors import AgentError, ExitCode, RelayError, UserError
from relay_git.quota.entry import Account
from relay_git.supervisor import process
from relay_git.supervisor.accounts import Login, account_of


def add(tool: str, label: str, folder: Path, variable: str | None, keyring: str | None) -> int:
    """Keep a label for the login in that folder."""
    account = account_of(f"{tool}:{label}")
    there = folder.expanduser().absolute()
    login = Login(account.agent, account.label, there, variable or "", keyring or "")
    context.accounts().add(login)
    print(f"{login}: {login.folder}")
    if not _evidence(login):
        print(f"it is not signed in yet: git relay accounts login {login}", file=sys.stderr)
    return ExitCode.DONE


def remove(name: str) -> int:
    """Forget a label."""
    login = context.accounts().remove(_named(name))
    print(f"{login} is forgotten; its folder stays as it is: {login.folder}")
    return ExitCode.DONE


def show(*, as_json: bool) -> int:
    """Every account, with its folder and by what it is signed in."""
    logins = context.accounts().all()
    if as_json:
        print_json({"accounts": [_json(login) for login in logins]})
    elif not logins:
        print("no account has a label; each tool has the one that it is signed in with itself")
    else:
        rows = [
            (str(login), str(login.folder), _key(login) or "-", _evidence(login) or _why_not(login)) for login in logins
        ]
        print_table(("ACCOUNT", "FOLDER", "KEY", "SIGNED IN"), rows)
    return ExitCode.DONE


def login(name: str) -> int:
    """Run the tool's own login at this terminal, in the account's folder."""
    accounts, account = context.accounts(), _named(name)
    found, agent = accounts.find(account), AGENTS[account.agent]
    found.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    at = installed(agent.name, os.environ)
    if at is None:
        raise AgentError(f"{agent.title} is not installed", hint="git relay doctor")
    # What would outrank the login is left out, the account's own key too: the login is to be in the folder.
    env = {key: value for key, value in os.environ.items() if key not in agent.account.keys}
    env[agent.account.folder] = str(found.folder)
    if agent.account.hint:
        print(agent.account.hint, file=sys.stderr)
    status = process.at_terminal((str(at.program), *agent.account.command), env)
    return ExitCode.DONE if status == 0 else ExitCode.FAILED


def _named(name: str) -> Account:
    account = account_of(name)
    if not account.label:
        raise UserError(f"{name} names no account", hint="AGENT:LABEL, such as claude:work")
    return account


def _key(login: Login) -> str:
    """By what its key is found, in words; empty where it has none of its own."""
    if login.keyring:
        return f"keyring {login.keyring}"
    return f"${login.key_variable.rpartition('=')[2]}" if login.key_variable else ""


def _evidence(login: Login) -> str:
    """By what the account is known to be signed in; empty where it is not, or the tool cannot be started."""
    try:
        env = context.accounts().environment(os.environ, login.agent, login.label)
    except RelayError:
        return ""
    verdicts = (find_agent(login.agent).check(env, permission) for permission in Permission)
    return next((verdict.evidence for verdict in verdicts if isinstance(verdict, Ready)), "")


def _why_not(login: Login) -> str:
    return "no" if login.folder.is_dir() else "no, its folder is not there"


def _json(login: Login) -> dict[str, Any]:
    return {
        "account": str(login),
        "agent": login.agent,
        "label": login.label,
        "configDir": str(login.folder),
        "apiKeyEnv": login.key_variable or None,
        "keyring": login.keyring or None,
        "signedIn": _evidence(login) or None,
    }
