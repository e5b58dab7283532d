"""The life of a session: states, what can happen in them, and what is to be done then.

Promise: `step` is pure and total; every pair of state and event has an answer, and an event that means nothing in a
state leaves it with no action. The supervisor carries the actions out; each can be repeated without harm, so that a
crash is mended by reading the journal's tip and doing again what is not recorded as done.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class State(StrEnum):
    """Where a session stands."""

    RUNNING = "RUNNING"
    PAUSING = "PAUSING"
    SNAPSHOTTED = "SNAPSHOTTED"
    ENVELOPE_BUILT = "ENVELOPE_BUILT"
    DISPATCHED = "DISPATCHED"
    RESUMING = "RESUMING"
    DONE = "DONE"
    FAILED = "FAILED"
    STOPPED = "STOPPED"
    WAITING = "WAITING"
    NEEDS_HUMAN = "NEEDS_HUMAN"


class Event(StrEnum):
    """What can happen to a session."""

    STARTED = "started"
    LAUNCHED = "launched"
    IDENTIFIED = "identified"
    LIMIT_SEEN = "limit-seen"
    HANDOFF_ASKED = "handoff-asked"
    STOP_ASKED = "stop-asked"
    AGENT_DONE = "agent-done"
    AGENT_DIED = "agent-died"
    SNAPSHOT_TAKEN = "snapshot-taken"
    CONTRACT_BUILT = "contract-built"
    CHOSEN = "chosen"
    NONE_LEFT = "none-left"
    REFUSED = "refused"
    ACKNOWLEDGED = "acknowledged"
    PASSED_OVER = "passed-over"
    STRAYED = "strayed"
    ACCEPTED = "accepted"
    LANDED = "landed"
    DROPPED = "dropped"


class Action(StrEnum):
    """What the supervisor does next; each may be done twice."""

    LAUNCH = "launch the agent"
    WATCH = "watch it"
    PAUSE = "ask for a safe point"
    SNAPSHOT = "take the snapshot"
    FENCE = "end the old process tree"
    BUILD = "build, sign and store the contract"
    CHOOSE = "choose the next agent"
    VERIFY = "read the contract back and verify it"
    REST = "leave the session at rest"


ENDS = frozenset({State.DONE, State.FAILED, State.STOPPED})
RESTS = ENDS | {State.WAITING, State.NEEDS_HUMAN}

_S, _E, _A = State, Event, Action
_PAUSE = (_S.PAUSING, (_A.PAUSE, _A.SNAPSHOT))
_REST = (_A.REST,)

TRANSITIONS: Mapping[tuple[State, Event], tuple[State, tuple[Action, ...]]] = {
    (_S.RUNNING, _E.STARTED): (_S.RUNNING, (_A.LAUNCH,)),
    (_S.RUNNING, _E.LAUNCHED): (_S.RUNNING, (_A.WATCH,)),
    (_S.RUNNING, _E.IDENTIFIED): (_S.RUNNING, (_A.WATCH,)),
    (_S.RUNNING, _E.LIMIT_SEEN): _PAUSE,
    (_S.RUNNING, _E.HANDOFF_ASKED): _PAUSE,
    (_S.RUNNING, _E.STOP_ASKED): _PAUSE,
    (_S.RUNNING, _E.AGENT_DIED): _PAUSE,
    (_S.RUNNING, _E.AGENT_DONE): (_S.DONE, _REST),
    (_S.PAUSING, _E.SNAPSHOT_TAKEN): (_S.SNAPSHOTTED, (_A.FENCE, _A.BUILD)),
    (_S.SNAPSHOTTED, _E.SNAPSHOT_TAKEN): (_S.SNAPSHOTTED, (_A.FENCE, _A.BUILD)),
    (_S.SNAPSHOTTED, _E.CONTRACT_BUILT): (_S.ENVELOPE_BUILT, (_A.CHOOSE,)),
    (_S.ENVELOPE_BUILT, _E.CHOSEN): (_S.DISPATCHED, (_A.VERIFY, _A.LAUNCH)),
    (_S.ENVELOPE_BUILT, _E.NONE_LEFT): (_S.NEEDS_HUMAN, _REST),
    (_S.ENVELOPE_BUILT, _E.STOP_ASKED): (_S.STOPPED, _REST),
    (_S.DISPATCHED, _E.LAUNCHED): (_S.RESUMING, (_A.WATCH,)),
    (_S.DISPATCHED, _E.PASSED_OVER): (_S.ENVELOPE_BUILT, (_A.CHOOSE,)),
    (_S.DISPATCHED, _E.REFUSED): (_S.FAILED, _REST),
    (_S.ENVELOPE_BUILT, _E.STRAYED): _PAUSE,
    (_S.DISPATCHED, _E.STRAYED): _PAUSE,
    (_S.RESUMING, _E.IDENTIFIED): (_S.RESUMING, (_A.WATCH,)),
    (_S.RESUMING, _E.ACKNOWLEDGED): (_S.RUNNING, (_A.WATCH,)),
    (_S.RESUMING, _E.PASSED_OVER): (_S.ENVELOPE_BUILT, (_A.CHOOSE,)),
    (_S.RESUMING, _E.STRAYED): _PAUSE,
    (_S.RESUMING, _E.STOP_ASKED): _PAUSE,
    (_S.NEEDS_HUMAN, _E.HANDOFF_ASKED): _PAUSE,
    (_S.STOPPED, _E.HANDOFF_ASKED): _PAUSE,
    (_S.WAITING, _E.HANDOFF_ASKED): _PAUSE,
    (_S.FAILED, _E.HANDOFF_ASKED): _PAUSE,
    (_S.NEEDS_HUMAN, _E.ACCEPTED): (_S.NEEDS_HUMAN, _REST),
    (_S.STOPPED, _E.ACCEPTED): (_S.STOPPED, _REST),
} | {(state, event): (state, _REST) for state in RESTS for event in (_E.LANDED, _E.DROPPED)}


def step(state: State, event: Event) -> tuple[State, tuple[Action, ...]]:
    """The next state and the actions due in it; an event that means nothing here changes nothing."""
    return TRANSITIONS.get((state, event), (state, ()))


def diagram() -> str:
    """The state diagram of `docs/architecture.md`, as Mermaid text, drawn from the table that the program runs on."""
    edges: dict[tuple[State, State], list[str]] = {}
    for (state, event), (after, _) in TRANSITIONS.items():
        if event not in (Event.LANDED, Event.DROPPED):
            edges.setdefault((state, after), []).append(event.value)
    lines = ["stateDiagram-v2", "    [*] --> RUNNING: started"]
    lines += [f"    {a} --> {b}: {', '.join(events)}" for (a, b), events in edges.items()]
    lines += [f"    {state} --> [*]" for state in sorted(ENDS)]
    return "\n".join(lines) + "\n"
