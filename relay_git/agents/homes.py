"""What every adapter asks of the environment that its tool will get; the caller's own is never looked at.

Promise: the values of credentials are never returned, only the names of the variables that hold them.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from relay_git.agents import shelf


def home(env: Mapping[str, str]) -> Path:
    """The home folder that the tool will see."""
    named = env.get("HOME") or env.get("USERPROFILE")
    return Path(named) if named else Path.home()


def is_set(env: Mapping[str, str], name: str) -> bool:
    """Whether a switch is on or a value given, as the tools themselves read it."""
    return env.get(name, "").strip().lower() not in ("", "0", "false", "no", "off")


def evidence(env: Mapping[str, str], names: Iterable[str], files: Iterable[Path] = ()) -> str:
    """By what a tool is signed in, in words: the first variable that is set or file that is there; empty for none."""
    named = next((name for name in names if is_set(env, name)), "")
    file = None if named else next((file for file in files if file.is_file()), None)
    return f"{named} is set" if named else f"{file} is there" if file is not None else ""


def credential_notes(env: Mapping[str, str], names: tuple[str, ...]) -> tuple[str, ...]:
    """A note that names the credential variables which the agent will see, or none."""
    seen = [name for name in names if is_set(env, name)]
    return (f"the agent sees these credentials in its environment: {', '.join(seen)}",) if seen else ()


def missing_programs(packages: Mapping[str, str], env: Mapping[str, str]) -> tuple[str, ...]:
    """The packages, by program, whose program is not on PATH."""
    return tuple(name for program, name in packages.items() if not shutil.which(program, path=env.get("PATH", "")))


def in_a_leg(worktree: Path, pattern: str) -> Path | None:
    """What a leg of ours was told to keep in its private folder, by the session's worktree; None while it is not."""
    common = _common_dir(worktree)
    legs = common / "relay" / "spool" / worktree.name if common else None
    return next(iter(sorted(legs.glob(f"*/{pattern}"))), None) if legs else None


def _common_dir(worktree: Path) -> Path | None:
    """The common git dir of a linked worktree, by the file that names it; None where that is not to be had."""
    link = worktree / ".git"
    if not shelf.is_regular(link):
        return None
    try:
        with link.open("rb") as file:
            word, _, named = file.read(4_096).decode("utf-8", "surrogateescape").partition(": ")
    except OSError:
        return None
    git_dir = worktree / named.strip("\n")  # newer git may write it as seen from the worktree
    told = word == "gitdir" and git_dir.parent.name == "worktrees" and "\0" not in named
    return git_dir.parents[1] if told else None
