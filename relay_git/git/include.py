"""Ignored files that a session needs come along into its new worktree: `.worktreeinclude`.

Promise: of what the patterns in that file match (gitignore syntax, at the root of the work tree the user stands in),
only files are copied that git ignores there and in the session's worktree too, so that no snapshot takes them up; their
names are kept, so that none does where the ignore rules change later. No link is followed, nothing is overwritten, and
how much is copied is bounded. What does not come along is said.
"""

from __future__ import annotations

import filecmp
import os
import shutil
import stat
from pathlib import Path

from relay_git.errors import printable
from relay_git.git.repo import Repo, write_private
from relay_git.git.run import Git, disk_error
from relay_git.session import SessionId

NAME = ".worktreeinclude"
_MOST_FILES = 10_000
_MOST_BYTES = 1 << 30


def bring(repo: Repo, session: SessionId) -> tuple[str, ...]:
    """Copy what `.worktreeinclude` asks for into the session's worktree; notes for the user, in words."""
    source = repo.work_tree or repo.home
    if source is None or not (source / NAME).is_file():
        return ()
    here, there = Git(source), repo.session_git(session)
    out = here.run("ls-files", "-z", "--others", "--ignored", f"--exclude-from={source / NAME}")
    asked = [path for path in out.split(b"\0") if path and not path.endswith(b"/") and not path.startswith(b".relay/")]
    # The session's commit may have a link where the user's tree has a folder: nothing is written through one.
    straight = [path for path in asked if not _is_beyond_a_link(there.cwd, path)]
    wanted = sorted(_ignored(there, _ignored(here, straight)))
    notes = [_note(path, "a link is in its way") for path in sorted({*asked} - {*straight})]
    notes += [_note(path, "git does not ignore it") for path in sorted({*straight} - {*wanted})]
    room, taken = _MOST_BYTES, list[bytes]()
    for path in wanted:
        size = (source / os.fsdecode(path)).lstat().st_size
        if len(taken) >= _MOST_FILES or size > room:
            notes.append(_note(path, f"at most {_MOST_FILES} files and {_MOST_BYTES >> 20} MiB are copied"))
            continue
        why = _copy(source, there.cwd, os.fsdecode(path))
        if why:
            notes.append(_note(path, why))
        else:
            taken, room = [*taken, path], room - size
    _remember(repo, session, taken)
    return tuple(notes[:20]) + ((f"{len(notes) - 20} more did not come along",) if len(notes) > 20 else ())


def copied(repo: Repo, session: SessionId) -> frozenset[bytes]:
    """The paths that came along into a session's worktree."""
    file = _list(repo, session)
    return frozenset(file.read_bytes().split(b"\0")) - {b""} if file.is_file() else frozenset()


def is_as_yours(repo: Repo, session: SessionId, name: str) -> bool:
    """Whether a file of the worktree came along and is still the same as the user's, so nothing is lost with it."""
    source = repo.work_tree or repo.home
    if source is None or os.fsencode(name) not in copied(repo, session):
        return False
    try:
        return filecmp.cmp(source / name, repo.session_dir(session) / name, shallow=False)
    except OSError:
        return False


def _remember(repo: Repo, session: SessionId, paths: list[bytes]) -> None:
    if paths:
        write_private(_list(repo, session), b"\0".join(sorted({*paths, *copied(repo, session)})))


def _list(repo: Repo, session: SessionId) -> Path:
    return repo.spool_dir(session) / "included"


def _is_beyond_a_link(top: Path, path: bytes) -> bool:
    return any((top / folder).is_symlink() for folder in Path(os.fsdecode(path)).parents)


def _ignored(git: Git, paths: list[bytes]) -> list[bytes]:
    """Those that git ignores and does not track here."""
    if not paths:
        return []
    out = git.run("check-ignore", "-z", "--stdin", input=b"\0".join(paths), ok=(0, 1))
    return [path for path in out.split(b"\0") if path]


def _copy(source: Path, target: Path, name: str) -> str:
    """Why it was not copied, or nothing."""
    file, new = source / name, target / name
    try:
        mode = file.lstat().st_mode
        if os.path.lexists(new):
            return "it is there already"
        if not stat.S_ISREG(mode):
            return "it is no regular file"
        new.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, new, follow_symlinks=False)
        new.chmod(stat.S_IMODE(mode))
    except OSError as error:
        raise disk_error(error, f"{printable(name)} could not be copied for {NAME}") from error
    return ""


def _note(path: bytes, why: str) -> str:
    return f"{printable(os.fsdecode(path))} does not come along by {NAME}: {why}"
