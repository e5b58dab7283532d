"""Repositories that a session cannot start in, and odd ones in which it can."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.owner import as_plain_owner
from tests.cli.scene import LIMIT, TAKE_OVER, WORK, only_session, photograph, say, shell, states, traces, write
from tests.seal.repo import Repo


def refused(ran, rc: int, said: str, hint: str) -> None:
    """One sentence and one hint on stderr, nothing on stdout."""
    assert (ran.rc, ran.stdout) == (rc, "")
    sentence, advice = ran.stderr.splitlines()[-2:]
    assert sentence.startswith("git relay: ")
    assert said in sentence
    assert advice.startswith("hint: ")
    assert hint in advice


@pytest.mark.parametrize("command", [["start", "x", "--agent", "demo"], ["status"], ["init"], ["uninstall"], ["land"]])
def test_outside_of_a_repository_every_command_says_so_and_makes_nothing(tmp_path, relay, demo, command) -> None:
    place = tmp_path / "plain"
    place.mkdir()
    refused(relay(*command, cwd=place), 1, f"{place} is not in a git repository", "git init")
    assert list(place.iterdir()) == []


def test_a_bare_repository_is_refused(make_repo, relay, demo) -> None:
    bare = make_repo(bare=True).path
    before = sorted(str(f) for f in bare.rglob("*"))
    refused(relay("start", "x", "--agent", "demo", cwd=bare), 1, "bare and has no worktree", "git worktree add")
    assert sorted(str(f) for f in bare.rglob("*")) == before


def test_a_bare_repository_with_commits_says_that_a_session_needs_a_work_tree(repo, tmp_path, relay, demo) -> None:
    bare = tmp_path / "bare.git"
    repo.git("clone", "-q", "--bare", ".", str(bare))
    before = sorted(str(f) for f in bare.rglob("*"))
    refused(relay("start", "x", "--agent", "demo", cwd=bare), 1, "bare and has no worktree", "git worktree add")
    assert sorted(str(f) for f in bare.rglob("*")) == before


def test_an_unborn_head_is_refused_with_the_way_to_a_first_commit(make_repo, relay, demo) -> None:
    repo = make_repo(unborn=True)
    before = photograph(repo.path)
    refused(relay("start", "x", "--agent", "demo", cwd=repo.path), 1, "no commit yet", 'git commit -m "First commit"')
    assert photograph(repo.path) == before
    assert traces(repo.path) == []


def test_a_detached_head_works_and_is_said(make_repo, relay, demo) -> None:
    repo = make_repo(detached=True)
    demo.plays(WORK)
    before = photograph(repo.path)
    ran = relay("start", "x", "--agent", "demo", cwd=repo.path)
    assert ran.rc == 0
    assert "note: HEAD is detached; the session starts from that commit" in ran.stderr
    assert photograph(repo.path) == before
    refused(relay("land", cwd=repo.path), 2, "detached HEAD", "git switch BRANCH")
    assert photograph(repo.path) == before


def test_a_dirty_tree_is_left_alone_and_what_is_not_in_the_session_is_said(make_repo, relay, demo) -> None:
    repo = make_repo(dirty=True)
    demo.plays([*WORK, shell("git", "ls-files")])
    before = photograph(repo.path)
    ran = relay("start", "x", "--agent", "demo", cwd=repo.path)
    assert ran.rc == 0
    assert "note: 3 uncommitted changes are not in the session (--carry copies them)" in ran.stderr
    assert photograph(repo.path) == before
    assert "staged.txt" not in repo.git("ls-tree", "-r", "--name-only", f"relay/{only_session(repo.path)}")


def test_carry_copies_staged_unstaged_and_untracked_work_and_leaves_the_original(make_repo, relay, demo) -> None:
    repo = make_repo(dirty=True)
    repo.write("src/new name.txt", "untracked, with a blank\n")
    demo.plays(WORK)
    before = photograph(repo.path)
    ran = relay("start", "x", "--agent", "demo", "--carry", cwd=repo.path)
    assert ran.rc == 0
    assert "uncommitted" not in ran.stderr
    assert photograph(repo.path) == before
    branch = f"relay/{only_session(repo.path)}"
    for name in ("README.md", "staged.txt", "untracked.txt", "src/new name.txt"):
        assert repo.git("show", f"{branch}:{name}") == (repo.path / name).read_text().removesuffix("\n")


def test_carry_with_another_base_is_refused_and_nothing_is_left(make_repo, relay, demo) -> None:
    repo = make_repo(dirty=True)
    first = repo.git("commit-tree", "-m", "other", "HEAD^{tree}")
    before = photograph(repo.path)
    ran = relay("start", "x", "--agent", "demo", "--carry", "--base", first, cwd=repo.path)
    refused(ran, 2, "--carry copies what lies uncommitted on HEAD", "leave --base out")
    assert photograph(repo.path) == before
    assert traces(repo.path) == []


@pytest.mark.parametrize("name", [".relay", ".relay/sessions"])
@pytest.mark.parametrize("kind", ["file", "link"])
def test_something_in_the_way_of_the_worktrees_is_named_and_left_as_it_is(
    repo, tmp_path, relay, demo, name, kind
) -> None:
    way = repo.path / name
    way.parent.mkdir(exist_ok=True)
    (tmp_path / "elsewhere").mkdir()
    way.write_text("mine\n") if kind == "file" else way.symlink_to(tmp_path / "elsewhere")
    before = repo.git("for-each-ref"), repo.git("status", "--porcelain")
    ran = relay("start", "x", "--agent", "demo", cwd=repo.path)
    refused(ran, 1, f"{way} is in the way", f"mv {way} {way}.old")
    assert (repo.git("for-each-ref"), repo.git("status", "--porcelain")) == before
    assert way.is_symlink() if kind == "link" else way.read_text() == "mine\n"
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert [t for t in traces(repo.path) if not t.endswith(".relay")] == []


def test_a_branch_in_the_way_of_our_branches_is_named(repo, relay, demo) -> None:
    repo.git("branch", "relay")
    before = photograph(repo.path)
    ran = relay("start", "x", "--agent", "demo", cwd=repo.path)
    refused(ran, 1, "your branch relay is in the way", "git branch -m relay")
    assert photograph(repo.path) == before
    assert traces(repo.path) == []


@pytest.mark.parametrize("name", ['-it\'s "quoted" $(id) `id`; a&b ünï-cödé', b"not-utf8-\xff"])
def test_an_odd_repository_path_works_from_start_to_landing(make_repo, tmp_path, relay, demo, name) -> None:
    path = make_repo(os.fsdecode(name)).path
    repo = Repo(path)
    demo.plays([say("I begin."), write("made.txt", "made\n"), LIMIT], TAKE_OVER)
    before = photograph(repo.path)
    ran = relay("start", "x", "--agent", "demo", "--then", "demo", cwd=repo.path)
    assert ran.rc == 0, ran.stderr
    assert photograph(repo.path) == before
    assert relay("verify", "--all", cwd=repo.path).rc == 0
    assert relay("land", cwd=repo.path).rc == 0
    assert (repo.path / "half.txt").read_text() == "whole\n"
    assert relay("drop", cwd=repo.path).rc == 0
    assert relay("uninstall", cwd=repo.path).rc == 0


def test_a_line_break_in_the_repository_s_path_is_refused(make_repo, relay, demo) -> None:
    repo = make_repo("two\nlines")
    before = photograph(repo.path)
    ran = relay("start", "x", "--agent", "demo", cwd=repo.path)
    assert ran.rc == 1
    assert "the repository's path holds a line break" in ran.stderr
    assert "hint: move it" in ran.stderr
    assert photograph(repo.path) == before
    assert traces(repo.path) == []


def test_it_works_from_a_sub_directory_and_from_a_linked_worktree_of_the_user_s(repo, tmp_path, relay, demo) -> None:
    demo.plays(WORK)
    before = photograph(repo.path)
    assert relay("start", "one", "--agent", "demo", cwd=repo.path / "src").rc == 0
    assert photograph(repo.path) == before
    linked = tmp_path / "linked"
    repo.git("worktree", "add", "-q", "-b", "side", str(linked))
    assert relay("start", "two", "--agent", "demo", cwd=linked).rc == 0
    assert sorted(p.name[:3] for p in (repo.path / ".relay/sessions").iterdir()) == ["one", "two"]
    assert not (linked / ".relay").exists()
    assert len(relay("status", cwd=linked).stdout.splitlines()) == 5


def test_inside_a_session_s_worktree_reading_works_and_landing_and_dropping_are_refused(repo, relay, demo) -> None:
    demo.plays(WORK)
    assert relay("start", "x", "--agent", "demo", cwd=repo.path).rc == 0
    place = repo.path / ".relay/sessions" / only_session(repo.path)
    assert relay("status", cwd=place).stdout == relay("status", cwd=repo.path).stdout
    refused(relay("land", cwd=place), 2, "you stand in a session's worktree", f"cd {repo.path}")
    refused(relay("drop", "--force", cwd=place), 2, "you stand in the worktree", f"cd {repo.path}")
    nested = relay("start", "y", "--agent", "demo", cwd=place)
    assert nested.rc == 0
    assert not (place / ".relay").exists()


def test_git_variables_of_the_caller_lead_nowhere_else(make_repo, relay, demo) -> None:
    repo, other = make_repo(), make_repo("other", dirty=True)
    poison = {
        "GIT_INDEX_FILE": str(other.path / ".git/index"),
        "GIT_OBJECT_DIRECTORY": str(other.path / ".git/objects"),
        "GIT_COMMON_DIR": str(other.path / ".git"),
        "GIT_NAMESPACE": "elsewhere",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.bare",
        "GIT_CONFIG_VALUE_0": "true",
    }
    demo.plays([say("I begin."), write("made.txt", "made\n"), LIMIT], TAKE_OVER)
    before, before_other = photograph(repo.path), photograph(other.path)
    objects = sorted((other.path / ".git/objects").rglob("*"))
    for command in (["start", "x", "--agent", "demo", "--then", "demo", "--carry"], ["verify", "--all"], ["show"]):
        ran = relay(*command, cwd=repo.path, env=poison)
        assert ran.rc == 0, ran.stderr
    assert photograph(repo.path) == before
    assert photograph(other.path) == before_other
    assert sorted((other.path / ".git/objects").rglob("*")) == objects
    assert traces(other.path) == []
    assert relay("land", cwd=repo.path, env=poison).rc == 0
    assert photograph(other.path) == before_other
    assert (repo.path / "half.txt").read_text() == "whole\n"


def test_git_dir_and_work_tree_name_the_repository_as_they_do_for_git(make_repo, tmp_path, relay, demo) -> None:
    repo, other = make_repo(), make_repo("other")
    demo.plays(WORK)
    before, before_other = photograph(repo.path), photograph(other.path)
    named = {"GIT_DIR": str(repo.path / ".git"), "GIT_WORK_TREE": str(repo.path)}
    assert relay("start", "x", "--agent", "demo", cwd=other.path, env=named).rc == 0
    assert photograph(repo.path) == before
    assert photograph(other.path) == before_other
    assert (repo.path / ".relay/sessions" / only_session(repo.path)).is_dir()
    assert traces(other.path) == []


@pytest.mark.parametrize("stands_in", ["another repository", "no repository", "a folder of its own"])
def test_git_dir_alone_means_its_repository_with_its_own_work_tree(make_repo, tmp_path, relay, demo, stands_in) -> None:
    repo, other = make_repo(), make_repo("other")
    for made in (repo.path / "deep", tmp_path / "empty"):
        made.mkdir()
    here = {"another repository": other.path, "no repository": tmp_path / "empty"}.get(stands_in, repo.path / "deep")
    demo.plays(WORK)
    before, before_other = photograph(repo.path), photograph(other.path)
    named = {"GIT_DIR": str(repo.git_dir)}
    assert relay("start", "x", "--agent", "demo", cwd=here, env=named).rc == 0
    session = only_session(repo.path)
    assert (repo.path / ".relay/sessions" / session).is_dir()
    assert relay("doctor", cwd=here, env=named).rc in (0, 1)
    landed = relay("land", cwd=here, env=named)
    if stands_in == "a folder of its own":
        assert landed.rc == 0, landed.stderr
        assert (repo.path / "made.txt").is_file()
    else:
        assert landed.rc != 0
        assert "landing needs a work tree to land in\nhint: git worktree list; cd" in landed.stderr
        assert photograph(repo.path) == before
    assert photograph(other.path) == before_other
    assert traces(other.path) == []
    assert not any((repo.path / "deep").iterdir())
    assert not any((tmp_path / "empty").iterdir())


@pytest.mark.parametrize("how", ["absent", "useConfigOnly"])
def test_without_an_identity_the_work_is_kept_as_a_snapshot_and_the_note_says_why(repo, relay, demo, home, how) -> None:
    config = (home / ".gitconfig").read_text().replace("\tname = Dev\n\temail = dev@example.invalid\n", "")
    (home / ".gitconfig").write_text(config + ("[user]\n\tuseConfigOnly = true\n" if how == "useConfigOnly" else ""))
    demo.plays([say("I begin."), write("made.txt", "made\n"), {"do": "commit", "message": "Make it"}, LIMIT], TAKE_OVER)
    before = photograph(repo.path)
    ran = relay("start", "x", "--agent", "demo", "--then", "demo", cwd=repo.path)
    assert ran.rc == 0, ran.stderr
    assert "note: user.email is not set" in ran.stderr
    assert photograph(repo.path) == before
    assert repo.git("show", f"relay/{only_session(repo.path)}:half.txt") == "whole"
    assert relay("verify", "--all", cwd=repo.path).rc == 0
    assert '"identity"' in relay("doctor", "--json", cwd=repo.path).stdout


def test_gpgsign_without_a_key_costs_no_work(repo, relay, demo) -> None:
    repo.git("config", "commit.gpgsign", "true")
    repo.git("config", "gpg.program", "false")
    demo.plays([say("I begin."), write("made.txt", "made\n"), {"do": "commit", "message": "Make it"}, LIMIT], TAKE_OVER)
    before = photograph(repo.path)
    ran = relay("start", "x", "--agent", "demo", "--then", "demo", cwd=repo.path)
    assert ran.rc == 0, ran.stderr
    assert "note: commit.gpgsign is on" in ran.stderr
    assert photograph(repo.path) == before
    assert repo.git("show", f"relay/{only_session(repo.path)}:half.txt") == "whole"
    assert relay("verify", "--all", cwd=repo.path).rc == 0


@pytest.mark.parametrize("hook", ["pre-commit", "commit-msg"])
def test_a_user_s_hook_that_rejects_the_agent_s_commit_costs_no_work(repo, relay, demo, hook) -> None:
    repo.write(f".git/hooks/{hook}", "#!/bin/sh\necho rejected by policy >&2\nexit 1\n").chmod(0o755)
    demo.plays([say("I begin."), write("made.txt", "made\n"), {"do": "commit", "message": "Make it"}, LIMIT], TAKE_OVER)
    before = photograph(repo.path)
    ran = relay("start", "x", "--agent", "demo", "--then", "demo", cwd=repo.path)
    assert ran.rc == 0, ran.stderr
    assert photograph(repo.path) == before
    branch = f"relay/{only_session(repo.path)}"
    assert repo.git("show", f"{branch}:half.txt") == "whole"
    assert repo.git("show", f"{branch}:made.txt") == "made"
    assert "the files it had not committed" in ran.stderr or "kept as a snapshot commit" in ran.stderr
    assert relay("verify", "--all", cwd=repo.path).rc == 0


@pytest.mark.parametrize("where", [".git", ".git/objects", ".git/refs", ".git/info", "."])
def test_a_folder_that_may_not_be_written_is_named_and_nothing_is_left(repo, relay, demo, where) -> None:
    (repo.path / ".git/info").mkdir(exist_ok=True)
    before = photograph(repo.path)
    (repo.path / where).chmod(0o555)
    try:
        ran = as_plain_owner("start", "x", "--agent", "demo", cwd=repo.path)
    finally:
        (repo.path / where).chmod(0o755)
    assert ran.rc == 1, ran.stderr
    assert "ermission denied" in ran.stderr
    assert "hint: check who may write" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert photograph(repo.path) == before
    assert traces(repo.path) == []
    demo.plays(WORK)
    assert relay("start", "x", "--agent", "demo", cwd=repo.path).rc == 0


HARMS = {
    "missing": ("is missing", "git relay init --new-key"),
    "unreadable": ("cannot be read: Permission denied", "ls -l "),
    "group-readable": ("is open to other users", "chmod 600 "),
    "damaged": ("is damaged", "git relay init --new-key"),
    "empty": ("is damaged", "git relay init --new-key"),
    "folder": ("cannot be read: Is a directory", "ls -l "),
}


def _harm(key: Path, how: str, secret: bytes) -> None:
    match how:
        case "missing":
            key.unlink()
        case "unreadable":
            key.chmod(0)
        case "group-readable":
            key.chmod(0o640)
        case "damaged" | "empty":
            key.write_bytes(secret[:20] if how == "damaged" else b"")
        case "folder":
            key.unlink()
            key.mkdir(mode=0o700)


def test_a_key_that_cannot_be_used_is_refused_with_the_cure_and_no_other_is_made(repo, relay, demo) -> None:
    demo.plays([say("I begin."), LIMIT])
    assert relay("start", "x", "--agent", "demo", cwd=repo.path).rc == 1
    key = repo.path / ".git/relay/key"
    secret = key.read_bytes()
    before, journal = photograph(repo.path), states(repo.path, only_session(repo.path))
    commands = [["verify", "--all"], ["show"], ["handoff", "--to", "demo"]]
    for number, (how, (said, hint)) in enumerate(HARMS.items()):
        _harm(key, how, secret)
        for command in (["start", "y", "--agent", "demo"], commands[number % 3]):
            ran = as_plain_owner(*command, cwd=repo.path)
            refused(ran, 3, said, hint)
            assert secret.decode().strip() not in ran.stderr
        assert key.exists() is (how != "missing")
        key.rmdir() if key.is_dir() else key.unlink(missing_ok=True)
        key.write_bytes(secret)
        key.chmod(0o600)
    assert photograph(repo.path) == before
    assert states(repo.path, only_session(repo.path)) == journal
    key.unlink()
    assert relay("status", cwd=repo.path).rc == 0
    assert relay("init", "--new-key", cwd=repo.path).rc == 0
    assert '"unknown-key"' in relay("verify", "--all", "--json", cwd=repo.path).stdout
