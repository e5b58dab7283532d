"""The user's rules for quota, out of `git config relay.*`; a UserError with an example on what means nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import time, timedelta, tzinfo

from relay_git.errors import UserError, printable
from relay_git.quota.entry import Account
from relay_git.quota.policy import Prefer, Quiet, Rules

_HOURS = re.compile(r"(\d{1,2}):(\d{2})\s*-\s*(\d{1,2}):(\d{2})")


def rules(values: Mapping[str, str], max_wait: float, zone: tzinfo | None = None) -> Rules:
    """`values` by lowercase name, as git gives them, `max_wait` in seconds; without a zone the machine's is meant."""
    base = Rules()
    return Rules(
        threshold=_share(values, "relay.threshold", base.threshold),
        prefer=_prefer(values.get("relay.prefer", base.prefer)),
        max_wait=timedelta(seconds=max_wait),
        per_hour=_count(values, "relay.maxhandoffs", base.per_hour),
        quiet=_quiet(values.get("relay.quiethours", ""), zone),
    )


def budgets(values: Mapping[str, str]) -> dict[Account, float]:
    """`relay.budget.<agent>[.<account>]`: the share of each window that git relay may bring an account to."""
    named = ((name, account_in(name, "relay.budget.")) for name in values)
    return {account: _share(values, name, 1.0) for name, account in named if account is not None}


def account_in(name: str, prefix: str) -> Account | None:
    """The account in `<prefix><agent>[.<account>]`, None in any other name; UserError where we know no such agent."""
    from relay_git.agents import find_agent

    if not name.startswith(prefix):
        return None
    agent, _, label = name.removeprefix(prefix).partition(".")
    return Account(find_agent(agent).name, label)


def _share(values: Mapping[str, str], name: str, default: float) -> float:
    """A share as people write it: `90`, `90%`, `0.9`."""
    text = values.get(name, f"{default * 100:.0f}%").strip().replace(" ", "")
    number = text.removesuffix("%")
    if re.fullmatch(r"\d{1,3}(\.\d{1,3})?", number):
        share = float(number) / (1 if "." in number and float(number) <= 1 and number == text else 100)
        if 0.01 <= share <= 1:
            return share
    raise UserError(f"{name} is {printable(text)}, it must be 1 to 100 percent", hint=f"git config {name} 90%")


def _prefer(text: str) -> Prefer:
    try:
        return Prefer(text.strip().lower())
    except ValueError as error:
        raise UserError(
            f"relay.prefer is {printable(text)}, it can be account, provider or wait",
            hint="git config relay.prefer account",
        ) from error


def _count(values: Mapping[str, str], name: str, default: int) -> int:
    text = values.get(name, str(default)).strip()
    if not re.fullmatch(r"[0-9]{1,3}", text):
        raise UserError(f"{name} is {printable(text)}, it must be a number", hint=f"git config {name} {default}")
    return int(text)


def _quiet(text: str, zone: tzinfo | None) -> Quiet | None:
    if not text.strip():
        return None
    found = _HOURS.fullmatch(text.strip())
    numbers = [int(n) for n in found.groups()] if found else [99] * 4
    if max(numbers[::2]) > 23 or max(numbers[1::2]) > 59 or numbers[:2] == numbers[2:]:
        raise UserError(
            f"relay.quietHours is {printable(text)}, it must be hours such as 22:00-07:00",
            hint="git config relay.quietHours 22:00-07:00",
        )
    return Quiet(time(numbers[0], numbers[1]), time(numbers[2], numbers[3]), zone)
