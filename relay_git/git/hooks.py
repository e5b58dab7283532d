"""How the post-commit hook reaches the git of a supervised agent.

Promise: no hook of the user's is replaced and no configuration is written. On git 2.54 and newer the hook is
named in the environment of the agent alone. On older git a marked block is put into the hook that git really runs, if
that file is ours to touch: never inside a work tree of any repository, also not through a link, never in a file that is
no shell script or that git does not run. Otherwise there is no hook and the supervisor watches HEAD instead, which it
does in any case. `uninstall` gives a file back byte for byte, with its mode.
"""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from relay_git.git.repo import Repo
from relay_git.git.run import disk_error, version

CONFIGURED_HOOKS = (2, 54)
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
class HookPlan:
    """The route, its file where there is one, and the reason where a hook is not possible."""

    route: Route
    file: Path | None = None
    reason: str = ""


def script() -> Path:
    """The hook that ships with git relay."""
    inside = Path(__file__).parent.parent / "hooks" / "post-commit"
    return inside if inside.exists() else Path(__file__).parents[2] / "hooks" / "post-commit"


def plan(repo: Repo, place: Path) -> HookPlan:
    """By which way the hook can reach a git that runs in the worktree at `place`; changes nothing."""
    if version() >= CONFIGURED_HOOKS:
        return HookPlan(Route.CONFIGURED, script())
    file = Path(_user_git(repo, place)) / "post-commit"
    if tree := _work_tree_around(repo, file):
        return HookPlan(Route.WATCH, None, f"{file} lies in the work tree {tree}")
    if file.is_symlink() and not file.exists():
        return HookPlan(Route.WATCH, None, f"{file} is a link that leads nowhere")
    try:
        text = file.read_bytes() if file.exists() else _ALONE
    except OSError as error:
        return HookPlan(Route.WATCH, None, f"{file} cannot be read ({error.strerror})")
    if not _SHELL.match(text):
        return HookPlan(Route.WATCH, None, f"{file} is not a shell script")
    if file.exists() and not os.access(file, os.X_OK):
        return HookPlan(Route.WATCH, None, f"{file} is not executable, so git does not run it")
    return HookPlan(Route.BLOCK, file)


def install(chosen: HookPlan) -> None:
    """Put the block into the hook's file where the plan says so; a second call changes nothing."""
    if chosen.route is not Route.BLOCK or chosen.file is None:
        return
    file = chosen.file
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        there = file.exists()
        text = file.read_bytes() if there else _ALONE
        head, _, rest = _BLOCK.sub(b"", text).partition(b"\n")
        wanted = head + b"\n" + _block(made=not there or _MADE in text) + rest
        if wanted != text:
            _replace(file, wanted, file.stat().st_mode if there else 0o755)
    except OSError as error:
        raise disk_error(error, "the post-commit hook could not be written") from error


def uninstall(repo: Repo) -> tuple[Path, ...]:
    """Take our block out of every hook file that it can be in; one that holds only what we made goes. Says which."""
    changed = []
    for folder in {repo.common_dir / "hooks", Path(_user_git(repo, repo.work_tree or repo.common_dir))}:
        file = folder / "post-commit"
        text = file.read_bytes() if file.is_file() else b""
        left = _BLOCK.sub(b"", text)
        if left == text:
            continue
        if left == _ALONE and _MADE in text:
            file.unlink()
        else:
            _replace(file, left, file.stat().st_mode)
        changed.append(file)
    return tuple(changed)


def environment(chosen: HookPlan, command: str) -> dict[str, str]:
    """What to add to the agent's environment so that its git knows `git relay` and, on the configured route, the hook.

    `command` is how git relay is called. The alias is for shells that set PATH anew, as login shells do; where
    `git-relay` is on PATH, git takes that.
    """
    pairs = {"alias.relay": f"!{command}"}
    if chosen.route is Route.CONFIGURED and chosen.file is not None:
        pairs |= {"hook.git-relay.event": "post-commit", "hook.git-relay.command": shlex.join(["sh", str(chosen.file)])}
    env = {"GIT_CONFIG_COUNT": str(len(pairs))}
    for i, (key, value) in enumerate(pairs.items()):
        env |= {f"GIT_CONFIG_KEY_{i}": key, f"GIT_CONFIG_VALUE_{i}": value}
    return env


def _block(*, made: bool) -> bytes:
    path = shlex.quote(str(script()))
    # The test comes first: outside a session's worktree the block costs one look at the disk.
    lines = (_BEGIN, f'[ ! -f "$GIT_DIR/relay/session" ] || [ ! -f {path} ] || sh {path} || :', _END)
    begin, *rest = (f"{line}\n".encode() for line in lines)
    return b"".join([begin, *([_MADE] if made else []), *rest])


def _user_git(repo: Repo, place: Path) -> str:
    from relay_git.git.run import Git  # the user's own configuration decides here, so not a safe git

    return Git(place, safe=False).text("rev-parse", "--path-format=absolute", "--git-path", "hooks")


def _work_tree_around(repo: Repo, file: Path) -> Path | None:
    """The work tree, of whatever repository, that the hook lies in when its links are followed; a git dir is none."""
    git_dir = repo.common_dir.resolve()
    known = {p.resolve() for p in (repo.home, repo.work_tree) if p is not None}
    # The folder counts beside the file: a work tree's hooks folder may hold a link that leads out of it.
    for place in (file.parent.resolve(), file.resolve().parent):
        for folder in (place, *place.parents):
            if folder == git_dir or folder.name == ".git":
                break
            link = folder / ".git"  # a killed sandbox may leave an empty folder of that name, which is no repository
            if folder in known or link.is_file() or (link / "HEAD").exists():
                return folder
    return None


def _replace(file: Path, data: bytes, mode: int) -> None:
    target = file.resolve()  # a hook may be a link into a shared folder: the link stays
    part = target.with_name(f".{target.name}.git-relay")
    try:
        part.write_bytes(data)
        part.chmod(mode & 0o7777)
        part.replace(target)
    except OSError:
        part.unlink(missing_ok=True)
        raise
