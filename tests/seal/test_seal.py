"""The seal holds: what a test must not see, it does not see."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.seal.environment import make_bin, real_home, sealed_environ


def test_home_is_not_the_real_one(home: Path) -> None:
    assert Path.home() == home
    assert home.resolve() != real_home()
    seen = subprocess.run(["sh", "-c", "cd && pwd"], capture_output=True, text=True, check=True).stdout.strip()
    assert Path(seen).resolve() == home.resolve()


def test_every_user_folder_lies_in_the_home(home: Path) -> None:
    for name in ("CONFIG", "DATA", "STATE", "CACHE"):
        assert Path(os.environ[f"XDG_{name}_HOME"]).is_relative_to(home)


def test_git_reads_only_the_sealed_configuration(home: Path) -> None:
    command = ["git", "config", "--list", "--show-origin", "--show-scope"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True, cwd=home).stdout.splitlines()
    assert lines
    assert {line.split("\t")[1] for line in lines} == {f"file:{home}/.gitconfig"}


def test_credentials_and_git_variables_do_not_pass(tmp_path: Path) -> None:
    bad = {"GIT_DIR": "/x", "ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k", "CLAUDE_CODE_OAUTH_TOKEN": "k", "FOO": "x"}
    sealed = sealed_environ(tmp_path, bad)
    assert not set(bad) & set(sealed)


def test_path_holds_only_known_programs() -> None:
    assert len(os.environ["PATH"].split(":")) == 1
    assert shutil.which("git")
    assert shutil.which("git-relay")
    assert not shutil.which("pip")
    assert not shutil.which("claude")


def test_bin_is_made_from_what_the_machine_has(tmp_path: Path) -> None:
    made = make_bin(tmp_path / "bin")
    assert all(os.access(program, os.X_OK) for program in made.iterdir())


def test_chdir_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="pass cwd instead"):
        os.chdir(tmp_path)


def test_repositories_of_every_kind_can_be_made(make_repo) -> None:
    assert make_repo("plain").git("symbolic-ref", "HEAD") == "refs/heads/main"
    assert make_repo("unborn", unborn=True).try_git("rev-parse", "HEAD").returncode != 0
    assert make_repo("bare", bare=True).git("rev-parse", "--is-bare-repository") == "true"
    assert make_repo("detached", detached=True).try_git("symbolic-ref", "-q", "HEAD").returncode == 1
    dirty = {line[:2] for line in make_repo("dirty", dirty=True).git("status", "--porcelain").splitlines()}
    assert dirty == {" M", "A ", "??"}
    assert len(make_repo("long", object_format="sha256").head) == 64


def test_a_reftable_repository_can_be_made(make_repo) -> None:
    assert make_repo("refs", ref_format="reftable").git("rev-parse", "--show-ref-format") == "reftable"


def test_commits_are_the_same_every_time(make_repo) -> None:
    assert make_repo("one").head == make_repo("two").head
