"""Notes: said on purpose, each with its source, and read whatever their file holds."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from relay_git.contract.build import build
from relay_git.contract.notes import Kind, Note, line, parse
from relay_git.contract.sign import seal
from relay_git.git.work import WorkCommit
from relay_git.session import PlanItem, PlanStatus, SessionRecord
from tests.contract.samples import HEAD, KEY, PAUSE, RECORD, WORK, identity, link, sealed

SOURCE = "note of the agent"


def noted(*said: tuple[Kind, str], leg: int = 1) -> tuple[Note, ...]:
    return tuple(Note(kind, text, leg, SOURCE) for kind, text in said)


def test_each_kind_comes_to_its_place_with_its_source_and_before_what_commits_say() -> None:
    notes = noted(
        (Kind.DECISION, "Amounts are euros because the bank says so"),
        (Kind.CONSTRAINT, "Keep the old route"),
        (Kind.DO_NOT_REDO, "The mails are sent"),
        (Kind.QUESTION, "Which tax?"),
        (Kind.HYPOTHESIS, "The cache is stale"),
        (Kind.NEXT, "first this"),
        (Kind.NEXT, "then that"),
    )
    made = build(identity(), PAUSE, RECORD, WORK, notes=notes)
    assert made["decisions"][0] == {"summary": "Amounts are euros", "rationale": "the bank says so", "source": SOURCE}
    assert made["constraints"][0] == {"rule": "Keep the old route", "source": SOURCE}
    assert made["doNotRedo"][0] == {"text": "The mails are sent", "source": SOURCE}
    assert made["summary"]["openQuestions"][0] == {"text": "Which tax?", "source": SOURCE}
    assert made["summary"]["hypotheses"][0] == {"text": "The cache is stale", "source": SOURCE}
    assert (made["nextAction"], made["nextActionSource"]) == ("then that", SOURCE)
    assert {item["source"] for item in made["constraints"][1:]} == {f"commit {HEAD[:12]}"}


def test_a_next_step_of_an_earlier_leg_is_over_and_the_rest_stays() -> None:
    notes = noted((Kind.NEXT, "old step"), (Kind.CONSTRAINT, "Keep the old route"))
    made = build(identity(2), PAUSE, RECORD, WORK, link(sealed()), notes=notes)
    assert made["nextAction"] == "Write the endpoint"
    assert made["constraints"][0] == {"rule": "Keep the old route", "source": SOURCE}


def test_what_is_next_stays_next_while_a_contract_is_built_again_and_no_agent_has_worked() -> None:
    first = build(identity(), PAUSE, RECORD, WORK, notes=noted((Kind.NEXT, "asked step")))
    again = build(identity(), PAUSE, RECORD, WORK, link(seal(first, KEY)))
    assert (again["nextAction"], again["nextActionSource"]) == ("asked step", SOURCE)
    idle = SessionRecord(agent="codex")
    assert build(identity(2), PAUSE, idle, WORK, link(seal(again, KEY)))["nextAction"] == "asked step"
    assert build(identity(2), PAUSE, RECORD, WORK, link(seal(again, KEY)))["nextAction"] == "Write the endpoint"


def test_a_trailer_stays_next_too_and_what_stood_half_done_does_not() -> None:
    said = replace(WORK, operation="rebase", commits=(WorkCommit(HEAD, "x", (("Relay-Next", "said step"),)),))
    first = build(identity(), PAUSE, RECORD, said)
    assert first["nextAction"].startswith("First finish or abort the rebase")
    again = build(identity(), PAUSE, RECORD, replace(said, operation=""), link(seal(first, KEY)))
    assert (again["nextAction"], again["nextActionSource"]) == ("said step", f"commit {HEAD[:12]}")


def test_what_is_noted_after_a_contract_is_next_in_the_one_that_is_built_again_and_in_that_of_the_next_leg() -> None:
    first = link(seal(build(identity(), PAUSE, RECORD, WORK, notes=noted((Kind.NEXT, "old step"))), KEY))
    at = str(first.words["createdAt"])[:-3] + "59Z"
    notes = (*noted((Kind.NEXT, "old step")), Note(Kind.NEXT, "FIRST fix CI", 1, "note of the user", at=at))
    for leg in (1, 2):
        assert build(identity(leg), PAUSE, RECORD, WORK, first, notes=notes)["nextAction"] == "FIRST fix CI"


def test_what_only_says_that_there_is_none_is_none_unless_the_human_said_it() -> None:
    notes = noted(*((kind, "None.") for kind in Kind))
    none = WorkCommit(HEAD, "x", tuple((f"Relay-{name}", "none") for name in ("Decision", "Constraint", "Next")))
    made = build(identity(), PAUSE, replace(RECORD, plan=()), replace(WORK, commits=(none,)), notes=notes)
    assert made["decisions"] == made["constraints"] == made["summary"]["openQuestions"] == []
    assert made["nextActionSource"].startswith("rule")
    assert all(item["text"] != "None." for item in made["doNotRedo"])
    answer = (Note(Kind.DECISION, "none", 1, "note of the user"),)
    assert build(identity(), PAUSE, RECORD, WORK, notes=answer)["decisions"][0]["summary"] == "none"


def test_secrets_in_notes_are_taken_out() -> None:
    secret = "gsk" + "_" + "Zq7Rk2Lm9Xw4Tn6Vb8Yc3Hd5Jf1Gp0Sa"
    made = build(identity(), PAUSE, RECORD, WORK, notes=noted((Kind.CONSTRAINT, f"use {secret}")))
    assert made["constraints"][0]["rule"] == "use [redacted:groq-key]"
    assert made["redactions"] == {"groq-key": 1}


def test_a_plan_that_was_cancelled_stays_cancelled() -> None:
    record = replace(RECORD, plan=(PlanItem("Write it", PlanStatus.CANCELLED),))
    work = replace(WORK, commits=(WorkCommit(HEAD, "x"),))
    made = build(identity(), PAUSE, record, work)
    assert made["tasksRemaining"] == []
    assert made["nextAction"] != "Write it"


def test_what_is_written_is_read_back_in_order() -> None:
    data = b"".join(line(kind, f"say {kind}", 3, "2026-01-02T03:04:05Z") for kind in Kind)
    found, skipped = parse(data, SOURCE)
    assert found == [Note(kind, f"say {kind}", 3, SOURCE, at="2026-01-02T03:04:05Z") for kind in Kind]
    assert skipped == 0


@given(st.binary(max_size=300) | st.text(max_size=100).map(str.encode))
def test_any_file_of_notes_can_be_read(data: bytes) -> None:
    good = line(Kind.NEXT, "x", 1, "")
    found, _ = parse(data + b"\n" + good, SOURCE)
    assert found[-1] == Note(Kind.NEXT, "x", 1, SOURCE)
    many, skipped = parse(b"[]\n" * 10 + b'{"kind":"next","text":5,"leg":1}\n' + good * 3, SOURCE)
    assert (len(many), skipped) == (3, 11)
