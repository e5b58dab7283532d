"""Where one file changes along chains of commits: one git for any number of chains.

Promise: only object ids go in and come out, so no name can be mistaken for an option or a path; replaced objects and
the user's `log.*` settings have no say. What a commit holds is read by the caller, who believes no more than that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from relay_git.errors import RepoError
from relay_git.git.run import Git
from relay_git.git.store import OID, Oid

_LINE = re.compile(rf"({OID.pattern})(?: ({OID.pattern}))*")


def changes(git: Git, tips: Iterable[Oid], name: str) -> dict[Oid, tuple[Oid, ...]]:
    """Each commit on the first-parent chains of `tips` where the file `name` comes, changes or goes.

    The parents are those of the pruned history: the first is the change before, where there is one.
    """
    asked = "".join(f"{tip}\n" for tip in tips)
    out = git.run(
        "--no-replace-objects",
        "--literal-pathspecs",
        "rev-list",
        "--first-parent",
        "--parents",
        "--stdin",
        "--",
        name,
        input=asked.encode(),
    )
    found: dict[Oid, tuple[Oid, ...]] = {}
    for line in out.decode("ascii", "replace").splitlines():
        if _LINE.fullmatch(line) is None:
            raise RepoError("git rev-list answered with something else than object ids", hint="git --version")
        commit, *parents = line.split(" ")
        found[Oid(commit)] = tuple(map(Oid, parents))
    return found
