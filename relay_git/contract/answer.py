"""The answer of an agent that was asked what the next one must know: the question, and what is made of the answer.

Promise: whatever was said, `parse` ends in an Answer within its bounds or in `Malformed`, and nothing is taken for true
because it was said. Work counts as done only where a commit or a command of the session shows it; a file or a commit
that is named and is not there is kept, and marked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from relay_git.contract.bounds import cut
from relay_git.contract.canonical import JsonObject, Malformed, strict_parse
from relay_git.contract.notes import Kind, Note
from relay_git.contract.proof import shows_nothing

SOURCE = "answer of the agent, asked at the handoff"
TITLE = "# git relay asks: what must the next agent know?"
MOST_BYTES = 32 * 1024
MOST_ITEMS = 20
MOST_TEXT = 600  # bytes of one text


def _list(item: JsonObject) -> JsonObject:
    return {"type": "array", "maxItems": MOST_ITEMS, "items": item}


def _pair(first: str, second: str) -> JsonObject:
    members = {name: {"type": "string", "maxLength": MOST_TEXT} for name in (first, second)}
    return {"type": "object", "properties": members, "required": [first]}


_TEXT = {"type": "string", "maxLength": MOST_TEXT}
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "done": _list(_pair("what", "proof")),
        "decisions": _list(_pair("what", "why")),
        "constraints": _list(_TEXT),
        "doNotRedo": _list(_TEXT),
        "openQuestions": _list(_TEXT),
        "nextAction": _TEXT,
        "files": _list(_pair("path", "why")),
    },
}

QUESTION = f"""\
{TITLE}

Another agent goes on with your task, and it has not seen this conversation. Answer from what you remember: call no
tool, change nothing, begin nothing new. Say only what holds; leave out what you do not know.

- done: what is finished, each with its proof: the command that showed it, or the id of the commit.
- decisions: what was decided, and why. constraints: rules and prohibitions to keep.
- doNotRedo: what must not happen a second time, dead ends too. openQuestions: what nobody has answered yet.
- nextAction: the one next step, concrete. files: those that matter for it, by path in the repository, and why.

Your whole answer is one JSON object by this schema, in less than 1,500 words, with nothing before or after it:

{json.dumps(SCHEMA, separators=(",", ":"))}
"""

_ID = re.compile(r"[0-9a-f]{7,40}")
_COMMIT = re.compile(r"(?i)(?<=\bcommit )`?([0-9a-f]{7,40})\b")

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    """What was said; each pair is a thing and what was added to it. `left_out` counts what was beyond the bounds."""

    done: tuple[Pair, ...] = ()
    decisions: tuple[Pair, ...] = ()
    constraints: tuple[str, ...] = ()
    do_not_redo: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    next_action: str = ""
    files: tuple[Pair, ...] = ()
    left_out: int = 0

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that it names."""
        return tuple(path for path, _ in self.files)

    @property
    def commits(self) -> tuple[str, ...]:
        """What it names as commits, by ids that may be short."""
        ids = [proof for _, proof in self.done if _ID.fullmatch(proof)]
        texts = (*self.constraints, *self.do_not_redo, *self.questions, self.next_action)
        pairs = (*self.done, *self.decisions, *self.files)
        said = "\n".join((*texts, *(part for pair in pairs for part in pair)))
        return tuple(dict.fromkeys((*ids, *(found[1] for found in _COMMIT.finditer(said)))))


@dataclass(frozen=True, slots=True)
class Found:
    """What was looked up: paths and commits that are not there, the session's own, and how each command ended last."""

    missing_paths: frozenset[str] = frozenset()
    missing_commits: frozenset[str] = frozenset()
    own_commits: tuple[str, ...] = ()
    exits: Mapping[str, int | None] = field(default_factory=dict)


def parse(text: str) -> Answer:
    """The answer in an agent's last words; raises `Malformed` for anything but one object as it was asked for."""
    begin, end = text.find("{"), text.rfind("}")
    if not 0 <= begin < end:
        raise Malformed("it is no JSON object")
    data = text[begin : end + 1].encode("utf-8", "replace")
    if len(data) > MOST_BYTES:
        raise Malformed(f"it has {len(data)} bytes, the limit is {MOST_BYTES}")
    said = strict_parse(data)
    lists = {name: said.get(name, []) for name in SCHEMA["properties"] if name != "nextAction"}
    bad = [name for name, items in lists.items() if not isinstance(items, list)]
    if bad:
        raise Malformed(f"{bad[0]} is no list")
    return Answer(
        done=_pairs(lists, "done", "what", "proof"),
        decisions=_pairs(lists, "decisions", "what", "why"),
        constraints=_texts(lists, "constraints"),
        do_not_redo=_texts(lists, "doNotRedo"),
        questions=_texts(lists, "openQuestions"),
        next_action=_text(said.get("nextAction", ""), "nextAction"),
        files=_pairs(lists, "files", "path", "why"),
        left_out=sum(max(0, len(items) - MOST_ITEMS) for items in lists.values()),
    )


