"""The hook: it marks safe points and holds a commit while a pause is asked for, beside whatever the user has."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import time
from pathlib import Path

import pytest

from relay_git.git import hooks, worktree
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
    held = hooked.marks / "held"
    while not (held.exists() and held.read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert held.read_text() == "held\n"
    assert running.poll() is None
    (hooked.marks / "pause").unlink()
    assert running.wait(20) == 0
    assert hooked.at.git("log", "-1", "--format=%s") == "work"


@pytest.mark.parametrize("busy", ["rebase-merge", "rebase-apply", "sequencer"])
def test_a_replayed_commit_of_a_rebase_is_no_safe_point(hooked, busy) -> None:
    (hooked.repo.worktree_git_dir(hooked.id) / busy).mkdir()
    assert worktree.operation(hooked.repo, hooked.id) != ""  # so that a move of HEAD does not count either
    assert commit(hooked).wait(20) == 0
    assert not (hooked.marks / "safepoints").exists()


@pytest.mark.parametrize("env", [{}, {"GIT_DIR": "{tmp}/none"}, {"PATH": ""}, {"PATH": "", "GIT_DIR": "{tmp}/none"}])
def test_a_poisoned_environment_leads_the_hook_nowhere(hooked, tmp_path, env) -> None:
    (tmp_path / "relay").mkdir()
    (tmp_path / "relay" / "session").write_text("x\n")
    told = {"PATH": os.environ["PATH"]} | {k: v.format(tmp=tmp_path) for k, v in env.items()}
    argv = ["/bin/sh", "-eu", str(hooks.script())]
    done = subprocess.run(argv, env=told, cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert [f.name for f in (tmp_path / "relay").iterdir()] == ["session"]


def test_without_a_path_to_programs_the_commit_is_marked_and_not_held(hooked) -> None:
    (hooked.marks / "pause").write_text("")
    env = {**os.environ, **hooks.environment(hooks.plan(hooked.repo, hooked.at.path), "git-relay"), "PATH": "/nowhere"}
    argv = [shutil.which("git"), "commit", "-q", "--allow-empty", "-m", "from a window"]
    done = subprocess.run(argv, cwd=hooked.at.path, env=env, capture_output=True, check=False, timeout=20)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (hooked.marks / "safepoints").read_text() == "commit\n"


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

    @pytest.mark.parametrize(
        "own", [b"#!/usr/bin/env python3\nopen('ran', 'w')\n", b"#!/bin/fish\n", "true", b"echo x\n"]
    )
    def test_a_hook_that_is_no_shell_script_is_left_alone_and_runs(self, session, own) -> None:
        own = own if isinstance(own, bytes) else Path(shutil.which(own)).read_bytes()  # a program
        file = session.main.git_dir / "hooks" / "post-commit"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(own)
        file.chmod(0o755)
        plan = hooks.install(hooks.plan(session.repo, session.at.path))
        assert plan.route is Route.WATCH
        assert "not a shell script" in plan.reason
        assert file.read_bytes() == own
        commit(session).wait(20)
        assert (session.at.path / "ran").exists() == (b"python3" in own)

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

    @pytest.mark.parametrize("whose", ["main", "linked", "another", "nobody"])
    @pytest.mark.parametrize("link", ["file", "folder"])
    def test_a_link_out_of_the_git_dir_is_not_followed(self, session, tmp_path, whose, link) -> None:
        place = {"main": session.main.path, "linked": tmp_path / "linked"}.get(whose, tmp_path / "dotfiles")
        if whose == "linked":
            session.main.git("worktree", "add", "-q", str(place))
        place.mkdir(exist_ok=True)
        if whose == "another":
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
        plan = hooks.install(hooks.plan(session.repo, session.at.path))
        assert plan.route is Route.WATCH
        assert "lies outside of the git dir" in plan.reason
        assert tracked.read_text() == "#!/bin/sh\ntrue\n"

    def test_a_repository_cloned_into_the_hooks_folder_is_left_alone(self, session) -> None:
        folder = session.main.git_dir / "hooks"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        Plain(folder).git("init", "-q")
        plan = hooks.install(hooks.plan(session.repo, session.at.path))
        assert plan.route is Route.WATCH
        assert f"lies in the work tree {folder}" in plan.reason
        assert Plain(folder).git("status", "--porcelain") == ""

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

    @pytest.mark.parametrize("scope", ["--local", "--global"])
    @pytest.mark.parametrize("named", ["{home}/team", "~/team"])
    def test_a_hooks_folder_that_others_share_is_never_written_to_and_runs(self, session, home, scope, named) -> None:
        team = Plain(home).write("team/post-commit", "#!/bin/sh\necho ran >>ran.txt\n")
        team.chmod(0o755)
        session.main.git("config", scope, "core.hooksPath", named.format(home=home))
        plan = hooks.install(hooks.plan(session.repo, session.at.path))
        assert (plan.route, plan.borrowed) == (Route.WATCH, None)
        assert commit(session).wait(20) == 0
        assert (session.at.path / "ran.txt").read_text() == "ran\n"
        assert [f.name for f in team.parent.iterdir()] == ["post-commit"]
        assert hooks.uninstall(session.repo) == ()

    @pytest.mark.parametrize("shebang", ["#!/bin/bash -eu", "#!/bin/sh -u", "#!/bin/dash -eu"])
    def test_a_hook_with_strict_settings_runs_in_the_main_work_tree_too(self, session, shebang) -> None:
        file = session.main.git_dir / "hooks" / "post-commit"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{shebang}\necho ran >>{session.main.path}/ran.txt\n")
        file.chmod(0o755)
        hooks.install(hooks.plan(session.repo, session.at.path))
        said = session.main.try_git("commit", "-q", "--allow-empty", "-m", "the user's own")
        assert (said.returncode, said.stderr) == (0, "")
        assert commit(session).wait(20) == 0
        assert (session.main.path / "ran.txt").read_text() == "ran\nran\n"
        assert (session.marks / "safepoints").read_text() == "commit\n"

    def test_a_hooks_folder_that_cannot_be_written_costs_the_hook_and_nothing_else(self, session) -> None:
        folder = session.main.git_dir / "hooks"
        shutil.rmtree(folder, ignore_errors=True)
        folder.write_text("no folder\n")  # whoever runs this may write into any folder that is one
        plan = hooks.install(hooks.plan(session.repo, session.at.path))
        assert plan.route is Route.WATCH
        assert "cannot be written" in plan.reason
        assert folder.read_text() == "no folder\n"
        assert commit(session).wait(20) == 0

    @pytest.mark.parametrize("aside", ["old", "legacy", "bak.1"])
    @pytest.mark.parametrize("own", ["", "#!/bin/bash\necho mine\n"])
    def test_uninstall_finds_the_hook_that_a_manager_moved_aside(self, session, aside, own) -> None:
        file = session.main.git_dir / "hooks" / "post-commit"
        file.parent.mkdir(exist_ok=True)
        if own:
            file.write_text(own)
            file.chmod(0o750)
        hooks.install(hooks.plan(session.repo, session.at.path))
        moved = file.rename(file.with_name(f"post-commit.{aside}"))
        file.write_text("#!/bin/sh\nmanager run\n")
        assert hooks.uninstall(session.repo) == (moved,)
        assert file.read_text() == "#!/bin/sh\nmanager run\n"
        assert moved.exists() == bool(own)
        if own:
            assert (moved.read_text(), stat.S_IMODE(moved.stat().st_mode)) == (own, 0o750)

    @pytest.mark.parametrize("by", ["rewritten", "another folder", "not executable", "gone"])
    def test_a_hook_that_was_taken_out_is_noticed_and_not_put_back(self, session, tmp_path, by) -> None:
        plan = hooks.install(hooks.plan(session.repo, session.at.path))
        assert hooks.lost(session.repo, session.at.path, plan) == ""
        file = session.main.git_dir / "hooks" / "post-commit"
        match by:
            case "rewritten":
                file.write_text("#!/bin/sh\nmanager run\n")
            case "another folder":
                session.main.git("config", "core.hooksPath", str(tmp_path))
            case "not executable":
                file.chmod(0o644)
            case "gone":
                file.unlink()
        before = file.read_bytes() if file.exists() else b""
        assert hooks.lost(session.repo, session.at.path, plan) != ""
        assert (file.read_bytes() if file.exists() else b"") == before


class TestBorrowed:
    """A relative core.hooksPath that leads nowhere in the session's worktree."""

    @pytest.fixture
    def generated(self, repo):
        """As husky leaves it: the folder is generated and ignored, so that no other worktree has it."""
        repo.write(".hooks/.gitignore", "*\n")
        for name, end in (("pre-commit", 0), ("commit-msg", '$(grep -c reject "$1")'), ("post-commit", 0)):
            repo.write(f".hooks/{name}", f'#!/bin/sh\necho "{name} $*" >>"$PWD/.ran"\nexit {end}\n').chmod(0o755)
        repo.git("config", "core.hooksPath", ".hooks")
        return repo

    def test_the_user_s_hooks_run_in_the_session_and_their_verdict_holds(self, generated) -> None:
        session = open_session(generated)
        config = (generated.git_dir / "config").read_bytes()
        plan = hooks.install(hooks.plan(session.repo, session.at.path))
        assert plan.borrowed is not None
        assert commit(session, "reject me").wait(20) == 1
        assert commit(session).wait(20) == 0
        message = session.repo.worktree_git_dir(session.id) / "COMMIT_EDITMSG"
        once = f"pre-commit \ncommit-msg {message}\n"
        assert (session.at.path / ".ran").read_text() == f"{once}{once}post-commit \n"
        assert (generated.git_dir / "config").read_bytes() == config
        assert not (session.at.path / ".hooks").exists()

    @pytest.mark.parametrize("name", ["a b", "we[i]rd*", "back\\slash?", 'quo"te', "dotted.name", "ünï"])
    def test_paths_are_taken_as_they_are(self, make_repo, name) -> None:
        plain = make_repo(name)
        plain.write(".git/hooks/pre-commit", "#!/bin/sh\nexit 1\n").chmod(0o755)
        plain.git("config", "core.hooksPath", ".git/hooks")  # in a linked worktree .git is a file
        session = open_session(plain)
        assert commit(session).wait(20) == 0
        hooks.install(hooks.plan(session.repo, session.at.path))
        assert commit(session).wait(20) == 1

    def test_repositories_that_the_agent_s_programs_make_do_not_see_them(self, generated, tmp_path) -> None:
        session = open_session(generated)
        plan = hooks.install(hooks.plan(session.repo, session.at.path))
        fresh, linked = tmp_path / "fresh", tmp_path / "linked"
        generated.git("worktree", "add", "-q", str(linked))
        fresh.mkdir()
        for place, words in ((fresh, ["init", "-q"]), (fresh, ["commit", "-q"]), (linked, ["commit", "-q"])):
            argv = ["git", *words, *(["--allow-empty", "-m", "reject"] if words[0] == "commit" else [])]
            done = subprocess.run(
                argv, cwd=place, env={**os.environ, **hooks.environment(plan, "git-relay")}, check=False
            )
            assert done.returncode == 0

    def test_a_tracked_folder_is_the_session_s_own(self, repo) -> None:
        repo.commit("hooks", {".hooks/pre-commit": "#!/bin/sh\nexit 0\n"})
        repo.git("config", "core.hooksPath", ".hooks")
        session = open_session(repo)
        assert hooks.plan(session.repo, session.at.path).borrowed is None

    def test_a_tracked_folder_that_lacks_its_generated_part_is_borrowed_whole(self, repo) -> None:
        repo.commit("hooks", {".hooks/pre-commit": "#!/bin/sh\n. .hooks/_/h\n", ".gitignore": "_/\n"})
        repo.write(".hooks/_/h", "exit 0\n")
        repo.git("config", "core.hooksPath", ".hooks")
        session = open_session(repo)
        borrowed = hooks.plan(session.repo, session.at.path).borrowed
        assert borrowed is not None
        assert borrowed.folder == repo.path / ".hooks"

    def test_a_user_who_stands_in_a_linked_worktree_lends_hers(self, repo, tmp_path) -> None:
        repo.git("config", "core.hooksPath", ".hooks")
        linked = tmp_path / "linked"
        repo.git("worktree", "add", "-q", str(linked))
        Plain(linked).write(".hooks/pre-commit", "#!/bin/sh\nexit 1\n").chmod(0o755)
        session = open_session(Plain(linked))
        assert commit(session).wait(20) == 0
        hooks.install(hooks.plan(session.repo, session.at.path))
        assert commit(session).wait(20) == 1


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


def test_settings_can_be_handed_over_to_an_agent_whose_tool_hides_the_users(session, repo) -> None:
    repo.git("config", "user.name", "Dev O'Per")
    named = hooks.identity(session.repo.session_git(session.id))
    assert named["user.name"] == "Dev O'Per"
    env = hooks.environment(hooks.plan(session.repo, session.at.path), "git-relay", named)
    hidden = {**os.environ, **env, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    told = subprocess.run(
        ["git", "config", "user.email"], cwd="/", env=hidden, capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == named["user.email"]
