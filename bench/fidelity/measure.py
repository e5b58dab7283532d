"""The table: recall and precision of every field, what is invented, and tokens, beside two ways without a contract."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.fidelity import sentences
from bench.fidelity.corpus import Session, snapshot_ref, unpacked
from bench.fidelity.score import FIELDS, Item, Tally, invented, matches, stated, true, words
from bench.measure import Table
from relay_git.contract.brief import brief
from relay_git.contract.budget import tokens
from relay_git.git.run import Git

AIMS = dict.fromkeys(FIELDS, 0.95) | {"decisions": 0.8, "openQuestions": 0.8}
MOST_TOKENS = 4000
LAST = 20


@dataclass
class Result:
    """What came of a set of sessions: a tally a field for the contract, recall a field for what is only text."""

    sessions: int = 0
    fields: dict[str, Tally] = field(default_factory=lambda: {name: Tally() for name in FIELDS})
    shown: dict[str, Tally] = field(default_factory=lambda: {name: Tally() for name in FIELDS})
    last: dict[str, Tally] = field(default_factory=lambda: {name: Tally() for name in FIELDS})
    ends: dict[str, Tally] = field(default_factory=lambda: {name: Tally() for name in FIELDS})
    tokens: dict[str, list[int]] = field(default_factory=lambda: {"brief": [], "last": [], "ends": []})
    invented: list[str] = field(default_factory=list)


def judge(session: Session, result: Result) -> None:
    """Add one session's figures."""
    contract, truth = session.contract(), session.script["truth"]
    facts = {name: [true(name, line) for line in truth[name]] for name in FIELDS}
    items, told = stated(contract), [*messages(session)]
    texts = {"brief": brief(contract), "last": "\n".join(told[-LAST:]), "ends": _ends(session)}
    result.sessions += 1
    for name in FIELDS:
        result.fields[name].add(name, items[name], facts[name], session.name)
        for tally, text in ((result.shown, "brief"), (result.last, "last"), (result.ends, "ends")):
            _in_text(tally[name], facts[name], texts[text], session.name)
    for name, text in texts.items():
        result.tokens[name].append(tokens(text))
    sources = words("\n".join([*told, session.script["prompts"][0], _history(session)]))

    def listed(name: str, item: Item) -> bool:
        return any(matches(name, item, fact) for fact in facts[name])

    wrong = invented(items, truth["never"], sources, listed)
    result.invented += [f"{session.name}: {line}" for line in wrong]


def _in_text(tally: Tally, facts: list[Item], text: str, where: str) -> None:
    """A text has no fields: what stands in it anywhere is found."""
    heap = words(text)
    for fact in facts:
        tally.true += 1
        if words(fact.text) in heap:
            tally.found += 1
        else:
            tally.missed.append(f"{where}: {fact.text}")


def _ends(session: Session) -> str:
    prompts: list[str] = session.script["prompts"]
    return "\n\n".join(dict.fromkeys((prompts[0], prompts[-1])))


def _history(session: Session) -> str:
    """All that git and the notes say: messages, names of files, and the notes."""
    log = Git(session.folder / "repo").run("log", "--format=%B", "--name-only", snapshot_ref("snapshot"))
    return log.decode("utf-8", "replace") + (session.folder / "notes").read_text()


_TEXT = ("text", "content", "message", "thinking", "output", "stdout", "command", "cmd", "input", "arguments", "query")
_NOT_SAID = ("session_meta", "turn_context", "event_msg", "world_state", "system", "attachment")


def messages(session: Session) -> Iterator[str]:
    """Every record of the transcript that says something, as text: prompts, answers, calls and their output."""
    entry, _ = session.entry()
    files = [entry] if entry.is_file() else sorted(path for path in entry.rglob("*") if path.is_file())
    for file in files:
        for record in _records(file):
            said = "\n".join(_strings(record))
            if said.strip():
                yield said


def _records(file: Path) -> Iterator[Any]:
    if file.suffix == ".db":
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
            for (data,) in database.execute("SELECT data FROM part ORDER BY time_created, id"):
                yield json.loads(data)
    elif file.suffix == ".md":
        yield from ({"text": part} for part in file.read_text().split("\n#### "))
    elif file.suffix in (".json", ".jsonl"):
        for line in file.read_text().splitlines() if file.suffix == ".jsonl" else [file.read_text()]:
            record = json.loads(line)
            if record.get("type") not in _NOT_SAID:
                yield from record.get("history") or record.get("messages") or [record]


def _strings(value: object, name: str = "") -> Iterator[str]:
    if isinstance(value, str):
        found = _parsed(value) if value.startswith("{") else None
        if found is not None:
            yield from _strings(found, name)
        else:
            yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item, name)


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None


def results(scratch: Path, only: str = "") -> dict[str, Result]:
    """The figures of the sessions on which the product was tuned, and of those that were held out."""
    found = {"tuned": Result(), "held-out": Result()}
    for session in unpacked(scratch, only):
        judge(session, found["held-out" if session.held_out else "tuned"])
    return found


def measure(scratch: Path, *, small: bool) -> Table:
    """The whole corpus, whatever is asked for: it takes seconds."""
    table = Table("fidelity", "Recorded sessions of real agents and a truth written by hand: docs/fidelity.md.")
    for name, result in results(scratch).items():
        table.notes += ["", *_lines(name, result)]
    for held_out in (False, True):
        table.notes += ["", *_single(held_out=held_out)]
    return table


def _single(*, held_out: bool) -> Iterable[str]:
    tallies, told = sentences.tallies(held_out=held_out)
    yield f"single sentences, {'held-out' if held_out else 'tuned'}"
    for kind, tally in tallies.items():
        yield f"{kind:15}{tally.true:6}{tally.recall:8.1%}{tally.precision:11.1%}"
    yield from (f"   {line}" for line in told)


def _lines(name: str, result: Result) -> Iterable[str]:
    yield f"{result.sessions} sessions, {name}"
    head = ("FIELD", "TRUE", "RECALL", "PRECISION", "IN THE BRIEF", f"LAST {LAST}", "FIRST AND LAST", "AIM", "")
    yield "{:15}{:>6}{:>8}{:>11}{:>14}{:>9}{:>16}{:>6}  {}".format(*head)
    for one in FIELDS:
        tally, aim = result.fields[one], AIMS[one]
        shares = (result.shown[one].recall, result.last[one].recall, result.ends[one].recall)
        verdict = "holds" if tally.recall >= aim else "MISSED"
        figures = (tally.true, tally.recall, tally.precision, *shares, aim, verdict)
        yield "{:15}{:6}{:8.1%}{:11.1%}{:14.1%}{:9.1%}{:16.1%}{:6.0%}  {}".format(one, *figures)
    counts = {text: (sum(found) // max(1, len(found)), max(found, default=0)) for text, found in result.tokens.items()}
    for text, title in (("brief", "brief"), ("last", f"last {LAST} messages"), ("ends", "first and last prompt")):
        mean, most = counts[text]
        yield f"tokens, {title}: {mean} on average, {most} at most"
    yield f"invented: {len(result.invented)} (aim 0) {'MISSED' if result.invented else 'holds'}"
    yield from (f"   invented: {line}" for line in result.invented)
    for one in FIELDS:
        yield from (f"   missed: {one}: {line}" for line in result.fields[one].missed)
    for one in FIELDS:
        yield from (f"   not in the truth: {one}: {line}" for line in result.fields[one].extra)
