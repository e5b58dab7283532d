"""The permission profile that keeps Codex's sandbox as narrow as a linked worktree allows.

Promise: the agent can commit on its session's branch and mark a safe point; it can neither read git relay's own folder
nor write hooks, configuration or a branch outside `refs/heads/relay`, nor point its worktree at another repository.

Seen with 0.171.0 (docs/agents.md has the table). The older `--sandbox workspace-write` with `writable_roots` lets a
commit through as well, but cannot hide a file, and leaves `commondir`, `gitdir` and `objects/info/alternates` open to
writing. A profile given by `-c` wins over `sandbox_mode` and `default_permissions` in the user's config.toml.
"""

from __future__ import annotations

from pathlib import Path

from relay_git.agents import jsonl
from relay_git.agents.agent import Place
from relay_git.agents.jsonl import Record

PROFILE = "git-relay"


def sandbox_options(place: Place, config: Record) -> list[str]:
    """The `-c` options of one leg; temp folders and network are what the user's config.toml allows."""
    chosen = jsonl.record(config.get("sandbox_workspace_write"))
    common, own = place.common_dir, place.git_dir
    rules: list[tuple[str, str]] = [(":root", "read")]
    if chosen.get("exclude_tmpdir_env_var") is not True:
        rules.append((":tmpdir", "write"))
    if chosen.get("exclude_slash_tmp") is not True:
        rules.append((":slash_tmp", "write"))
    writable = [own, common / "objects", common / "refs/heads/relay", common / "logs/refs/heads/relay"]
    # With one of these an agent could have git, run outside the sandbox, follow configuration of the agent's own.
    kept = [own / "HEAD", own / "commondir", own / "gitdir", own / "config.worktree", common / "objects" / "info"]
    rules += [(str(path), "write") for path in writable]
    rules += [(str(path), "read") for path in kept]
    options = _profile([*rules, *((str(path), "deny") for path in _private(place))], "write")
    if chosen.get("network_access") is True:
        options += ["-c", f"permissions.{PROFILE}.network={{enabled=true}}"]
    return options


def reading_options(place: Place) -> list[str]:
    """The `-c` options with which nothing can be written, and git relay's own folder not be read."""
    return _profile([(":root", "read"), *((str(path), "deny") for path in _private(place))], "read")


def _profile(rules: list[tuple[str, str]], worktree: str) -> list[str]:
    table = ",".join(f"{toml_string(path)}={toml_string(access)}" for path, access in rules)
    filesystem = f'{{{table},":workspace_roots"={{"."="{worktree}"}}}}'
    return ["-c", f'default_permissions="{PROFILE}"', "-c", f"permissions.{PROFILE}.filesystem={filesystem}"]


def toml_string(value: str) -> str:
    """A basic string of TOML for any text: what it cannot hold as it is, is escaped."""
    named = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    safe = "".join(named.get(c) or (f"\\u{ord(c):04x}" if ord(c) < 32 or ord(c) == 127 else c) for c in value)
    return f'"{safe}"'


def _private(place: Place) -> list[Path]:
    ours = place.common_dir / "relay"
    return [ours] if ours in place.private_dir.parents else [ours, place.private_dir]
