"""Repositories as people have them: in each a whole handoff works and nothing of the user's moves."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.scene import LIMIT, TAKE_OVER, WORK, commit, only_session, say, write
from tests.seal.repo import Repo

LEG = [say("I begin."), write("made.txt", "made\n"), commit("Make it"), write("half.txt", "half\n"), LIMIT]


def sha256(make_repo, tmp_path: Path) -> Path:
    return make_repo(object_format="sha256").path


def reftable(make_repo, tmp_path: Path) -> Path:
    return make_repo(ref_format="reftable").path


def sha256_and_reftable(make_repo, tmp_path: Path) -> Path:
    return make_repo(object_format="sha256", ref_format="reftable").path


def sub_directory(make_repo, tmp_path: Path) -> Path:
    return make_repo().path / "src"


def linked_worktree(make_repo, tmp_path: Path) -> Path:
    make_repo().git("worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    return tmp_path / "linked"


def bare_hidden_beside_its_worktrees(make_repo, tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    make_repo().git("clone", "-q", "--bare", ".", str(tmp_path / "project/.bare"))
    (tmp_path / "project/.git").write_text("gitdir: ./.bare\n")
    Repo(tmp_path / "project").git("worktree", "add", "-q", "main", "main")
    return tmp_path / "project/main"


def bare_with_worktrees_within(make_repo, tmp_path: Path) -> Path:
    make_repo().git("clone", "-q", "--bare", ".", str(tmp_path / "project.git"))
    Repo(tmp_path / "project.git").git("worktree", "add", "-q", "main", "main")
    return tmp_path / "project.git/main"


def bare_by_setting(make_repo, tmp_path: Path) -> Path:
    repo = make_repo()
    repo.git("checkout", "-q", "--detach")
    repo.git("config", "core.bare", "true")
    repo.git("worktree", "add", "-q", str(tmp_path / "main"), "main")
    return tmp_path / "main"


def sparse_cone(make_repo, tmp_path: Path) -> Path:
    repo = make_repo()
    repo.commit("more", {"in/a.txt": "a\n", "out/b.txt": "b\n"})
    repo.git("sparse-checkout", "set", "--cone", "in")
    assert not (repo.path / "out").exists()
    return repo.path


def sparse_index(make_repo, tmp_path: Path) -> Path:
    place = sparse_cone(make_repo, tmp_path)
    Repo(place).git("sparse-checkout", "set", "--cone", "--sparse-index", "in")
    return place


def sparse_by_patterns(make_repo, tmp_path: Path) -> Path:
    repo = make_repo()
    repo.commit("more", {"in/a.txt": "a\n", "out/b.txt": "b\n", "out/c.md": "c\n"})
    repo.git("sparse-checkout", "set", "--no-cone", "/*", "!/out/*.txt")
    assert not (repo.path / "out/b.txt").exists()
    return repo.path


def shallow_clone(make_repo, tmp_path: Path) -> Path:
    repo = make_repo()
    repo.commit("second")
    repo.git("clone", "-q", "--depth=1", f"file://{repo.path}", str(tmp_path / "clone"))
    return tmp_path / "clone"


def partial_clone_whose_remote_is_gone(make_repo, tmp_path: Path) -> Path:
    repo = make_repo()
    repo.commit("second", {"README.md": "# second\n", "big.bin": "big\n"})
    repo.commit("third", {"README.md": "# third\n", "big.bin": "bigger\n"})
    repo.git("config", "uploadpack.allowFilter", "true")
    repo.git("clone", "-q", "--filter=blob:none", f"file://{repo.path}", str(tmp_path / "clone"))
    assert "?" in Repo(tmp_path / "clone").git("rev-list", "--all", "--objects", "--missing=print")
    repo.path.rename(tmp_path / "gone")
    return tmp_path / "clone"


def clone_with_alternates(make_repo, tmp_path: Path) -> Path:
    repo = make_repo()
    repo.git("clone", "-q", "--shared", ".", str(tmp_path / "clone"))
    return tmp_path / "clone"


def git_dir_that_lies_apart(make_repo, tmp_path: Path) -> Path:
    make_repo().git("clone", "-q", f"--separate-git-dir={tmp_path / 'apart.git'}", ".", str(tmp_path / "clone"))
    return tmp_path / "clone"


def core_worktree(make_repo, tmp_path: Path) -> Path:
    repo = make_repo()
    (repo.path / ".git").rename(tmp_path / "apart.git")
    (repo.path / ".git").write_text(f"gitdir: {tmp_path / 'apart.git'}\n")
    repo.git("config", "core.worktree", str(repo.path))
    return repo.path


def reached_through_a_link(make_repo, tmp_path: Path) -> Path:
    make_repo()
    (tmp_path / "link").symlink_to("repo")
    return tmp_path / "link"


def relative_links(make_repo, tmp_path: Path) -> Path:
    repo = make_repo()
    if repo.try_git("worktree", "add", "-q", "--relative-paths", "-b", "side", "../side").returncode != 0:
        pytest.skip("this git knows no worktrees with relative links (2.48 is the first)")
    repo.git("config", "worktree.useRelativePaths", "true")
    return repo.path


def ignore_case(make_repo, tmp_path: Path) -> Path:
    repo = make_repo()
    repo.git("config", "core.ignorecase", "true")
    return repo.path


def crlf(make_repo, tmp_path: Path) -> Path:
    repo = make_repo()
    repo.git("config", "core.autocrlf", "true")
    return repo.path


def submodules(make_repo, tmp_path: Path) -> Path:
    inner, repo = make_repo("inner"), make_repo()
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.path), "inner")
    repo.commit("submodule")
    inner.path.rename(tmp_path / "gone")
    return repo.path


def large_files(make_repo, tmp_path: Path) -> Path:
    repo = make_repo()
    if repo.try_git("lfs", "version").returncode != 0:
        pytest.skip("git-lfs is not installed")
    repo.git("lfs", "install", "--local")
    repo.git("config", "lfs.url", "http://127.0.0.1:9")  # nothing may be asked for there
    repo.git("lfs", "track", "*.txt")
    repo.commit("large", {"big.txt": "big\n"})
    return repo.path


KINDS: list[Callable[..., Path]] = [
    sha256,
    reftable,
    sha256_and_reftable,
    sub_directory,
    linked_worktree,
    bare_hidden_beside_its_worktrees,
    bare_with_worktrees_within,
    bare_by_setting,
    sparse_cone,
    sparse_index,
    sparse_by_patterns,
    shallow_clone,
    partial_clone_whose_remote_is_gone,
    clone_with_alternates,
    git_dir_that_lies_apart,
    core_worktree,
    reached_through_a_link,
    relative_links,
    ignore_case,
    crlf,
    submodules,
    large_files,
]


def picture(place: Path) -> tuple[str, ...]:
    """All that is the user's, as git itself tells it."""
    told = (["status", "--porcelain=v2", "--branch", "-uall"], ["for-each-ref"], ["config", "--list", "--local"])
    lines = []
    for args in told:
        done = subprocess.run(["git", *args], cwd=place, capture_output=True, text=True, check=True)
        lines += [line for line in done.stdout.splitlines() if "refs/" not in line or "relay/" not in line]
    return tuple(lines)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_whole_handoff_works_from_start_to_landing_and_leaves_no_trace(
    make_repo, tmp_path, relay, demo, kind
) -> None:
    place = kind(make_repo, tmp_path)
    demo.plays(LEG, TAKE_OVER)
    before = picture(place)
    ran = relay("start", "x", "--agent", "demo", "--then", "demo", cwd=place)
    assert ran.rc == 0, ran.stderr
    assert picture(place) == before
    assert only_session(place)
    assert relay("verify", "--all", cwd=place).rc == 0
    ran = relay("land", cwd=place)
    assert ran.rc == 0, ran.stderr
    top = Path(Repo(place).git("rev-parse", "--show-toplevel"))
    assert (top / "half.txt").read_bytes().rstrip() == b"whole"
    ran = relay("drop", "--purge", cwd=place)
    assert ran.rc == 0, ran.stderr
    assert relay("uninstall", "--key", cwd=place).rc == 0
    assert "relay" not in Repo(place).git("for-each-ref") + Repo(place).git("worktree", "list")


