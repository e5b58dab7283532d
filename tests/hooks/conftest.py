"""The real hook managers, installed by install.sh, and the scene that their tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import demo
from tests.hooks.managers import MANAGERS, RECORD, Manager
from tests.seal.repo import Repo

__all__ = ["demo"]  # the fixture


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that the recording hooks write to."""
    file = tmp_path / "record"
    monkeypatch.setenv("RELAY_TEST_RECORD", str(file))
    return file


@pytest.fixture
def manager(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Manager:
    """The manager that the test is parametrised with, its programs on PATH."""
    found = MANAGERS[request.param]
    folder = Path(os.environ.get("RELAY_TEST_HOOKS", "/nonexistent")) / "bin"
    missing = [name for name in found.programs if not (folder / name).exists()]
    if missing:
        reason = (
            f"no {' and no '.join(missing)} in {folder}: bash tests/hooks/install.sh PREFIX, RELAY_TEST_HOOKS=PREFIX"
        )
        if os.environ.get("RELAY_TEST_REQUIRE_HOOKS") == "1":
            pytest.fail(f"RELAY_TEST_REQUIRE_HOOKS=1, and {reason}")
        pytest.skip(reason)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return found


@pytest.fixture
def managed(manager: Manager, repo: Repo, record: Path) -> Iterator[Repo]:
    """A repository with the manager's hooks in it, committed as a user commits them."""
    repo.write("record", RECORD)
    manager.set_up(repo)
    repo.commit("Add hooks")
    record.unlink(missing_ok=True)
    return repo
