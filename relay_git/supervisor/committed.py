"""Keys in what a session brings, which are reported and never taken out, and in what a push would send.

Promise: a key is named by its rule and its place, and never shown. It is looked for in every file, name, message and
tag that is new, so also in what a later commit took out again, where it is small enough; of a session within bounds of
number and bytes. How many objects were not searched is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from relay_git.contract.placeholder import Policy
from relay_git.contract.redact import keys_in, redact
from relay_git.errors import printable
from relay_git.git.outgoing import Outgoing, Push, Remote, outgoing
from relay_git.git.run import Git
from relay_git.git.store import Oid, Store
from relay_git.supervisor.keyfiles import keys_in_file

_MOST_FILE = 1 << 20
_MOST_BYTES = 16 << 20
_MOST_OBJECTS = 5_000
_NAMED = 20
_SHOWN = 5


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
    found, left_out = _search(outgoing(git, Push((tip,)), known, _MOST_FILE), policy, bounded=True)
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


def leaving(git: Git, push: Push, remote: Remote, policy: Policy) -> tuple[list[str], int]:
    """Where a push would send a key, and by which rule, each place once; and how many objects were not searched."""
    objects = outgoing(git, push, remote.known, _MOST_FILE)
    if remote.promisor:  # what is not here came from there
        objects = (item for item in objects if item.kind != "missing")
    found, left_out = _search(objects, policy)
    told = [f"{each.place}: {each.rules}" for each in found]
    for name in push.names:
        if rules := _named(name.encode(), policy):
            told.append(f"the name {_shown(name, policy)}: {rules}")
    return list(dict.fromkeys(told)), left_out


def _search(objects: Iterator[Outgoing], policy: Policy, *, bounded: bool = False) -> tuple[list[_Found], int]:
    found, left_out, room, count = list[_Found](), 0, _MOST_BYTES, 0
    names = _Names(policy)
    for item in objects:
        if item.data is None:
            left_out += 1
            continue
        room -= len(item.data)
        if item.kind == "tree":
            found += names.found_in(item)
        else:
            count += 1
            if rules := ", ".join(sorted(keys_in_file(item.data, item.path, policy))):
                found.append(_Found(_place(item, policy), rules, item))
        if bounded and (room < 0 or count >= _MOST_OBJECTS):
            left_out += sum(each.kind != "tree" for each in objects)
            break
    return found, left_out


class _Names:
    """The names in trees, each looked at once: a push of many commits has the same ones over and over."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._known: dict[bytes, str] = {}
        self._told: set[bytes] = set()

    def found_in(self, tree: Outgoing) -> Iterator[_Found]:
        for item in tree.entries():
            name = item.path.rpartition(b"/")[2]
            if name not in self._known:
                self._known[name] = _named(name, self._policy)
            if self._known[name] and item.path not in self._told:
                self._told.add(item.path)
                yield _Found(_place(item, self._policy), self._known[name], item)


def _named(name: bytes, policy: Policy) -> str:
    """By which rules a name itself holds keys."""
    return ", ".join(sorted(keys_in(name.decode("utf-8", "replace"), policy)))


def _place(item: Outgoing, policy: Policy) -> str:
    name = _shown(item.path.decode("utf-8", "replace"), policy) or item.oid[:12]
    return name if item.kind == "blob" else f"the message of {item.kind} {name}"


def _shown(name: str, policy: Policy) -> str:
    return printable(redact(name, policy)[0])


def _is_there(store: Store, tree: Oid, item: Outgoing) -> bool:
    entry = store.find(tree, item.path) if item.kind == "blob" and item.path else None
    return entry is not None and entry.oid == item.oid
