"""A snapshot beside a prune: what git found somewhere and therefore did not write is no less safe."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from relay_git.git import libgit2, plain, snapshot
from relay_git.git.store import ZERO, RefUpdate
from tests.git.conftest import WHEN


@pytest.fixture(params=[libgit2, plain], ids=["libgit2", "plain"])
def store(request, session):
    return request.param.open_store(session.repo.common_dir)


def loose(session) -> set[Path]:
    return set((session.repo.common_dir / "objects").glob("??/*"))


def take(session, store) -> snapshot.Snapshot:
    return snapshot.take(session.repo, store, session.id, "relay: snapshot", WHEN)


def stored_by_another(session) -> set[Path]:
    """The objects of a work tree as it stands, as another session with the same work has them, by no ref reached."""
    before = loose(session)
    env = {**os.environ, "GIT_INDEX_FILE": str(session.main.path.parent / "another-index")}
    for words in (("add", "--all"), ("write-tree",)):
        subprocess.run(["git", *words], cwd=session.at.path, env=env, check=True)
    return loose(session) - before


def test_what_another_session_stored_too_stays_when_a_prune_takes_the_other_s(session, store) -> None:
    session.at.write("folder/half.txt", "half\n")
    session.at.write("large.bin", os.urandom(1 << 16))
    theirs = stored_by_another(session)
    assert len(theirs) == 4
    taken = take(session, store)
    for file in theirs:
        file.unlink()
    store.move([RefUpdate("refs/relay/sessions/next", taken.commit, ZERO)], "test")
    session.main.git("fsck", "--strict")
    assert session.main.git("show", "refs/relay/sessions/next:folder/half.txt") == "half"


def test_what_was_staged_and_lost_since_is_stored_from_the_file_again(session, store) -> None:
    before = loose(session)
    session.at.write("staged.txt", "staged\n")
    (session.at.path / "link").symlink_to("staged.txt")
    for name in ("staged.txt", "link"):  # older than the index, which git then believes
        os.utime(session.at.path / name, (WHEN, WHEN), follow_symlinks=False)
    session.at.git("add", "--all")
    for file in loose(session) - before:
        file.unlink()
    taken = take(session, store)
    session.main.git("fsck", "--strict")
    assert session.main.git("show", f"{taken.commit}:staged.txt") == "staged"
    assert session.main.git("show", f"{taken.commit}:link") == "staged.txt"


def test_what_git_packs_at_once_because_it_is_large_counts_as_held(session, store) -> None:
    session.main.git("config", "core.bigFileThreshold", "1k")
    session.at.write("large.bin", os.urandom(1 << 16))
    taken = take(session, store)
    blob = store.find(taken.tree, b"large.bin").oid
    assert store.holds(blob)
    assert not (session.repo.common_dir / "objects" / blob[:2] / blob[2:]).exists()
    session.main.git("fsck", "--strict")
