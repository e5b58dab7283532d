"""What a sandbox must find in the git dir harms nothing there."""

from __future__ import annotations

import pytest

from relay_git.git import room


def test_the_room_survives_gc_and_git_finds_nothing_wrong_with_it(session) -> None:
    room.make(session.repo)
    room.make(session.repo)
    session.main.git("pack-refs", "--all")
    session.main.git("gc", "-q", "--prune=now")
    assert (session.main.git_dir / "refs" / "heads" / "relay").is_dir()
    done = session.main.try_git("fsck", "--strict")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (
        session.main.git("for-each-ref", "--format=%(refname)", "refs/heads/relay/") == f"refs/heads/relay/{session.id}"
    )
    assert [name for name, _ in session.store.refs("refs/heads/relay/")] == [f"refs/heads/relay/{session.id}"]
    session.at.commit("after gc", {"x": "x"})


@pytest.mark.parametrize("content", ["", "somebody's"])
def test_a_file_in_place_of_what_keeps_a_folder_open_is_in_nobodys_way(session, content) -> None:
    room.make(session.repo)
    keep = session.main.git_dir / "refs/heads/relay/.keep"
    keep.rmdir()
    keep.write_text(content)
    room.make(session.repo)
    assert (keep.is_dir(), keep.exists()) == (content == "", True)


def test_of_its_own_it_takes_out_the_folder_and_the_file_of_earlier_versions_and_leaves_somebodys(session) -> None:
    room.make(session.repo)
    heads, logs, info = (
        session.main.git_dir / f / ".keep" for f in ("refs/heads/relay", "logs/refs/heads/relay", "objects/info")
    )
    for keep in (logs, info):
        keep.rmdir()
    logs.write_text("")
    info.write_text("somebody's")
    room.take_out(session.repo)
    assert (heads.exists(), logs.exists(), info.read_text()) == (False, False, "somebody's")
