"""The user's accounts: several logins of one tool, each in a folder of its own, told apart by a label.

Kept as `accounts.json` in the user's configuration folder, for all repositories.

Promise: no credential is stored, copied or printed. A login stays in the folder that its tool made it in; a key is
named by a variable or by an entry of the keyring, and read when a leg starts. A file that is torn, from a newer version
or that somebody else could have written is refused, and left as it is; writers wait for each other.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import stat
from collections.abc import Iterable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relay_git.agents import AGENTS, find_agent
from relay_git.errors import AgentError, FormatTooNew, RelayError, UserError, printable
from relay_git.git.repo import write_private
from relay_git.quota.entry import Account

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMAT, VERSION = "git-relay-accounts", 1
_LABEL = re.compile(r"[a-z0-9][a-z0-9_-]{0,30}")
_VARIABLE = re.compile(r"(?:[A-Za-z_][A-Za-z0-9_]{0,99}=)?[A-Za-z_][A-Za-z0-9_]{0,99}")
_ENTRY = re.compile(r"[^/\0\n]{1,200}/[^\0\n]{1,200}")
_MOST = 1 << 20
_MOST_ACCOUNTS = 200
_PATIENCE = 10.0


@dataclass(frozen=True, slots=True)
class Login:
    """One account: its tool, its label, its folder, and by what its key is found, where it has one.

    `key_variable` is the name of a variable of the user's, or `THEIRS=NAME` where the tool is to get it under another
    name than its usual one; `keyring` is `SERVICE/USER`.
    """

    agent: str
    label: str
    folder: Path
    key_variable: str = ""
    keyring: str = ""

    def __str__(self) -> str:
        return f"{self.agent}:{self.label}"


class Accounts:
    """The accounts in one file; without a file there are none."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file

    def all(self) -> tuple[Login, ...]:
        """Every account, in the order in which they were added."""
        if self._file is None or not self._file.exists():
            return ()
        return _read(self._file)

    def known(self, agent: str) -> tuple[str, ...]:
        """The labels of an agent's accounts."""
        return tuple(login.label for login in self.all() if login.agent == agent)

    def find(self, account: Account) -> Login:
        """The account of that name; UserError where there is none."""
        for login in self.all():
            if (login.agent, login.label) == (account.agent, account.label):
                return login
        known = ", ".join(f"{account.agent}:{label}" for label in self.known(account.agent))
        raise UserError(
            f"there is no account {printable(str(account))}" + (f"; known: {known}" if known else ""),
            hint=f"git relay accounts add {account.agent} {account.label or 'LABEL'} --config-dir DIR",
        )

    def add(self, login: Login) -> None:
        """Keep one more account, and make its folder if it is missing; UserError where it cannot be as asked."""
        _refuse_oddities(login)
        with self._alone() as file:
            others = self.all()
            if any((other.agent, other.label) == (login.agent, login.label) for other in others):
                raise UserError(f"there is an account {login} already", hint=f"git relay accounts remove {login}")
            for other in others:
                if other.folder == login.folder and other.agent == login.agent:
                    raise UserError(
                        f"{login.folder} is the folder of {other}: one folder holds one account",
                        hint=f"give {login} a folder of its own with --config-dir",
                    )
            if len(others) >= _MOST_ACCOUNTS:
                raise UserError(f"there are {_MOST_ACCOUNTS} accounts already", hint="git relay accounts list")
            login.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _check_folder(login)
            _write(file, (*others, login))

    def remove(self, account: Account) -> Login:
        """Forget a label; its folder and all that lies in it stay."""
        login = self.find(account)
        with self._alone() as file:
            _write(file, tuple(other for other in self.all() if other != login))
        return login

    def environment(self, env: Mapping[str, str], agent: str, label: str) -> Mapping[str, str]:
        """The environment of a leg of this account; without a label the user's own, as it is.

        What outranks the login in the account's folder is taken out, and so are the keys of all other accounts.
        Raises UserError where there is no such account, AgentError where its folder or its key is not to be had.
        """
        if not label:
            return env
        login, about = self.find(Account(agent, label)), AGENTS[agent].account
        _check_folder(login)
        hidden = {*about.keys, *(_ours(other) for other in self.all())}
        there = {name: value for name, value in env.items() if name not in hidden}
        there[about.folder] = str(login.folder)
        if login.key_variable or login.keyring:
            theirs = login.key_variable.rpartition("=")[0] or about.keys[0]
            there[theirs] = _secret(login, env, _ours(login))
        return there

    def to_read(self, env: Mapping[str, str], agent: str, label: str) -> Mapping[str, str]:
        """The environment in which an account's sessions are found; the user's own where nothing is known of it."""
        with suppress(RelayError):
            return {**env, AGENTS[agent].account.folder: str(self.find(Account(agent, label)).folder)} if label else env
        return env

    @contextmanager
    def _alone(self) -> Iterator[Path]:
        from filelock import FileLock, Timeout

        if self._file is None:
            raise UserError("there is no folder to keep accounts in")
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            with FileLock(self._file.with_suffix(".lock"), timeout=_PATIENCE, mode=0o600):
                yield self._file
        except Timeout as error:
            raise RelayError(f"another git relay is writing {self._file}", hint="try again in a moment") from error


def owner(logins: Iterable[Login], agent: str, path: str) -> Account:
    """The account in whose folder a file of that agent lies; the one without a label where it is in none of them."""
    real = Path(os.path.realpath(path)) if path else None
    for login in logins:
        if login.agent == agent and real is not None and real.is_relative_to(os.path.realpath(login.folder)):
            return Account(agent, login.label)
    return Account(agent)