BEGUN = {
    "merge": (["merge", "theirs"], "MERGE_HEAD"),
    "rebase": (["rebase", "theirs"], "rebase-merge"),
    "cherry-pick": (["cherry-pick", "theirs"], "CHERRY_PICK_HEAD"),
    "revert": (["revert", "--no-edit", "HEAD~1"], "REVERT_HEAD"),
    "bisect": (["bisect", "start", "HEAD", "HEAD~1"], "BISECT_LOG"),
}


@pytest.mark.parametrize("operation", BEGUN)
def test_an_operation_that_stands_half_done_in_the_main_work_tree_stays_as_it_is(repo, relay, demo, operation) -> None:
    repo.git("checkout", "-q", "-b", "theirs")
    repo.commit("theirs", {"README.md": "# theirs\n"})
    repo.git("checkout", "-q", "main")
    repo.commit("first", {"README.md": "# first\n"})
    repo.commit("ours", {"README.md": "# ours\n"})
    args, mark = BEGUN[operation]
    repo.try_git(*args)
    assert (repo.git_dir / mark).exists()
    demo.plays(WORK)
    before, files = picture(repo.path), states_of(repo.git_dir)
    ran = relay("start", "x", "--agent", "demo", cwd=repo.path)
    assert ran.rc == 0, ran.stderr
    assert (picture(repo.path), states_of(repo.git_dir)) == (before, files)
    assert relay("drop", "--force", cwd=repo.path).rc == 0
    assert (picture(repo.path), states_of(repo.git_dir)) == (before, files)


def states_of(git_dir: Path) -> dict[str, bytes]:
    """The files in which git remembers what it is at."""
    found = [f for f in git_dir.glob("*_*") if f.is_file()] + list(git_dir.glob("rebase-*/*"))
    return {str(f.relative_to(git_dir)): f.read_bytes() for f in found if f.is_file()} | {
        "index": (git_dir / "index").read_bytes()
    }
