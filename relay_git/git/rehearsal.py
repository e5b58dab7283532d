"""A dry run of the hook: a commit in a repository that is thrown away, with the hook as a session's git runs it.

Promise: no hook and no configuration of the user's takes part, and nothing is written outside of a temporary folder.
What it proves is that this git, this shell and the installed script mark a safe point, not that git still looks there.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from relay_git.errors import RepoError, printable
from relay_git.git import hooks
from relay_git.git.hooks import HookPlan, Route
from relay_git.git.run import Git, disk_error

_SEALED = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_{what}": "dry-run" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def rehearse(chosen: HookPlan) -> str:
    """Why the hook of a plan does not mark a commit, empty where it does; a plan without a hook gives its reason."""
    if chosen.route is Route.WATCH:
        return chosen.reason
    try:
        with tempfile.TemporaryDirectory(prefix="git-relay-") as scratch:
            return _commit(Path(scratch), chosen)
    except OSError as error:
        return str(disk_error(error, "the dry run could not be made"))
    except RepoError as error:
        return str(error)


def _commit(scratch: Path, chosen: HookPlan) -> str:
    git_dir, folder = scratch / ".git", scratch / "hooks"
    # As in a session's worktree, git tells the hook where the git dir is.
    git = Git(
        scratch, git_dir=git_dir, work_tree=scratch, safe=False, extra=_SEALED | hooks.environment(chosen, "true")
    )
    git.run("init", "--quiet", "--template=")
    folder.mkdir()
    if chosen.route is Route.BLOCK and chosen.file is not None:
        text, mode = hooks.ours_alone(chosen.file)
        (folder / hooks.EVENT).write_bytes(text)
        (folder / hooks.EVENT).chmod(mode)
    (git_dir / "relay").mkdir()
    (git_dir / "relay" / "session").touch()
    done = git.result("-c", f"core.hooksPath={folder}", "commit", "--quiet", "--allow-empty", "-m", "dry run")
    if (git_dir / "relay" / "safepoints").exists():
        return ""
    said = printable(done.stderr.decode("utf-8", "replace")).strip()
    return f"in a dry run git did not run it{': ' + said[-200:] if said else ''}"