def account_of(text: str) -> Account:
    """The account in `AGENT` or `AGENT:ACCOUNT`, with our name of the agent; UserError where it is not that."""
    account = Account.parse(text.strip())
    agent = find_agent(account.agent)
    if ":" in text and not _LABEL.fullmatch(account.label):
        raise UserError(
            f"{printable(account.label)!r} is no account label",
            hint="a label has small letters, digits, - and _; it is no e-mail address",
        )
    return Account(agent.name, account.label)


def _refuse_oddities(login: Login) -> None:
    about = find_agent(login.agent).account
    account_of(str(login))
    if not about.folder:
        raise UserError(
            f"{login.agent} has no folder that could hold a login of its own",
            hint=f"--then {login.agent} uses its own login",
        )
    if not login.folder.is_absolute():
        raise UserError(f"{login.folder} is no absolute path", hint="--config-dir /the/whole/path")
    if login.key_variable and login.keyring:
        raise UserError("a key is found by a variable or in the keyring", hint="give one of the two")
    if login.key_variable and not _VARIABLE.fullmatch(login.key_variable):
        raise UserError(
            "--api-key-env takes the name of a variable, and never the key itself", hint="--api-key-env WORK_KEY"
        )
    theirs, _, _ours = login.key_variable.rpartition("=")
    if (login.key_variable or login.keyring) and (theirs or "".join(about.keys[:1])) not in about.keys:
        known = ", ".join(about.keys) or "none"
        raise UserError(f"{login.agent} takes no key by {theirs or 'a variable'}; it knows: {known}")
    if login.keyring and not _ENTRY.fullmatch(login.keyring):
        raise UserError("--keyring takes SERVICE/USER", hint="--keyring anthropic/work")


def _check_folder(login: Login) -> None:
    """Raise AgentError where the folder is not one that only this user writes to."""
    hint = f"git relay accounts login {login}"
    try:
        found = login.folder.stat()
    except OSError as error:
        raise AgentError(f"the folder of {login} is not there: {login.folder}", hint=hint) from error
    if not stat.S_ISDIR(found.st_mode):
        raise AgentError(f"{login.folder}, the folder of {login}, is no folder", hint=hint)
    if hasattr(os, "geteuid") and (found.st_uid != os.geteuid() or found.st_mode & 0o022):
        raise AgentError(
            f"{login.folder}, the folder of {login}, can be written by somebody else", hint=f"ls -ld {login.folder}"
        )


def _ours(login: Login) -> str:
    """The user's own variable that holds its key; empty where there is none."""
    return login.key_variable.rpartition("=")[2]


def _secret(login: Login, env: Mapping[str, str], variable: str) -> str:
    if variable:
        if not env.get(variable):
            raise AgentError(f"{variable}, which holds the key of {login}, is not set", hint=f"export {variable}=…")
        return env[variable]
    try:
        ring: Any = importlib.import_module("keyring")
    except ImportError as error:
        raise AgentError(
            f"the key of {login} is in the keyring, for which a library is missing",
            hint='pip install "git-relay[keyring]"',
        ) from error
    service, _, user = login.keyring.partition("/")
    try:
        found = ring.get_password(service, user)
    except ring.errors.KeyringError as error:
        raise AgentError(f"the keyring does not give the key of {login}", hint="unlock it and try again") from error
    if not found:
        raise AgentError(
            f"the keyring holds no entry {printable(login.keyring)} for {login}", hint=f"keyring set {service} {user}"
        )
    return str(found)


def _read(file: Path) -> tuple[Login, ...]:
    trouble = RelayError(f"{file} cannot be read as a list of accounts", hint=f"look at it, or: mv {file} {file}.old")
    try:
        found = file.stat()
        if hasattr(os, "geteuid") and (found.st_uid not in (os.geteuid(), 0) or found.st_mode & 0o022):
            raise RelayError(f"{file} can be written by somebody else", hint=f"chmod 600 {file}; ls -l {file}")
        with file.open("rb") as opened:
            body = json.loads(opened.read(_MOST))
        if body["format"] != FORMAT:
            raise trouble
        if body["version"] != VERSION:
            raise FormatTooNew(f"{file} was written by a newer git relay", hint="pip install --upgrade git-relay")
        return tuple(_login(value) for value in body["accounts"][:_MOST_ACCOUNTS])
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise trouble from error


def _login(value: Mapping[str, object]) -> Login:
    texts = [value[name] for name in ("agent", "label", "configDir")]
    texts += [value.get(name, "") for name in ("apiKeyEnv", "keyring")]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError(texts)
    agent, label, folder, variable, entry = map(str, texts)
    if agent not in AGENTS or not _LABEL.fullmatch(label) or "\0" in folder:
        raise ValueError(agent)
    return Login(agent, label, Path(folder), variable, entry)


def _write(file: Path, logins: tuple[Login, ...]) -> None:
    accounts = [
        {"agent": login.agent, "label": login.label, "configDir": str(login.folder)}
        | ({"apiKeyEnv": login.key_variable} if login.key_variable else {})
        | ({"keyring": login.keyring} if login.keyring else {})
        for login in logins
    ]
    body = {"format": FORMAT, "version": VERSION, "accounts": accounts}
    write_private(file, json.dumps(body, indent=1).encode())
