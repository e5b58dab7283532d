"""The hook: it marks safe points and holds a commit while a pause is asked for, beside whatever the user has."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import time

import pytest

from relay_git.git import hooks
from relay_git.git.hooks import Route
from relay_git.git.repo import discover
from tests.git.conftest import open_session
from tests.seal.repo import Repo as Plain
from tests.seal.repo import git_version

CONFIGURED = git_version() >= hooks.CONFIGURED_HOOKS


def commit(session, message: str = "work") -> subprocess.Popen[bytes]:
    """A commit as the supervised agent makes it: with the environment that carries the hook."""
    env = {**os.environ, **hooks.environment(hooks.plan(session.repo, session.at.path), "git-relay")}
    argv = ["git", "commit", "-q", "--allow-empty", "-m", message]
    return subprocess.Popen(argv, cwd=session.at.path, env=env)


@pytest.fixture
def hooked(session):
    hooks.install(hooks.plan(session.repo, session.at.path))
    return session


def test_a_commit_in_the_session_marks_a_safe_point_and_one_elsewhere_does_not(hooked) -> None:
    assert commit(hooked).wait(20) == 0
    assert (hooked.marks / "safepoints").read_text() == "commit\n"
    hooked.main.commit("the user's own", {"u.txt": "u\n"})
    assert (hooked.marks / "safepoints").read_text() == "commit\n"
    assert not (hooked.main.git_dir / "relay" / "safepoints").exists()


def test_a_commit_is_held_while_the_pause_flag_is_there(hooked) -> None:
    (hooked.marks / "pause").write_text("")
    running = commit(hooked)
    deadline = time.monotonic() + 20
    while not (hooked.marks / "held").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert (hooked.marks / "held").read_text() == "held\n"
    assert running.poll() is None
    (hooked.marks / "pause").unlink()
    assert running.wait(20) == 0
    assert hooked.at.git("log", "-1", "--format=%s") == "work"


def test_a_replayed_commit_of_a_rebase_is_no_safe_point(hooked) -> None:
    (hooked.repo.worktree_git_dir(hooked.id) / "rebase-merge").mkdir()
    assert commit(hooked).wait(20) == 0
    assert not (hooked.marks / "safepoints").exists()


def test_a_poisoned_environment_leads_the_hook_nowhere(hooked, tmp_path) -> None:
    (tmp_path / "relay").mkdir()
    (tmp_path / "relay" / "session").write_text("x\n")
    done = subprocess.run(
        ["sh", str(hooks.script())], env={**os.environ, "GIT_DIR": str(tmp_path / "none")}, check=False
    )
    assert done.returncode == 0
    done = subprocess.run(["sh", str(hooks.script())], env={"PATH": os.environ["PATH"]}, check=False)
    assert done.returncode == 0


@pytest.mark.skipif(CONFIGURED, reason="this git runs hooks named in the environment, no block is needed")
class TestBlock:
    """Git before 2.54."""

    def test_the_user_s_hook_still_runs_and_comes_out_unchanged(self, session) -> None:
        file = session.main.git_dir / "hooks" / "post-commit"
        file.parent.mkdir(exist_ok=True)
        own = "#!/bin/bash\necho ran >> ../../../ran.txt\nexit 0\n"
        file.write_text(own)
        file.chmod(0o755)
        hooks.install(hooks.plan(session.repo, session.at.path))
        once = file.read_text()
        hooks.install(hooks.plan(session.repo, session.at.path))
        assert file.read_text() == once
        assert commit(session).wait(20) == 0
        assert (session.main.path / "ran.txt").read_text() == "ran\n"
        assert (session.marks / "safepoints").exists()
        assert hooks.uninstall(session.repo) == (file,)
        assert file.read_text() == own

    def test_a_file_that_held_only_our_block_goes(self, hooked) -> None:
        hooks.uninstall(hooked.repo)
        assert not (hooked.main.git_dir / "hooks" / "post-commit").exists()

    def test_a_hook_that_is_no_shell_script_is_left_alone(self, session) -> None:
        file = session.main.git_dir / "hooks" / "post-commit"
        file.parent.mkdir(exist_ok=True)
        file.write_text("#!/usr/bin/env python3\nprint()\n")
        plan = hooks.plan(session.repo, session.at.path)
        hooks.install(plan)
        assert plan.route is Route.WATCH
        assert "not a shell script" in plan.reason
        assert file.read_text() == "#!/usr/bin/env python3\nprint()\n"

    def test_a_hook_that_git_does_not_run_stays_unrun(self, session) -> None:
        file = session.main.git_dir / "hooks" / "post-commit"
        file.parent.mkdir(exist_ok=True)
        own = "#!/bin/sh\necho ran >> ../../../ran.txt\n"
        file.write_text(own)
        file.chmod(0o644)
        plan = hooks.plan(session.repo, session.at.path)
        hooks.install(plan)
        assert plan.route is Route.WATCH
        assert "not executable" in plan.reason
        assert commit(session).wait(20) == 0
        assert not (session.main.path / "ran.txt").exists()
        hooks.uninstall(session.repo)
        assert file.read_text() == own
        assert stat.S_IMODE(file.stat().st_mode) == 0o644

    @pytest.mark.parametrize("text", ["#!/bin/sh\n", "#!/bin/sh -e\ntrue", "#!/usr/bin/env bash\n\ntrue\n\n"])
    @pytest.mark.parametrize("mode", [0o700, 0o750, 0o755])
    def test_uninstall_gives_bytes_and_mode_back(self, session, text, mode) -> None:
        file = session.main.git_dir / "hooks" / "post-commit"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        file.chmod(mode)
        hooks.install(hooks.plan(session.repo, session.at.path))
        hooks.install(hooks.plan(session.repo, session.at.path))
        assert file.read_text() != text
        assert stat.S_IMODE(file.stat().st_mode) == mode
        assert commit(session).wait(20) == 0
        assert (session.marks / "safepoints").exists()
        assert hooks.uninstall(session.repo) == (file,)
        assert file.read_text() == text
        assert stat.S_IMODE(file.stat().st_mode) == mode

    @pytest.mark.parametrize("whose", ["main", "linked", "another"])
    @pytest.mark.parametrize("link", ["file", "folder"])
    def test_a_link_into_a_work_tree_of_whatever_repository_is_not_followed(
        self, session, tmp_path, whose, link
    ) -> None:
        place = {"main": session.main.path, "linked": tmp_path / "linked", "another": tmp_path / "dotfiles"}[whose]
        if whose == "linked":
            session.main.git("worktree", "add", "-q", str(place))
        if whose == "another":
            place.mkdir()
            Plain(place).git("init", "-q")
        tracked = Plain(place).write("hooks/post-commit", "#!/bin/sh\ntrue\n")
        tracked.chmod(0o755)
        folder = session.main.git_dir / "hooks"
        shutil.rmtree(folder, ignore_errors=True)
        if link == "folder":
            folder.symlink_to(tracked.parent)
        else:
            folder.mkdir()
            (folder / "post-commit").symlink_to(os.path.relpath(tracked, folder))
        plan = hooks.plan(session.repo, session.at.path)
        hooks.install(plan)
        assert plan.route is Route.WATCH
        assert f"the work tree {place}" in plan.reason
        assert tracked.read_text() == "#!/bin/sh\ntrue\n"

    def test_a_link_that_leads_nowhere_is_left_alone(self, session, tmp_path) -> None:
        file = session.main.git_dir / "hooks" / "post-commit"
        file.parent.mkdir(exist_ok=True)
        file.symlink_to(tmp_path / "gone")
        plan = hooks.plan(session.repo, session.at.path)
        hooks.install(plan)
        assert plan.route is Route.WATCH
        assert not (tmp_path / "gone").exists()

    def test_hooks_of_a_submodule_lie_in_its_git_dir_or_in_the_work_tree_of_its_parent(self, repo, tmp_path) -> None:
        child = tmp_path / "child"
        child.mkdir()
        Plain(child).git("init", "-q")
        Plain(child).commit("first", {"a.txt": "a\n"})
        repo.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(child), "sub")
        found = discover(repo.path / "sub", os.environ)
        assert hooks.plan(found, repo.path / "sub").route is Route.BLOCK
        Plain(repo.path / "sub").git("config", "core.hooksPath", str(repo.path / "hooks"))
        assert hooks.plan(found, repo.path / "sub").route is Route.WATCH

    @pytest.mark.parametrize("path", [".husky", "absolute"])
    def test_hooks_in_the_work_tree_are_never_written_to(self, repo, path) -> None:
        where = str(repo.path / ".husky") if path == "absolute" else path
        repo.git("config", "core.hooksPath", where)
        session = open_session(repo)
        plan = hooks.plan(session.repo, session.at.path)
        hooks.install(plan)
        assert plan.route is Route.WATCH
        assert not (repo.path / ".husky").exists()
        assert repo.git("config", "core.hooksPath") == where

    def test_a_hooks_folder_outside_of_the_repository_gets_the_block(self, repo, tmp_path) -> None:
        repo.git("config", "core.hooksPath", str(tmp_path / "shared-hooks"))
        session = open_session(repo)
        hooks.install(hooks.plan(session.repo, session.at.path))
        assert commit(session).wait(20) == 0
        assert (session.marks / "safepoints").exists()
        hooks.uninstall(session.repo)
        assert not (tmp_path / "shared-hooks" / "post-commit").exists()


@pytest.mark.skipif(not CONFIGURED, reason="needs git 2.54")
def test_configured_hooks_leave_no_trace_in_the_repository(session) -> None:
    config = (session.main.git_dir / "config").read_bytes()
    plan = hooks.plan(session.repo, session.at.path)
    hooks.install(plan)
    assert plan.route is Route.CONFIGURED
    assert commit(session).wait(20) == 0
    assert (session.marks / "safepoints").exists()
    assert (session.main.git_dir / "config").read_bytes() == config
    assert not (session.main.git_dir / "hooks" / "post-commit").exists()
