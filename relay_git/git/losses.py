"""What of a worktree a snapshot does not hold: decided before git adds anything, and said in words.

Promise: nothing is left out without a word, and what is left out stays in the worktree for the next leg. Left out are
files too big to be stored with every snapshot, untracked files whose name says that they hold a secret, and what came
along by `.worktreeinclude`. What lies in a repository within the tree is not looked at: a git that was run in there
would believe its configuration, which is an agent's to write and may name programs.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass

from relay_git.errors import printable
from relay_git.git.run import Git

MAX_FILE = 100 << 20
_MOST_NAMED = 100
# Names that by custom hold nothing but secrets. The example of a .env and the public half of a key are for everyone.
_SECRET = re.compile(
    r"\.env|\.env\..+|.+\.(env|pem|key|p12|pfx|jks|keystore|kdbx|ppk)|id_(rsa|dsa|ecdsa|ed25519)(_sk)?"
    r"|\.(netrc|pgpass|git-credentials|htpasswd)",
    re.IGNORECASE,
)
_PUBLIC = re.compile(r".*[._-](example|sample|template|dist|defaults?)(\.env)?", re.IGNORECASE)
_NESTED = b"160000 "


@dataclass(frozen=True, slots=True)
class Survey:
    """A worktree before anything is added: `nested` are the repositories that its index knows by their commit id,
    `kept_back` is what must not be added, `losses` all that will not be in the snapshot."""

    nested: tuple[bytes, ...]
    kept_back: frozenset[bytes]
    losses: tuple[str, ...]


def survey(
    git: Git, env: Mapping[str, str], max_file: int, aside: frozenset[bytes], copied: frozenset[bytes]
) -> Survey:
    """Look at every path once.

    `env` names the index, `aside` is nobody's work and no loss, `copied` came along by `.worktreeinclude`.
    """
    nested: list[bytes] = []
    losses: dict[bytes, str] = {}
    kept: dict[bytes, str] = {}
    listing = ("ls-files", "-z", "-s", "-t", "-v", "--cached", "--others", "--modified", "--exclude-standard")
    for line in git.run(*listing, env=env).split(b"\0"):
        if not line or line.startswith((b"H 100", b"H 120")):
            continue  # a file or link as the index has it, without any bit: in a large repository all but a few
        tag, _, rest = line.partition(b" ")
        path = rest if tag == b"?" else rest.partition(b"\t")[2]
        if path.rstrip(b"/") in aside:
            continue
        if rest.startswith(_NESTED) or path.endswith(b"/"):
            nested += [path] if tag != b"?" and path not in nested else []
            losses |= _nested(git, path.rstrip(b"/"))
        elif tag in (b"h", b"s") or (tag == b"S" and os.path.lexists(git.cwd / os.fsdecode(path))):
            losses[path] = "is local, not handed over: an index bit (skip-worktree, assume-unchanged) hides its edits"
        elif tag in (b"?", b"C") and (why := _why_not(git, path, max_file, copied if tag == b"?" else None)):
            kept[path] = why
    for path in _with_filter(git, [p for p, why in kept.items() if "maxFile" in why]):
        del kept[path]
    return Survey(tuple(nested), frozenset(kept), _words(losses | kept))


def _nested(git: Git, path: bytes) -> dict[bytes, str]:
    """A submodule that was never filled has nothing to lose."""
    if not os.path.lexists(git.cwd / os.fsdecode(path) / ".git"):
        return {}
    return {path: "is a repository of its own: only its commit id is recorded, not changes inside it"}


def _why_not(git: Git, path: bytes, max_file: int, copied: frozenset[bytes] | None) -> str:
    """Why a file is kept back, in words, or nothing; `copied` is None for a file that git tracks."""
    if copied is not None and path in copied:
        return "came along by .worktreeinclude and is not ignored any more: left out"
    if copied is not None and looks_secret(path):
        return "looks like a secret and is not ignored: left out (`git add` it in the worktree if it is none)"
    try:
        there = os.lstat(git.cwd / os.fsdecode(path))
    except OSError:
        return ""
    if not stat.S_ISREG(there.st_mode) or there.st_size <= max_file:
        return ""
    version = "the snapshot has it as it was" if copied is None else "left out"
    return f"has {_size(there.st_size)}, more than relay.snapshot.maxFile ({_size(max_file)}): {version}"


def looks_secret(path: bytes) -> bool:
    """Whether the name of a file says that it holds a secret."""
    name = os.fsdecode(path).rpartition("/")[2]
    return _SECRET.fullmatch(name) is not None and _PUBLIC.fullmatch(name) is None


def _with_filter(git: Git, paths: list[bytes]) -> list[bytes]:
    """Those for which the repository names a filter such as LFS: what git stores of them is small."""
    if not paths:
        return []
    words = git.run("check-attr", "-z", "--stdin", "filter", input=b"\0".join(paths)).split(b"\0")
    return [
        path for path, value in zip(words[0::3], words[2::3], strict=False) if value not in (b"unspecified", b"unset")
    ]


def _words(losses: Mapping[bytes, str]) -> tuple[str, ...]:
    named = [f"{printable(os.fsdecode(path))} {why}" for path, why in losses.items()]
    more = len(named) - _MOST_NAMED
    return (*named[:_MOST_NAMED], *([f"{more} more paths of these kinds are not listed"] if more > 0 else []))


def _size(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if count == int(count) else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError(count)
