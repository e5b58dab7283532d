"""What a push would send, as git tells a pre-push hook: the objects that the remote is not known to have.

Promise: git itself reckons them, nothing is fetched, and nothing of a remote's address is kept; an object is read only
where it is small enough. Where it is in doubt what the remote has, it has nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from relay_git.errors import RepoError, UserError
from relay_git.git.plain import body_size
from relay_git.git.run import Git
from relay_git.git.store import OID, ZERO, Oid, Store, tree_entries

_WORDS = 3  # behind the local ref, which is as the user wrote it and may hold blanks: main@{2 days ago}
_TRACKING = "refs/remotes/"


@dataclass(frozen=True, slots=True)
class Push:
    """The tips that are sent, what the remote has at the refs that they go to, and the names of those."""

    tips: tuple[Oid, ...]
    there: tuple[Oid, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Remote:
    """What a remote has: the commits it is known to have, and whether all that a partial clone lacks comes from it."""

    known: tuple[Oid, ...] = ()
    promisor: bool = False


@dataclass(frozen=True, slots=True)
class Outgoing:
    """An object, the path under which it was met first, and its bytes; None for one that is too large or not here.

    One that is not here is of kind `missing`.
    """

    kind: str
    oid: Oid
    path: bytes
    data: bytes | None

    def entries(self) -> Iterator[Outgoing]:
        """What a tree names: each path, without content."""
        for entry in tree_entries(self.data or b"", self.oid):
            path = self.path + b"/" + entry.name if self.path else entry.name
            yield Outgoing("blob", entry.oid, path, None)


def parse(lines: Iterable[bytes]) -> Push:
    """What git gives a pre-push hook on stdin: `<local ref> <local id> <remote ref> <remote id>`, a line a ref."""
    tips, there, names = list[Oid](), list[Oid](), list[str]()
    for line in lines:
        words = line.decode("utf-8", "replace").rstrip("\n").rsplit(" ", _WORDS)[1:]
        if len(words) != _WORDS or not (OID.fullmatch(words[0]) and OID.fullmatch(words[2])):
            raise UserError("that is not what git gives a pre-push hook on standard input", hint="git help githooks")
        if words[0].strip(ZERO[0]):
            tips.append(Oid(words[0]))
            names.append(words[1])
        if words[2].strip(ZERO[0]):
            there.append(Oid(words[2]))
    return Push(tuple(tips), tuple(there), tuple(names))


def remote_at(git: Git, store: Store, name: str, url: str) -> Remote:
    """What the remote of this name has, as far as its remote-tracking refs tell.

    They tell of the address that is fetched from: of another one that is pushed to they tell nothing, nor does a ref
    that another remote's fetches write too. Git names a remote that has no name by its address.
    """
    addresses = [_addresses(git, name), _addresses(git, "--push", "--all", name)] if name and name != url else []
    if not addresses or any(each != [url] for each in addresses):
        return Remote()
    out = git.run("config", "-z", "--get-regexp", r"^remote\..*\.(fetch|promisor)$", ok=(0, 1)).decode(
        "utf-8", "replace"
    )
    told = [tuple(item.split("\n", 1)) for item in out.split("\0") if "\n" in item]
    own = [value for key, value in told if key == f"remote.{name}.fetch"]
    others = [value for key, value in told if key.endswith(".fetch") and key != f"remote.{name}.fetch"]
    known = {oid for ref, oid in store.refs(_TRACKING) if _writes(own, ref) and not _writes(others, ref)}
    promisors = {key for key, value in told if key.endswith(".promisor")}
    return Remote(tuple(known), promisors == {f"remote.{name}.promisor"})


def _addresses(git: Git, *words: str) -> list[str]:
    done = git.result("remote", "get-url", *words)
    return done.stdout.decode("utf-8", "replace").splitlines() if done.returncode == 0 else []


def _writes(refspecs: list[str], ref: str) -> bool:
    """Whether a fetch by one of these could have written the ref."""
    for head, star, tail in (spec.partition(":")[2].partition("*") for spec in refspecs):
        if ref.startswith(head) and ref.endswith(tail) and len(ref) >= len(head + tail) if star else ref == head:
            return True
    return False


def outgoing(git: Git, push: Push, known: Iterable[Oid], most: int) -> Iterator[Outgoing]:
    """Each commit, tag, tree and file that the push would send, whole where it has at most `most` bytes.

    `known` is what else the remote has. Raises RepoError where a tip is not in this repository.
    """
    git = replace(git, extra={**git.extra, "GIT_NO_LAZY_FETCH": "1"})
    reader = git.converse("--no-replace-objects", "cat-file", "--batch-command")
    for tip in push.tips:
        if _about(reader.ask(b"info " + tip.encode() + b"\n"))[1] < 0:
            raise RepoError(f"{tip[:12]}, which is to be pushed, is not in this repository", hint="git fsck")
    asked = [*push.tips, *(f"^{oid}" for oid in {*push.there, *known})]
    # What the remote has at a ref need not be here. What a partial clone lacks is listed and never asked for.
    options = ("--objects", "--ignore-missing", "--missing=print", "--stdin")
    listed = git.run("--no-replace-objects", "rev-list", *options, input="\n".join(asked).encode() + b"\n")
    for line in listed.splitlines():
        name, _, path = line.partition(b" ")
        oid = Oid(name.decode("ascii", "replace").removeprefix("?"))
        if name.startswith(b"?"):
            yield Outgoing("missing", oid, path, None)
            continue
        kind, size = _about(reader.ask(b"info " + name + b"\n"))
        answer = reader.ask(b"contents " + name + b"\n", body_size) if 0 <= size <= most else None
        yield Outgoing(kind, oid, path, answer[1] if answer is not None else None)


def _about(answer: tuple[bytes, bytes] | None) -> tuple[str, int]:
    """Kind and size of an object; of a size below zero where it is not here."""
    words = answer[0].decode("ascii", "replace").split() if answer is not None else []
    return (words[1], int(words[2])) if len(words) == 3 and words[2].isdigit() else ("missing", -1)
