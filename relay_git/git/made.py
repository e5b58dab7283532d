"""Which commits were first made in a session's worktree, and not brought into it from elsewhere.

Promise: a commit of somebody else's is taken for none of the session's, whether a rebase, a pick, a pull, a reset or a
merge brought it in. What the agent made itself stays its own when it amends, moves or rewords it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from relay_git.errors import RepoError
from relay_git.git.run import Git

Stamp = tuple[str, str, str]
"""Name and address of a commit's author, and the second: what a rebase, a pick and an amendment leave as it was."""

STAMP = "%an%x00%ae%x00%at"
_MOST = 5000  # entries of the reflog
# What git calls a commit that is new. "commit (cherry-pick)" ends a pick, and "rebase (start)" steps on what is there.
_NEW = re.compile(r"commit(?: \((?:initial|merge)\))?: |(?:merge|pull)\b.*: Merge made by ")
_AMENDED = "commit (amend): "  # new only where the author was renewed with it


def made_here(git: Git, branch: str) -> Callable[[Stamp], bool]:
    """Whether a commit of this author at this second was first made in the worktree of `git`.

    Its reflog tells, and that of `branch`, where the worktree was made again. Where there is none (the user can switch
    it off), whose address git would write here counts as the session's.
    """
    entries = [entry for name in ("HEAD", branch) if name for entry in _reflog(git, name)]
    if not entries:
        own = _address(git)
        return lambda stamp: bool(own) and stamp[1].casefold() == own
    found = {(name, mail, at) for name, mail, at, _, what in entries if _NEW.match(what)}
    found |= {(name, mail, at) for name, mail, at, when, what in entries if at == when and what.startswith(_AMENDED)}
    return lambda stamp: stamp in found


def _reflog(git: Git, name: str) -> list[list[str]]:
    """Author, author's second, committer's second and reason of every entry; none where it cannot be read."""
    form = f"--format=tformat:{STAMP}%x00%ct%x00%gs"
    try:
        out = git.run("log", "--walk-reflogs", f"--max-count={_MOST}", "--no-show-signature", form, name, "--")
    except RepoError:
        return []
    parts = (line.split("\0") for line in out.decode("utf-8", "replace").splitlines())
    return [part for part in parts if len(part) == 5]


def _address(git: Git) -> str:
    try:
        return git.text("var", "GIT_AUTHOR_IDENT").rpartition(">")[0].rpartition("<")[2].casefold()
    except RepoError:
        return ""
