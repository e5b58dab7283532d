"""Hostile texts in every field: the brief's structure stays as it is, and nothing of them stands outside of a field."""

from __future__ import annotations

import re
import time
import unicodedata
from dataclasses import replace
from itertools import groupby

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from relay_git.contract.bounds import whole
from relay_git.contract.brief import MAX_BRIEF, brief
from relay_git.contract.build import build
from relay_git.contract.canonical import JsonObject
from relay_git.contract.page import page
from relay_git.contract.quote import block, inline
from relay_git.contract.redact import EXEMPT
from relay_git.git.work import Hunk, WorkCommit
from relay_git.session import Command, PlanItem, PlanStatus, SessionRecord
from tests.contract.hostile import FLOODS, HOSTILE
from tests.contract.samples import HEAD, PAUSE, RECORD, TASK, WORK, identity, unsigned

_EXACT = EXEMPT - {"path", "branch", "status"}
_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp", "Co", "Cn"}
_CONTROL_TOKEN = re.compile(r"<\|\w+\|>")
_OTHER_ENDS = re.compile(r"[\r\v\f\x1c-\x1e\x85\u2028\u2029]")


def spoken(value: object, said: str, name: str = "") -> object:
    """The value with every free text in it replaced; only ids, hashes and our own words are as they were."""
    if name in _EXACT or name == "status":
        return value
    if isinstance(value, dict):
        return {member: spoken(item, said, member) for member, item in value.items()}
    if isinstance(value, list):
        return [spoken(item, said, name) for item in value]
    return said if isinstance(value, str) else value


def full(said: str) -> JsonObject:
    """A contract in which every field says the same."""
    more = {"acceptance": [{"command": "x"}], "outputContract": "x", "skills": ["x"], "losses": ["x"]}
    made = spoken(unsigned() | more, said)
    assert isinstance(made, dict)
    return made | {"branch": "relay/refund-flow-7c1e", "budget": {"tokens": 1_000_000}}


def structure(text: str) -> list[str]:
    """Every line of the frame as it is; where something is quoted, only how."""
    kinds = (
        "> " if re.match(r">( |$)", line) else "- " if line.startswith("- ") else line for line in text.split("\n")
    )
    return [kind for kind, _ in groupby(kinds)]


PLAIN = [line for line in structure(brief(full("x"))) if line]


def assert_contained(said: str) -> None:
    text = brief(full(said))
    lines = [line for line in structure(text) if line]
    if not said.strip():  # a field that is empty is not shown at all
        lines = [line for line in PLAIN if line in lines]
        assert [line for line in structure(text) if line and line not in PLAIN] == []
    else:
        assert [kind for kind, _ in groupby(lines)] == [kind for kind, _ in groupby(PLAIN)]
    assert not _OTHER_ENDS.search(text)
    assert not _CONTROL_TOKEN.search(text)
    assert not [c for c in text if c not in "\n\t" and unicodedata.category(c) in _HIDDEN]
    assert len(text.encode()) <= MAX_BRIEF
    small = brief(full(said) | {"budget": {"tokens": 500}})
    assert {line for line in structure(small) if line} <= set(PLAIN)


def test_there_are_enough_of_them() -> None:
    assert len(HOSTILE) >= 60


@pytest.mark.parametrize("kind", HOSTILE)
def test_no_hostile_text_in_any_field_changes_the_structure(kind: str) -> None:
    assert_contained(HOSTILE[kind])


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from(sorted(HOSTILE.values(), key=len)[:60]) | st.text(max_size=40), max_size=4).map("\n".join)
)
@example("\\")
@example("a\n\n\n")
@example("`")
def test_no_text_at_all_changes_the_structure(said: str) -> None:
    assert_contained(whole(said))


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_tools_and_files_say_never_becomes_an_order(kind: str) -> None:
    said = HOSTILE[kind] + " QJX"
    record = replace(
        RECORD,
        plan=(PlanItem("Write the endpoint", PlanStatus.IN_PROGRESS),),
        commands=(Command("make", 0, "0" * 64, said), Command("cat notes", 0, None, said)),
        last_text=said,
    )
    work = replace(
        WORK,
        commits=(WorkCommit(HEAD, said.replace("\n", " "), ()),),
        hunks=(Hunk(b"notes.md", f"+{said}", truncated=False),),
        files=(),
    )
    made = build(identity(), PAUSE, record, work)
    assert made["nextAction"] == "Write the endpoint"
    assert [item["text"] for item in made["tasksRemaining"]] == ["Write the endpoint"]
    assert made["constraints"] == made["decisions"] == made["acceptance"] == []
    assert made["taskGoal"] == made["initialPrompt"] == identity().task


@pytest.mark.parametrize("kind", ["heading our own", "chat template", "bidi", "trailer", "contract line"])
def test_a_contract_of_nothing_but_hostile_text_is_built_and_contained(kind: str) -> None:
    said = HOSTILE[kind]
    record = SessionRecord(
        agent="claude", model=said, prompts=(said,), last_text=said, plan=(PlanItem(said, PlanStatus.PENDING),)
    )
    made = build(identity(task=said), PAUSE, record, WORK)
    heads = {line for line in PLAIN if line.startswith("#")}
    assert {line for line in brief(made).split("\n") if line.lstrip().startswith("#")} <= heads


def test_no_text_of_an_item_tells_a_source_of_its_own() -> None:
    for said in (
        "ok (source: note of the user)",
        "ok ( Source : x)",
        "x (because: so)",
        "a (\u200bsource: x) (source:",
    ):
        shown = brief(full(said)) + page(full(said))
        lines = [re.sub(r"(`+).*?\1", "", line) for line in shown.split("\n") if line.startswith("- ")]
        assert len(lines) > 20
        for mark in ("source", "because"):
            assert {len(re.findall(rf"\(\s*{mark}\s*:", line, re.IGNORECASE)) for line in lines} <= {0, 1}
    assert inline("ok (source: note)") == "ok (source\\: note)"


def test_tags_of_speakers_are_broken_in_prose_and_left_to_code() -> None:
    assert inline("a </system> b") == "a \\<\\\\/system> b"
    assert block("<user>")[1] == "> <\\user>"
    assert block("<user>", "diff")[1] == "> <user>"
    assert block("<|im_start|>", "diff")[1] == "> <\\|im_start|>"
    assert block("x <| y, a <b> c")[1] == "> x <| y, a <b> c"


@pytest.mark.parametrize("unit", FLOODS)
def test_no_text_takes_long_in_any_field(unit: str) -> None:
    said = (unit * (65_000 // len(unit)))[:60_000] + " QJX"
    record = replace(
        RECORD,
        prompts=(said, TASK, said),
        last_text=said,
        texts=(said, said[:8_000]),
        plan=(PlanItem(said[:2_000], PlanStatus.PENDING),),
        commands=(Command(said[:4_000], 0, "0" * 64, said[:400]),),
    )
    work = replace(WORK, commits=(WorkCommit(HEAD, said, ()),), hunks=(Hunk(b"notes.md", f"+{said}", truncated=False),))
    before = time.process_time()
    brief(build(identity(task=said), PAUSE, record, work))
    assert time.process_time() - before < 10  # a fraction of a second where it is linear, half a minute where it is not
