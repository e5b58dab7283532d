"""What leads git from a session's worktree to its repository and back, and the folders that this lies in.

An agent must be able to write there, also one in a sandbox, and may have bent any of it.

Promise: nothing of ours is read, written or removed through a link that an agent has put in its way: a link is taken
away or refused, and what it leads to stays as it is. A repository that was made where the link to ours had been is
moved aside, never removed.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from relay_git.errors import RepoError
from relay_git.git.repo import Repo, make_private, write_private
from relay_git.git.run import disk_error
from relay_git.session import SessionId


def own_folders(repo: Repo, session: SessionId) -> tuple[str, ...]:
    """Make sure that the session's folders are no links to elsewhere; in words what was put right.

    Raises RepoError where the worktree itself is one: what it leads to is nobody's to write in but the user's.
    """
    place = repo.session_dir(session)
    if place.is_symlink():
        raise RepoError(
            f"{place} is a link, not the session's worktree; nothing was written through it",
            hint=f"unlink {place}   (what it leads to stays), then: git relay resume {session}",
        )
    return clear_folders(repo, session)


def clear_folders(repo: Repo, session: SessionId) -> tuple[str, ...]:
    """The same for what lies in the repository: links there are removed, and never what they lead to."""
    git_dir, told = repo.worktree_git_dir(session), list[str]()
    try:
        for folder in (git_dir, git_dir / "relay"):
            if folder.is_symlink():
                folder.unlink()
                told.append(f"the worktree's folder {folder.name} had been made a link to elsewhere, which is removed")
    except OSError as error:
        raise disk_error(error, "a link in the session's folders could not be removed") from error
    return tuple(told)


def keep_links(repo: Repo, session: SessionId) -> None:
    """Copy the links of a worktree that was just made to where no agent can write."""
    for file in _links(repo, session):
        if file.exists():
            write_private(_copy(repo, session, file), file.read_bytes())


def were_kept(repo: Repo, session: SessionId) -> bool:
    """Whether the worktree was once made to its end."""
    return _copy(repo, session, repo.session_dir(session) / ".git").exists()


def mend_links(repo: Repo, session: SessionId) -> tuple[str, ...]:
    """Put back the worktree's own links and config if the agent changed them; say in words what was changed.

    A git that believed them could be led to foreign configuration, which may name programs to run.
    """
    mended = list(own_folders(repo, session))
    for file, usual in _links(repo, session).items():
        has, want = read_small(file), _wanted(repo, session, file, usual)
        if has == want:
            continue
        said = f"the worktree's {file.name} had been changed and was put back"
        try:
            if file.is_dir() and not file.is_symlink():
                said += f"; what was there in its place is kept in {_move_aside(repo, session, file)}"
            file.unlink(missing_ok=True)
            if want is not None:
                file.write_bytes(want)
        except OSError as error:
            raise disk_error(error, f"the worktree's {file.name} could not be put back") from error
        mended.append(said)
    return tuple(mended)


def bring_back(repo: Repo, session: SessionId) -> tuple[str, ...]:
    """Move a worktree that was moved (`git worktree move`) back to its place, with all that it holds; says so in words.

    Raises RepoError, with the command to type, where that cannot be done.
    """
    place, git_dir = repo.session_dir(session), repo.worktree_git_dir(session)
    named = read_small(git_dir / "gitdir") or b""
    moved = Path(os.fsdecode(named.removesuffix(b"\n"))).parent
    back = os.fsencode(f"gitdir: {git_dir}\n")
    if os.path.lexists(place) or not moved.is_absolute() or read_small(moved / ".git") != back:
        return ()
    if repo.common_dir.is_relative_to(moved) or moved.is_symlink():
        return ()
    try:
        make_private(place.parent)
        moved.rename(place)
    except OSError as error:
        raise RepoError(
            f"the worktree of {session} was moved to {moved}, and cannot be moved back ({error.strerror})",
            hint=f"mv {moved} {place}",
        ) from error
    return (f"the session's worktree had been moved to {moved}, and was moved back",)


def forget_links(repo: Repo, session: SessionId) -> None:
    """The worktree goes: nothing says any longer that it was once made."""
    shutil.rmtree(_copy(repo, session, repo.session_dir(session)).parent, ignore_errors=True)


def leads_here(repo: Repo, session: SessionId) -> bool:
    """Whether the folder at the session's place is the session's worktree, by its link."""
    git_dir = repo.worktree_git_dir(session)
    return read_small(repo.session_dir(session) / ".git") == os.fsencode(f"gitdir: {git_dir}\n")


def read_small(file: Path) -> bytes | None:
    """The beginning of a file, or None where there is none; what is no plain file reads as no link ever does."""
    if file.is_symlink() or (file.exists() and not file.is_file()):
        return b"\0not a file"
    if not file.exists():
        return None
    with file.open("rb") as source:
        return source.read(1 << 20)


def _links(repo: Repo, session: SessionId) -> dict[Path, bytes | None]:
    """The files that lead git from the worktree to the repository and back, with what git writes into them."""
    place, git_dir = repo.session_dir(session), repo.worktree_git_dir(session)
    return {
        place / ".git": b"gitdir: " + os.fsencode(git_dir) + b"\n",
        git_dir / "commondir": b"../..\n",
        git_dir / "gitdir": os.fsencode(place / ".git") + b"\n",
        git_dir / "config.worktree": None,
    }


def _wanted(repo: Repo, session: SessionId, file: Path, usual: bytes | None) -> bytes | None:
    """Our copy; where that is gone or came back empty, what git usually writes; of the config nothing is known then."""
    copy = _copy(repo, session, file)
    kept = copy.read_bytes() if copy.is_file() else None
    return kept or (usual if usual is not None else kept if kept is not None else read_small(file))


def _move_aside(repo: Repo, session: SessionId, folder: Path) -> Path:
    kept = repo.relay_dir / "kept" / session
    make_private(kept)
    name = folder.name.lstrip(".")
    target = next(t for n in range(1, 10_000) if not (t := kept / f"{name}-{n}").exists())
    folder.rename(target)
    return target


def _copy(repo: Repo, session: SessionId, file: Path) -> Path:
    return repo.spool_dir(session) / "links" / file.name.lstrip(".")
