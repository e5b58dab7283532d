"""A new worktree before an agent works in it: what comes along, what is set up, and what becomes of it afterwards."""

from __future__ import annotations

import shutil

import pytest

from tests.cli.scene import ACCEPT, LIMIT, TAKE_OVER, WORK, commit, only_session, photograph, say, shell, states, write
from tests.seal.repo import Repo

SECRET = "TOKEN=made-up-and-never-in-a-ref\n"


@pytest.fixture
def user(repo: Repo) -> Repo:
    repo.commit("ignore", {".gitignore": ".env\nready\n"})
    repo.write(".worktreeinclude", ".env\n")
    repo.write(".env", SECRET)
    repo.commit("include")
    return repo


def all_objects(repo: Repo) -> str:
    return repo.git("cat-file", "--batch-all-objects", "--batch-check", "--unordered") + repo.git(
        "log", "--all", "-p", "--format=%B", "--notes=relay/*"
    )


def test_every_leg_has_what_came_along_and_no_ref_has_it(user, relay, demo) -> None:
    stage = [say("I begin."), shell("sh", "-c", "test -f .env && rm .gitignore && git add -f .env"), LIMIT]
    demo.plays(stage, [ACCEPT, say("I go on."), shell("sh", "-c", "test -f .env && touch env-is-there")])
    before = photograph(user.path)
    ran = relay("start", "x", "--agent", "demo", "--then", "demo", cwd=user.path)
    assert ran.rc == 0, ran.stderr
    assert photograph(user.path) == before
    branch = f"relay/{only_session(user.path)}"
    assert "env-is-there" in user.git("ls-tree", "-r", "--name-only", branch)
    assert "made-up-and-never" not in all_objects(user)
    assert ".env came along by .worktreeinclude" in relay("show", cwd=user.path).stdout


def test_an_unchanged_copy_does_not_stop_a_drop_and_a_changed_one_does(user, relay, demo) -> None:
    demo.plays([*WORK, shell("sh", "-c", "echo more >> .env")])
    assert relay("start", "one", "--agent", "demo", cwd=user.path).rc == 0
    assert relay("land", cwd=user.path).rc == 0
    refused = relay("drop", cwd=user.path)
    assert (refused.rc, ".env" in refused.stderr) == (2, True)
    place = user.path / ".relay/sessions" / only_session(user.path)
    shutil.copyfile(user.path / ".env", place / ".env")
    assert relay("drop", cwd=user.path).rc == 0


def test_the_setup_command_runs_once_before_the_first_leg_and_again_in_a_worktree_made_anew(user, relay, demo) -> None:
    user.git("config", "relay.setup", "echo setting up; grep TOKEN .env >/dev/null && echo set >> ready")
    check = shell("sh", "-c", "cp ready ready-$RELAY_LEG.txt")
    demo.plays([say("I begin."), check, LIMIT], [TAKE_OVER[0], check, *TAKE_OVER[1:]])
    ran = relay("start", "x", "--agent", "demo", "--then", "demo", cwd=user.path)
    assert ran.rc == 0, ran.stderr
    session = only_session(user.path)
    assert "setting up: echo setting up" in ran.stderr
    assert [user.git("show", f"relay/{session}:ready-{leg}.txt") for leg in (1, 2)] == ["set", "set"]
    assert (user.path / f".git/relay/logs/{session}/setup-1/stdout").read_text() == "setting up\n"


def test_a_worktree_made_anew_is_set_up_again(user, relay, demo) -> None:
    user.git("config", "relay.setup", "echo set >> ready")
    demo.plays(
        [say("I begin."), write("a.txt", "a\n"), commit("a"), LIMIT],
        [TAKE_OVER[0], shell("cp", "ready", "again"), *TAKE_OVER[1:]],
    )
    assert relay("start", "x", "--agent", "demo", cwd=user.path).rc == 1
    session = only_session(user.path)
    shutil.rmtree(user.path / ".relay/sessions" / session)
    ran = relay("handoff", "--to", "demo", cwd=user.path)
    assert ran.rc == 0, ran.stderr
    assert user.git("show", f"relay/{session}:again") == "set"


def test_a_setup_command_that_fails_is_said_before_any_agent_is_started(user, relay, demo) -> None:
    user.git("config", "relay.setup", "echo no such package >&2; exit 7")
    demo.plays(WORK)
    ran = relay("start", "x", "--agent", "demo", cwd=user.path)
    session = only_session(user.path)
    assert ran.rc == 2
    assert "the setup command failed (it ended with status 7: no such package); no agent was started" in ran.stderr
    assert f"logs/{session}/setup-1" in ran.stderr
    assert demo.prompts() == []
    user.git("config", "relay.setup", "true")
    assert relay("resume", cwd=user.path).rc == 0
    assert states(user.path, session)[-1]["state"] == "DONE"


def test_the_size_from_which_on_a_file_is_left_out_is_the_user_s(repo, relay, demo) -> None:
    repo.git("config", "relay.snapshot.maxFile", "1k")
    demo.plays(
        [say("I begin."), write("big.txt", "x" * 1025), write("small.txt", "x" * 1024), LIMIT],
        [ACCEPT, say("I go on.")],
    )
    ran = relay("start", "x", "--agent", "demo", "--then", "demo", cwd=repo.path)
    assert ran.rc == 0, ran.stderr
    session = only_session(repo.path)
    listed = repo.git("ls-tree", "--name-only", f"relay/{session}").split("\n")
    assert ("small.txt" in listed, "big.txt" in listed) == (True, False)
    assert (repo.path / f".relay/sessions/{session}/big.txt").stat().st_size == 1025
    assert (
        "big.txt has 1.0 KiB, more than relay.snapshot.maxFile (1 KiB): left out" in relay("show", cwd=repo.path).stdout
    )
    repo.git("config", "relay.snapshot.maxFile", "1 apple")
    refused = relay("start", "y", "--agent", "demo", cwd=repo.path)
    assert (refused.rc, "relay.snapshot.maxfile is 1 apple" in refused.stderr) == (2, True)
