"""What a push would send, as git tells a pre-push hook: the objects that the remote is not known to have.

Promise: git itself reckons them, nothing is fetched, and nothing of a remote's address is kept; an object is read only
where it is small enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from relay_git.errors import UserError
from relay_git.git.plain import body_size
from relay_git.git.run import Git
from relay_git.git.store import OID, ZERO, Oid

_LINE = 4


@dataclass(frozen=True, slots=True)
class Push:
    """The tips that are sent, and what the remote has at the refs that they go to."""

    tips: tuple[Oid, ...]
    there: tuple[Oid, ...]


@dataclass(frozen=True, slots=True)
class Outgoing:
    """An object, the path under which it was met first, and its bytes; None for one that is too large or not here."""

    kind: str
    oid: Oid
    path: bytes
    data: bytes | None


def parse(lines: Iterable[bytes]) -> Push:
    """What git gives a pre-push hook on stdin: `<local ref> <local id> <remote ref> <remote id>`, a line a ref."""
    tips, there = list[Oid](), list[Oid]()
    for line in lines:
        words = line.decode("utf-8", "replace").split()
        if len(words) != _LINE or not (OID.fullmatch(words[1]) and OID.fullmatch(words[3])):
            raise UserError("that is not what git gives a pre-push hook on standard input", hint="git help githooks")
        tips.append(Oid(words[1]))
        there.append(Oid(words[3]))
    return Push(*(tuple(oid for oid in oids if oid.strip(ZERO[0])) for oids in (tips, there)))


def outgoing(git: Git, push: Push, known: Iterable[Oid], most: int) -> Iterator[Outgoing]:
    """Each commit, tag and file that the push would send, whole where it has at most `most` bytes.

    `known` is what else the remote has, as far as this repository knows: its remote-tracking refs.
    """
    asked = [*push.tips, *(f"^{oid}" for oid in {*push.there, *known})]
    options = ("--objects", "--ignore-missing", "--exclude-promisor-objects", "--stdin")
    listed = git.run("--no-replace-objects", "rev-list", *options, input="\n".join(asked).encode() + b"\n")
    reader = git.converse("--no-replace-objects", "cat-file", "--batch-command")
    for line in listed.splitlines():
        name, _, path = line.partition(b" ")
        oid = Oid(name.decode("ascii", "replace"))
        kind, size = _about(reader.ask(b"info " + name + b"\n"))
        if kind == "tree":
            continue
        answer = reader.ask(b"contents " + name + b"\n", body_size) if 0 <= size <= most else None
        yield Outgoing(kind, oid, path, answer[1] if answer is not None else None)


def _about(answer: tuple[bytes, bytes] | None) -> tuple[str, int]:
    """Kind and size of an object; a file of unknown size where it is not here."""
    words = answer[0].decode("ascii", "replace").split() if answer is not None else []
    return (words[1], int(words[2])) if len(words) == 3 and words[2].isdigit() else ("blob", -1)
