"""The session's worktree and branch: made, checked and taken away.

Promise: the main work tree, its index and every other branch stay as they are. Worktrees are added one at a time and
without an upstream, because parallel additions fight for git's config lock. What an agent could have bent in the
worktree's links is put back before any git of ours runs there.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from relay_git.errors import RepoError
from relay_git.git import links, submodule
from relay_git.git.durable import rewrite, sync_disks
from relay_git.git.repo import BRANCHES, SESSIONS, Repo, make_private, no_work_tree, write_private
from relay_git.git.run import disk_error
from relay_git.git.store import ZERO, Oid, RefUpdate, Store
from relay_git.session import SessionId

EXCLUDE_LINE = "/.relay/"
_OID = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_OPERATIONS = {
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "sequencer": "row of cherry-picks or reverts",
    "BISECT_LOG": "bisect",
}


def branch_of(session: SessionId) -> str:
    """The full ref name of the session's branch."""
    return BRANCHES + session


@contextmanager
def alone(repo: Repo) -> Iterator[None]:
    """Be the only git relay that changes what all sessions share: the list of worktrees, exclude file and hook."""
    make_private(repo.lock_file("worktrees").parent)
    with FileLock(repo.lock_file("worktrees"), timeout=120, mode=0o600):
        yield


def exclude(repo: Repo) -> None:
    """Make git blind to `.relay/` in this repository, so that nobody's `git add -A` stages a session as a gitlink."""
    file = repo.exclude_file
    try:
        with alone(repo):
            text = file.read_bytes() if file.exists() else b""
            if EXCLUDE_LINE.encode() not in text.splitlines():
                gap = b"" if not text or text.endswith(b"\n") else b"\n"
                file.parent.mkdir(parents=True, exist_ok=True)
                mode = file.stat().st_mode if file.exists() else 0o644
                rewrite(file, text + gap + EXCLUDE_LINE.encode() + b"\n", mode)
    except OSError as error:
        raise disk_error(error, "the repository's exclude file could not be written") from error


def unexclude(repo: Repo) -> bool:
    """Take our line out of the exclude file again; say whether it was there."""
    file = repo.exclude_file
    with alone(repo):
        lines = file.read_bytes().splitlines(keepends=True) if file.exists() else []
        kept = [line for line in lines if line.strip() != EXCLUDE_LINE.encode()]
        if len(kept) == len(lines):
            return False
        rewrite(file, b"".join(kept), file.stat().st_mode)
        return True


def add(repo: Repo, session: SessionId, base: Oid) -> Path:
    """Check `base` out at the session's place on its own new branch; adding what is already there changes nothing.

    A file out of any agent's reach says that the adding is not finished: only such a worktree is thrown away and made
    afresh, since no agent was ever in it.
    """
    place, marker = repo.session_dir(session), repo.worktree_git_dir(session) / "relay" / "session"
    _refuse_links(place.parents[2])
    with alone(repo):
        if is_whole(repo, session):
            return place
        links.own_folders(repo, session)
        _clear_half_made(repo, session)
        write_private(_unfinished(repo, session), b"")
        _try_add(repo, session, place, base)
        # Sandboxes mount over this file; where it is missing, some put one there and take it away under others.
        (repo.worktree_git_dir(session) / "config.worktree").touch()
        links.keep_links(repo, session)
        sync_disks(place, repo.common_dir)  # git syncs no file that it checks out
        write_private(marker, session.encode() + b"\n")
        write_private(_fresh(repo, session), b"")
        _unfinished(repo, session).unlink()
    return place


