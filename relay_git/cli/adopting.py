"""`adopt`: take over the work of an agent that git relay did not start."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil

from relay_git.agents import TOOLS
from relay_git.agents.agent import Unready
from relay_git.cli import background, context
from relay_git.cli.detecting import a_detector
from relay_git.cli.going import a_teller, carry_to_rest, clean_stop
from relay_git.cli.transcripts import find
from relay_git.errors import AgentError, RelayError, UserError, printable
from relay_git.git.repo import Repo, discover
from relay_git.git.store import open_store
from relay_git.ledger.key import ensure
from relay_git.session import SessionRecord
from relay_git.supervisor import adopting, opening
from relay_git.supervisor.detect import Detected, state_at_rest


def adopt(what: str, to: str, then: str | None, *, stops: bool, here: bool, detach: bool) -> int:
    """Open a session at the state of the one that `what` names (its id or a pid) and hand it to `to`.

    With `here` its work is in the work tree that the user stands in, whatever it says itself.
    """
    heirs = (str(context.account_named(to)), *(context.agent_list(then) if then is not None else ()))
    found = _lookup(what)
    _refuse(found, what, stops=stops)
    record = _record(found)
    ground = adopting.ground_in(discover(Path.cwd(), os.environ)) if here else adopting.ground_of(record, _here())
    order = adopting.order_of(found, record, ground, heirs, stops=stops)
    repo, store = ground.repo, open_store(ground.repo.common_dir)
    heir = context.account_named(heirs[0])
    verdict = context.ready(heir, context.settings(repo).permission(heir.agent))
    if isinstance(verdict, Unready):
        raise AgentError(f"{heirs[0]} cannot be started: {verdict.reason}", hint=verdict.hint or "git relay doctor")
    key, teller = ensure(repo, store), a_teller()
    with clean_stop() as stop:
        around = context.surroundings(repo, store, key, teller=teller, stop=stop)
        with opening.open_session(around, order) as run:
            teller.say(f"session {run.session}: branch relay/{run.session}, worktree {run.worktree}")
            teller.say(f"leg 1: {run.tip.entry.reason}")
            if not detach:
                return carry_to_rest(run, teller)
    return background.carry_aside(repo, store, run.session, ["resume", run.session])


def _lookup(what: str) -> Detected:
    """The session that an id, its beginning or a pid names; one that runs before one that has ended."""
    now = context.now()
    alive = [row for row in a_detector().look(now, timedelta(0)) if row.pid]
    hits = [row for row in alive if what in (str(row.pid), row.native_id)]
    hits = hits or [row for row in alive if what and row.native_id.startswith(what)]
    if len(hits) == 1:
        return hits[0]
    if hits:
        names = ", ".join(f"{row.tool} {row.native_id} at pid {row.pid}" for row in hits[:5])
        raise UserError(
            f"that can mean {len(hits)} sessions ({printable(names)})", hint="git relay adopt PID --to AGENT"
        )
    tool, path, native_id = find(what, None)
    following = tool.follow(path, native_id, Path())
    following.poll()
    record = following.record(ended=True)
    active = record.last_activity or datetime.fromtimestamp(0, UTC)
    return Detected(tool.name, record.native_id or native_id, str(path), state_at_rest(record), record, active)


def _refuse(found: Detected, what: str, *, stops: bool) -> None:
    name = f"{TOOLS[found.tool].title} (pid {found.pid})"
    if not found.path:
        raise UserError(f"{name} has no transcript yet: there is nothing to adopt", hint="git relay detect")
    if not stops or not found.pid:
        return
    if found.pid in (p.pid for p in psutil.Process().parents()):
        raise UserError(f"you are inside {name}, which cannot stop itself", hint="type it in another terminal")
    if found.matched.startswith("guess") and what != str(found.pid):
        raise UserError(
            f"that {name} is at this session is only likely, by its folder and time",
            hint=f"git relay adopt {found.pid} --stop --to AGENT",
        )


def _record(found: Detected) -> SessionRecord:
    """The whole record; what detection remembers is cut short."""
    following = TOOLS[found.tool].follow(Path(found.path), found.native_id, Path())
    following.poll()
    record = following.record()
    return record if record.cwd else found.record


def _here() -> Repo | None:
    try:
        return discover(Path.cwd(), os.environ)
    except (RelayError, OSError):
        return None
