"""`init` and `uninstall`: what is put in comes out again, to the last file."""

from __future__ import annotations

import pytest

from tests.cli.scene import LIMIT, TAKE_OVER, digest, everything, only_session, say, write

_WORK = [say("I begin."), write("made.txt", "made\n"), LIMIT]


def inventory(repo) -> dict[str, str]:
    """Every file and folder of the git dir, without objects, index and what git itself writes at a commit."""
    git_dir = repo.path / ".git"
    files = {str(f.relative_to(git_dir)): digest(f) for f in everything(git_dir, leave_out={"objects"})}
    folders = {str(d.relative_to(git_dir)) + "/": "" for d in git_dir.rglob("*") if d.is_dir()}
    return {
        name: what
        for name, what in (files | folders).items()
        if not name.startswith("objects/") and name != "index" and name != "COMMIT_EDITMSG"
    }


def test_init_makes_a_private_key_and_one_exclude_line_and_twice_is_once(repo, relay) -> None:
    first = relay("init", cwd=repo.path)
    assert (first.rc, first.stderr) == (0, "")
    key = repo.path / ".git/relay/key"
    assert f"made a new signing key {key} (id " in first.stdout
    assert key.stat().st_mode & 0o777 == 0o600
    assert key.parent.stat().st_mode & 0o777 == 0o700
    assert key.read_text().strip() not in first.stdout
    before = inventory(repo)
    second = relay("init", cwd=repo.path)
    assert (second.rc, second.stderr) == (0, "")
    assert f"using the signing key {key}" in second.stdout
    assert inventory(repo) == before
    assert (repo.path / ".git/info/exclude").read_text().count("/.relay/\n") == 1


def test_a_new_key_keeps_the_old_one_aside(repo, relay) -> None:
    relay("init", cwd=repo.path)
    key = repo.path / ".git/relay/key"
    old = key.read_bytes()
    ran = relay("init", "--new-key", cwd=repo.path)
    assert (ran.rc, ran.stderr) == (0, "")
    assert "made a new signing key" in ran.stdout
    assert key.read_bytes() != old
    assert (key.parent / "key.1").read_bytes() == old
    assert (key.parent / "key.1").stat().st_mode & 0o777 == 0o600


def test_uninstall_in_a_repository_that_never_saw_us_changes_nothing(repo, relay) -> None:
    before = inventory(repo)
    ran = relay("uninstall", cwd=repo.path)
    assert (ran.rc, ran.stderr) == (0, "")
    assert inventory(repo) == before


@pytest.mark.parametrize("user_s_own", [True, False])
def test_after_drop_and_uninstall_with_the_key_the_git_dir_is_as_it_was_before_init(
    repo, relay, demo, user_s_own
) -> None:
    if user_s_own:
        repo.write(".git/info/exclude", "*.tmp\n")
        repo.write(".git/hooks/post-commit", "#!/bin/sh\necho mine\n").chmod(0o755)
        repo.git("pack-refs", "--all")
        repo.git("branch", "side")
    before = inventory(repo)
    demo.plays(_WORK, TAKE_OVER)
    assert relay("init", cwd=repo.path).rc == 0
    assert relay("start", "x", "--agent", "demo", "--then", "demo", cwd=repo.path).rc == 0
    assert relay("drop", "--force", "--purge", cwd=repo.path).rc == 0
    ran = relay("uninstall", "--key", cwd=repo.path)
    assert (ran.rc, ran.stderr) == (0, "")
    assert "deleted the signing key" in ran.stdout
    assert inventory(repo) == before
    assert not (repo.path / ".relay").exists()


def test_uninstall_keeps_sessions_and_the_key_says_so_and_they_still_verify(repo, relay, demo) -> None:
    demo.plays(_WORK, TAKE_OVER)
    assert relay("start", "x", "--agent", "demo", "--then", "demo", cwd=repo.path).rc == 0
    session = only_session(repo.path)
    refs = repo.git("for-each-ref")
    ran = relay("uninstall", cwd=repo.path)
    assert ran.rc == 0
    assert f"kept the session {session}; to remove it: git relay drop --purge {session}" in ran.stdout
    assert f"kept the signing key {repo.path}/.git/relay/key; with --key it goes too" in ran.stdout
    assert repo.git("for-each-ref") == refs
    assert b"git relay" not in b"".join(f.read_bytes() for f in (repo.path / ".git").glob("hooks/*"))
    assert relay("verify", "--all", cwd=repo.path).rc == 0
    assert relay("land", cwd=repo.path).rc == 0
    assert (repo.path / "half.txt").read_text() == "whole\n"
