"""What is kept when there is too much: the caps of a contract, in bytes of its canonical form.

Promise: a contract that went through `fit` is signed within 256 KiB whatever went in, and everything that was cut is
named in its `losses`. Lists come in order of worth, so that what is cut is their end; `doNotRedo` and `constraints`
are first shortened, no more than is needed, and what does not fit even then is counted in an item of their own, which
says where it is found.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from relay_git.contract.canonical import JsonObject, canonical
from relay_git.contract.redact import EXEMPT

TEXTS = {
    "taskGoal": 8 * 1024,
    "initialPrompt": 24 * 1024,
    "nextAction": 4 * 1024,
    "nextActionSource": 512,
    "outputContract": 4 * 1024,
    "branch": 1024,
}
"""The most bytes that a text of the contract may take."""


@dataclass(frozen=True, slots=True)
class Cap:
    """The most items of a list, bytes of one text in it, and bytes of all of it."""

    items: int
    text: int
    total: int


LISTS = {
    "doNotRedo": Cap(400, 8 * 1024, 32 * 1024),
    "constraints": Cap(200, 8 * 1024, 16 * 1024),
    "plan": Cap(200, 1024, 12 * 1024),
    "tasksRemaining": Cap(200, 1024, 12 * 1024),
    "decisions": Cap(100, 8 * 1024, 14 * 1024),
    "facts": Cap(30, 512, 4 * 1024),
    "hypotheses": Cap(8, 3072, 6 * 1024),
    "openQuestions": Cap(60, 6 * 1024, 8 * 1024),
    "evidence": Cap(60, 6 * 1024, 16 * 1024),
    "checks": Cap(50, 1024, 12 * 1024),
    "acceptance": Cap(30, 1024, 4 * 1024),
    "fileManifest": Cap(400, 4096, 32 * 1024),
    "inFlightCode": Cap(40, 6 * 1024, 24 * 1024),
    "skills": Cap(50, 200, 2 * 1024),
    "losses": Cap(60, 400, 8 * 1024),
}
"""The caps of every list; with the texts they add up to less than 256 KiB."""

CUT = "[... cut by git relay"
COUNTED = "git relay"
"""The source of the item that only counts what did not fit."""
_SHORTER = (1024, 600, 300, 160)  # bytes of a text, where a list that is never cut is too long
_FOUND_IN = {
    "prompt ": "the transcript of the agent",
    "hypothesis": "the transcript of the agent",
    "plan": "the transcript of the agent",
    "command": "the transcript of the agent",
    "the task": "the goal",
    "note of ": "the notes of the session",
    "commit ": "git log",
    "git": "git log",
}
_SURROGATE = re.compile("[\ud800-\udfff]")


def fit(contract: JsonObject) -> JsonObject:
    """The contract within its caps; what was cut is added to `losses`."""
    losses: list[str] = []
    fitted: JsonObject = {}
    for name, value in contract.items():
        fitted[name] = _fit_member(name, value, losses, contract.get("leg"))
    fitted["losses"] = _fit_list("losses", [*losses, *contract["losses"]], [], None)
    return fitted


def whole(text: str) -> str:
    """The text with halves of surrogate pairs, which no UTF-8 can hold, replaced."""
    return _SURROGATE.sub("\ufffd", text)


def cut(text: str, limit: int) -> str:
    """The text, or its head and tail with what is left out between them, in at most `limit` bytes as JSON."""
    if len(text) * 6 + 2 <= limit or _size(text) <= limit:
        return text
    room = limit - 100
    head = _head(text, room * 2 // 3)
    tail = _head(text[::-1], room // 3)[::-1]
    left_out = len(text) - len(head) - len(tail)
    return f"{head} {CUT}: {left_out} of {len(text)} characters left out ...] {tail}"


def _fit_member(name: str, value: object, losses: list[str], leg: object) -> object:
    if isinstance(value, str) and name in TEXTS:
        kept = cut(value, TEXTS[name])
        if kept != value:
            losses.append(f"{name}: {len(value)} characters were cut to their beginning and end")
        return kept
    if isinstance(value, list) and name in LISTS:
        return _fit_list(name, value, losses, leg)
    if isinstance(value, dict) and name == "summary":
        return {member: _fit_member(member, item, losses, leg) for member, item in value.items()}
    if isinstance(value, dict):
        return {member: cut(item, 512) if isinstance(item, str) else item for member, item in value.items()}
    return value


def _fit_list(name: str, items: list[object], losses: list[str], leg: object) -> list[object]:
    cap = LISTS[name]
    if name in ("doNotRedo", "constraints"):
        return _fit_never_dropped(name, items, cap, losses, leg)
    kept, shortened = _taken(items, cap)
    if shortened:
        losses.append(f"{name}: {shortened} long texts were cut to their beginning and end")
    if len(kept) < len(items):
        losses.append(f"{name}: {len(kept)} of {len(items)} entries are kept")
    return kept


def _fit_never_dropped(name: str, items: list[object], cap: Cap, losses: list[str], leg: object) -> list[object]:
    kept, shortened = _taken(items, cap)
    for shorter in _SHORTER:
        if len(kept) < min(len(items), cap.items):
            kept, shortened = _taken(items, Cap(cap.items, shorter, cap.total - 512))
    if shortened:
        losses.append(f"{name}: {shortened} long texts were cut to their beginning and end")
    left_out = items[len(kept) :]
    if left_out:
        where = _found_in(left_out)
        losses.append(f"{name}: {len(left_out)} of {len(items)} entries did not fit and are only counted: {where}")
        member = "rule" if name == "constraints" else "text"
        more = f"and {len(left_out)} more that did not fit into the contract of leg {leg}: {where}"
        kept.append({member: more, "source": COUNTED})
    return kept


def _found_in(items: list[object]) -> str:
    """Where what is left out is found, and how much of it; what an earlier leg said, in the contract that had it."""
    counts: Counter[str] = Counter()
    for item in items:
        source = str(item["source"]) if isinstance(item, dict) else ""
        place = next((told for start, told in _FOUND_IN.items() if source.startswith(start)), "no other place")
        counts["the contract before" if ", leg " in source else place] += 1
    return ", ".join(f"{count} in {place}" for place, count in counts.items())


def _taken(items: list[object], cap: Cap) -> tuple[list[object], int]:
    kept: list[object] = []
    shortened, room = 0, cap.total - 2
    for item in items[: cap.items]:
        short = _short(item, cap.text)
        room -= _size(short) + 1
        if room < 0:
            break
        shortened += short != item
        kept.append(short)
    return kept, shortened


def _short(item: object, limit: int) -> object:
    if isinstance(item, str):
        return cut(item, limit)
    if isinstance(item, dict):  # Ids, hashes and paths are exact or they are nothing: an entry too big goes as a whole.
        short = {k: cut(v, limit) if isinstance(v, str) and k not in EXEMPT else v for k, v in item.items()}
        return short | {"truncated": True} if "snippet" in item and short != item else short
    return item


def _head(text: str, limit: int) -> str:
    """As much of the beginning as takes at most `limit` bytes."""
    part = text[:limit]
    while (size := _size(part)) > limit:
        part = part[: max(0, min(len(part) - 1, len(part) * limit // size))]
    return part


def _size(value: object) -> int:
    return len(canonical(value))
