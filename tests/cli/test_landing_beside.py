"""`land` beside what the user has in hand: half-done work, hidden files, hooks that change files, another landing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.scene import commit, only_session, photograph, say, shell, write

HOW = pytest.mark.parametrize("how", ["--merge", "--squash", "--rebase"])


@pytest.fixture
def landed(repo, relay, demo):
    """A repository with a finished session that adds one.txt, and data/x where .gitignore named data."""
    repo.commit("ignore", {".gitignore": "data\n", "a.txt": "base\n"})
    make = shell("sh", "-c", "rm .gitignore; mkdir data; echo x >data/x; echo agent >a.txt; git add -A")
    demo.plays([say("I begin."), write("one.txt", "1 \n"), make, commit("One")])
    assert relay("start", "count to one", "--agent", "demo", cwd=repo.path).rc == 0
    return repo


def names(repo) -> list[str]:
    return [
        ref.rpartition("/")[2] for ref in repo.git("for-each-ref", "--format=%(refname)", "refs/heads/relay").split()
    ]


@HOW
@pytest.mark.parametrize("kind", ["merge", "cherry-pick", "revert"])
def test_an_operation_of_the_users_that_stands_half_done_is_left_alone(landed, relay, kind, how) -> None:
    landed.git("checkout", "-q", "-b", "side")
    side = landed.commit("theirs", {"b.txt": "theirs\n"})
    landed.git("checkout", "-q", "main")
    landed.commit("ours", {"b.txt": "ours\n"})
    if kind == "revert":
        landed.commit("more", {"b.txt": "more\n"})
    landed.try_git(kind, *(["--no-edit"] if kind != "cherry-pick" else []), "HEAD~1" if kind == "revert" else side)
    landed.git("checkout", "-q", "--ours", "b.txt")
    landed.git("add", "b.txt")
    assert landed.git("status", "--porcelain") == ""
    before, git_dir = photograph(landed.path), {f.name for f in landed.git_dir.iterdir()}
    ran = relay("land", how, cwd=landed.path)
    assert (ran.rc, ran.stdout) == (2, "")
    assert f"a {kind} of yours stands half-done in your work tree" in ran.stderr
    assert photograph(landed.path) == before
    assert {f.name for f in landed.git_dir.iterdir()} >= git_dir


@HOW
@pytest.mark.parametrize("what", ["a file", "a link"])
def test_an_ignored_file_or_link_where_a_folder_comes_refuses_the_landing(landed, relay, tmp_path, what, how) -> None:
    mine = landed.path / "data"
    if what == "a file":
        mine.write_text("my precious\n")
    else:
        (tmp_path / "elsewhere").mkdir()
        mine.symlink_to(tmp_path / "elsewhere")
    before = photograph(landed.path)
    ran = relay("land", how, cwd=landed.path)
    assert ran.rc == 2
    assert "files of yours that git does not track are in the way: data" in ran.stderr
    assert photograph(landed.path) == before
    mine.unlink()
    assert relay("land", how, cwd=landed.path).rc == 0
    assert (mine / "x").read_text() == "x\n"


@HOW
def test_an_edit_that_git_was_told_to_overlook_is_kept(landed, relay, how) -> None:
    landed.git("update-index", "--assume-unchanged", "a.txt")
    landed.write("a.txt", "a local edit\n")
    ran = relay("land", how, cwd=landed.path)
    assert ran.rc == 2
    assert "files that come are marked as unchanged in your index: a.txt" in ran.stderr
    assert (landed.path / "a.txt").read_text() == "a local edit\n"


@pytest.mark.parametrize(("how", "name"), [("--merge", "pre-merge-commit"), ("--squash", "pre-commit")])
def test_a_hook_that_changes_files_and_refuses_leaves_all_as_it_was_and_its_changes_in_a_stash(
    landed, relay, how, name
) -> None:
    hook = landed.git_dir / "hooks" / name
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nsed -i 's/ *$//' one.txt; git diff --quiet || exit 1\n")
    hook.chmod(0o755)
    before = photograph(landed.path)
    ran = relay("land", how, cwd=landed.path)
    assert ran.rc == 1
    assert "your branch main is as it was" in ran.stderr
    after = photograph(landed.path)
    assert {k: v for k, v in after.items() if k != "index"} == {k: v for k, v in before.items() if k != "index"}
    assert not (landed.git_dir / "MERGE_HEAD").exists()
    kept = ran.stderr.split("git stash apply ")[1].split()[0]
    assert landed.git("show", f"{kept}:one.txt") == "1"
    hook.unlink()
    assert relay("land", how, cwd=landed.path).rc == 0


def test_of_two_landings_at_once_in_one_tree_one_lands_and_the_other_is_told(landed, relay, demo) -> None:
    first = only_session(landed.path)
    demo.plays([say("I begin."), write("two.txt", "2\n"), commit("Two")])
    assert relay("start", "count to two", "--agent", "demo", cwd=landed.path).rc == 0
    (second,) = set(names(landed)) - {first}
    hook = landed.git_dir / "hooks" / "commit-msg"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch .git/at-work; while [ ! -e .git/go ]; do sleep 0.05; done\n")
    hook.chmod(0o755)
    argv = [sys.executable, "-m", "relay_git", "land", first]
    with subprocess.Popen(argv, cwd=landed.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as one:
        while not (landed.git_dir / "at-work").exists():
            assert one.poll() is None
        other = relay("land", second, cwd=landed.path)
        (landed.git_dir / "go").touch()
        assert one.communicate()[0].startswith(f"landed {first} on main")
    assert other.rc == 2
    assert "another landing is at work in this work tree" in other.stderr
    assert relay("land", second, cwd=landed.path).rc == 0
    assert landed.git("show", "HEAD:two.txt") == "2"


def test_a_merge_that_the_user_has_set_not_to_commit_is_committed_all_the_same(landed, relay) -> None:
    landed.git("config", "branch.main.mergeOptions", "--no-commit")
    before = landed.head
    assert relay("land", cwd=landed.path).rc == 0
    assert landed.head != before
    assert landed.git("show", "HEAD:one.txt") == "1 "
