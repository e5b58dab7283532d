"""`status` and `log`: what stands in the journal, for people and programs."""

from __future__ import annotations

from typing import Any

from relay_git.cli import context
from relay_git.cli.render import print_json, print_table
from relay_git.contract.lifecycle import RESTS, Event, State
from relay_git.errors import ExitCode, FormatTooNew, RelayError
from relay_git.git.repo import Repo
from relay_git.git.store import Store
from relay_git.ledger import journal
from relay_git.ledger.journal import Entry
from relay_git.session import SessionId
from relay_git.supervisor.request import HANDOFF


def status(word: str | None, *, as_json: bool, everything: bool) -> int:
    """Every session, or the one named, with the next command to type."""
    repo, store = context.open_repo(look=True)
    names = [journal.find(store, word)] if word is not None else journal.sessions(store)
    shown = [_standing_or_damage(repo, store, name) for name in names]
    shown = [s for s in shown if everything or word is not None or not s["dropped"]]
    if as_json:
        print_json({"sessions": shown})
    elif not shown:
        print('no session here; start one: git relay start "your task"')
    else:
        rows = [(s["id"], _state_word(s), s["leg"], _who(s["agent"], s["account"]), s["at"], s["title"]) for s in shown]
        print_table(("SESSION", "STATE", "LEG", "AGENT", "SINCE", "TASK"), rows)
        for s in shown:
            print(f"{s['id']}: {s['next']}")
    return ExitCode.DONE


def log(word: str | None, *, as_json: bool) -> int:
    """The journal of a session, oldest first."""
    _, store = context.open_repo(look=True)
    session = journal.find(store, word)
    entries = [r.entry for r in reversed(list(journal.chain(store, session)))]
    if as_json:
        print_json({"session": session, "entries": [_entry(e) for e in entries]})
    else:
        rows = [(e.at, e.leg, _who(e.agent, e.account), e.event, e.state, _what(e)) for e in entries]
        print_table(("AT", "LEG", "AGENT", "EVENT", "STATE", "WHAT"), rows)
    return ExitCode.DONE


def _standing_or_damage(repo: Repo, store: Store, session: SessionId) -> dict[str, Any]:
    """One damaged journal is a row of its own and not in the way of the others."""
    try:
        return _standing(repo, store, session)
    except RelayError as error:
        word = "NEWER" if isinstance(error, FormatTooNew) else "DAMAGED"
        known = {"id": session, "state": word, "reason": str(error), "next": f"{error}; {error.hint}"}
        flags = {"running": False, "interrupted": False, "dropped": False, "leg": 0}
        lists: dict[str, Any] = {"legs": [], "candidates": [], "passedOver": []}
        texts = ("title", "agent", "account", "at", "startedAt", "branch", "worktree", "baseCommit", "contractId")
        return known | flags | lists | dict.fromkeys(texts, "")


def _standing(repo: Repo, store: Store, session: SessionId) -> dict[str, Any]:
    entries = [r.entry for r in reversed(list(journal.chain(store, session)))]
    tip = entries[-1]
    running = tip.state not in RESTS and journal.is_running(repo, session)
    return {
        "id": session,
        "state": str(tip.state),
        "running": running,
        "interrupted": tip.state not in RESTS and not running,
        "dropped": any(e.event is Event.DROPPED for e in entries),
        "title": tip.title,
        "agent": tip.agent,
        "account": tip.account,
        "leg": tip.leg,
        "legs": _legs(entries),
        "at": tip.at,
        "startedAt": entries[0].at,
        "branch": tip.branch,
        "worktree": str(repo.session_dir(session)) if repo.home is not None else "",
        "baseCommit": tip.base_commit,
        "contractId": tip.contract_id,
        "candidates": list(tip.candidates),
        "passedOver": [{"agent": p.agent, "reason": p.reason} for p in tip.passed_over],
        "reason": tip.reason,
        "next": _next(tip, running=running, landed=any(e.event is Event.LANDED for e in entries)),
    }


def _legs(entries: list[Entry]) -> list[dict[str, Any]]:
    """One row a leg: who, since when, and why it ended."""
    legs: dict[int, dict[str, Any]] = {}
    for entry in entries:
        leg = legs.setdefault(
            entry.leg,
            {
                "leg": entry.leg,
                "agent": entry.agent,
                "account": entry.account,
                "startedAt": entry.at,
                "nativeId": "",
                "pausedBecause": "",
            },
        )
        if entry.state is not State.RESUMING:  # there it is the candidate's, who may never take over
            leg["nativeId"] = entry.native_id or leg["nativeId"]
        leg["pausedBecause"] = entry.pause_reason or leg["pausedBecause"]
    return list(legs.values())


def _who(agent: str, account: str) -> str:
    return f"{agent}:{account}" if account else agent


def _state_word(standing: dict[str, Any]) -> str:
    return f"{standing['state']} (interrupted)" if standing["interrupted"] else str(standing["state"])


def _next(tip: Entry, *, running: bool, landed: bool) -> str:
    name = tip.session_id
    if tip.state is State.WAITING and running:
        from relay_git.supervisor import waiting

        until = waiting.told(tip.wait_until, context.now())
        return f"waits for {tip.next_agent} until {until}; git relay handoff {name} --to AGENT goes on now"
    if running:
        return f"{tip.agent} is at work; git relay handoff {name} hands it over"
    if tip.event is Event.DROPPED:
        return f"dropped; its history: git relay log {name}"
    if tip.state is State.DONE and tip.stands and not landed:
        return f"its work stands on {tip.stands}; git relay land {name} says how to bring it over"
    if tip.state is State.DONE:
        return f"landed; git relay drop {name} cleans up" if landed else f"git relay land {name}"
    if tip.state is State.FAILED:
        return f"git relay verify {name}"
    if tip.state is State.STOPPED or tip.state not in RESTS:
        return f"git relay resume {name}, or git relay handoff {name} --to AGENT"
    if tip.pause_reason == HANDOFF and not tip.passed_over:  # the user has asked for a person
        return f"git relay answer {name} TEXT --to AGENT, or git relay handoff {name} --to AGENT"
    return f"git relay handoff {name} --to AGENT"


def _entry(entry: Entry) -> dict[str, Any]:
    from relay_git.contract.canonical import strict_parse

    return strict_parse(entry.to_json())


def _what(entry: Entry) -> str:
    match entry.event:
        case Event.CONTRACT_BUILT:
            return entry.contract_id
        case Event.SNAPSHOT_TAKEN:
            return f"{entry.snapshot[:12]} ({entry.safe_point})"
        case Event.CHOSEN | Event.LAUNCHED if entry.next_agent:
            return f"next: {entry.next_agent}"
        case Event.NONE_LEFT | Event.PASSED_OVER:
            return "; ".join(f"{p.agent}: {p.reason}" for p in entry.passed_over)
        case Event.STARTED:
            return entry.title
        case Event.LAUNCHED | Event.IDENTIFIED:
            return entry.native_id
        case _:
            return entry.reason
