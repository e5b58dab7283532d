"""Submodules in a session: filled without a network, stored as git stores them, never thrown away with work in them."""

from __future__ import annotations

import shutil

import pytest

from relay_git.git import loose, submodule, worktree
from tests.git.conftest import Session, open_session
from tests.git.test_trees import same
from tests.seal.repo import Repo

LOCAL = ("-c", "protocol.file.allow=always")


@pytest.fixture
def user(make_repo, tmp_path) -> Repo:
    """A repository with `lib`, in it `deep`, both initialised, and `empty`, which is not; no remote is left."""
    deep, lib, empty, top = make_repo("deep"), make_repo("lib"), make_repo("empty"), make_repo()
    lib.git(*LOCAL, "submodule", "--quiet", "add", str(deep.path), "deep")
    lib.commit("deep")
    for path, other in (("lib", lib), ("sub dir/empty", empty)):
        top.git(*LOCAL, "submodule", "--quiet", "add", str(other.path), path)
    top.git(*LOCAL, "submodule", "--quiet", "update", "--init", "--recursive")
    Repo(top.path / "lib").git("checkout", "-q", "--detach")
    Repo(top.path / "lib").commit("a commit that nobody else has", {"local.txt": "x\n"})
    top.commit("submodules")
    top.git("submodule", "--quiet", "deinit", "--force", "sub dir/empty")
    shutil.rmtree(top.git_dir / "modules/sub dir")
    for gone in (deep, lib, empty):
        gone.path.rename(tmp_path / f"{gone.path.name}-gone")
    return top


@pytest.fixture
def session(user: Repo) -> Session:
    return open_session(user)


def fill(session: Session) -> tuple[str, ...]:
    return submodule.fill(session.repo, session.id)


def unsaved(session: Session) -> tuple[str, ...]:
    return tuple(found.place for found in loose.look(session.repo, session.id)[1])


def test_what_the_user_has_is_checked_out_and_what_is_missing_is_said(user, session) -> None:
    config = (user.git_dir / "config").read_bytes(), (user.git_dir / "modules/lib/config").read_bytes()
    notes = fill(session)
    lib = Repo(session.at.path / "lib")
    assert lib.head == Repo(user.path / "lib").head
    assert (lib.path / "deep/README.md").exists()
    assert lib.git("config", "remote.origin.url") == Repo(user.path / "lib").git("config", "remote.origin.url")
    assert len(notes) == 1
    assert notes[0].startswith("the submodule sub dir/empty is empty: you have not initialised it either")
    assert ((user.git_dir / "config").read_bytes(), (user.git_dir / "modules/lib/config").read_bytes()) == config
    assert session.at.git("status", "--porcelain") == ""
    assert same(session) == ("lib is a repository of its own: only its commit id is recorded, not changes inside it",)


def test_a_dirty_submodule_and_new_commits_in_it_are_stored_as_git_stores_them_and_named(session) -> None:
    fill(session)
    lib = Repo(session.at.path / "lib")
    lib.write("README.md", "dirty\n")
    assert [loss for loss in same(session) if loss.startswith("lib ")]
    made = lib.commit("new")
    same(session)
    assert session.at.git("rev-parse", "HEAD:lib") == made
    shutil.rmtree(lib.path)
    same(session)
    assert session.at.try_git("rev-parse", "HEAD:lib").returncode != 0


def test_a_session_s_copy_shares_no_file_with_the_user_s(user, session) -> None:
    fill(session)
    own = session.repo.worktree_git_dir(session.id) / "modules/lib"
    assert not [f for f in own.rglob("*") if f.is_file() and f.stat().st_nlink > 1]


@pytest.mark.parametrize("where", ["lib", "lib/deep"])
def test_commits_that_only_a_session_s_submodule_has_outlive_its_worktree(user, session, where) -> None:
    fill(session)
    made = Repo(session.at.path / where).commit("only here", {"new.txt": "x\n"})
    (kept,) = worktree.remove(session.repo, session.id)
    shutil.rmtree(user.git_dir / "modules")
    assert Repo(kept).git("log", "-1", "--format=%s", made) == "only here"
    assert Repo(kept).git("fsck", "--no-dangling") == ""
    assert not session.at.path.exists()


def test_submodules_without_work_in_them_go_with_the_worktree(session) -> None:
    fill(session)
    assert worktree.remove(session.repo, session.id) == ()
    assert not (session.repo.relay_dir / "kept").exists()


def test_a_repository_that_was_made_in_the_worktree_is_kept_with_its_commits(session) -> None:
    app = session.at.path / "app"
    app.mkdir()
    Repo(app).git("init", "-q")
    made = Repo(app).commit("inner", {"x": "x\n"})
    session.snapshot()
    (kept,) = worktree.remove(session.repo, session.id)
    assert Repo(kept).git("rev-parse", "HEAD") == made


def test_a_worktree_that_was_lost_is_made_again_and_its_submodules_commits_are_kept(session) -> None:
    fill(session)
    made = Repo(session.at.path / "lib").commit("only here", {"new.txt": "x\n"})
    shutil.rmtree(session.at.path)
    worktree.add(session.repo, session.id, session.base)
    assert Repo(session.repo.relay_dir / f"kept/{session.id}/lib.git").git("cat-file", "-t", made) == "commit"
    assert worktree.is_fresh(session.repo, session.id)


def test_folders_that_nobody_may_write_do_not_stop_a_removal(session) -> None:
    session.at.write("cache/pkg/file", "x\n")
    (session.at.path / "cache/pkg").chmod(0o555)
    (session.at.path / "cache").chmod(0o555)
    worktree.remove(session.repo, session.id)
    assert not session.at.path.exists()


def test_uncommitted_work_in_a_submodule_is_seen_and_no_program_of_its_configuration_runs(session, tmp_path) -> None:
    fill(session)
    lib = Repo(session.at.path / "lib")
    session.snapshot()
    assert unsaved(session) == ()
    for key in ("filter.evil.clean", "core.fsmonitor"):
        lib.git("config", key, f"touch {tmp_path}/owned; cat")
    lib.commit("bait", {".gitattributes": "bait filter=evil\n", "bait": "1\n"})
    (tmp_path / "owned").unlink()
    session.snapshot()
    assert unsaved(session) == ()
    Repo(lib.path / "deep").write("README.md", "an edit\n")
    assert unsaved(session) == ("lib/deep",)
    lib.write("bait", "2\n")
    assert unsaved(session) == ("lib", "lib/deep")
    lib.git("add", "bait")
    (tmp_path / "owned").unlink()
    assert unsaved(session) == ("lib", "lib/deep")
    assert not (tmp_path / "owned").exists()
    (lib.path / ".git").write_text("gitdir: /nowhere\n")
    assert unsaved(session) == ("lib",)
