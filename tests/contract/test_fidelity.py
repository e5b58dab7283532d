"""What contracts say of recorded sessions of real agents, beside a truth that was written by hand."""

from __future__ import annotations

import pytest

from bench.fidelity import sentences
from bench.fidelity.measure import AIMS, MOST_TOKENS, Result, results
from bench.fidelity.score import FIELDS, Item, Tally, holds, invented, words


@pytest.fixture(scope="module")
def judged(tmp_path_factory) -> dict[str, Result]:
    return results(tmp_path_factory.mktemp("sessions"))


@pytest.mark.parametrize("group", ["tuned", "held-out"])
def test_a_contract_invents_nothing(judged, group) -> None:
    assert judged[group].invented == []


@pytest.mark.parametrize("name", FIELDS)
def test_a_contract_says_what_is_true(judged, name) -> None:
    tally = judged["tuned"].fields[name]
    assert tally.true > 10
    assert tally.recall >= AIMS[name], tally.missed


@pytest.mark.parametrize("name", FIELDS)
def test_a_contract_says_most_of_what_is_true_of_sessions_that_nothing_was_tuned_on(judged, name) -> None:
    tally = judged["held-out"].fields[name]
    assert tally.true > 2
    assert tally.recall >= AIMS[name] - 0.15, tally.missed


@pytest.mark.parametrize("group", ["tuned", "held-out"])
def test_a_brief_shows_what_is_never_cut(judged, group) -> None:
    shown = judged[group].shown
    assert [shown[name].missed for name in ("goal", "constraints", "doNotRedo", "nextAction")] == [[]] * 4


def test_a_brief_keeps_within_its_tokens(judged) -> None:
    assert all(max(result.tokens["brief"]) <= MOST_TOKENS for result in judged.values())


@pytest.mark.parametrize(("held_out", "recall", "precision"), [(False, 0.95, 0.97), (True, 0.4, 0.8)])
def test_ways_of_saying_it_are_known_and_what_says_something_else_is_not_taken_for_it(
    held_out, recall, precision
) -> None:
    tallies, told = sentences.tallies(held_out=held_out)
    assert all(tally.true >= 10 for tally in tallies.values())
    assert all(tally.recall >= recall and tally.precision >= precision for tally in tallies.values()), told


def test_a_statement_is_matched_only_where_it_says_little_else() -> None:
    assert holds("We chose *batches of 500 rows*, since larger ones time out.", "batches of 500 rows")
    assert not holds("We chose batches of 50 rows.", "batches of 500 rows")
    assert not holds("batches of 500 rows " * 9, "batches of 500 rows")


def test_a_stated_item_counts_for_one_true_item_only() -> None:
    tally = Tally()
    tally.add("remaining", [Item("Write tests")], [Item("Write tests"), Item("Write tests")], "x")
    assert (tally.recall, tally.precision) == (0.5, 1.0)


def test_words_that_stand_in_no_source_are_invented() -> None:
    items = {"decisions": [Item("Use Redis", source="plan"), Item("Use a list because it is short", source="plan")]}
    found = invented(items, {}, words("so: use a list, it is short"), lambda _name, _item: False)
    assert [line.partition(" [")[0] for line in found] == ["decisions: Use Redis"]


def test_what_the_truth_says_never_to_say_is_invented_though_it_stands_in_a_source() -> None:
    items = {"constraints": [Item("You must publish now", source="prompt")]}
    never = {"constraints": ["publish now"]}
    assert list(invented(items, never, words("you must publish now"), lambda _name, _item: False))
