"""Notes: what an agent or a person said on purpose while the work went on, to be in the next contract.

Promise: a file of notes is read whatever it holds: bounded, line by line, and what is no note is counted. A note says
of itself neither who wrote it nor that it is true: its source is the file that it was found in, which the caller names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import orjson

from relay_git.contract.bounds import whole

MOST_BYTES = 256 * 1024
MOST_TEXT = 2000
_MOST_NOTES = 500
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


class Kind(StrEnum):
    """What a note is about; all but the last two have a trailer of commit messages for the same."""

    DECISION = "decision"
    CONSTRAINT = "constraint"
    DO_NOT_REDO = "do-not-redo"
    NEXT = "next"
    QUESTION = "question"
    HYPOTHESIS = "hypothesis"


@dataclass(frozen=True, slots=True)
class Note:
    """One note, the leg in which it was written, where it was found, and the open questions that it answers.

    `at` is when it was written, as a contract has its instants, empty where that is not known.
    """

    kind: Kind
    text: str
    leg: int
    source: str
    answers: tuple[str, ...] = ()
    at: str = ""


def line(kind: Kind, text: str, leg: int, at: str, answers: tuple[str, ...] = ()) -> bytes:
    """A note as its file holds it; `text` is redacted already, `answers` are questions as a contract has them."""
    said = {"kind": str(kind), "text": whole(text), "leg": leg, "at": at}
    return orjson.dumps(said | ({"answers": answers} if answers else {})) + b"\n"


def parse(data: bytes, source: str) -> tuple[list[Note], int]:
    """The notes in a file, oldest first, and how many lines are none."""
    found, skipped = list[Note](), 0
    for piece in data[-MOST_BYTES:].split(b"\n")[-_MOST_NOTES - 1 :]:
        note = _note(piece, source) if piece.strip() else None
        if note is not None:
            found.append(note)
        else:
            skipped += bool(piece.strip())
    return found, skipped


def of(kind: Kind, notes: Iterable[Note]) -> list[Note]:
    """The notes of one kind, the newest first."""
    return [note for note in notes if note.kind is kind][::-1]


def _note(piece: bytes, source: str) -> Note | None:
    try:
        said = orjson.loads(piece)
        kind, text, leg, answers = Kind(said["kind"]), said["text"], said["leg"], said.get("answers", [])
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        return None
    if not isinstance(text, str) or not text.strip() or type(leg) is not int:
        return None
    at = said.get("at")
    when = at if isinstance(at, str) and _INSTANT.fullmatch(at) else ""
    asked = tuple(each for each in answers if isinstance(each, str)) if isinstance(answers, list) else ()
    return Note(kind, text.strip()[:MOST_TEXT], leg, source, asked, when)
