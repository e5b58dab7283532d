"""The life of a session: its states, and which events lead from one to the next.

Promise: `step` is pure and total; an event that means nothing in a state leaves it as it is, and the supervisor refuses
to record one. What is due in a state is done by `supervisor.carry`, which reads the state from the journal's tip; all
of it can be done again without harm, so that a crash is mended by doing again what is not recorded as done.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class State(StrEnum):
    """Where a session stands, and what is due there; in the last four it rests."""

    RUNNING = "RUNNING"  # the leg is to be started, or is at work
    PAUSING = "PAUSING"  # it is to be held at a safe point, and a snapshot taken
    SNAPSHOTTED = "SNAPSHOTTED"  # its process tree is to be ended, it may be asked once, the contract built and stored
    ENVELOPE_BUILT = "ENVELOPE_BUILT"  # the next agent is to be chosen
    DISPATCHED = "DISPATCHED"  # the contract is to be read back and verified, and the chosen agent started
    RESUMING = "RESUMING"  # the new leg is to show that it took over
    WAITING = "WAITING"  # the moment is to be awaited at which a quota window begins anew
    DONE = "DONE"
    FAILED = "FAILED"
    STOPPED = "STOPPED"
    NEEDS_HUMAN = "NEEDS_HUMAN"


class Event(StrEnum):
    """What can happen to a session."""

    STARTED = "started"
    ADOPTED = "adopted"
    LAUNCHED = "launched"
    IDENTIFIED = "identified"
    LIMIT_SEEN = "limit-seen"
    QUOTA_LOW = "quota-low"
    HANDOFF_ASKED = "handoff-asked"
    STOP_ASKED = "stop-asked"
    AGENT_DONE = "agent-done"
    AGENT_DIED = "agent-died"
    AGENT_HUNG = "agent-hung"
    SNAPSHOT_TAKEN = "snapshot-taken"
    ASKED = "asked"
    ASK_OVER = "ask-over"
    CONTRACT_BUILT = "contract-built"
    CHOSEN = "chosen"
    WAIT_BEGUN = "wait-begun"
    WAIT_OVER = "wait-over"
    NONE_LEFT = "none-left"
    REFUSED = "refused"
    ACKNOWLEDGED = "acknowledged"
    PASSED_OVER = "passed-over"
    STRAYED = "strayed"
    ACCEPTED = "accepted"
    LANDED = "landed"
    DROPPED = "dropped"


ENDS = frozenset({State.DONE, State.FAILED, State.STOPPED})
RESTS = ENDS | {State.NEEDS_HUMAN}

_S, _E = State, Event

TRANSITIONS: Mapping[tuple[State, Event], State] = (
    {
        (_S.RUNNING, _E.STARTED): _S.RUNNING,
        (_S.RUNNING, _E.LAUNCHED): _S.RUNNING,
        (_S.RUNNING, _E.IDENTIFIED): _S.RUNNING,
        (_S.RUNNING, _E.LIMIT_SEEN): _S.PAUSING,
        (_S.RUNNING, _E.QUOTA_LOW): _S.PAUSING,
        (_S.RUNNING, _E.HANDOFF_ASKED): _S.PAUSING,
        (_S.RUNNING, _E.STOP_ASKED): _S.PAUSING,
        (_S.RUNNING, _E.AGENT_DIED): _S.PAUSING,
        (_S.RUNNING, _E.AGENT_HUNG): _S.PAUSING,
        (_S.RUNNING, _E.AGENT_DONE): _S.DONE,
        (_S.PAUSING, _E.ADOPTED): _S.PAUSING,
        (_S.PAUSING, _E.SNAPSHOT_TAKEN): _S.SNAPSHOTTED,
        (_S.SNAPSHOTTED, _E.SNAPSHOT_TAKEN): _S.SNAPSHOTTED,
        (_S.SNAPSHOTTED, _E.ASKED): _S.SNAPSHOTTED,
        (_S.SNAPSHOTTED, _E.ASK_OVER): _S.SNAPSHOTTED,
        (_S.SNAPSHOTTED, _E.CONTRACT_BUILT): _S.ENVELOPE_BUILT,
        (_S.ENVELOPE_BUILT, _E.CHOSEN): _S.DISPATCHED,
        (_S.ENVELOPE_BUILT, _E.WAIT_BEGUN): _S.WAITING,
        (_S.WAITING, _E.WAIT_OVER): _S.ENVELOPE_BUILT,
        (_S.WAITING, _E.STOP_ASKED): _S.STOPPED,
        (_S.WAITING, _E.STRAYED): _S.PAUSING,
        (_S.ENVELOPE_BUILT, _E.NONE_LEFT): _S.NEEDS_HUMAN,
        (_S.ENVELOPE_BUILT, _E.STOP_ASKED): _S.STOPPED,
        (_S.DISPATCHED, _E.LAUNCHED): _S.RESUMING,
        (_S.DISPATCHED, _E.PASSED_OVER): _S.ENVELOPE_BUILT,
        (_S.DISPATCHED, _E.REFUSED): _S.FAILED,
        (_S.ENVELOPE_BUILT, _E.STRAYED): _S.PAUSING,
        (_S.DISPATCHED, _E.STRAYED): _S.PAUSING,
        (_S.RESUMING, _E.IDENTIFIED): _S.RESUMING,
        (_S.RESUMING, _E.ACKNOWLEDGED): _S.RUNNING,
        (_S.RESUMING, _E.PASSED_OVER): _S.ENVELOPE_BUILT,
        (_S.RESUMING, _E.STRAYED): _S.PAUSING,
        (_S.NEEDS_HUMAN, _E.HANDOFF_ASKED): _S.PAUSING,
        (_S.STOPPED, _E.HANDOFF_ASKED): _S.PAUSING,
        (_S.FAILED, _E.HANDOFF_ASKED): _S.PAUSING,
        (_S.NEEDS_HUMAN, _E.ACCEPTED): _S.NEEDS_HUMAN,
        (_S.STOPPED, _E.ACCEPTED): _S.STOPPED,
    }
    | {(state, event): state for state in RESTS for event in (_E.LANDED, _E.DROPPED)}
    | {
        (state, _E.DROPPED): _S.STOPPED
        for state in State
        if state not in RESTS  # given up by the user while at work
    }
)


def step(state: State, event: Event) -> State:
    """The next state; an event that means nothing here changes nothing."""
    return TRANSITIONS.get((state, event), state)


def diagram() -> str:
    """The state diagram of `docs/architecture.md`, as Mermaid text, drawn from the table that the program runs on."""
    edges: dict[tuple[State, State], list[str]] = {}
    for (state, event), after in TRANSITIONS.items():
        if event not in (Event.LANDED, Event.DROPPED):
            edges.setdefault((state, after), []).append(event.value)
    lines = ["stateDiagram-v2", "    [*] --> RUNNING: started", "    [*] --> PAUSING: adopted"]
    lines += [f"    {a} --> {b}: {', '.join(events)}" for (a, b), events in edges.items()]
    lines += [f"    {state} --> [*]" for state in sorted(ENDS)]
    return "\n".join(lines) + "\n"
