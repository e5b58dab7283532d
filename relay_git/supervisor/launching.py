"""Starting one leg: its tool, its account, its place, and what it is told and allowed.

Promise: nobody else lives in the worktree when it begins, and the journal is told of it by the caller before anything
more is done. An agent that follows itself goes on in its own session where it can.
"""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Mapping

from relay_git.agents import find_agent
from relay_git.agents.agent import PROMPT, Agent, HasTui, Launch, Place, Ready, Unready, Unsupported
from relay_git.agents.services import SERVICES
from relay_git.contract.brief import ORDER
from relay_git.contract.notes import Kind
from relay_git.errors import AgentError, RelayError
from relay_git.git import hooks, room, worktree
from relay_git.git.repo import make_private, write_private
from relay_git.git.run import without_local_env
from relay_git.quota.entry import Account
from relay_git.supervisor import handoff, own_session, pause, process
from relay_git.supervisor.furnish import furnish
from relay_git.supervisor.own_session import Past
from relay_git.supervisor.process import LegProcess
from relay_git.supervisor.proxy import Proxy
from relay_git.supervisor.run import Run
from relay_git.supervisor.watch import Watcher


def check(run: Run, account: Account) -> Ready | Unready:
    """Whether the account's agent can be started here with the permission that the user set."""
    around, agent = run.around, find_agent(account.agent)
    if around.terminal is not None and not isinstance(agent, HasTui):
        return Unready(f"git relay cannot start the TUI of {agent.title} yet")
    try:
        env = run.env_of(account)
    except RelayError as error:
        return Unready(str(error), error.hint)
    return agent.check(env, around.settings.permission(agent.name))


def launch(run: Run, account: Account, leg: int, prompt: str, past: Past | None = None, told: str = "") -> Watcher:
    """Start an agent in the session's worktree; raises AgentError where it cannot be started.

    With `past` it goes on in that session of its own, if it can, and is told that; else it is told the prompt.
    """
    around, place, agent = run.around, run.place(leg, account.agent), find_agent(account.agent)
    run.mended.clear()
    handoff.fence(run, None)  # nobody may live in the worktree, also none of whom the journal does not know
    furnish(run, leg)
    ready = check(run, account)
    if isinstance(ready, Unready):
        raise AgentError(f"{agent.title} cannot be started: {ready.reason}", hint=ready.hint)
    theirs = run.env_of(account)
    make_private(place.private_dir)
    (place.private_dir / handoff.STARTED_AS).unlink(missing_ok=True)
    room.make(around.repo)  # before the plan, which names what is there
    onward = _resume(run, account, place, told, ready, past) if past is not None else None
    past = past.after(onward) if past is not None and onward is not None else None
    plan = onward or _plan(run, agent, place, prompt, ready, theirs)
    if isinstance(plan, Unsupported):
        raise AgentError(f"{agent.title} cannot be started: {plan.reason}", hint="git relay doctor")
    pause.lower_flag(run)  # no word from the last leg may be left
    for name, data in plan.files.items():
        write_private(place.private_dir / name, data)
    write_private(place.private_dir / PROMPT, plan.stdin)
    own_session.note(place.private_dir, past)
    with worktree.alone(around.repo):
        hook = hooks.install(hooks.plan(around.repo, place.worktree))
    for line in (*ready.notes, *plan.grants):
        around.teller.say(f"  {line}")
    env = {k: v for k, v in without_local_env(theirs).items() if k not in plan.drop_env}
    ourselves = shlex.join([sys.executable, "-m", "relay_git"])
    named = hooks.identity(around.repo.session_git(run.session)) if plan.hides_git_config else None
    env |= {"RELAY_LEG": str(leg)} | hooks.environment(hook, ourselves, named) | dict(plan.env)
    log = handoff.log_dir(run, leg, agent.name)
    words = place.private_dir / PROMPT
    # The journal tells of a start when there is a pid: should we die before that, this says whose the work is.
    write_private(place.private_dir / handoff.STARTED_AS, plan.native_id.encode())
    with contextlib.ExitStack() as over:
        passing = _proxied(run, agent.name, env)
        if passing is not None:
            over.callback(passing.close)
        if around.terminal is not None:
            started: LegProcess = around.terminal.start(plan.argv, place.worktree, env, run.mark)
            since = words.stat().st_mtime  # by the clock of the files that it is compared with
        else:
            started = process.start(plan.argv, place.worktree, env, words, run.log(log), run.mark)
            since = None
        started.afterwards(over.pop_all().close)
    return Watcher(
        run,
        account,
        started,
        plan.native_id,
        ends_turn=plan.ends_turn,
        hook=hook,
        since=since,
        past=past,
        proxy=passing,
    )


def standing_order(run: Run) -> str:
    """What the first agent is told beside its task: where it works, and how it leaves word for the next."""
    return (
        f"\n{ORDER}{run.session}, in a worktree of its own. Stay on it and commit small, "
        "finished steps: each commit is a point at which the work can be handed to another agent without loss. "
        "What the next agent must know, leave in commit trailers (Relay-Do-Not-Redo:, Relay-Decision:, "
        "Relay-Constraint:, Relay-Question:, Relay-Next:) or, at any time, by `git relay note KIND TEXT` "
        f"({', '.join(Kind)}).)\n"
    )


def _proxied(run: Run, agent: str, env: dict[str, str]) -> Proxy | None:
    """A proxy before the agent's service where the user wants one; `env` then leads to it."""
    service = SERVICES.get(agent)
    if not run.around.settings.proxy or service is None:
        return None
    try:
        proxy = Proxy(service.address(env), run.around.env)
    except RelayError as error:
        run.around.teller.say(f"note: {error} ({error.hint}); the agent goes to its service without it")
        return None
    env[service.variable] = proxy.address
    return proxy


def _resume(run: Run, account: Account, place: Place, prompt: str, ready: Ready, past: Past) -> Launch | None:
    """How to have the agent go on in its own session; None where it cannot.

    Another account of the same tool is given the session's files first, and nothing of a login.
    """
    around, agent = run.around, find_agent(account.agent)
    env, permission = run.env_of(account), around.settings.permission(agent.name)
    plan = own_session.brought(run, account, past.native_id) or agent.resume(
        place, past.native_id, prompt, ready, permission, env
    )
    if isinstance(plan, Launch):
        whose = f"in the account {account}, " if account != run.account else ""
        around.teller.say(f"{agent.title} goes on in its own session, {whose}with all of its conversation")
        return plan
    if not agent.unresumable:
        around.teller.say(f"{agent.title} begins anew on the brief: {plan.reason}")
    return None


def _plan(
    run: Run, agent: Agent, place: Place, prompt: str, ready: Ready, env: Mapping[str, str]
) -> Launch | Unsupported:
    """How to start the agent; at the terminal its prompt is in a file that it can read, as any of the worktree's."""
    around, permission = run.around, run.around.settings.permission(agent.name)
    if around.terminal is None:
        return agent.launch(place, prompt, ready, permission, env)
    if not isinstance(agent, HasTui):
        return Unsupported("git relay cannot start its TUI yet")
    if not prompt:
        return agent.launch_tui(place, standing_order(run).strip(), ready, permission, env)
    brief_file = run.hook_dir / handoff.BRIEF
    write_private(brief_file, prompt.encode("utf-8", "replace"))
    return agent.launch_tui(place, brief_file, ready, permission, env)