def _try_add(repo: Repo, session: SessionId, place: Path, base: Oid) -> None:
    branch = branch_of(session).removeprefix("refs/heads/")
    have = repo.git().result("rev-parse", "--verify", "--quiet", branch_of(session)).returncode == 0
    what = [str(place), branch] if have else ["--no-track", "-b", branch, str(place), base]
    for attempt in range(6):
        # Beside gc, pack-refs and worktree prune stock git fails for a moment: one try is not enough.
        try:
            # Marked as the session's, so that one which outlives us is ended before another is tried.
            mark = {"RELAY_SESSION": session, "RELAY_DIR": str(repo.relay_dir)}
            repo.git().run("worktree", "add", "--quiet", *what, env=mark)
            break
        except RepoError as error:
            _clear_half_made(repo, session)
            if attempt == 5 or not any(word in str(error) for word in ("lock", "Unable to create")):
                raise
            time.sleep(0.2 * (attempt + 1))
    if not (repo.worktree_git_dir(session) / "HEAD").exists():
        raise RepoError(f"another worktree of this repository is already named {session}", hint="git worktree list")


def is_whole(repo: Repo, session: SessionId) -> bool:
    """Whether the session's worktree is there and was once made to its end.

    An agent can take away the marker, and the user the spool: either of them proves it.
    """
    place, git_dir = repo.session_dir(session), repo.worktree_git_dir(session)
    made = (git_dir / "relay" / "session").exists() or links.were_kept(repo, session)
    real = not (place.is_symlink() or git_dir.is_symlink())
    return made and real and place.is_dir() and git_dir.is_dir() and not _unfinished(repo, session).exists()


def is_fresh(repo: Repo, session: SessionId) -> bool:
    """Whether no agent has been in the session's worktree yet; what says so lies out of any agent's reach."""
    return _fresh(repo, session).exists()


def no_longer_fresh(repo: Repo, session: SessionId) -> None:
    """From here on an agent may have written there."""
    _fresh(repo, session).unlink(missing_ok=True)


def remove(repo: Repo, session: SessionId) -> tuple[Path, ...]:
    """Take the session's worktree away, whatever it holds; the caller has made sure that it may go.

    Repositories within it that hold commits of their own are moved; returned is where they lie now.
    """
    place, git_dir = repo.session_dir(session), repo.worktree_git_dir(session)
    with alone(repo):
        try:
            kept = submodule.keep(repo, session)
            links.forget_links(repo, session)
            for folder in (place, git_dir):
                if folder.is_symlink():
                    folder.unlink()  # what it leads to is not ours to remove
                elif folder.exists():
                    _take_away(folder)
        except OSError as error:
            raise disk_error(error, "the session's worktree could not be removed") from error
        for folder in (place.parent, place.parent.parent):
            with contextlib.suppress(OSError):
                folder.rmdir()  # only when the last session is gone
    return kept


def _take_away(folder: Path) -> None:
    try:
        shutil.rmtree(folder)
    except PermissionError:  # package managers make folders that nobody may write
        for place, inner, _ in os.walk(folder):
            for path in (Path(place), *(Path(place) / name for name in inner)):
                if not path.is_symlink():
                    path.chmod(0o700)
        shutil.rmtree(folder)


def operation(repo: Repo, session: SessionId) -> str:
    """The git operation that stands half-done in the session's worktree (merge, rebase, …), or an empty text."""
    return operation_in(repo.worktree_git_dir(session))


def operation_in(git_dir: Path) -> str:
    """The git operation that stands half-done in the work tree of this git dir, or an empty text."""
    return next((word for name, word in _OPERATIONS.items() if (git_dir / name).exists()), "")


def head(repo: Repo, store: Store, session: SessionId) -> Oid | None:
    """The commit that the session's worktree stands on; the one of its branch where HEAD cannot be read as a file."""
    text = (links.read_small(repo.worktree_git_dir(session) / "HEAD") or b"")[:300].decode("ascii", "replace").strip()
    if re.fullmatch("[0-9a-f]{40}|[0-9a-f]{64}", text):
        return Oid(text)
    name = text.removeprefix("ref: ")
    return (store.ref(name) if name.startswith("refs/heads/") else None) or store.ref(branch_of(session))


