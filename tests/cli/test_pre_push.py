"""The user's own pre-push hook asks git relay: real pushes to a real remote."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.scene import WORK, only_session, shell, write

KEY = "gsk" + "_" + "Zq7Rk2Lm9Xw4Tn6Vb8Yc3Hd5Jf1Gp0Sa"
STOPPED = "this push would send what looks like a secret, and is stopped"


@pytest.fixture
def remote(repo, tmp_path: Path) -> Path:
    """A bare remote named origin, and the hook as the documentation has it."""
    bare = tmp_path / "remote.git"
    repo.git("init", "-q", "--bare", str(bare))
    repo.git("remote", "add", "origin", str(bare))
    hook = repo.git_dir / "hooks" / "pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text('#!/bin/sh\ngit relay pre-push "$@"\n')
    hook.chmod(0o755)
    return bare


def push(repo, *words: str) -> subprocess.CompletedProcess[str]:
    return repo.try_git("push", "-q", *(words or ("origin", "HEAD:refs/heads/main")))


def pushed(repo, remote: Path) -> str:
    return repo.git("ls-remote", "--heads", str(remote))


def test_a_push_that_holds_no_key_goes_as_ever(repo, remote) -> None:
    repo.commit("an example", {"docs.md": "Set GROQ_API_KEY to your key, it begins with gsk_.\n"})
    for words in ("HEAD:refs/heads/main", "HEAD:refs/heads/another"), (":refs/heads/another",):
        done = push(repo, "origin", *words)
        assert (done.returncode, done.stderr) == (0, "")
    assert pushed(repo, remote).split() == [repo.head, "refs/heads/main"]


@pytest.mark.parametrize("named", [True, False])
def test_a_key_is_stopped_also_where_a_later_commit_has_taken_it_out(repo, remote, named) -> None:
    repo.commit("one", {"a.txt": "a\n"})
    assert push(repo).returncode == 0
    before = pushed(repo, remote)
    repo.commit("add the client", {"src/client.py": f"KEY = '{KEY}'\n"})
    repo.git("rm", "-q", "src/client.py")
    repo.commit("take it out", {"b.txt": "b\n"})
    stopped = push(repo, "origin" if named else str(remote), "HEAD:refs/heads/main")
    assert stopped.returncode != 0
    assert STOPPED in stopped.stderr
    assert "  src/client.py: groq-key\n" in stopped.stderr
    assert KEY not in stopped.stderr
    assert pushed(repo, remote) == before
    assert push(repo, "--no-verify", "origin", "HEAD:refs/heads/main").returncode == 0


def test_a_key_in_the_words_of_a_commit_or_tag_is_stopped(repo, remote) -> None:
    repo.commit("one", {"a.txt": "a\n"})
    repo.git("tag", "-a", "-m", f"with {KEY}", "v1")
    assert "the message of tag v1: groq-key" in push(repo, "origin", "v1").stderr
    repo.commit(f"use {KEY}", {"a.txt": "b\n"})
    assert f"the message of commit {repo.head[:12]}: groq-key" in push(repo).stderr
    assert pushed(repo, remote) == ""


@pytest.mark.parametrize(
    ("path", "content", "rule"),
    [
        ("windows.txt", f"key: {KEY}\r\n".encode("utf-16"), "groq-key"),
        ("plain.txt", f"key: {KEY}\n".encode("utf-16-le"), "groq-key"),
        ("app.bin", b"\x7fELF\0\0 key\0" + KEY.encode() + b"\0end", "groq-key"),
        ("coloured.log", f"\x1b[32mgsk_\x1b[0m{KEY[4:]}\n", "groq-key"),
        ("settings.py", f"DB = 'postgres://app:{KEY[4:]}@db.internal:5432/x'\n", "url-password"),
        ("mail.py", f"send('SG{'.'}{KEY[4:26]}.{KEY[4:36]}{KEY[4:15]}')\n", "sendgrid-key"),
        (f"{KEY}.txt", "x\n", "groq-key"),
        ("wide.txt", f"key: {KEY}\n".encode("utf-16-be"), "groq-key"),
        ("store.p12", bytes.fromhex("308209a10201033082096706092a864886f70d010701") + bytes(40), "key-file"),
    ],
)
def test_a_key_is_found_whatever_kind_of_file_it_is_in_and_in_its_name(repo, remote, path, content, rule) -> None:
    repo.commit("one", {path: content})
    stopped = push(repo)
    assert f": {rule}\n" in stopped.stderr
    assert KEY not in stopped.stderr
    assert pushed(repo, remote) == ""


def test_a_key_in_a_name_is_stopped_also_where_the_remote_has_the_content(repo, remote) -> None:
    repo.commit("one", {"src/a.txt": "a\n"})
    assert push(repo).returncode == 0
    repo.git("mv", "src/a.txt", f"src/{KEY}.txt")
    repo.commit("rename", {})
    repo.git("mv", f"src/{KEY}.txt", "src/a.txt")
    repo.commit("rename it back", {})
    stopped = push(repo)
    assert ": groq-key\n" in stopped.stderr
    assert KEY not in stopped.stderr
    repo.git("reset", "-q", "--hard", "HEAD~2")
    assert "  the name refs/heads/[redacted:groq-key" in push(repo, "origin", f"HEAD:refs/heads/{KEY}").stderr
    assert len(pushed(repo, remote).splitlines()) == 1


def test_a_git_dir_of_another_repository_than_the_one_stood_in_is_searched(make_repo, repo, remote) -> None:
    repo.commit("one", {"a.txt": KEY})
    other = make_repo("other")
    stopped = other.try_git(f"--git-dir={repo.git_dir}", "push", "-q", "origin", "main")
    assert stopped.returncode != 0
    assert "  a.txt: groq-key\n" in stopped.stderr
    assert pushed(repo, remote) == ""


def test_a_tip_that_is_not_here_is_no_push_without_keys(repo, remote, relay) -> None:
    line = f"refs/heads/a {'1' * 40} refs/heads/a {'0' * 40}\n"
    stopped = relay("pre-push", "origin", str(remote), cwd=repo.path, stdin=line)
    assert stopped.rc != 0
    assert "111111111111, which is to be pushed, is not in this repository" in stopped.stderr


@pytest.mark.parametrize("how", ["pushurl", "insteadOf", "two addresses", "set on the command line"])
def test_what_another_address_has_is_not_taken_for_what_this_one_has(repo, remote, tmp_path, how) -> None:
    repo.commit("one", {"a.txt": KEY})
    assert push(repo, "--no-verify", "origin", "main").returncode == 0
    public = tmp_path / "public.git"
    repo.git("init", "-q", "--bare", str(public))
    words: tuple[str, ...] = ()
    match how:
        case "pushurl":
            repo.git("config", "remote.origin.pushurl", str(public))
        case "insteadOf":
            repo.git("config", f"url.{public}.pushInsteadOf", str(remote))
        case "two addresses":
            repo.git("remote", "set-url", "--add", "origin", str(public))
        case _:
            words = ("-c", f"remote.origin.pushurl={public}")
    stopped = repo.try_git(*words, "push", "-q", "origin", "main")
    assert "  a.txt: groq-key\n" in stopped.stderr
    assert pushed(repo, public) == ""


def test_what_a_remote_has_whose_name_begins_alike_is_not_taken_for_what_this_one_has(repo, remote, tmp_path) -> None:
    fork = tmp_path / "fork.git"
    repo.git("init", "-q", "--bare", str(fork))
    repo.git("config", "remote.origin/fork.url", str(fork))
    repo.git("config", "remote.origin/fork.fetch", "+refs/heads/*:refs/remotes/origin/fork/*")
    repo.commit("one", {"a.txt": KEY})
    assert push(repo, "--no-verify", "origin/fork", "main").returncode == 0
    assert repo.git("rev-parse", "refs/remotes/origin/fork/main") == repo.head
    assert "  a.txt: groq-key\n" in push(repo, "origin", "main").stderr
    assert pushed(repo, remote) == ""


def test_what_a_partial_clone_lacks_is_told_where_the_push_goes_elsewhere(make_repo, repo, remote, tmp_path) -> None:
    repo.git("config", "uploadpack.allowFilter", "true")
    repo.git("config", "uploadpack.allowAnySHA1InWant", "true")
    repo.commit("one", {"old.txt": f"{KEY}1\n"})
    repo.commit("two", {"old.txt": "", "now.txt": f"{KEY}\n"})
    clone = tmp_path / "clone"
    repo.git("clone", "-q", "--filter=blob:none", f"file://{repo.path}", str(clone))
    (clone / ".git/hooks/pre-push").write_text((repo.git_dir / "hooks/pre-push").read_text())
    (clone / ".git/hooks/pre-push").chmod(0o755)
    lacks = ("-C", str(clone), "rev-list", "--objects", "--missing=print", "--all")
    missing = [line for line in repo.git(*lacks).splitlines() if line.startswith("?")]
    repo.git("-C", str(clone), "remote", "add", "public", str(remote))
    stopped = repo.try_git("-C", str(clone), "push", "-q", "public", "main")
    assert stopped.returncode != 0
    assert "  now.txt: groq-key\n" in stopped.stderr
    assert f"{len(missing)} large or missing objects were not searched" in stopped.stderr
    assert [line for line in repo.git(*lacks).splitlines() if line.startswith("?")] == missing != []
    assert pushed(repo, remote) == ""
    # To where it came from nothing goes that is not there.
    done = repo.try_git("-C", str(clone), "push", "-q", "origin", "HEAD~1:refs/heads/again")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_rev_that_holds_blanks_is_pushed_as_ever(repo, remote) -> None:
    repo.commit("one", {"a.txt": "a\n"})
    done = push(repo, str(remote), "main@{0 minutes ago}:refs/heads/z")
    assert (done.returncode, done.stderr) == (0, "")
    repo.commit("two", {"a.txt": KEY})
    assert STOPPED in push(repo, str(remote), "main@{0 minutes ago}:refs/heads/z").stderr


def test_what_the_remote_has_already_and_what_is_allowed_stops_nothing(repo, remote) -> None:
    repo.commit("one", {"a.txt": f"{KEY}\n"})
    repo.git("config", "relay.redact.allow", "gsk_Zq7*")
    assert push(repo).returncode == 0
    repo.git("config", "--unset", "relay.redact.allow")
    repo.commit("two", {"b.txt": "b\n"})
    assert push(repo).returncode == 0
    assert push(repo, "origin", "HEAD:refs/heads/another").returncode == 0
    # What it has at the ref, though no remote-tracking ref tells of it.
    repo.commit("three", {"c.txt": "c\n"})
    repo.git("update-ref", "-d", "refs/remotes/origin/main")
    repo.git("update-ref", "-d", "refs/remotes/origin/another")
    assert push(repo).returncode == 0


def test_a_file_that_is_too_large_to_search_is_told(repo, remote) -> None:
    repo.commit("one", {"large.txt": "x\n" * (1 << 20)})
    done = push(repo)
    assert done.returncode == 0
    assert done.stderr == "git relay: 1 large or missing objects were not searched for secrets\n"


def test_an_agent_that_pushes_its_key_is_stopped_by_the_users_hook(repo, remote, relay, demo) -> None:
    tried = shell("sh", "-c", "git push -q origin HEAD:refs/heads/sent 2> said.txt; true")
    demo.plays([write("config.py", f"key = '{KEY}'\n"), *WORK, tried, shell("git", "add", "said.txt"), *WORK[1:]])
    repo.git("config", "relay.demo.permission", "full")
    assert relay("start", "the task", "--agent", "demo", cwd=repo.path).rc == 0
    session = only_session(repo.path)
    assert pushed(repo, remote) == ""
    assert STOPPED in repo.git("show", f"relay/{session}:said.txt")


@pytest.mark.parametrize("said", ["nonsense\n", "refs/heads/a 1234 refs/heads/a 5678\n", "\0\n", "a b c d e\n"])
def test_what_git_does_not_say_is_refused_with_a_hint(repo, relay, said) -> None:
    refused = relay("pre-push", "origin", "somewhere", cwd=repo.path, stdin=said)
    assert refused.rc == 2
    assert "not what git gives a pre-push hook" in refused.stderr
    assert "hint: git help githooks" in refused.stderr
