"""How the post-commit hook reaches the git of a supervised agent, and how the user's own hooks do.

Promise: no hook of the user's is replaced and no configuration is written. On git 2.54 and newer the hook is
named in the environment of the agent alone. On older git a marked block is put into the hook that git really runs, if
that file is ours to touch: only inside the git dir of this repository, also through a link, never in a file that is no
shell script or that git does not run. Otherwise there is no hook and the supervisor watches HEAD instead, which it does
in any case. `uninstall` gives a file back byte for byte, with its mode, also where a hook manager has moved it.

A relative `core.hooksPath` can lead nowhere in a session's worktree (husky's folder is generated and ignored), and git
would then run no hook without a word. There the agent's git is led to the folder of the work tree that has it: by an
include which holds for the git dir of that worktree alone, so not for repositories that the agent's programs make.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from relay_git.errors import RepoError
from relay_git.git.durable import rewrite
from relay_git.git.repo import SESSIONS, Repo, write_private
from relay_git.git.run import Git, disk_error, version
from relay_git.session import SessionId

CONFIGURED_HOOKS = (2, 54)
EVENT = "post-commit"
_BEGIN, _END = "# >>> git relay >>>", "# <<< git relay <<<"
_BLOCK = re.compile(rf"^{_BEGIN}.*?^{_END}\n".encode(), re.M | re.S)
_SHELL = re.compile(rb"#!\s*(/usr)?/bin/(env\s+)?(ba|da|k|z|a)?sh\b[^\n]*\n")
_ALONE = b"#!/bin/sh\n"  # what is left of a hook file that held nothing but our block
_MADE = b"# git relay made this file\n"  # the user's own may hold no more than its first line either


class Route(StrEnum):
    """By which way a commit of the agent is noticed."""

    CONFIGURED = "configured hook"
    BLOCK = "marked block"
    WATCH = "watching HEAD"


@dataclass(frozen=True, slots=True)
class Borrowed:
    """A folder with hooks of the user's that a worktree lacks, and the git dir of that worktree."""

    folder: Path
    git_dir: Path

    @property
    def config(self) -> Path:
        """The file that the agent's git includes."""
        return self.git_dir / "relay" / "hooks-path"


@dataclass(frozen=True, slots=True)
class HookPlan:
    """The route, its file where there is one, the reason where a hook is not possible, and what is borrowed."""

    route: Route
    file: Path | None = None
    reason: str = ""
    borrowed: Borrowed | None = None


def script(name: str = EVENT) -> Path:
    """A hook that ships with git relay."""
    inside = Path(__file__).parent.parent / "hooks" / name
    return inside if inside.exists() else Path(__file__).parents[2] / "hooks" / name


def plan(repo: Repo, place: Path) -> HookPlan:
    """By which way the hook can reach a git that runs in the worktree at `place`; changes nothing."""
    git = _git_at(repo, place)
    folder = _folder(repo, git)
    borrowed = _borrowed(repo, git, folder)
    if version() >= CONFIGURED_HOOKS:
        return HookPlan(Route.CONFIGURED, script(), borrowed=borrowed)
    file = (borrowed.folder if borrowed else folder) / EVENT
    reason = _refusal(repo, file)
    return HookPlan(Route.WATCH if reason else Route.BLOCK, None if reason else file, reason, borrowed)


def install(chosen: HookPlan) -> HookPlan:
    """Put in place what the plan says, and say what is then in place; a second call changes nothing."""
    if chosen.borrowed is not None:
        write_private(chosen.borrowed.config, f"[core]\n\thooksPath = {_quoted(chosen.borrowed.folder)}\n".encode())
    if chosen.route is not Route.BLOCK or chosen.file is None:
        return chosen
    file = chosen.file
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        there = file.exists()
        text = file.read_bytes() if there else _ALONE
        head, _, rest = _BLOCK.sub(b"", text).partition(b"\n")
        wanted = head + b"\n" + _block(made=not there or _MADE in text) + rest
        if wanted != text:
            rewrite(file, wanted, file.stat().st_mode if there else 0o755)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise disk_error(error, "the post-commit hook could not be written") from error
        return replace(chosen, route=Route.WATCH, file=None, reason=f"{file} cannot be written ({error.strerror})")
    return chosen


def lost(repo: Repo, place: Path, had: HookPlan) -> str:
    """Why the hook that was put in place no longer runs at `place`, empty where it does; nothing is put back."""
    if had.route is not Route.BLOCK or had.file is None:
        return ""
    try:
        now = plan(repo, place)
    except RepoError as error:
        return str(error)
    if now.file != had.file:
        return now.reason or f"git now runs {now.file}"
    return "" if is_in_place(now) else f"another program has written {had.file}"


def is_in_place(chosen: HookPlan) -> bool:
    """Whether git, at the place of the plan, runs a hook of git relay's."""
    return chosen.file is not None and (
        chosen.route is Route.CONFIGURED or _BLOCK.search(_read(chosen.file)) is not None
    )


def ours_alone(file: Path) -> tuple[bytes, int]:
    """A hook file without what is the user's in it, and its mode; where it is not there yet, as it would be."""
    there = file.exists()
    text = _read(file) if there else _ALONE
    block = _BLOCK.search(text)
    alone = text.partition(b"\n")[0] + b"\n" + (block[0] if block else _block(made=False))
    return alone, file.stat().st_mode & 0o7777 if there else 0o755


