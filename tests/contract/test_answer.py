"""An agent's answer when it is asked: read strictly whatever it says, and believed only as far as it was looked up."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay_git.contract.answer import MOST_BYTES, MOST_ITEMS, MOST_TEXT, QUESTION, SCHEMA, Answer, Found, noted, parse
from relay_git.contract.canonical import Malformed
from relay_git.contract.notes import MOST_TEXT as MOST_NOTE
from relay_git.contract.notes import Kind

values = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=4))
members = st.sampled_from([*SCHEMA["properties"], "other"])
pairs = st.dictionaries(st.sampled_from(["what", "why", "proof", "path"]), st.text() | st.integers())
answers = st.dictionaries(members, st.text() | st.lists(st.text() | pairs, max_size=30) | values)


@given(st.text() | answers.map(json.dumps) | answers.map(lambda said: f"Well:\n```json\n{json.dumps(said)}\n```\n"))
def test_whatever_is_said_is_an_answer_within_its_bounds_or_refused(text) -> None:
    try:
        answer = parse(text)
    except Malformed:
        return
    notes, losses = noted(answer, Found(frozenset(answer.paths), frozenset(answer.commits)), 1)
    assert len(notes) <= 6 * MOST_ITEMS
    assert all(len(note.text.encode()) <= MOST_ITEMS * 3 * MOST_TEXT and note.text.strip() for note in notes)
    assert all("\n" not in note.text for note in notes if note.kind is not Kind.HYPOTHESIS)
    assert all(loss.strip() for loss in losses)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("", "it is no JSON object"),
        ("[1]", "it is no JSON object"),
        ('{"done": {}}', "done is no list"),
        ('{"done": ["all"]}', "done holds something else than objects"),
        ('{"constraints": [1]}', "constraints holds something else than texts"),
        ('{"nextAction": null}', "nextAction holds something else than texts"),
        ('{"nextAction": "a", "nextAction": "b"}', "a key occurs twice"),
        (json.dumps({"constraints": ["x" * MOST_BYTES]}), f"the limit is {MOST_BYTES}"),
        ('{"constraints": ' + "[" * 9000 + "]" * 9000 + "}", "nested deeper"),
    ],
)
def test_what_is_not_as_it_was_asked_for_is_refused_whole(said, why) -> None:
    with pytest.raises(Malformed, match=why):
        parse(said)


def test_what_is_beyond_the_bounds_is_cut_where_it_shows() -> None:
    answer = parse(json.dumps({"constraints": ["one " * 400, *(f"rule {n}" for n in range(30))]}))
    assert len(answer.constraints) == MOST_ITEMS
    assert "cut by git relay" in answer.constraints[0]
    assert noted(answer, Found(), 1)[1] == (f"11 items of the agent's answer were beyond {MOST_ITEMS} of a kind",)


def test_work_is_done_only_where_a_commit_or_a_command_shows_it() -> None:
    done = (("a", "abc1234"), ("b", "dead123"), ("c", "`make test`"), ("d", "make lint"), ("e", ""))
    idle = (("f", "ba5e123"), ("g", "git add --all"), ("h", "true"), ("i", "cd src && ls | head -3"))
    exits = {"cd src && make test": 0, "make lint": 2, "git add --all": 0, "true": 0, "cd src && ls | head -3": 0}
    # What the session was begun on is no work of its own, and a command that only looks around shows none.
    found = Found(missing_commits=frozenset({"dead123"}), own_commits=("abc1234" + "0" * 33,), exits=exits)
    done += idle
    notes, losses = noted(Answer(done=done), found, 3)
    assert [note.text for note in notes if note.kind is Kind.DO_NOT_REDO] == [
        "Done: c (`make test` ended with 0)",
        "Done: a (commit abc1234)",
    ]
    (believed,) = (note.text for note in notes if note.kind is Kind.HYPOTHESIS)
    assert believed.split("\n")[1:] == [
        "- b (its proof: commit dead123 (no such commit here))",
        "- d (its proof: make lint)",
        "- e",
        "- f (its proof: commit ba5e123)",
        "- g (its proof: git add --all)",
        "- h (its proof: true)",
        "- i (its proof: cd src && ls | head -3)",
    ]
    assert losses == ("the agent, when asked, named commits that are not there: dead123",)
    assert {note.leg for note in notes} == {3}


def test_the_question_holds_the_schema_that_is_read() -> None:
    assert json.loads(QUESTION[QUESTION.index("{") :]) == SCHEMA
    full = {name: [] for name in SCHEMA["properties"]} | {"nextAction": "Go"}
    assert parse(json.dumps(full)) == Answer(next_action="Go")
    assert MOST_TEXT < MOST_NOTE
