"""Single sentences, as agents and people say them, and what the product takes each for.

Beside the recorded sessions: those show whether a contract holds what was said, these how many ways of saying it are
known. Those below the line that says so are held out: they were written when the words were chosen, and only measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from relay_git.contract import ruled, stated

SENTENCES = Path(__file__).parent / "sentences.txt"
KINDS = ("decision", "dead-end", "question", "rule")
OF_A_PERSON = ("rule", "chat")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence with what it is."""

    kind: str
    text: str
    held_out: bool


def sentences() -> Iterator[Sentence]:
    """All of them."""
    held_out = False
    for line in SENTENCES.read_text("utf-8").splitlines():
        held_out |= line.startswith("# held out")
        if not line.startswith("#"):
            kind, _, text = line.partition("\t")
            yield Sentence(kind, text, held_out)


def taken_for(sentence: Sentence) -> set[str]:
    """What the product makes of it."""
    if sentence.kind in OF_A_PERSON:
        said = [(sentence.text, "")]
        return {"rule"} if ruled.rules(said) or ruled.unread(said) else set()
    spoken = stated.spoken([sentence.text])
    found = {
        "decision": stated.decisions(spoken),
        "dead-end": stated.dead_ends(spoken),
        "question": stated.questions(spoken, ""),
    }
    return {kind for kind, items in found.items() if items}


@dataclass
class Tally:
    """Of one kind: how many there are, how many were found, and what was taken for it without being it."""

    true: int = 0
    found: int = 0
    wrong: int = 0

    @property
    def recall(self) -> float:
        return self.found / max(1, self.true)

    @property
    def precision(self) -> float:
        return self.found / max(1, self.found + self.wrong)


def tallies(*, held_out: bool) -> tuple[dict[str, Tally], list[str]]:
    """The figures of each kind, and every sentence that was taken for what it is not."""
    found, told = {kind: Tally() for kind in KINDS}, list[str]()
    for one in sentences():
        if one.held_out == held_out:
            taken = taken_for(one)
            told += [f"{one.kind}, taken for {sorted(taken) or 'nothing'}: {one.text}"] if taken ^ _truth(one) else []
            for kind in KINDS:
                found[kind].true += one.kind == kind
                found[kind].found += one.kind == kind and kind in taken
                found[kind].wrong += one.kind != kind and kind in taken
    return found, told


def _truth(one: Sentence) -> set[str]:
    return {one.kind} & set(KINDS)
