"""A login that stops working while an agent works: said in clear words, and the account is left alone for a time.

Promise: what a tool says of its own failure decides, never its agent's words. The account is passed over in all
sessions until it has answered again, or its breaker lets it be probed; whom the user names is asked all the same.
Nothing here waits for a login to come back by itself.
"""

from __future__ import annotations

import contextlib

from relay_git.agents import find_agent
from relay_git.agents.agent import Ready
from relay_git.agents.signed_out import login_refused
from relay_git.errors import RelayError
from relay_git.quota.entry import Account
from relay_git.session import LimitKind, LimitNotice
from relay_git.supervisor.launching import check
from relay_git.supervisor.run import Run
from relay_git.supervisor.watch import Seen, Watcher

REASON = "signed-out"


def refused(run: Run, watcher: Watcher, seen: Seen) -> str:
    """In words that the leg ended for want of its login, and how to sign in again; empty where it did not."""
    said = last_words(watcher, seen)
    if seen.exit == 0 or seen.limit is not None or not login_refused(said):
        return ""
    run.around.meter.refused(watcher.account, LimitNotice(LimitKind.LOGIN, said))
    return f"its login is refused ({said}); sign in: {_how(run, watcher.account)}"


def last_words(watcher: Watcher, seen: Seen) -> str:
    """What the tool itself said of its end, on stdout or else on stderr; empty where it said nothing."""
    return (seen.ended.detail if seen.ended is not None else "") or watcher.process.complaint()


def _how(run: Run, account: Account) -> str:
    """What to do: by the variable that holds its key, or by the command that signs in."""
    if account.label:
        named = ""
        with contextlib.suppress(RelayError):  # it may have been forgotten meanwhile
            kept = run.around.accounts.find(account)
            named = kept.key_variable.rpartition("=")[2] or kept.keyring
        return f"put a valid key into {named}" if named else f"git relay accounts login {account}"
    verdict, agent = check(run, account), find_agent(account.agent)
    variable, is_set, _ = verdict.evidence.partition(" is set") if isinstance(verdict, Ready) else ("", "", "")
    if is_set:
        return f"put a valid key into {variable}"
    program = verdict.program.name if isinstance(verdict, Ready) else account.agent
    words = " ".join((program, *agent.account.command))
    return f"{words}   ({agent.account.hint})" if agent.account.hint else words
