"""`.worktreeinclude`: what a session needs comes along, and nothing of it can enter a snapshot."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from relay_git.git import include
from tests.git.conftest import Session, open_session
from tests.seal.repo import Repo

SECRET = "TOKEN=made-up\n"


@pytest.fixture
def session(repo: Repo) -> Session:
    repo.commit("ignore", {".gitignore": ".env*\n/conf/local.json\n/data/\n", "conf/shared.json": "{}\n"})
    repo.write(".worktreeinclude", "# what a session needs\n.env*\n!.env.old\n/conf/*.json\nplain.txt\n")
    for name in (".env", "app/.env", ".env.old", "conf/local.json", "data/big"):
        repo.write(name, SECRET)
    repo.write("plain.txt", "untracked and not ignored\n")
    (repo.path / ".env").chmod(0o600)
    return open_session(repo)


def bring(session: Session) -> tuple[str, ...]:
    return include.bring(session.repo, session.id)


def test_files_that_match_and_are_ignored_are_copied_with_their_mode_and_no_others(session) -> None:
    notes = bring(session)
    at = session.at.path
    assert [(at / n).read_text() for n in (".env", "app/.env", "conf/local.json")] == [SECRET] * 3
    assert (at / ".env").stat().st_mode & 0o777 == 0o600
    assert not [n for n in (".env.old", "data", "plain.txt") if (at / n).exists()]
    assert notes == ("plain.txt does not come along by .worktreeinclude: git does not ignore it",)
    assert session.at.git("status", "--porcelain") == ""


def test_what_came_along_enters_no_snapshot_whatever_the_agent_does(session) -> None:
    bring(session)
    session.at.write(".gitignore", "")
    session.at.git("add", "--force", ".env")
    taken = session.snapshot()
    for name in (b".env", b"app/.env", b"conf/local.json"):
        assert session.store.find(taken.tree, name) is None
        assert [loss for loss in taken.losses if loss.startswith(name.decode() + " came along by .worktreeinclude")]
        assert (session.at.path / os.fsdecode(name)).read_text() == SECRET


def test_a_name_that_the_session_s_commit_does_not_ignore_stays_away(session) -> None:
    session.at.commit("no more", {".gitignore": ""})
    notes = bring(session)
    assert not (session.at.path / ".env").exists()
    assert len(notes) == 4


def test_no_link_is_followed_and_nothing_is_overwritten(session, tmp_path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/key").write_text(SECRET)
    (session.main.path / ".env.link").symlink_to(tmp_path / "outside/key")
    (session.main.path / ".envs").symlink_to(tmp_path / "outside")
    (session.at.path / "app").symlink_to(tmp_path / "outside")
    session.at.write(".env", "the session's own\n")
    notes = bring(session)
    assert sorted(p.name for p in (tmp_path / "outside").iterdir()) == ["key"]
    assert not (session.at.path / ".env.link").exists()
    assert not (session.at.path / ".envs").exists()
    assert (session.at.path / ".env").read_text() == "the session's own\n"
    assert len([note for note in notes if "link" in note or "regular" in note or "already" in note]) == 4


def test_how_much_comes_along_is_bounded_and_said(session, monkeypatch) -> None:
    monkeypatch.setattr(include, "_MOST_FILES", 1)
    monkeypatch.setattr(include, "_MOST_BYTES", 10 << 20)
    with (session.main.path / ".env").open("wb") as file:
        file.truncate(11 << 20)
    notes = bring(session)
    assert len(include.copied(session.repo, session.id)) == 1
    assert not (session.at.path / ".env").exists()
    assert len([note for note in notes if "at most 1 files and 10 MiB are copied" in note]) == 2


def test_without_the_file_nothing_is_copied(repo) -> None:
    repo.write(".env", SECRET)
    opened = open_session(repo)
    assert bring(opened) == ()
    assert not Path(opened.at.path / ".env").exists()
