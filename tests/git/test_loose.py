"""What only a session's worktree holds is found, whatever hides it, in it and in the repositories within."""

from __future__ import annotations

import shutil

import pytest

from relay_git.git import loose, worktree
from tests.git.conftest import Session
from tests.seal.repo import Repo


def new(place, files: dict[str, str]) -> Repo:
    """A repository at `place` with a commit of `files`."""
    place.mkdir(parents=True, exist_ok=True)
    made = Repo(place)
    made.git("init", "-q")
    made.commit("inner", files)
    return made


def found(session: Session) -> dict[str, tuple[str, ...]]:
    """Each place that holds something, with what it is."""
    top, within = loose.look(session.repo, session.id)
    said = {f.place: (*f.changed, *f.ignored, *f.hidden, *(["unread"] if f.unread else [])) for f in (top, *within)}
    return {place: names for place, names in said.items() if names}


@pytest.mark.parametrize("value", ["no", "all"])
def test_untracked_files_are_found_whatever_the_user_has_git_status_show(session, value) -> None:
    new(session.at.path / "o", {"x": "x\n"})
    session.snapshot()
    assert found(session) == {}
    session.main.git("config", "--global", "status.showUntrackedFiles", value)
    session.main.git("config", "status.showUntrackedFiles", value)
    session.at.write(".env", "S=1\n")
    session.at.write("o/new", "x\n")
    assert found(session) == {"": (".env",), "o": ("new",)}


@pytest.mark.parametrize("bits", [["skip-worktree"], ["assume-unchanged"], ["skip-worktree", "assume-unchanged"]])
def test_edits_that_an_index_bit_hides_are_found_and_the_index_stays_as_it_is(session, bits) -> None:
    session.at.commit("two", {"a.txt": "a\n", "b.txt": "b\n", "gone.txt": "x\n"})
    for bit in bits:
        session.at.git("update-index", f"--{bit}", "a.txt", "b.txt", "gone.txt")
    (session.at.path / "gone.txt").unlink()
    index = (session.repo.worktree_git_dir(session.id) / "index").read_bytes()
    assert found(session) == {}
    session.at.write("a.txt", "edited\n")
    assert found(session) == {"": ("a.txt",)}
    assert loose.look(session.repo, session.id)[0].bits == tuple(bits)
    assert (session.repo.worktree_git_dir(session.id) / "index").read_bytes() == index


def test_edits_and_ignored_files_in_repositories_at_any_depth_are_found(session) -> None:
    inner = new(session.at.path / "o/i", {".gitignore": "*.x\nbig/\n", "f": "f\n"})
    outer = new(session.at.path / "o", {"f": "f\n"})
    assert outer.git("ls-files", "-s", "i").startswith("160000")
    session.snapshot()
    assert found(session) == {}
    inner.write("w.x", "w\n")
    inner.write("big/deep/file", "w\n")
    assert found(session) == {"o/i": ("big/", "w.x")}
    (inner.path / "w.x").unlink()
    shutil.rmtree(inner.path / "big")
    for bit, repository in (("skip-worktree", outer), ("assume-unchanged", inner)):
        repository.git("update-index", f"--{bit}", "f")
        repository.write("f", "edited\n")
    assert found(session) == {"o": ("f",), "o/i": ("f",)}


def test_what_only_the_index_of_a_repository_within_holds_is_found(session) -> None:
    inner = new(session.at.path / "o", {"f": "f\n"})
    session.snapshot()
    inner.write("f", "staged\n")
    inner.git("add", "f")
    inner.write("f", "f\n")
    assert found(session) == {"o": ("f",)}


def test_a_repository_that_was_made_over_tracked_files_is_looked_into_and_kept(session) -> None:
    session.at.commit("files", {"a/b/f": "f\n", "a/g": "g\n"})
    inner = new(session.at.path / "a", {".gitignore": "*.x\n"})
    made = inner.head
    session.at.commit("its ignore file")
    assert session.at.git("status", "--porcelain") == ""
    assert found(session) == {}
    inner.write("w.x", "w\n")
    inner.write("g", "other\n")
    assert found(session) == {"": ("a/g", "a/w.x"), "a": ("g", "w.x")}
    (kept,) = worktree.remove(session.repo, session.id)
    assert Repo(kept).head == made


def test_files_where_a_submodule_was_never_filled_or_lost_its_git_dir_are_found(session) -> None:
    new(session.at.path / "o", {"f": "f\n"})
    session.snapshot()
    shutil.rmtree(session.at.path / "o/.git")
    assert session.at.git("status", "--porcelain") == ""
    assert found(session) == {"o": ("f",)}
    (session.at.path / "o/f").unlink()
    assert found(session) == {}


@pytest.mark.parametrize("link", [b"", b"\xff\0", b"gitdir: /nowhere\n", None])
def test_a_repository_within_that_git_cannot_read_is_in_doubt_full_of_work(session, link) -> None:
    inner = new(session.at.path / "o", {"f": "f\n"})
    session.snapshot()
    if link is None:
        (inner.git_dir / "HEAD").write_text("ref: refs/heads/unborn\n")
    else:
        shutil.rmtree(inner.path / ".git")
        (inner.path / ".git").write_bytes(link)
    assert found(session)["o"] == ("unread",)


def test_every_repository_within_that_holds_commits_is_kept_whatever_it_lies_in(session) -> None:
    deepest = new(session.at.path / "o/i/d", {"f": "d\n"})
    inner = new(session.at.path / "o/i", {"f": "i\n"})
    outer = new(session.at.path / "o", {"f": "o\n"})
    session.snapshot()
    made = [repository.head for repository in (deepest, inner, outer)]
    kept = worktree.remove(session.repo, session.id)
    assert [path.name for path in kept] == ["o-i-d.git", "o-i.git", "o.git"]
    assert [Repo(path).head for path in kept] == made


def test_a_repository_of_the_user_s_behind_a_link_is_never_taken_for_one_within(session, tmp_path) -> None:
    new(session.at.path / "o/i", {"f": "f\n"})
    new(session.at.path / "o", {"f": "f\n"})
    session.at.commit("both", {"a/f": "f\n"})
    theirs = new(tmp_path / "theirs", {"f": "f\n"})
    new(theirs.path / "i", {"f": "f\n"})
    for name in ("o", "a"):
        shutil.rmtree(session.at.path / name)
        (session.at.path / name).symlink_to(theirs.path)
    assert set(found(session)) == {""}
    assert worktree.remove(session.repo, session.id) == ()
    assert theirs.git_dir.is_dir()
    assert (theirs.path / "i/.git").is_dir()


def test_commits_that_only_the_git_dir_of_the_worktree_names_are_found(session) -> None:
    at = session.at
    at.commit("two", {"a.txt": "a\n"})
    assert loose.commits(session.repo, session.id) == ()
    tree = at.git("rev-parse", "HEAD^{tree}")
    own = at.git("commit-tree", "-m", "only here", tree)
    at.git("update-ref", "refs/worktree/mine", own)
    at.git("update-ref", "refs/worktree/no-commit", tree)
    at.write("a.txt", "put aside\n")
    assert at.try_git("rebase", "--autostash", "--exec", "false", "HEAD~1").returncode != 0
    assert found(session) == {}
    first, aside = loose.commits(session.repo, session.id)
    assert first == own
    assert at.git("show", f"{aside}:a.txt") == "put aside"
    (session.repo.worktree_git_dir(session.id) / "rebase-merge/autostash").write_bytes(b"\xff no id\n")
    assert loose.commits(session.repo, session.id) == (own,)
