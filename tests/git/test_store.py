"""Objects and refs: what is written reads back, and a ref moves only from the value that the caller saw."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from relay_git.errors import LedgerConflict, RepoError
from relay_git.git import libgit2, plain
from relay_git.git.durable import sync_folder
from relay_git.git.repo import discover
from relay_git.git.run import LOCAL_ENV_VARS, clean_env, without_local_env
from relay_git.git.store import BLOB_MODE, TREE_MODE, ZERO, Oid, RefUpdate, TreeEntry, open_store
from tests.git.conftest import WHEN
from tests.seal.repo import Repo as Plain


@pytest.fixture(params=[libgit2, plain], ids=["libgit2", "plain"])
def opened(request):
    return request.param.open_store


@pytest.fixture
def store(repo, opened):
    return opened(repo.git_dir)


def test_a_commit_reads_back_as_git_shows_it(repo, store) -> None:
    blob = store.write_blob(b"\x00 bytes \xff\n")
    tree = store.write_tree([TreeEntry(b"z", BLOB_MODE, blob), TreeEntry(b"a", BLOB_MODE, blob)])
    commit = store.write_commit(tree, [Oid(repo.head)], "Two lines\n\nof words", WHEN)
    store.move([RefUpdate("refs/relay/written", commit, ZERO)], "test")
    assert repo.git("show", "--no-patch", "--format=%an <%ae> %at %P%n%B", commit).split("\n")[:4] == [
        f"git relay <git-relay@localhost> {WHEN} {repo.head}",
        "Two lines",
        "",
        "of words",
    ]
    assert repo.git("ls-tree", "--name-only", commit) == "a\nz"
    assert store.blob(blob) == b"\x00 bytes \xff\n"
    assert store.blob_size(blob) == 10
    assert store.commit(commit).parents == (repo.head,)
    assert store.find(tree, b"z").oid == blob


def test_what_is_not_there_is_none_not_an_error(store) -> None:
    missing = Oid("1" * 40)
    assert (store.blob(missing), store.tree(missing), store.commit(missing), store.ref("refs/x")) == (None,) * 4
    assert store.blob(Oid("not an id")) is None


def test_a_rev_is_resolved_where_the_user_stands_and_not_in_the_main_work_tree(repo, tmp_path) -> None:
    first = repo.head
    linked = Plain(tmp_path / "linked")
    repo.git("worktree", "add", "-q", "-b", "side", str(linked.path))
    linked.commit("on the side")
    repo.commit("on main")
    here, there = discover(repo.path, os.environ), discover(linked.path, os.environ)
    assert (here.resolve("HEAD"), there.resolve("HEAD"), there.resolve("@")) == (repo.head, linked.head, linked.head)
    assert (there.resolve("HEAD~1"), there.resolve("main")) == (first, repo.head)
    assert [there.resolve(rev) for rev in ("no-such-branch", "--all", "HEAD^{tree}")] == [None] * 3


def test_a_git_dir_that_lies_apart_finds_its_main_work_tree(tmp_path, session) -> None:
    main = session.main.path
    apart = tmp_path / "apart.git"
    (main / ".git").rename(apart)
    (main / ".git").write_text(f"gitdir: {apart}\n")
    Plain(main).git("worktree", "repair")
    Plain(main).git("worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    assert discover(main, os.environ).home == main
    for place in (session.at.path, tmp_path / "linked", apart):
        assert discover(place, os.environ).home == main
    shutil.rmtree(apart / "relay")
    assert discover(main, os.environ).home == main
    with pytest.raises(RepoError, match="lies apart from its main work tree") as refused:
        discover(tmp_path / "linked", os.environ)
    assert refused.value.hint == "run it in the main work tree"
    Plain(main).git("config", "core.worktree", str(main))
    assert discover(tmp_path / "linked", os.environ).home == main


def test_a_stale_move_changes_nothing_and_says_who_moved(repo, store) -> None:
    first, second = Oid(repo.head), Oid(repo.commit("second"))
    store.move([RefUpdate("refs/relay/a", first, ZERO)], "test")
    with pytest.raises(LedgerConflict, match="refs/relay/a"):
        store.move([RefUpdate("refs/relay/b", second, ZERO), RefUpdate("refs/relay/a", second, second)], "test")
    assert store.ref("refs/relay/a") == first
    assert store.ref("refs/relay/b") is None


def test_two_hundred_moves_by_eight_writers_keep_every_acknowledged_one(repo) -> None:
    store = open_store(repo.git_dir)
    tree = store.write_tree([])
    store.move([RefUpdate("refs/relay/race", store.write_commit(tree, [], "0", WHEN), ZERO)], "test")

    def add(number: int) -> None:
        own = open_store(repo.git_dir)
        while True:
            tip = own.ref("refs/relay/race")
            commit = own.write_commit(tree, [tip], str(number), WHEN)
            with contextlib.suppress(LedgerConflict):
                own.move([RefUpdate("refs/relay/race", commit, tip)], "test")
                return

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(1, 201)))
    subjects = repo.git("log", "--format=%s", "refs/relay/race").split("\n")
    assert sorted(map(int, subjects)) == list(range(201))


def test_a_lock_of_a_live_git_is_waited_for(repo, store) -> None:
    lock = repo.git_dir / "refs" / "relay" / "held.lock"
    lock.parent.mkdir(parents=True)
    lock.write_bytes(b"")
    release = threading.Timer(0.6, lock.unlink)
    release.start()
    store.move([RefUpdate("refs/relay/held", Oid(repo.head), ZERO)], "test")
    release.join()
    assert store.ref("refs/relay/held") == repo.head


KINDS = [{"object_format": "sha256"}, {"ref_format": "reftable"}, {"object_format": "sha256", "ref_format": "reftable"}]


@pytest.mark.parametrize("kind", KINDS, ids=["sha256", "reftable", "both"])
def test_what_libgit2_cannot_read_is_read_by_git_itself(make_repo, kind) -> None:
    repo = make_repo(**kind)
    assert libgit2.open_store(repo.git_dir) is None
    store = open_store(repo.git_dir)
    assert store.ref("refs/heads/main") == repo.head
    blob = store.write_blob(b"\x00 bytes \xff\n")
    tree = store.write_tree([TreeEntry(b"z", BLOB_MODE, blob), TreeEntry(b"a", BLOB_MODE, blob)])
    commit = store.write_commit(tree, [Oid(repo.head)], "words", WHEN)
    store.move([RefUpdate("refs/relay/a", commit, ZERO)], "test")
    with pytest.raises(LedgerConflict):
        store.move([RefUpdate("refs/relay/a", Oid(repo.head), ZERO)], "test")
    assert [e.name for e in store.tree(tree)] == [b"a", b"z"]
    assert (store.find(tree, b"z").oid, store.blob(blob), store.blob_size(blob)) == (blob, b"\x00 bytes \xff\n", 10)
    assert list(store.refs("refs/relay/")) == [("refs/relay/a", commit)]
    assert repo.git("fsck", "--strict", "--no-dangling") == ""
    store.move([RefUpdate("refs/relay/a", ZERO, commit)], "test")
    assert store.ref("refs/relay/a") is None
    assert store.blob(Oid("1" * (104 - len(blob)))) is None  # an id of the other length


def test_both_stores_write_the_same_bytes_and_read_the_same(repo) -> None:
    stores = [libgit2.open_store(repo.git_dir), plain.open_store(repo.git_dir)]
    names = [b"a.b", b"a", b"a0", "ü odd\n".encode()]
    written = set()
    for store in stores:
        blob = store.write_blob(b"x")
        inner = store.write_tree([TreeEntry(n, BLOB_MODE, blob) for n in names])
        outer = store.write_tree([TreeEntry(b"a", TREE_MODE, inner), TreeEntry(b"a.b", BLOB_MODE, blob)])
        written.add((outer, store.write_commit(outer, [Oid(repo.head)], "ünï\n\nbody\n\n", WHEN)))
    ((tree, commit),) = written
    for ask in (
        lambda s: s.commit(commit),
        lambda s: s.commit(tree),
        lambda s: s.tree(tree),
        lambda s: s.tree(commit),
        lambda s: s.find(tree, "a/ü odd\n".encode()),
        lambda s: s.find(tree, b"a.b/no"),
        lambda s: s.find(tree, b""),
        lambda s: s.blob_size(tree),
        lambda s: s.exists(commit),
        lambda s: list(s.refs("refs/heads/")),
        lambda s: s.ref_names("refs/heads/"),
        lambda s: s.ref("refs/heads"),
        lambda s: s.ref("HEAD"),
    ):
        assert ask(stores[0]) == ask(stores[1])


def test_an_object_with_damage_in_its_middle_is_named_and_the_next_question_is_answered(repo) -> None:
    good, blob = (
        Oid(repo.git("hash-object", "-w", str(repo.write(name, data))))
        for name, data in (("good", b"good"), ("large", random.Random(1).randbytes(200_000)))
    )
    store = plain.open_store(repo.git_dir)
    path = repo.git_dir / "objects" / blob[:2] / blob[2:]
    path.chmod(0o644)
    with path.open("r+b") as file:
        file.seek(100_000)
        file.write(bytes(1000))
    with pytest.raises(RepoError, match="cannot be read"):
        store.blob(blob)
    assert store.blob(good) == b"good"


def test_a_partial_clone_is_not_refused(repo, store) -> None:
    repo.git("config", "core.repositoryFormatVersion", "1")
    repo.git("config", "extensions.partialClone", "origin")
    assert open_store(repo.git_dir).ref("refs/heads/main") == repo.head


def test_every_variable_that_git_calls_local_is_kept_from_children(repo) -> None:
    local = repo.git("rev-parse", "--local-env-vars").split()
    assert set(local) <= LOCAL_ENV_VARS
    poison = dict.fromkeys(local, "poison") | {"GIT_CONFIG_KEY_0": "x", "GIT_CONFIG_VALUE_0": "y", "KEPT": "1"}
    assert without_local_env(poison) == {"KEPT": "1"}
    assert not [k for k in clean_env(poison | {"GIT_TRACE": "1"}) if k in local or k == "GIT_TRACE"]


def test_discovery_ignores_a_foreign_index_and_follows_git_dir_as_git_does(repo, make_repo) -> None:
    other = make_repo("other")
    env = {
        **os.environ,
        "GIT_INDEX_FILE": "/nonexistent",
        "GIT_DIR": str(other.git_dir),
        "GIT_WORK_TREE": str(other.path),
    }
    assert discover(repo.path, env).home == other.path
    assert discover(repo.path, {"GIT_INDEX_FILE": "/nonexistent"}).home == repo.path


def test_what_is_no_folder_or_is_not_there_needs_no_sync_of_one(tmp_path) -> None:
    (tmp_path / "heads").write_text("a reftable has a file there\n")
    sync_folder(tmp_path / "heads")
    sync_folder(tmp_path / "heads" / "relay")
    sync_folder(tmp_path / "nowhere")
