"""What is found in prose: rules in what the human says; decisions, dead ends and questions in what the agent says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay_git.contract import stated
from relay_git.contract.prose import sentences

WORDS = st.text(st.sampled_from("aI'\" .:?!\n->`~#*decidedRely“”\t1)"), max_size=300)


def rules(*prompts: str) -> list[str]:
    return [text for text, _ in stated.rules((prompt, "said") for prompt in prompts)]


@pytest.mark.parametrize(
    ("prompt", "found"),
    [
        ("Add tax. Do not round per line.", ["Do not round per line."]),
        ("Make it fast without new dependencies.", ["Make it fast without new dependencies."]),
        ("Leave package.json alone", ["Leave package.json alone"]),
        ("Use grams, not kilograms.", ["Use grams, not kilograms."]),
        ("Stop! Use tabs. Why spaces?", ["Use tabs."]),
        ("Would it be faster if we never wrote?", []),
        ("A customer wrote:\n> you must pay\nPlease answer.", []),
        ('Fix the text "you must pay" in the mail.', []),
        ("Fix this:\n```\nnever do that\n```\nThanks.", []),
        ("There is no need to hurry. Add tax.", []),
        ("Dates are written as ISO 8601.", ["Dates are written as ISO 8601."]),
        ("The catalogue search is slow. Find out why totals are off.", []),
        ("The tests are all green. That is fine.", []),
        ("The limit belongs in one constant.", ["The limit belongs in one constant."]),
        ("Thanks! Please write a test.", []),
        ("Customers complain about sizes. I'd like a table.", []),
        ("\n".join(f"Line {i} says so." for i in range(30)) + "\nNever rename it.", ["Never rename it."]),
    ],
)
def test_a_sentence_of_the_human_that_commands_how_is_a_rule_and_a_question_or_quotation_is_none(prompt, found) -> None:
    assert rules(prompt) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Decision: plain functions.", ["plain functions."]),
        ("## Decisions\n\n- ints only\n- no cache\n\n- later", ["ints only", "no cache", "later"]),
        ("I have decided to use a lock. It works.", ["I have decided to use a lock."]),
        ("I'll go with SQLite.", ["I'll go with SQLite."]),
        ("I'll use ints because floats drift.", ["I'll use ints because floats drift."]),
        ("I'll run the tests now.", []),
        ("I'm going to read the file.", []),
        ("We could use Redis; I considered it and rejected it.", []),
        ("If we decided to use Redis, it would cost.", []),
        ('The log says "Decision: drop it".', []),
        ("Have we decided?", []),
    ],
)
def test_a_choice_that_the_agent_states_is_a_decision_and_what_it_only_weighs_is_none(text, found) -> None:
    assert stated.decisions(stated.spoken([text])) == found[::-1]


def test_questions_are_open_where_the_agent_does_not_know_or_asks_at_the_end_of_its_turn() -> None:
    texts = ["Should I go on? Yes.", "It is unclear whether x holds. Which one do you want?"]
    assert stated.questions(stated.spoken(texts), texts[-1]) == [
        "Which one do you want?",
        "It is unclear whether x holds.",
    ]
    assert stated.questions(stated.spoken(texts), "") == ["It is unclear whether x holds."]


def test_what_was_tried_in_vain_is_named() -> None:
    assert stated.dead_ends(stated.spoken(["I tried IF EXISTS, but that does not work. Moving on."])) == [
        "I tried IF EXISTS, but that does not work."
    ]


def test_what_the_last_words_list_as_left_comes_in_their_order() -> None:
    assert stated.left("Done.\n\nNext steps:\n1. write tests\n2. [ ] commit\n") == ["write tests", "commit"]


@given(WORDS)
def test_a_sentence_is_a_piece_of_its_text(text) -> None:
    assert all(one.text in text for one in sentences(text))


@given(st.lists(WORDS, max_size=3))
def test_any_prose_is_read_and_nothing_is_worded_anew(texts) -> None:
    said = stated.spoken(texts)
    found = [*stated.decisions(said), *stated.questions(said, texts[-1] if texts else ""), *stated.dead_ends(said)]
    found += [*rules(*texts), *(one for text in texts for one in stated.left(text))]
    assert all(any(one in text for text in texts) for one in found)
