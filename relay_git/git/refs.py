"""Refs move with git itself, whatever reads them.

Promise: all move or none, each only from the value that the caller saw. libgit2 has no compare-and-swap for several
refs that also waits for a foreign lock, and git's own reflog and lock rules are what the user's other tools expect.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from relay_git.errors import LedgerConflict
from relay_git.git.durable import sync_folder
from relay_git.git.run import Git, disk_error, failure
from relay_git.git.store import ZERO, Oid, RefUpdate

_TRIES = 40


def move(git: Git, now: Callable[[str], Oid | None], updates: Iterable[RefUpdate], reason: str) -> None:
    """See `Store.move`; `now` tells where a ref stands."""
    wanted = tuple(updates)
    lines = b"".join(f"update {u.name}\0{_value(u.new, u)}\0{_value(u.old, u)}\0".encode() for u in wanted)
    for attempt in range(_TRIES):
        done = git.result("update-ref", "-m", reason, "--stdin", "-z", input=lines)
        if done.returncode == 0:
            return _keep(git, wanted)
        stand = {u.name: now(u.name) or ZERO for u in wanted}
        if all(stand[u.name] == u.new for u in wanted):
            return _keep(git, wanted)  # ours did land, and git failed on something after it
        moved = [u.name for u in wanted if stand[u.name] != u.old]
        if moved:
            raise LedgerConflict(f"another process moved {moved[0]}", hint="git relay status")
        # Beside gc or pack-refs a ref's lock is held for a moment by a live process: wait, never remove it.
        if not any(word in done.stderr.lower() for word in (b"unable to create", b"unable to lock", b"data is locked")):
            break
        time.sleep(min(0.02 * (attempt + 1), 0.25))
    raise failure("update-ref", done.returncode, done.stderr, git.cwd)


def _keep(git: Git, moved: Iterable[RefUpdate]) -> None:
    """git syncs the file of a ref but not the folder that it is renamed into: the old value could come back."""
    top = git.git_dir or git.cwd
    try:
        for folder in {top, top / "reftable", *((top / update.name).parent for update in moved)}:
            sync_folder(folder)
    except OSError as error:
        raise disk_error(error, "a ref could not be brought to disk") from error


def _value(oid: Oid, update: RefUpdate) -> str:
    """The id as git wants it, where ZERO has the length of the other one."""
    other = update.new if update.old == ZERO else update.old
    return "0" * len(other) if oid == ZERO else oid


def loose_names(common_dir: Path, prefix: str) -> set[str]:
    """What lies as a file below a prefix, also one with garbage in it; whether it is a name of a ref, git must say."""
    files = (Path(folder) / f for folder, _, inner in os.walk(common_dir / prefix) for f in inner)
    return {os.fsencode(f.relative_to(common_dir)).decode("utf-8", "replace") for f in files}
