"""What a sandbox leaves behind when its tool is killed in the middle of a command.

Promise: only what a sandbox put there is named: by a name that it is known to mask, and an empty file that nobody may
write. A file of the user's or the agent's is never among them.

Seen: Claude Code 2.1.332 hides names that a command must not create by mounting an empty file over each; the mount
point is a real file as long as the command runs, and stays after SIGKILL (after SIGTERM it cleans up). In the worktree
a snapshot would take them for work; `config.lock` in the git dir would keep everybody from `git config`.
Codex 0.171.0 leaves `config.worktree` and empty folders, which git does not see.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable
from pathlib import Path

from relay_git.agents.agent import Place

_IN_WORKTREE = (
    ".bash_profile",
    ".bashrc",
    ".gitconfig",
    ".gitmodules",
    ".idea",
    ".mcp.json",
    ".profile",
    ".ripgreprc",
    ".vscode",
    ".zprofile",
    ".zshrc",
)
_IN_GIT_DIR = ("config.lock", "config.worktree", "packed-refs", "commondir")
_MOST = 1_000


def masks(place: Place) -> tuple[Path, ...]:
    """The empty files that a sandbox mounted over, in the worktree and in both git dirs."""
    found = [place.worktree / name for name in _IN_WORKTREE]
    found += _below(place.worktree / ".claude")
    found += [folder / name for folder in (place.git_dir, place.common_dir) for name in _IN_GIT_DIR]
    return tuple(path for path in found if _is_mask(path))


def _below(folder: Path) -> list[Path]:
    paths: Iterable[Path] = folder.rglob("*") if folder.is_dir() and not folder.is_symlink() else ()
    return [path for _, path in zip(range(_MOST), paths, strict=False)]


def _is_mask(path: Path) -> bool:
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size == 0 and not status.st_mode & 0o222
