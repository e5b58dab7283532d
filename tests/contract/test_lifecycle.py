"""The state machine: total, pure, never stuck, and the one that the program runs on."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import relay_git
from relay_git.contract.lifecycle import ENDS, RESTS, TRANSITIONS, Event, State, diagram, step

AT_WORK = [state for state in State if state not in RESTS]
EVENTS = st.lists(st.sampled_from(list(Event)), max_size=60)
PROGRAM = Path(relay_git.__file__).parent


@given(state=st.sampled_from(list(State)), event=st.sampled_from(list(Event)))
def test_every_pair_of_state_and_event_has_an_answer(state, event) -> None:
    after = step(state, event)
    assert isinstance(after, State)
    assert after == TRANSITIONS.get((state, event), state)


@given(EVENTS)
def test_no_agent_is_chosen_or_started_before_a_snapshot_and_a_contract_of_this_pause(events) -> None:
    state, taken = State.RUNNING, []
    for event in events:
        known = (state, event) in TRANSITIONS
        state = step(state, event)
        taken = [] if state is State.PAUSING else taken + [event] * known
        if state in (State.DISPATCHED, State.RESUMING):
            assert taken.index(Event.SNAPSHOT_TAKEN) < taken.index(Event.CONTRACT_BUILT) < taken.index(Event.CHOSEN)


def test_an_agent_is_launched_on_the_user_s_own_task_or_after_it_was_chosen() -> None:
    assert {state for state, event in TRANSITIONS if event is Event.LAUNCHED} == {State.RUNNING, State.DISPATCHED}
    assert {event for (_, event), after in TRANSITIONS.items() if after is State.DISPATCHED} == {Event.CHOSEN}


def test_every_state_is_reached_and_every_event_means_something() -> None:
    reached, todo = set(), [State.RUNNING]
    while todo:
        here = todo.pop()
        reached.add(here)
        todo += [after for (state, _), after in TRANSITIONS.items() if state is here and after not in reached]
    assert reached == set(State)
    assert {event for _, event in TRANSITIONS} == set(Event)


def test_the_program_records_every_event_and_no_other() -> None:
    recorded = set()
    for file in PROGRAM.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call):  # run.record(Event.X, …), _pause_for(run, Event.X, …), Entry(event=Event.X)
                given = [*node.args, *(k.value for k in node.keywords)]
                recorded |= {a.attr for a in given if isinstance(a, ast.Attribute) and ast.unparse(a.value) == "Event"}
    assert recorded == {event.name for event in Event}


def test_the_loop_that_carries_a_session_does_something_in_every_state_at_work() -> None:
    source = ast.parse((PROGRAM / "supervisor" / "carry.py").read_text())
    handled = {ast.unparse(case.pattern) for case in ast.walk(source) if isinstance(case, ast.match_case)}
    assert {f"State.{state}" for state in AT_WORK} <= handled


@pytest.mark.parametrize("state", AT_WORK)
def test_every_state_at_work_can_come_to_rest(state) -> None:
    reached, todo = set(), [state]
    while todo:
        here = todo.pop()
        reached.add(here)
        todo += [step(here, event) for event in Event if step(here, event) not in reached]
    assert reached & ENDS
    assert State.NEEDS_HUMAN in reached


@pytest.mark.parametrize("state", sorted(RESTS - {State.DONE}))
def test_every_rest_but_done_goes_on_through_a_new_snapshot(state) -> None:
    assert step(state, Event.HANDOFF_ASKED) is State.PAUSING
    leaving = {event for (s, event), after in TRANSITIONS.items() if s is State.PAUSING and after is not s}
    assert leaving - {Event.DROPPED} == {Event.SNAPSHOT_TAKEN}


def test_the_diagram_shows_every_edge_of_the_table() -> None:
    shown = diagram()
    for (state, event), after in TRANSITIONS.items():
        if event not in (Event.LANDED, Event.DROPPED):
            line = next(line for line in shown.split("\n") if line.strip().startswith(f"{state} --> {after}:"))
            assert event.value in line
