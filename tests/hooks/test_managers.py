"""Real hook managers beside git relay: the user's hooks run as before, safe points are seen, all comes out again."""

from __future__ import annotations

import subprocess

import pytest

from relay_git.git.hooks import CONFIGURED_HOOKS
from tests.cli.scene import LIMIT, TAKE_OVER, commit, only_session, say, shell, write
from tests.hooks.managers import MANAGERS, inventory, recorded, run
from tests.hooks.scene import ASK_NOW, hand_over
from tests.seal.repo import Repo, git_version

CONFIGURED = git_version() >= CONFIGURED_HOOKS
every_manager = pytest.mark.parametrize("manager", MANAGERS, indirect=True)
# What a user's hooks see most: a message that is refused, a commit, an amended one.
WORK = (
    ("git", "commit", "-q", "--allow-empty", "-m", "reject me"),
    ("git", "commit", "-q", "--allow-empty", "-m", "good"),
    ("git", "commit", "-q", "--amend", "--allow-empty", "-m", "better"),
)


def work(repo: Repo) -> list[int]:
    return [subprocess.run(argv, cwd=repo.path, capture_output=True, check=False).returncode for argv in WORK]


@every_manager
def test_the_user_s_hooks_run_the_same_in_the_main_work_tree_and_in_the_session(
    manager, managed, record, relay, demo, tmp_path
) -> None:
    before = inventory(managed)
    assert work(managed) == [1, 0, 0]
    usual = recorded(record, managed)
    assert {line.split(":")[0] for line in usual if not line.startswith(" ")} >= {"commit-msg", "post-commit"}
    linked = Repo(tmp_path / "linked")
    managed.git("worktree", "add", "-q", str(linked.path))
    verdicts = work(linked)
    assert ((verdicts, recorded(record, linked)) == ([1, 0, 0], usual)) == manager.in_linked

    demo.plays([say("I begin."), *(shell(*argv) for argv in WORK), LIMIT], TAKE_OVER)
    ran = relay("start", "x", "--agent", "demo", cwd=managed.path)
    assert ran.rc == 1, ran
    session = only_session(managed.path)
    at = Repo(managed.path / ".relay/sessions" / session)
    assert recorded(record, at) == usual
    marks = (at.git_dir / "relay" / "safepoints").exists()
    assert marks == (CONFIGURED or manager.blocked)
    assert work(managed) == [1, 0, 0]
    assert recorded(record, managed) == usual

    assert (
        at.git("log", "-1", "--format=%s") == "better"
    )  # after a limit with nothing left to take, HEAD is the snapshot
    assert relay("uninstall", cwd=managed.path).rc == 0
    assert inventory(managed) == before


@pytest.mark.parametrize("manager", [name for name, m in MANAGERS.items() if m.again], indirect=True)
def test_a_manager_that_installs_itself_again_ends_no_safe_point_and_is_not_fought(
    manager, managed, relay, demo
) -> None:
    before, config = inventory(managed), managed.git("config", "--list")
    steps = [shell(*manager.again), write("one", "1\n"), commit("One"), *ASK_NOW, write("two", "2\n"), commit("Two")]
    done = hand_over(managed, relay, demo, steps, look=lambda: inventory(managed))
    shown, said, during = done.contract, done.said, done.looked
    assert (shown["pause"]["safePoint"], shown["inFlightCode"]) == ("commit", [])
    assert managed.git("log", "-1", "--format=%s", shown["snapshotCommit"]) == "Two"
    told, gone = "the hook no longer marks commits: another program has written" in said, during == before
    if manager.keeps and not CONFIGURED:
        assert told == gone  # it writes its hooks only where it finds that something has changed
    else:
        assert (told, gone) == (manager.blocked and not CONFIGURED, True)
    assert managed.git("config", "--list") == config
    assert relay("uninstall", cwd=managed.path).rc == 0
    assert inventory(managed) == before


@pytest.mark.skipif(CONFIGURED, reason="this git runs hooks named in the environment, nothing of ours is in the way")
@pytest.mark.parametrize("manager", ["lefthook", "pre-commit"], indirect=True)
def test_a_manager_that_comes_after_us_keeps_our_hook_aside_and_uninstall_finds_it(
    manager, repo, record, relay, demo
) -> None:
    demo.plays([say("I begin."), LIMIT], [say("Again."), commit("Before"), LIMIT], [say("On."), commit("After"), LIMIT])
    assert relay("start", "x", "--agent", "demo", cwd=repo.path).rc == 1
    repo.write("record", "exit 0\n")
    manager.set_up(repo)
    aside = [f.name for f in (repo.path / ".git/hooks").glob("post-commit.*")]
    assert aside in (["post-commit.old"], ["post-commit.legacy"])
    for _ in range(2):
        assert relay("handoff", "--to", "demo", cwd=repo.path).rc == 1
    assert relay("uninstall", cwd=repo.path).rc == 0
    assert not any(b"git relay" in data for _, data in inventory(repo).values())
    assert list((repo.path / ".git/hooks").glob("post-commit.*")) == []
    fresh = inventory(repo)
    run(repo, *manager.again)
    assert inventory(repo) == fresh
