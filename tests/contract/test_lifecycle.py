"""The state machine: total, pure, and never stuck."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay_git.contract.lifecycle import ENDS, RESTS, TRANSITIONS, Action, Event, State, diagram, step

AT_WORK = [state for state in State if state not in RESTS]
EVENTS = st.lists(st.sampled_from(list(Event)), max_size=40)


@given(state=st.sampled_from(list(State)), event=st.sampled_from(list(Event)))
def test_every_pair_of_state_and_event_has_an_answer(state, event) -> None:
    after, actions = step(state, event)
    assert isinstance(after, State)
    assert all(isinstance(a, Action) for a in actions)
    if (state, event) not in TRANSITIONS:
        assert (after, actions) == (state, ())


@given(EVENTS)
def test_no_agent_is_started_but_on_a_verified_contract_or_the_user_s_own_task(events) -> None:
    state = State.RUNNING
    for event in events:
        before, (state, actions) = state, step(state, event)
        if Action.LAUNCH in actions:
            assert actions == (Action.VERIFY, Action.LAUNCH) or (before, event) == (State.RUNNING, Event.STARTED)


@given(EVENTS)
def test_nobody_is_chosen_before_the_old_leg_is_fenced_and_its_contract_stored(events) -> None:
    state, done = State.RUNNING, []
    for event in events:
        state, actions = step(state, event)
        done += actions
        if Action.SNAPSHOT in actions:
            done = [Action.SNAPSHOT]
        if Action.CHOOSE in actions and event is Event.CONTRACT_BUILT:
            assert done.index(Action.SNAPSHOT) < done.index(Action.FENCE) < done.index(Action.BUILD)


@pytest.mark.parametrize("state", AT_WORK)
def test_every_state_at_work_can_come_to_rest(state) -> None:
    reached, todo = set(), [state]
    while todo:
        here = todo.pop()
        reached.add(here)
        todo += [step(here, event)[0] for event in Event if step(here, event)[0] not in reached]
    assert reached & ENDS
    assert State.NEEDS_HUMAN in reached


@pytest.mark.parametrize("state", sorted(RESTS - {State.DONE}))
def test_every_rest_but_done_goes_on_through_a_new_snapshot(state) -> None:
    assert step(state, Event.HANDOFF_ASKED) == (State.PAUSING, (Action.PAUSE, Action.SNAPSHOT))


def test_the_diagram_shows_every_edge_of_the_table() -> None:
    shown = diagram()
    for (state, event), (after, _) in TRANSITIONS.items():
        if event not in (Event.LANDED, Event.DROPPED):
            line = next(line for line in shown.split("\n") if line.strip().startswith(f"{state} --> {after}:"))
            assert event.value in line
