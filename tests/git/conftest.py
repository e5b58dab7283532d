"""A session in a real repository, without any agent."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from relay_git.git import snapshot, worktree
from relay_git.git.losses import MAX_FILE
from relay_git.git.repo import Repo, discover
from relay_git.git.snapshot import Snapshot
from relay_git.git.store import Oid, Store, open_store
from relay_git.session import SessionId
from tests.seal.repo import Repo as Plain

WHEN = 1_790_000_000


@dataclass(frozen=True, slots=True)
class Session:
    """A session's worktree `at`, and the repository `main` that it belongs to."""

    main: Plain
    at: Plain
    repo: Repo
    store: Store
    id: SessionId
    base: Oid

    def snapshot(self, max_file: int = MAX_FILE) -> Snapshot:
        return snapshot.take(self.repo, self.store, self.id, "relay: snapshot", WHEN, max_file=max_file)

    @property
    def marks(self) -> Path:
        return self.repo.worktree_git_dir(self.id) / "relay"


def open_session(plain: Plain, name: str = "work-0001") -> Session:
    found = discover(plain.path, os.environ)
    store = open_store(found.common_dir)
    base = found.resolve("HEAD")
    assert base is not None
    worktree.exclude(found)
    place = worktree.add(found, SessionId(name), base)
    return Session(plain, Plain(place), found, store, SessionId(name), base)


@pytest.fixture
def session(repo: Plain) -> Session:
    return open_session(repo)
