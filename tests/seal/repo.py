"""A real git repository for one test, and the few words a test needs to work in it."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Repo:
    """A repository at `path`; every git that it runs is the real one, in the sealed environment."""

    path: Path

    def git(self, *args: str, stdin: str | None = None) -> str:
        """Run git here and return its stdout without the last newline; a failure shows git's own words."""
        done = subprocess.run(["git", *args], cwd=self.path, input=stdin, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(f"git {' '.join(args)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout.removesuffix("\n")

    def try_git(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Run git here whatever comes of it."""
        return subprocess.run(["git", *args], cwd=self.path, capture_output=True, text=True, check=False)

    def write(self, name: str, content: str | bytes) -> Path:
        """Write one file of the work tree, with the folders that it needs."""
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def commit(self, message: str, files: dict[str, str | bytes] | None = None) -> str:
        """Write `files`, commit all that changed (also when nothing did), and return the commit's id."""
        for name, content in (files or {}).items():
            self.write(name, content)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.head

    @property
    def head(self) -> str:
        """The id of HEAD's commit."""
        return self.git("rev-parse", "HEAD")

    @property
    def git_dir(self) -> Path:
        """The absolute path of the git dir."""
        return Path(self.git("rev-parse", "--absolute-git-dir"))


def git_version() -> tuple[int, ...]:
    """The version of the git on PATH, as (2, 47, 1)."""
    words = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout.split()
    return tuple(int(part) for part in words[2].split(".")[:3] if part.isdigit())
