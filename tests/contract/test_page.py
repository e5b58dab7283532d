"""The page for a person: what is asked, why, what cannot be taken back and how to answer, all of it quoted."""

from __future__ import annotations

import re

import pytest

from relay_git.contract.page import TITLE, page
from tests.contract.hostile import HOSTILE
from tests.contract.samples import unsigned
from tests.contract.test_hostile import full

HEADINGS = [
    "What is asked of you",
    "Why now",
    "Deadline",
    "Risk, and what can be taken back",
    "What git relay noticed",
    "Options",
    "What the task is",
    "Evidence",
]


def section(text: str, title: str) -> str:
    return text.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_it_says_what_is_asked_first_and_how_to_answer() -> None:
    text = page(unsigned())
    assert text.startswith(TITLE)
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == HEADINGS
    assert "Who pays the fee?" in section(text, "What is asked of you")
    assert "five-hour window" in section(text, "Why now")
    assert "2026-01-02T08:00:00" in section(text, "Deadline")
    risk = section(text, "Risk, and what can be taken back")
    assert "Cannot be taken back by git: `npx prisma migrate deploy`" in risk
    assert "Never touch billing/" in risk
    assert "git relay answer refund-flow-7c1e" in section(text, "Options")
    assert "exit 0: `npm test`" in section(text, "Evidence")


def test_what_is_not_known_is_said_to_be_so() -> None:
    bare = unsigned() | {"summary": {"facts": [], "hypotheses": [], "openQuestions": []}, "evidence": [], "checks": []}
    text = page(bare)
    assert "None is known" in section(text, "Deadline")
    assert section(text, "Evidence").strip() == "- none"


@pytest.mark.parametrize("kind", HOSTILE)
def test_no_hostile_text_changes_the_page(kind: str) -> None:
    text = page(full(HOSTILE[kind]))
    assert re.findall(r"^ *#+ .*$", text, re.MULTILINE) == [TITLE, *(f"## {title}" for title in HEADINGS)]
    for line in text.split("\n"):
        assert not line or line.startswith(("- ", ">", "#", "Contract: ", "Session: ")), line
