"""Keys in what a session brings, which are reported and never taken out, and in what a push would send.

Promise: a key is named by its rule and its place, and never shown. It is looked for in every file, message and tag that
is new, so also in what a later commit took out again, where it is small enough; of a session within bounds of number
and bytes. How many objects were not searched is told.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from relay_git.contract.placeholder import Policy
from relay_git.contract.redact import keys_in, redact
from relay_git.errors import printable
from relay_git.git.outgoing import Outgoing, Push, outgoing
from relay_git.git.run import Git
from relay_git.git.store import Oid, Store

_MOST_FILE = 1 << 20
_MOST_BYTES = 16 << 20
_MOST_OBJECTS = 5_000
_NAMED = 20
_SHOWN = 5
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True, slots=True)
class _Found:
    """Where a key is, in words, and by which rules; the object that holds it."""

    place: str
    rules: str
    item: Outgoing


def keys(store: Store, git: Git, tip: Oid, known: Iterable[Oid], policy: Policy, *, history: bool = True) -> list[str]:
    """A sentence for each place of a key in what `tip` has and `known` have not, and one where not all was searched.

    Without `history` only what `tip` itself still holds counts.
    """
    found, left_out = _search(outgoing(git, Push((tip,), ()), known, _MOST_FILE), policy, bounded=True)
    commit = store.commit(tip)
    told = list[str]()
    for each in found:
        there = commit is not None and _is_there(store, commit.tree, each.item)
        if there:
            told.append(f"{each.place} holds what looks like a secret ({each.rules}): take it out and change it")
        elif history:
            told.append(f"{each.place} holds what looks like a secret ({each.rules}), in the history: change it")
    if len(told) > _NAMED:
        told[_NAMED:] = [f"{len(told) - _NAMED} more places hold what looks like a secret"]
    if left_out:
        told.append(f"{left_out} large or many changed files were not searched for secrets")
    return told


def in_short(told: list[str]) -> list[str]:
    """The first of such sentences, for a terminal."""
    return (
        told if len(told) <= _SHOWN else [*told[:_SHOWN], f"{len(told) - _SHOWN} more such lines are in the contract"]
    )


def leaving(git: Git, push: Push, known: Iterable[Oid], policy: Policy) -> tuple[list[str], int]:
    """Where a push would send a key, and by which rule, each place once; and how many objects were not searched.

    `known` is what else the remote is known to have.
    """
    found, left_out = _search(outgoing(git, push, known, _MOST_FILE), policy)
    return list(dict.fromkeys(f"{each.place}: {each.rules}" for each in found)), left_out


def _search(objects: Iterator[Outgoing], policy: Policy, *, bounded: bool = False) -> tuple[list[_Found], int]:
    found, left_out, room = list[_Found](), 0, _MOST_BYTES
    for count, item in enumerate(objects, 1):
        if item.data is None:
            left_out += 1
            continue
        if rules := _rules(item, policy):
            found.append(_Found(_place(item, policy), rules, item))
        room -= len(item.data)
        if bounded and (room < 0 or count >= _MOST_OBJECTS):
            left_out += sum(1 for _ in objects)
            break
    return found, left_out


def _place(item: Outgoing, policy: Policy) -> str:
    name = printable(redact(item.path.decode("utf-8", "replace"), policy)[0]) or item.oid[:12]
    return name if item.kind == "blob" else f"the message of {item.kind} {name}"


def _rules(item: Outgoing, policy: Policy) -> str:
    """By which rules an object or its name holds keys; empty where it holds none."""
    found = keys_in(_text(item.data or b""), policy) + keys_in(item.path.decode("utf-8", "replace"), policy)
    return ", ".join(sorted(found))


def _text(data: bytes) -> str:
    """The text of a file: UTF-16 as Windows writes it, else UTF-8, with what is neither between."""
    begin = data[:400]
    if begin.startswith(_UTF_16) or (len(begin) > 1 and not any(begin[1::2])):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8", "replace")


def _is_there(store: Store, tree: Oid, item: Outgoing) -> bool:
    entry = store.find(tree, item.path) if item.kind == "blob" and item.path else None
    return entry is not None and entry.oid == item.oid
