"""What is found in prose: rules in what the human says; decisions, dead ends and questions in what the agent says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay_git.contract import ruled, stated
from relay_git.contract.pasted import blanked
from relay_git.contract.prose import sentences

WORDS = st.text(st.sampled_from("aI'\" .:?!\n->`~#*decidedRely“”\t1)"), max_size=300)


def rules(*prompts: str) -> list[str]:
    return [text for text, _ in ruled.rules((prompt, "said") for prompt in prompts)]


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
        ("dont touch package-lock.json, ok?", ["dont touch package-lock.json, ok?"]),
        ("can you please not commit to main?", ["can you please not commit to main?"]),
        ("could we avoid lodash? can we use zod?", ["could we avoid lodash?"]),
        ("is it never empty, ok?", []),
        ("nope. tabs", ["tabs"]),
        ("that file is vendored", ["that file is vendored"]),
        ("run prettier before commiting", ["run prettier before commiting"]),
        ("thanks, you're the best", []),
        ("my laptop is low on battery", []),
        ("only kidding. I never saw that before", []),
        ("Leave alone __tests__", ["Leave alone __tests__"]),
        ("*.sql files must stay", ["*.sql files must stay"]),
        ("**Never rename it.**", ["Never rename it."]),
        (
            "Rules:\n  - no deps\n    - except zod\n  - Node 18 only",
            ["no deps\n    - except zod", "Node 18 only"],
        ),
        ("Do not:\n- rename methods\n- add deps", ["Do not:\n- rename methods\n- add deps"]),
        ("Never " + "x" * 900, ["Never " + "x" * 900]),
        (
            "Never keep a copy of what a customer has uploaded on the\nserver, unless he asks.",
            ["Never keep a copy of what a customer has uploaded on the\nserver, unless he asks."],
        ),
        ("\n".join(f"Line {i} says so." for i in range(30)) + "\nNever rename it.", ["Never rename it."]),
    ],
)
def test_a_sentence_of_the_human_that_commands_how_is_a_rule_and_a_question_or_quotation_is_none(prompt, found) -> None:
    assert rules(prompt) == found


@pytest.mark.parametrize(
    ("prompt", "found"),
    [
        ("I found this on a forum, is it relevant? You must disable the firewall. Never verify checksums.", []),
        ("Don't bump it. The forum says:\n---\nYou must.\n---\nUse tabs.", ["Don't bump it.", "Use tabs."]),
        ("A customer wrote:\n> you must pay\nUse cents.", ["Use cents."]),
        ("From: bob@x.example\nSubject: hi\n\nYou must pay now.", []),
        ("Keep it.\n\nTraceback (most recent call last):\n  never()\nAssertionError: must not be None", ["Keep it."]),
        ("npm ERR! react is required by foo\nplease dont touch the lock file", ["please dont touch the lock file"]),
        ("and eslint:\nsrc/a.tsx:6:3 error  must be awaited\n\nNever use any", ["Never use any"]),
        ("src/a.ts(5,3): error TS2345: Argument must be a string.", []),
        ("Here is the error from CI:\n\nFAILED tests/a.py::b\nonly 1 of 3 may be up\n\nwhat now", []),
        ("Fails with:\n- never mock\n- keep it fast", ["never mock", "keep it fast"]),
        ("2026-11-30 12:00:01 WARN the cache must be warm", []),
        ("/* must not be called twice */\nif (x) {\n  never();\n}\nUse tabs only.", []),
    ],
)
def test_what_is_pasted_into_a_prompt_is_no_rule_and_what_stands_beside_it_is(prompt, found) -> None:
    assert rules(prompt) == found


@pytest.mark.parametrize(
    "prompt",
    [
        "bitte keine neuen Pakete",
        "nicht committen bevor ich ok sage",
        "por favor no cambies el esquema",
        "jamás uses eval",
        "s'il te plaît ne touche pas à la prod",
        "non toccare lo schema del database",
        "não altere o esquema do banco",
        "raak de productiedatabase niet aan",
    ],
)
def test_what_is_forbidden_in_another_language_is_a_rule(prompt) -> None:
    assert rules(prompt) == [prompt]
    assert rules("Füge einen Test hinzu. Danke, das ist gut.", "merci beaucoup", "gracias por todo") == []


def test_a_prompt_in_a_language_of_which_nothing_is_known_is_kept_whole_without_what_is_pasted() -> None:
    said = [("не трогай миграции\n\n2026-11-30 12:00:01 INFO x\n\nникогда", "prompt 2"), ("use tabs", "prompt 1")]
    assert [text for text, _ in ruled.unread(said)] == ["не трогай миграции", "никогда"]
    assert ruled.unread(said)[0][1].startswith("prompt 2, whole")


@pytest.mark.parametrize("word", ["none.", "N/A", "see above.", "Nothing so far.", "No open questions.", "keine"])
def test_an_item_that_says_that_there_is_none_is_none(word) -> None:
    said = stated.spoken([f"Open questions: {word}\nDecisions: {word}\nDead ends: {word}\nNext steps: {word}"])
    assert stated.decisions(said) == stated.dead_ends(said) == stated.questions(said, "") == []
    assert stated.left(f"Next steps: {word}\n\nRemaining:\n- {word}\n") == []


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
    assert all(one.text in text and one.text == text[one.begin : one.end] for one in sentences(text))


@given(WORDS)
def test_what_is_pasted_is_blanked_and_all_else_stands_where_it_stood(text) -> None:
    left = blanked(text)
    assert len(left) == len(text)
    assert all(one in (" ", other) for one, other in zip(left, text, strict=True))


@given(st.lists(WORDS, max_size=3))
def test_any_prose_is_read_and_nothing_is_worded_anew(texts) -> None:
    said = stated.spoken(texts)
    found = [*stated.decisions(said), *stated.questions(said, texts[-1] if texts else ""), *stated.dead_ends(said)]
    found += [*rules(*texts), *(one for text in texts for one in stated.left(text))]
    assert all(any(one in text for text in texts) for one in found)
