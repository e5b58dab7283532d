"""`drop` without --force: what nothing but the worktree holds is named and stays, whatever hides it from git status."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.scene import commit, only_session, say, shell, write

INNER = (
    "git init -q o && cd o && echo '*.x' >.gitignore && git init -q i && cd i && echo i >i && git add . &&"
    " git commit -qm i && cd .. && git add . && git commit -qm o"
)


@pytest.fixture
def place(repo, relay, demo) -> Path:
    """The worktree of a session that is landed, with the repository `o` in it, and in that `o/i`."""
    demo.plays([say("I begin."), shell("sh", "-c", INNER), write("a.txt", "a\n"), commit("One")])
    assert relay("start", "x", "--agent", "demo", cwd=repo.path).rc == 0
    assert relay("land", cwd=repo.path).rc == 0
    return repo.path / ".relay/sessions" / only_session(repo.path)


def git(place: Path, *args: str) -> str:
    return subprocess.run(["git", *args], cwd=place, capture_output=True, check=True, text=True).stdout.strip()


def refused(relay, repo, said: str, hint: str) -> None:
    ran = relay("drop", cwd=repo.path)
    assert (ran.rc, ran.stdout) == (2, "")
    assert said in ran.stderr
    assert f"hint: {hint}, or: git relay drop --force" in ran.stderr


def test_nothing_that_only_the_worktree_holds_goes_and_each_is_named(repo, relay, place) -> None:
    repo.git("config", "status.showUntrackedFiles", "no")
    (place / ".env").write_text("S=1\n")
    refused(relay, repo, "holds uncommitted work (.env)", f"git -C {place} status -u")
    git(place, "checkout", "-q", "--detach")  # on no branch too, though a snapshot would be the same as HEAD
    refused(relay, repo, "holds uncommitted work (.env)", f"git -C {place} status -u")
    git(place, "checkout", "-q", f"relay/{place.name}")
    (place / ".env").unlink()
    for bit in ("skip-worktree", "assume-unchanged"):
        git(place, "update-index", f"--{bit}", "a.txt")
        (place / "a.txt").write_text("edited\n")
        way = f"git -C {place} update-index --no-{bit} a.txt"
        refused(relay, repo, "holds uncommitted work that an index bit hides (a.txt)", way)
        git(place, "update-index", f"--no-{bit}", "a.txt")
        git(place, "checkout", "a.txt")
    (place / "o/w.x").write_text("w\n")
    said = f"o in the worktree of {place.name} holds uncommitted work (w.x)"
    refused(relay, repo, said, f"git -C {place}/o status -u --ignored")
    (place / "o/w.x").unlink()
    (place / "o/i/.git").rename(place.parent / "taken")  # git status does not look into what a commit id stands for
    said = f"o/i in the worktree of {place.name} holds uncommitted work (i)"
    refused(relay, repo, said, f"ls -A {place}/o/i")
    (place.parent / "taken").rename(place / "o/i/.git")
    own = git(place, "commit-tree", "-m", "only here", "HEAD^{tree}")
    git(place, "update-ref", "refs/worktree/mine", own)
    way = f"git branch {place.name}-{own[:7]} {own}"
    refused(relay, repo, f"holds the commit {own[:12]}, which is on no branch yet", way)
    repo.git(*way.split()[1:])
    inner = git(place / "o/i", "rev-parse", "HEAD")
    ran = relay("drop", cwd=repo.path)
    assert ran.rc == 0, ran.stderr
    kept = repo.path / ".git/relay/kept" / place.name
    assert f"it is kept in {kept}/o-i.git" in ran.stderr
    assert git(kept / "o-i.git", "rev-parse", "HEAD") == inner
    assert git(kept / "o.git", "ls-tree", "HEAD", "i").split()[2] == inner
    repo.git("branch", "-D", way.split()[2])
    assert f"refs/relay/sessions/{place.name}" in repo.git("for-each-ref", "--contains", own)
