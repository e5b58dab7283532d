"""What a command needs from the machine: repository, store, key, settings, clock, environment.

Promise: nothing is made or changed here; settings that cannot be understood are refused with the key's name.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from relay_git.errors import UserError, printable
from relay_git.git.repo import Repo, discover
from relay_git.git.store import Store, open_store

if TYPE_CHECKING:  # what only a run needs is imported where it is used: `status` starts in half the time
    from relay_git.agents.agent import Permission, Ready, Unready
    from relay_git.contract.sign import Key
    from relay_git.git.run import Git
    from relay_git.quota.declared import Plan
    from relay_git.quota.entry import Account
    from relay_git.quota.history import History
    from relay_git.supervisor.accounts import Accounts
    from relay_git.supervisor.run import Stop, Surroundings, Teller
    from relay_git.supervisor.settings import Settings
    from relay_git.supervisor.terminal import Terminal


MOST_WAIT = 8 * 86_400.0  # a little longer than the longest window that any provider is known to have


def open_repo(*, look: bool = False) -> tuple[Repo, Store]:
    """The repository that the user stands in, and its store; with `look`, interrupted sessions are named on stderr."""
    repo = discover(_here(), os.environ)
    store = open_store(repo.common_dir)
    if look:
        from relay_git.cli import interrupted

        interrupted.tell(repo, store)
    return repo, store


def surroundings(
    repo: Repo,
    store: Store,
    key: Key,
    *,
    teller: Teller | None = None,
    stop: Stop | None = None,
    terminal: Terminal | None = None,
) -> Surroundings:
    """All that a run is given from outside."""
    from relay_git.cli.teller import ConsoleTeller
    from relay_git.supervisor.meter import Meter
    from relay_git.supervisor.run import Stop, Surroundings

    teller, told = teller or ConsoleTeller(), _configured(repo.git())
    meter = Meter(history(), now, teller.say, _plans(told))
    env = dict(os.environ)
    return Surroundings(
        repo,
        store,
        key,
        _settings(told),
        env,
        now,
        teller,
        stop or Stop(),
        meter,
        terminal=terminal,
        accounts=accounts(),
    )


def history() -> History:
    """Where the quota of the user's accounts is kept, for all repositories."""
    from platformdirs import user_state_path

    from relay_git.quota.history import History

    return History(user_state_path("git-relay", appauthor=False) / "quota")


def accounts() -> Accounts:
    """The user's accounts, for all repositories."""
    from platformdirs import user_config_path

    from relay_git.supervisor.accounts import Accounts

    return Accounts(user_config_path("git-relay", appauthor=False) / "accounts.json")


def plans() -> dict[Account, tuple[Plan, ...]]:
    """What the user has declared of accounts, in a repository or not."""
    from relay_git.git.run import Git

    named = {"GIT_DIR": os.environ["GIT_DIR"]} if "GIT_DIR" in os.environ else {}
    return _plans(_configured(Git(_here(), extra=named)))


def _plans(told: list[tuple[str, str]]) -> dict[Account, tuple[Plan, ...]]:
    """`relay.plan.<agent>[.<account>]`, of which there may be many for one account."""
    from relay_git.cli.rules import account_in
    from relay_git.quota import declared

    found: dict[Account, tuple[Plan, ...]] = {}
    for name, value in told:
        if (account := account_in(name, "relay.plan.")) is not None:
            found[account] = (*found.get(account, ()), *declared.parse(value))
    return found


def now() -> datetime:
    """The present moment, aware, UTC."""
    return datetime.now(UTC)


def settings(repo: Repo) -> Settings:
    """The user's `git config relay.*`; raises UserError on a value that means nothing."""
    return _settings(_configured(repo.git()))


def _configured(git: Git) -> list[tuple[str, str]]:
    """Each `relay.*` and its value, as often as it is set; the last one counts where there can be one only."""
    out = git.run("config", "--null", "--get-regexp", r"^relay\.", ok=(0, 1)).decode("utf-8", "replace")
    pairs = (item.partition("\n") for item in out.split("\0") if item)
    return [(name, value) for name, _, value in pairs]


def _settings(told: list[tuple[str, str]]) -> Settings:
    from relay_git.cli.rules import budgets, rules
    from relay_git.supervisor.settings import Settings

    values, base = dict(told), Settings()
    return Settings(
        grace=_seconds(values, "relay.grace", base.grace),
        hard_limit=_seconds(values, "relay.hardlimit", base.hard_limit),
        term_grace=_seconds(values, "relay.termgrace", base.term_grace),
        ack_timeout=_seconds(values, "relay.acktimeout", base.ack_timeout),
        hang_timeout=_seconds(values, "relay.hangtimeout", base.hang_timeout),
        max_wait=_seconds(values, "relay.maxwait", base.max_wait),
        agents=agent_list(values.get("relay.agents", "")),
        permissions=_permissions(values),
        max_file=_size(values, "relay.snapshot.maxfile", base.max_file),
        setup=values.get("relay.setup", "").strip(),
        own_session=_switch(values, "relay.ownsession", on=base.own_session),
        rules=rules(values, _wait(values)),
        budgets=budgets(values),
        proxy=_switch(values, "relay.proxy", on=base.proxy),
        redact_allow=tuple(value for name, value in told if name == "relay.redact.allow" and value),
        contract_budget=_budget(values, base.contract_budget),
        ask=_ask(values),
        ask_timeout=_seconds(values, "relay.contract.asktimeout", base.ask_timeout),
    )


