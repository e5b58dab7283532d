"""Which repository is meant, in places where git itself is in doubt."""

from __future__ import annotations

import os

import pytest

from relay_git.errors import RepoError
from relay_git.git.repo import discover


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a repository to another user")
def test_a_repository_of_another_user_is_refused_with_git_s_own_cure(repo) -> None:
    for path in (repo.path, repo.path / ".git"):
        os.chown(path, 12345, 12345)
    with pytest.raises(RepoError, match="belongs to another user") as refused:
        discover(repo.path, os.environ)
    assert refused.value.hint == f"git config --global --add safe.directory {repo.path}"
    repo.git("config", "--global", "--add", "safe.directory", str(repo.path))
    assert discover(repo.path, os.environ).home == repo.path