def put_back_branch(repo: Repo, store: Store, session: SessionId, last: Oid) -> Oid | None:
    """Make the session's branch again where it is gone and the worktree stands on it; the commit that it names now.

    That is where HEAD last stood by its own log, else `last`, the newest commit that is known from elsewhere.
    """
    branch, git_dir = branch_of(session), repo.worktree_git_dir(session)
    if store.ref(branch) is not None or links.read_small(git_dir / "HEAD") != f"ref: {branch}\n".encode():
        return None
    if (repo.common_dir / branch).exists():  # it is there and broken, which `mend` knows what to do about
        return None
    stands = next((Oid(oid) for oid in stood(git_dir / "logs" / "HEAD") if store.commit(Oid(oid)) is not None), last)
    store.move([RefUpdate(branch, stands, ZERO)], "relay: put back")
    return stands


def stood(log: Path) -> Iterator[str]:
    """Where a ref has stood by its reflog, newest first."""
    lines = (links.read_small(log) or b"").split(b"\n")
    for line in reversed(lines):
        words = line.split(b" ", 2)
        if len(words) == 3 and _OID.fullmatch(words[1]):
            yield words[1].decode()


def clear_dead_locks(repo: Repo, session: SessionId) -> tuple[str, ...]:
    """Remove the locks that a killed git left in the worktree's own git dir (index, HEAD, …); their names.

    Only for when every process of the session is proven gone.
    """
    locks = sorted(repo.worktree_git_dir(session).glob("*.lock"))
    for lock in locks:
        lock.unlink(missing_ok=True)
    return tuple(lock.stem for lock in locks)


def _unfinished(repo: Repo, session: SessionId) -> Path:
    return repo.spool_dir(session) / "adding"


def _fresh(repo: Repo, session: SessionId) -> Path:
    return repo.spool_dir(session) / "fresh"


def check_place(repo: Repo) -> None:
    """Raises RepoError where a session cannot be made, before anything is: something is in the way or read-only."""
    if repo.home is None:
        raise no_work_tree()
    _refuse_links(repo.home)
    in_the_way = BRANCHES.removesuffix("/")
    if repo.git().result("rev-parse", "--verify", "--quiet", in_the_way).returncode == 0:
        raise RepoError(
            "your branch relay is in the way: sessions have branches named relay/<session>",
            hint="git branch -m relay another-name",
        )
    # To take a ref away again git must write in the git dir itself: without this look half a session would be left.
    for folder in (repo.home, repo.common_dir, repo.common_dir / "objects", repo.common_dir / "refs"):
        if not os.access(folder, os.W_OK | os.X_OK):
            raise RepoError(
                f"{folder} cannot be written: Permission denied, or a read-only file system",
                hint=f"check who may write there (ls -ld {folder})",
            )


def _refuse_links(home: Path) -> None:
    here = home
    for part in SESSIONS.split("/"):
        here = here / part
        if here.is_symlink() or (here.exists() and not here.is_dir()):
            raise RepoError(
                f"{here} is in the way: git relay keeps its worktrees in that folder", hint=f"mv {here} {here}.old"
            )


def _clear_half_made(repo: Repo, session: SessionId) -> None:
    """Take away what an interrupted `worktree add` of this very session left; what else lies there is moved aside."""
    place, git_dir = repo.session_dir(session), repo.worktree_git_dir(session)
    # The place was free: while the adding is not finished all in it is ours, whatever a power cut has left of it.
    made = _unfinished(repo, session).exists()
    ours = made or links.leads_here(repo, session)
    if place.exists() and not ours and any(place.iterdir()):
        raise RepoError(f"{place} is in the way and is not a worktree of git relay", hint=f"mv {place} {place}.old")
    if ours and not made:
        number = next(n for n in range(1, 10_000) if not place.with_name(f"{place.name}.aside-{n}").exists())
        place.rename(place.with_name(f"{place.name}.aside-{number}"))
    submodule.keep_modules(repo, session)
    shutil.rmtree(git_dir, ignore_errors=True)
    shutil.rmtree(place, ignore_errors=True)