def _ask(values: dict[str, str]) -> bool:
    text = values.get("relay.contract.ask", "auto").strip().lower()
    if text not in ("auto", "never"):
        raise UserError(
            f"relay.contract.ask is {printable(text)!r}, it can be auto or never",
            hint="git config relay.contract.ask auto",
        )
    return text == "auto"


def _budget(values: dict[str, str], otherwise: int) -> int:
    from relay_git.contract.budget import LEAST

    text = values.get("relay.contract.budget", str(otherwise)).strip()
    if not text.isascii() or not text.isdigit() or int(text) < LEAST:
        raise UserError(
            f"relay.contract.budget is {printable(text)!r}, not a number of tokens of at least {LEAST}",
            hint="git config relay.contract.budget 4000",
        )
    return int(text)


def agent_list(text: str) -> tuple[str, ...]:
    """The agents in a list such as `codex,claude:work`, under our names; raises UserError on a name we do not know."""
    from relay_git.supervisor.accounts import account_of

    return tuple(str(account_of(word)) for word in (w.strip() for w in text.split(",")) if word)


def account_named(text: str) -> Account:
    """The account that the user names by `AGENT` or `AGENT:LABEL`; UserError where there is none."""
    from relay_git.supervisor.accounts import account_of

    account = account_of(text)
    if account.label:
        accounts().find(account)
    return account


def ready(account: Account, permission: Permission) -> Ready | Unready:
    """Whether an account's agent could be started now; raises RelayError where its folder or key is not to be had."""
    from relay_git.agents import find_agent

    env = accounts().environment(os.environ, account.agent, account.label)
    return find_agent(account.agent).check(env, permission)


def _permissions(values: dict[str, str]) -> dict[str, Permission]:
    from relay_git.agents import find_agent
    from relay_git.agents.agent import Permission

    found = {}
    for name, value in values.items():
        if name.endswith(".permission") and name.count(".") == 2:
            try:
                found[find_agent(name.split(".")[1]).name] = Permission(value)
            except ValueError as error:
                raise UserError(
                    f"{name} is {printable(value)}, it can be sandbox or full", hint=f"git config {name} sandbox"
                ) from error
    return found


def _seconds(values: dict[str, str], name: str, default: float) -> float:
    try:
        seconds = float(values.get(name, default))
    except ValueError:
        seconds = -1
    if not 0 <= seconds <= 86_400:
        raise UserError(
            f"{name} is {printable(values[name])}, it must be seconds between 0 and 86400",
            hint=f"git config {name} {default:.0f}",
        )
    return seconds


def _switch(values: dict[str, str], name: str, *, on: bool) -> bool:
    """On or off as git itself reads it; a name without a value means on."""
    text = values.get(name, str(on)).strip().lower()
    if text not in ("", "true", "yes", "on", "1", "false", "no", "off", "0"):
        raise UserError(f"{name} is {printable(text)}, it can be true or false", hint=f"git config {name} true")
    return text in ("", "true", "yes", "on", "1")


def _wait(values: dict[str, str]) -> float:
    """How many seconds a session may wait for a quota window: `never`, `always`, or a length such as 90m, 8h, 2d."""
    text = values.get("relay.wait", "never").strip().lower()
    if text in ("never", "always"):
        return MOST_WAIT if text == "always" else 0.0
    number, unit = text[:-1], {"m": 60.0, "h": 3600.0, "d": 86_400.0}.get(text[-1:], 0.0)
    if not (unit and number.isascii() and number.isdigit() and len(number) < 6):
        raise UserError(
            f"relay.wait is {printable(text)}, it can be never, always, or a length such as 90m, 8h or 2d",
            hint="git config relay.wait 8h",
        )
    return min(int(number) * unit, MOST_WAIT)


def _size(values: dict[str, str], name: str, default: int) -> int:
    """A number of bytes as git writes it: 500k, 100m, 2g."""
    text = values.get(name, str(default)).strip().lower()
    digits = text.rstrip("kmg")
    if not digits.isascii() or not digits.isdigit() or len(text) > len(digits) + 1:
        raise UserError(
            f"{name} is {printable(values[name])}, it must be a size such as 500k, 100m or 2g",
            hint=f"git config {name} 100m",
        )
    return int(digits) << {"": 0, "k": 10, "m": 20, "g": 30}[text[len(digits) :]]


def _here() -> Path:
    try:
        return Path.cwd()
    except OSError as error:
        raise UserError("the folder you stand in does not exist any more", hint="cd to your project") from error
