"""Folders of ours are private from `relay/` of the git dir down, and nothing of the user's is."""

from __future__ import annotations

import stat

from relay_git.git.repo import make_private, write_private


def modes(*places):
    return [stat.S_IMODE(p.stat().st_mode) for p in places]


def test_every_folder_down_from_relay_is_private_and_those_above_stay(session) -> None:
    relay_dir = session.repo.relay_dir
    before = modes(relay_dir.parent)
    deep = session.repo.log_dir(session.id) / "leg-1-demo"
    make_private(deep)
    assert modes(relay_dir, deep.parent.parent, deep.parent, deep) == [0o700] * 4
    for place in (relay_dir, deep.parent.parent, deep.parent):
        place.chmod(0o755)
    write_private(deep / "file", b"x")
    assert modes(relay_dir, deep.parent.parent, deep.parent, deep, deep / "file") == [*[0o700] * 4, 0o600]
    assert modes(relay_dir.parent) == before


def test_a_folder_named_relay_that_is_not_ours_keeps_its_mode(tmp_path) -> None:
    place = tmp_path / "relay" / "house"
    place.mkdir(parents=True)
    (tmp_path / "relay").chmod(0o755)
    make_private(place / "inner")
    assert modes(tmp_path / "relay", place / "inner") == [0o755, 0o700]
