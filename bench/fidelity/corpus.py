"""The recorded sessions: what an agent wrote and what git holds, unpacked, with the truth that was written by hand."""

from __future__ import annotations

import json
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from relay_git.agents import TOOLS
from relay_git.contract.build import Identity, Party, build
from relay_git.contract.canonical import JsonObject
from relay_git.contract.notes import parse
from relay_git.contract.pause import PauseFacts, SafePoint
from relay_git.git.run import Git
from relay_git.git.snapshot import Snapshot
from relay_git.git.store import Oid, open_store
from relay_git.git.work import WorkFacts, collect
from relay_git.session import SessionId, SessionRecord

SESSIONS = Path(__file__).parent / "sessions"
WHEN = datetime(2026, 11, 30, 12, tzinfo=UTC)


def snapshot_ref(name: str) -> str:
    """The ref of a recorded repository that names its base, its head or its snapshot."""
    return f"refs/fidelity/{name}"


@dataclass(frozen=True)
class Session:
    """One recorded session, unpacked in `folder`; `script` is what was played, and holds the truth."""

    name: str
    script: dict[str, Any]
    folder: Path

    @property
    def held_out(self) -> bool:
        return self.script["set"] == "held-out"

    def entry(self) -> tuple[Path, str]:
        """The agent's own file or folder, and the worktree as it was called."""
        about = json.loads((self.folder / "about.json").read_text())
        return self.folder / "agent" / about["entry"], about["worktree"]

    def record(self) -> SessionRecord:
        """What the product's reader makes of it."""
        entry, worktree = self.entry()
        following = TOOLS[self.script["tool"]].follow(entry, "", Path(worktree))
        following.poll()
        return following.record(ended=True)

    def work(self) -> WorkFacts:
        """What the product finds in the repository."""
        git, store = Git(self.folder / "repo"), open_store(self.folder / "repo")
        base, head, commit = (Oid(git.text("rev-parse", snapshot_ref(ref))) for ref in ("base", "head", "snapshot"))
        tree = Oid(git.text("rev-parse", f"{commit}^{{tree}}"))
        return collect(git, store, base, Snapshot(commit, tree, head, "refs/heads/main", "", (), ()))

    def contract(self) -> JsonObject:
        """The contract that the product builds from both."""
        tool, task = self.script["tool"], self.script["prompts"][0]
        identity = Identity(SessionId(self.name), "t-1", 1, WHEN, task, Party(tool))
        pause = PauseFacts("usage-limit", SafePoint.TOOL_BOUNDARY)
        notes = tuple(parse((self.folder / "notes").read_bytes(), "note of the agent")[0])
        return build(identity, pause, self.record(), self.work(), notes=notes)


def names() -> list[str]:
    """All sessions that are recorded."""
    return sorted(path.name.removesuffix(".tar.xz") for path in SESSIONS.glob("*.tar.xz"))


def unpacked(scratch: Path, only: str = "") -> Iterator[Session]:
    """The recorded sessions, each unpacked in a folder of its own."""
    for name in names():
        if only in name:
            folder = scratch / name
            with tarfile.open(SESSIONS / f"{name}.tar.xz") as kept:
                kept.extractall(folder, filter="data")
            _git(folder, "init", "-q", "--bare", "--template=", "repo")
            _git(
                folder / "repo",
                "fetch",
                "-q",
                "--no-write-fetch-head",
                "../repo.bundle",
                "refs/fidelity/*:refs/fidelity/*",
            )
            # A bundle has no reflog, so that the author's address tells whose a commit is.
            _git(folder / "repo", "config", "user.name", "Dev")
            _git(folder / "repo", "config", "user.email", "dev@example.invalid")
            yield Session(name, json.loads((SESSIONS / f"{name}.json").read_text()), folder)


def _git(cwd: Path, *args: str) -> None:
    subprocess.run(["git", *args], cwd=cwd, check=True, stdin=subprocess.DEVNULL, capture_output=True)
