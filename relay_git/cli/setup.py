"""`init` and `uninstall`: what git relay puts into a repository, and how it comes out again."""

from __future__ import annotations

import contextlib
import shutil

from relay_git.cli import context
from relay_git.errors import ExitCode, UserError
from relay_git.git import hooks, room, worktree
from relay_git.git.repo import BRANCHES, Repo
from relay_git.git.run import disk_error
from relay_git.ledger import journal
from relay_git.ledger.key import ensure, renew


def init(*, new_key: bool) -> int:
    """Make the key and the exclude line; doing it again changes nothing."""
    repo, store = context.open_repo()
    had = repo.key_file.exists()
    key = renew(repo) if new_key else ensure(repo, store)
    worktree.exclude(repo)
    print(f"{'using the' if had and not new_key else 'made a new'} signing key {repo.key_file} (id {key.key_id})")
    print('ready; start with: git relay start "your task"')
    return ExitCode.DONE


def uninstall(*, key: bool) -> int:
    """Take out the hook block, the exclude line and our private files; sessions, their work and the key stay."""
    repo, store = context.open_repo()
    names = journal.sessions(store)
    running = [s for s in names if journal.is_running(repo, s)]
    if running:
        raise UserError(
            f"the session {running[0]} is running",
            hint=f"git relay stop {running[0]}, then uninstall",
        )
    for file in hooks.uninstall(repo):
        print(f"took our block out of {file}")
    worktrees = [s for s in names if repo.home is not None and repo.session_dir(s).exists()]
    try:
        if not worktrees and worktree.unexclude(repo):
            print(f"took our line out of {repo.exclude_file}")
        _take_out_folders(repo, spool=not worktrees)
        if key and repo.key_file.exists():
            repo.key_file.unlink()
            print("deleted the signing key")
        if not worktrees and not any(True for _ in store.refs(BRANCHES)):
            room.take_out(repo)
        with contextlib.suppress(OSError):
            repo.relay_dir.rmdir()
    except OSError as error:
        raise disk_error(error, "not all could be taken out") from error
    for session in names:
        print(f"kept the session {session}; to remove it: git relay drop --purge {session}")
    if repo.key_file.exists():
        print(f"kept the signing key {repo.key_file}; with --key it goes too")
    return ExitCode.DONE


def _take_out_folders(repo: Repo, *, spool: bool) -> None:
    for name in ("locks", "logs", *(["spool"] if spool else [])):
        shutil.rmtree(repo.relay_dir / name, ignore_errors=True)
    with contextlib.suppress(OSError):  # what a killed command has written there is still to be taken up
        (repo.relay_dir / "fresh").rmdir()
