"""What must lie in the git dir before a sandbox is drawn around an agent, and how it comes out again.

Promise: `make` puts in only what changes nothing for git; `take_out` leaves the git dir without a file or folder that
only git relay had a use for, and touches nothing that holds anything of somebody else's.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from relay_git.git.repo import BRANCHES, JOURNALS, NOTES, Repo

_BRANCHES = BRANCHES.rstrip("/")
_KEPT_OPEN = (_BRANCHES, f"logs/{_BRANCHES}", "objects/info")
_REF_FOLDERS = (_BRANCHES, JOURNALS.rstrip("/"), "refs/relay", NOTES.rstrip("/"), "refs/notes")
_HEADER = b"# pack-refs with: peeled fully-peeled sorted \n"


def make(repo: Repo) -> None:
    """Folders and files that a sandbox must find; a second call changes nothing."""
    # A reftable has all refs in one folder, and a file in place of refs/heads.
    tables = (repo.common_dir / "reftable").is_dir()
    for folder in _KEPT_OPEN[-1:] if tables else _KEPT_OPEN:
        path = repo.common_dir / folder
        path.mkdir(parents=True, exist_ok=True)
        # gc and pack-refs take an empty folder away, and a sandbox cannot open what is not there. A file would do as
        # well, but git fsck calls a file there a broken ref.
        _keep_open(path / ".keep")
    # A sandbox that may not write a file which is not there puts one nobody can read in its place, and git then fails.
    if not tables:
        with contextlib.suppress(FileExistsError), (repo.common_dir / "packed-refs").open("xb") as packed:
            packed.write(_HEADER)


def take_out(repo: Repo) -> None:
    """Only for when no session has a worktree or a branch any more; raises OSError where the disk refuses."""
    git_dir = repo.common_dir
    for folder in _KEPT_OPEN:
        keep = git_dir / folder / ".keep"
        with contextlib.suppress(OSError):
            keep.unlink() if _bytes(keep) == b"" else keep.rmdir()
    if _bytes(git_dir / "packed-refs") == _HEADER:
        (git_dir / "packed-refs").unlink()
    if _bytes(repo.exclude_file) == b"":
        repo.exclude_file.unlink()
    for folder in (*_REF_FOLDERS, *(f"logs/{f}" for f in _REF_FOLDERS), "worktrees", "hooks", "info"):
        with contextlib.suppress(OSError):
            (git_dir / folder).rmdir()  # only an empty one goes


def _keep_open(keep: Path) -> None:
    """A folder there; an empty file, as earlier versions made it, gives way; whatever else is there does as well."""
    if _bytes(keep) == b"":
        keep.unlink()
    with contextlib.suppress(FileExistsError):
        keep.mkdir()


def _bytes(file: Path) -> bytes | None:
    return file.read_bytes() if file.is_file() else None
