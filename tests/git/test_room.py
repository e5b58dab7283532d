"""What a sandbox must find in the git dir harms nothing there."""

from __future__ import annotations

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
