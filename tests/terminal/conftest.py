"""A terminal with a user at it, and the smallest program that lends it to another."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.cli.scene import Demo, only_session, states
from tests.seal.records import records
from tests.seal.repo import Repo
from tests.terminal.user import User

ROOT = Path(__file__).parents[2]
TUI = (sys.executable, "-m", "relay_git.agents.demo_tui", "--session-id", "t-1")


class Desk:
    """Where a test lends a terminal; what the demo agent's TUI noted is read here."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.users: list[User] = []
        self.env = {"PYTHONPATH": str(ROOT), "RELAY_DEMO_HOME": str(folder / "demo")}

    def sit(self, *argv: str, **more) -> User:
        """A user at a terminal in which this was typed."""
        user = User(argv, cwd=self.folder, env=self.env, **more)
        self.users.append(user)
        return user

    def lend(self, *argv: str, **more) -> User:
        """A terminal that is lent to a program."""
        return self.sit(*self.lending(*argv), **more)

    def lending(self, *argv: str) -> tuple[str, ...]:
        """The command that lends it."""
        return (sys.executable, "-m", "tests.terminal.lend", str(self.folder), *argv)

    def status(self) -> str:
        """Exit status, processes left, and whether an end was asked for."""
        return (self.folder / "status").read_text()

    def received(self) -> bytes:
        """Every byte that reached the demo agent's TUI."""
        said = records(self.folder / "demo/sessions/t-1.jsonl")
        return b"".join(bytes.fromhex(r["hex"]) for r in said if r["type"] == "keys")

    def left(self) -> list[int]:
        """Who still carries the mark."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.status() != psutil.STATUS_ZOMBIE and process.environ().get("RELAY_DIR") == str(self.folder):
                    found.append(process.pid)
            except psutil.Error:
                continue
        return found


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    for user in made.users:
        user.close()
    for pid in made.left():
        os.kill(pid, 9)


class Session:
    """A repository, the demo agent with a script, and users who type `git relay` in it."""

    def __init__(self, repo: Repo, demo: Demo, relay) -> None:
        self.repo, self.demo, self._relay = repo, demo, relay
        self.users: list[User] = []

    def type(self, *args: str) -> User:
        """A user at a terminal who typed this."""
        user = User(["git-relay", *args], cwd=self.repo.path)
        self.users.append(user)
        return user

    def elsewhere(self, *args: str):
        """The same in another terminal."""
        return self._relay(*args, cwd=self.repo.path)

    @property
    def name(self) -> str:
        return only_session(self.repo.path)

    def states(self) -> list[dict]:
        """The entries of the journal, oldest first."""
        return states(self.repo.path, self.name)

    def state(self) -> dict:
        """The newest entry of the journal."""
        return self.states()[-1]

    def contract(self) -> dict:
        """The newest contract, verified."""
        return json.loads(self.elsewhere("show", self.name, "--json").stdout)["contract"]

    def received(self) -> list[bytes]:
        """Every byte that reached each TUI, in the order in which they were started."""
        found = []
        for file in (self.demo.home / "sessions").glob("*.jsonl"):
            said = records(file)
            keys = b"".join(bytes.fromhex(r["hex"]) for r in said if r["type"] == "keys")
            found.append((said[0]["at"], keys))
        return [keys for _, keys in sorted(found)]


@pytest.fixture
def session(repo: Repo, tmp_path: Path, monkeypatch, relay) -> Iterator[Session]:
    demo = Demo(tmp_path / "steps.json", tmp_path / "demo-home")
    monkeypatch.setenv("RELAY_DEMO_STEPS", str(demo.script))
    monkeypatch.setenv("RELAY_DEMO_HOME", str(demo.home))
    made = Session(repo, demo, relay)
    yield made
    for user in made.users:
        user.close()
