"""What a killed sandbox leaves is told apart from what is somebody's work."""

from __future__ import annotations

from pathlib import Path

import pytest

from relay_git.agents.agent import Place
from relay_git.agents.leftovers import masks


@pytest.fixture
def place(tmp_path: Path) -> Place:
    worktree, common = tmp_path / "w", tmp_path / "repo" / ".git"
    (worktree / ".claude").mkdir(parents=True)
    (common / "worktrees" / "s1").mkdir(parents=True)
    return Place(worktree, common / "worktrees" / "s1", common, "relay/s1", common / "relay")


def mask(path: Path) -> Path:
    path.touch(mode=0o444)
    return path


def test_empty_files_that_nobody_may_write_are_named(place: Place) -> None:
    left = {
        mask(place.worktree / ".bashrc"),
        mask(place.worktree / ".claude" / "settings.json"),
        mask(place.common_dir / "config.lock"),
        mask(place.git_dir / "config.worktree"),
    }
    assert set(masks(place)) == left


def test_work_is_never_named(place: Place) -> None:
    mask(place.worktree / "empty.txt")
    (place.worktree / ".bashrc").write_text("")
    (place.worktree / ".mcp.json").write_text("{}")
    (place.worktree / ".mcp.json").chmod(0o444)
    (place.worktree / ".vscode").mkdir()
    (place.worktree / ".profile").symlink_to("/etc/profile")
    assert masks(place) == ()


def test_a_linked_claude_folder_is_not_followed(place: Place, tmp_path: Path) -> None:
    (place.worktree / ".claude").rmdir()
    (tmp_path / "elsewhere").mkdir()
    mask(tmp_path / "elsewhere" / "settings.json")
    (place.worktree / ".claude").symlink_to(tmp_path / "elsewhere")
    assert masks(place) == ()
