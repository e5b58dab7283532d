"""The settings that keep Claude Code's sandbox as narrow as a linked worktree allows.

Promise: the agent can commit on its session's branch and mark a safe point, and can neither read git relay's own
folder nor write hooks, configuration, the packed refs or a branch outside `refs/heads/relay`. Where a path cannot be
put in a rule, or the sandbox would lose a commit, there are no settings but an `Unsupported`.

Seen with 2.1.332 on Linux (docs/agents.md has the table). Claude Code itself opens the whole git dir of a linked
worktree for writing, except hooks, config and the other worktrees, and a deny always beats an allow. So what is not
needed is denied by name, and for refs, where names that are not there yet matter as well, `refs` is hidden and what
is in it is given back: what is written beside that goes to a scratch file system and is gone after the command.
"""

from __future__ import annotations

from pathlib import Path

from relay_git.agents.agent import Place, Unsupported

# Names below the common git dir that a commit in a linked worktree writes to; the rest is denied.
_NEEDED = ("objects", "refs", "logs", "worktrees")
_RELAY_REFS = ("refs", "heads", "relay")
# Claude Code reads these in a sandbox path as a pattern, and has no way to quote them there.
_PATTERN = frozenset("*?[]{}\\\n\r")


def sandbox_settings(place: Place, readable: Path | None = None) -> dict[str, object] | Unsupported:
    """The settings file for one leg, as JSON types; `readable` is a file that it may read without a question."""
    common = place.common_dir
    bad = next((path for path in (common, place.git_dir, place.private_dir) if _PATTERN & set(str(path))), None)
    if bad:
        return Unsupported(f"Claude Code's sandbox cannot name the path {str(bad)!r}: it holds a pattern character")
    branches = common.joinpath(*_RELAY_REFS)
    if not branches.is_dir():
        return Unsupported(f"{branches} does not exist: a commit made in Claude Code's sandbox would be lost")
    ours = [common / "relay"]
    if common / "relay" not in place.private_dir.parents:
        ours.append(place.private_dir)
    try:
        refs = [*_beside(common / "refs", "heads"), *_beside(common / "refs" / "heads", "relay")]
        logs = [*_beside(common / "logs", "refs"), *_beside(common / "logs" / "refs" / "heads", "relay")]
        # The worktree itself may lie in there, where the repository is bare.
        others = [path for path in _beside(common, *_NEEDED) if path not in place.worktree.parents]
    except OSError as error:
        return Unsupported(f"the git dir cannot be listed: {error.strerror}")
    # A new branch would be gone after the command that made it, and HEAD would name nothing: better it fails at once.
    denied = sorted({*others, common / "packed-refs", *refs, *logs, *ours, place.git_dir / "HEAD"})
    return {
        "sandbox": {
            "enabled": True,
            "failIfUnavailable": True,  # without it a sandbox that cannot start is a warning, and commands run free
            "autoAllowBashIfSandboxed": True,
            "allowUnsandboxedCommands": False,
            "filesystem": {
                "allowWrite": _names([place.git_dir, common / "objects", branches, common / "logs"]),
                "denyWrite": _names(denied),
                "denyRead": _names([*ours, common / "refs"]),
                "allowRead": _names([*refs, branches]),
            },
        },
        "permissions": {
            "deny": [f"{tool}({rule_path(path)}/**)" for path in ours for tool in ("Read", "Edit")],
            "allow": [f"Read({rule_path(readable)})"] if readable is not None else [],
        },
    }


def _beside(folder: Path, *needed: str) -> list[Path]:
    """What is in a folder beside the names that are needed; nothing where there is no folder."""
    if not folder.is_dir():
        return []
    # A name with a pattern character would be taken for a pattern; none of git's own has one.
    return [path for path in sorted(folder.iterdir()) if path.name not in needed and not _PATTERN & set(path.name)]


def _names(paths: list[Path]) -> list[str]:
    return [str(path) for path in paths]


def rule_path(path: Path) -> str:
    """An absolute path in a permission rule: two slashes in front, brackets of the rule's own syntax quoted."""
    return "/" + str(path).replace("(", "\\(").replace(")", "\\)")