def uninstall(repo: Repo) -> tuple[Path, ...]:
    """Take our block out of every hook file that it can be in; one that holds only what we made goes. Says which."""
    changed = []
    for folder in {repo.common_dir / "hooks", _folder(repo, repo.git(safe=False))}:
        # Hook managers move a hook that was there before them aside: post-commit.old, post-commit.legacy.
        for file in sorted(folder.glob(f"{EVENT}*")):
            try:
                text = _read(file)
                left = _BLOCK.sub(b"", text)
                if left == text:
                    continue
                if left == _ALONE and _MADE in text:
                    file.unlink()
                else:
                    rewrite(file, left, file.stat().st_mode)
            except OSError as error:
                raise disk_error(error, "our block could not be taken out of a hook") from error
            changed.append(file)
    return tuple(changed)


def identity(git: Git) -> dict[str, str]:
    """Who the user is in commits, by the names of git's settings."""
    named = {key: git.text("config", "--get", key, ok=(0, 1)) for key in ("user.name", "user.email")}
    return {key: value for key, value in named.items() if value}


def environment(chosen: HookPlan, command: str, settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """What to add to the agent's environment so that its git knows `git relay`, the hook and the user's own hooks.

    `command` is how git relay is called. The alias is for shells that set PATH anew, as login shells do; where
    `git-relay` is on PATH, git takes that. `settings` are handed over as well.
    """
    pairs = {"alias.relay": f"!{command}", **(settings or {})}
    if chosen.route is Route.CONFIGURED and chosen.file is not None:
        # git gives it to a shell of its own, which reads the script itself: a second shell would cost a millisecond.
        pairs |= {"hook.git-relay.event": EVENT, "hook.git-relay.command": f". {shlex.quote(str(chosen.file))}"}
    if (borrowed := chosen.borrowed) is not None:
        pattern = re.sub(r"([*?\[\\])", r"\\\1", str(borrowed.git_dir.resolve()))
        pairs |= {f"includeIf.gitdir:{pattern}.path": str(borrowed.config)}
    env = {"GIT_CONFIG_COUNT": str(len(pairs))}
    for i, (key, value) in enumerate(pairs.items()):
        env |= {f"GIT_CONFIG_KEY_{i}": key, f"GIT_CONFIG_VALUE_{i}": value}
    return env


def _block(*, made: bool) -> bytes:
    path = shlex.quote(str(script()))
    # The test comes first: outside a session's worktree the block costs one look at the disk. In a main work tree git
    # sets no GIT_DIR, and the user's hook may run with `set -u`; PATH may lead nowhere, so the shell is named in full.
    lines = (_BEGIN, f'[ ! -f "${{GIT_DIR-}}/relay/session" ] || [ ! -f {path} ] || /bin/sh {path} || :', _END)
    begin, *rest = (f"{line}\n".encode() for line in lines)
    return b"".join([begin, *([_MADE] if made else []), *rest])


def _refusal(repo: Repo, file: Path) -> str:
    """Why no block may go into that file, empty where it may."""
    git_dir = repo.common_dir.resolve()
    # The folder counts beside the file: a hooks folder may hold a link that leads out of it.
    for place in (file.parent.resolve(), file.resolve().parent):
        if not place.is_relative_to(git_dir):
            return f"{file} lies outside of the git dir {repo.common_dir}"
        inside = (folder for folder in (place, *place.parents) if folder != git_dir and folder.is_relative_to(git_dir))
        if tree := next((folder for folder in inside if (folder / ".git").exists()), None):
            return f"{file} lies in the work tree {tree}"
    if file.is_symlink() and not file.exists():
        return f"{file} is a link that leads nowhere"
    try:
        text = file.read_bytes() if file.exists() else _ALONE
    except OSError as error:
        return f"{file} cannot be read ({error.strerror})"
    if not _SHELL.match(text):
        return f"{file} is not a shell script"
    if file.exists() and not os.access(file, os.X_OK):
        return f"{file} is not executable, so git does not run it"
    there = next(folder for folder in file.parents if folder.exists())
    return "" if os.access(there, os.W_OK) else f"{there} cannot be written"


def _git_at(repo: Repo, place: Path) -> Git:
    """A git with the user's configuration; in a session's worktree it believes no link that an agent could bend."""
    if repo.home is not None and place.parent == repo.home / SESSIONS:
        return replace(repo.session_git(SessionId(place.name)), safe=False)
    return Git(place, safe=False)


def _borrowed(repo: Repo, git: Git, folder: Path) -> Borrowed | None:
    """The folder of the main work tree, or of the user's own, that has hooks which a session's lacks."""
    has = _names(folder)
    for tree in (repo.home, repo.work_tree):
        if git.git_dir is None or tree is None or tree == git.cwd or not (tree / ".git").exists():
            continue
        other = _folder(repo, Git(tree, safe=False))
        if other != folder and _names(other) - has and "\n" not in str(other):
            return Borrowed(other, git.git_dir)
    return None


def _folder(repo: Repo, git: Git) -> Path:
    """Where git looks for hooks in the work tree that it stands in; the user's own configuration decides.

    `git rev-parse --git-path hooks` would say it too, but fails where a part of the path is no folder.
    """
    done = git.result("config", "--type=path", "--get", "core.hooksPath", ok=(0, 1))
    if done.returncode != 0:
        return repo.common_dir / "hooks"
    return git.cwd / (os.fsdecode(done.stdout).removesuffix("\n") or "/")


def _names(folder: Path) -> set[str]:
    with contextlib.suppress(OSError):
        return {entry.name for entry in folder.iterdir()}
    return set()


def _quoted(path: Path) -> str:
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _read(file: Path) -> bytes:
    return file.read_bytes() if file.is_file() else b""
