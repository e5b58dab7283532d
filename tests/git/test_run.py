"""Git's output as a stream: nothing that git failed to say may pass for all that it had to say."""

from __future__ import annotations

import hashlib
import os
import shlex
import sys

import pytest

from relay_git.errors import RepoError
from relay_git.git.run import Git
from relay_git.git.store import Oid
from relay_git.git.work import blob_sha256


def stream_of(git: Git, command: str, size: int = -1) -> bytes:
    """What a git prints that runs a shell command, read as far as `size`."""
    with git.stream("-c", f"alias.as-told=!{command}", "as-told") as source:
        return source.read(size)


def test_what_git_prints_comes_whole(repo) -> None:
    assert stream_of(Git(repo.path), "printf some") == b"some"


@pytest.mark.parametrize("command", ["printf part; exit 3", "exit 3", "printf part; kill -9 $$"])
def test_a_git_that_fails_after_some_output_is_a_failure(repo, command) -> None:
    with pytest.raises(RepoError, match="git"):
        stream_of(Git(repo.path), command)


def test_git_s_own_words_are_quoted(repo) -> None:
    with (
        pytest.raises(RepoError, match="fatal: Not a valid object name"),
        Git(repo.path).stream("cat-file", "blob", "nothing") as source,
    ):
        assert source.read() == b""


def test_a_reader_that_stops_early_on_purpose_is_no_failure(repo) -> None:
    assert stream_of(Git(repo.path), "yes", 4) == b"y\ny\n"
    assert stream_of(Git(repo.path), "printf 12345; sleep 0.2; printf 6; exit 3", 5) == b"12345"


def test_an_error_of_the_reader_is_the_one_that_is_seen(repo) -> None:
    with pytest.raises(KeyError), Git(repo.path).stream("cat-file", "blob", "nothing"):
        raise KeyError


@pytest.mark.parametrize("safe", [True, False])
def test_only_a_git_of_our_own_is_out_of_reach_of_the_user_s_interrupt(repo, safe) -> None:
    ask = shlex.join([sys.executable, "-c", "import os; print(os.getsid(0))"])
    assert (int(stream_of(Git(repo.path, safe=safe), ask)) != os.getsid(0)) is safe


def test_a_large_blob_that_is_damaged_has_no_hash(session) -> None:
    data = bytes(17 << 20)
    (session.main.path / "large").write_bytes(data)
    oid = Oid(session.main.git("hash-object", "-w", "large"))
    assert blob_sha256(session.repo.git(), session.store, oid) == hashlib.sha256(data).hexdigest()
    loose = session.main.git_dir / "objects" / oid[:2] / oid[2:]
    loose.chmod(0o644)
    loose.write_bytes(loose.read_bytes()[:9000])
    with pytest.raises(RepoError):
        blob_sha256(session.repo.git(), session.store, oid)