def _texts(lists: JsonObject, name: str) -> tuple[str, ...]:
    texts = (_text(item, name) for item in lists[name][:MOST_ITEMS])
    return tuple(text for text in texts if text)


def _pairs(lists: JsonObject, name: str, first: str, second: str) -> tuple[Pair, ...]:
    found = []
    for item in lists[name][:MOST_ITEMS]:
        if not isinstance(item, dict):
            raise Malformed(f"{name} holds something else than objects")
        pair = _text(item.get(first, ""), name), _text(item.get(second, ""), name)
        found += [pair] if pair[0] else []
    return tuple(found)


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise Malformed(f"{name} holds something else than texts")
    return cut(" ".join(value.split()), MOST_TEXT)


def noted(answer: Answer, found: Found, leg: int) -> tuple[tuple[Note, ...], tuple[str, ...]]:
    """The answer as notes, marked by what was found, the last of a kind first; and what is to be said of losses."""
    notes = [Note(kind, _marked(text, found), leg, SOURCE) for kind, text in _said(answer, found)]
    return tuple(reversed(notes)), tuple(_losses(answer, found))


def _said(answer: Answer, found: Found) -> Iterator[tuple[Kind, str]]:
    shown = [(what, proof, _shows(proof, found)) for what, proof in answer.done]
    for what, _, how in shown:
        if how:
            yield Kind.DO_NOT_REDO, f"Done: {what} ({how})"
    yield from ((Kind.DO_NOT_REDO, text) for text in answer.do_not_redo)
    for what, why in answer.decisions:
        yield Kind.DECISION, f"{what} because {why}" if why else what
    yield from ((Kind.CONSTRAINT, text) for text in answer.constraints)
    yield from ((Kind.QUESTION, text) for text in answer.questions)
    if answer.next_action:
        yield Kind.NEXT, answer.next_action
    unshown = [f"- {what}{_proof(proof)}" for what, proof, how in shown if not how]
    if unshown:
        yield Kind.HYPOTHESIS, "\n".join(["Done, it says, and nothing that git relay saw shows it:", *unshown])
    if answer.files:
        yield Kind.HYPOTHESIS, "\n".join(["Files that it names:", *(_file(*pair, found) for pair in answer.files)])


def _shows(proof: str, found: Found) -> str:
    """How a proof was seen by git relay itself; empty where it was not."""
    if _ID.fullmatch(proof):
        return f"commit {proof}" if any(oid.startswith(proof) for oid in found.own_commits) else ""
    command = proof.strip("`")
    worked = (line for line, code in found.exits.items() if code == 0)
    if shows_nothing(command):
        return ""
    shown = any(command in (line, *map(str.strip, line.split("&&"))) for line in worked)
    return f"`{command}` ended with 0" if shown else ""


def _proof(proof: str) -> str:
    named = f"commit {proof}" if _ID.fullmatch(proof) else proof
    return f" (its proof: {named})" if proof else ""


def _file(path: str, why: str, found: Found) -> str:
    mark = " (not in the snapshot)" if path in found.missing_paths else ""
    return f"- {path}{mark}" + (f": {why}" if why else "")


def _marked(text: str, found: Found) -> str:
    def mark(named: re.Match[str]) -> str:
        return f"{named[0]} (no such commit here)" if named[1] in found.missing_commits else named[0]

    return _COMMIT.sub(mark, text)


def _losses(answer: Answer, found: Found) -> Iterator[str]:
    for missing, what in (
        (found.missing_paths, "files that are not in the snapshot"),
        (found.missing_commits, "commits that are not there"),
    ):
        if missing:
            named = ", ".join(sorted(missing)[:5])
            yield f"the agent, when asked, named {what}: {named}" + (
                f" and {len(missing) - 5} more" if len(missing) > 5 else ""
            )
    if answer.left_out:
        yield f"{answer.left_out} items of the agent's answer were beyond {MOST_ITEMS} of a kind"
