"""The worktree of a bare repository's session may lie within the git dir, where a sandbox closes nearly all."""

from __future__ import annotations

from pathlib import Path

from relay_git.agents.agent import Place
from relay_git.agents.claude_sandbox import sandbox_settings


def test_claude_may_write_a_worktree_within_the_git_dir_and_nothing_beside_it(tmp_path: Path) -> None:
    common = tmp_path / "project.git"
    worktree = common / ".relay/sessions/s1"
    for folder in ("refs/heads/relay", "worktrees/s1", "main", ".relay/sessions/s1"):
        (common / folder).mkdir(parents=True)
    place = Place(worktree, common / "worktrees/s1", common, "relay/s1", common / "relay/legs/1")
    settings = sandbox_settings(place)
    assert isinstance(settings, dict)
    files = settings["sandbox"]["filesystem"]  # type: ignore[index]
    denied = [Path(path) for path in files["denyWrite"]]
    assert common / "main" in denied
    assert not [path for path in denied if path == worktree or path in worktree.parents]
    assert not [path for path in map(Path, files["allowWrite"]) if path in (worktree.parent, common)]
