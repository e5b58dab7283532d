"""A prune at any moment: what a store has written is never gone, whether or not a ref names it yet."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from relay_git.git import libgit2, plain
from relay_git.git.store import BLOB_MODE, ZERO, Oid, RefUpdate, Store, TreeEntry, open_store

WHEN = 1_790_000_000
REF = "refs/relay/sessions/written"


@pytest.fixture(params=[libgit2, plain], ids=["libgit2", "plain"])
def open_one(request) -> Callable[[Path], Store]:
    return request.param.open_store


@pytest.fixture
def store(open_one, repo) -> Store:
    return open_one(repo.git_dir)


def write(store: Store, data: bytes = b"precious\n") -> Oid:
    tree = store.write_tree([TreeEntry(b"state.json", BLOB_MODE, store.write_blob(data))])
    return store.write_commit(tree, [], "A step", WHEN)


def loose(repo) -> set[Path]:
    return {f for f in (repo.git_dir / "objects").glob("??/*") if f.is_file()}


def packs(repo) -> Iterator[Path]:
    return (repo.git_dir / "objects/pack").glob("*.pack")


def test_what_no_ref_names_yet_outlives_a_prune(repo, store) -> None:
    commit = write(store)
    repo.git("prune", "--expire=now")
    store.move([RefUpdate(REF, commit, ZERO)], "test")
    repo.git("fsck", "--strict")
    assert repo.git("show", f"{REF}:state.json") == "precious"


def test_what_a_prune_takes_that_had_looked_before_the_ref_moved_is_never_missing_and_put_back(repo, store) -> None:
    before = loose(repo)
    commit = write(store)
    store.move([RefUpdate(REF, commit, ZERO)], "test")
    for file in loose(repo) - before:
        file.unlink()  # as it does in the second half of its work
    for reader in (store, open_store(repo.git_dir)):
        found = reader.commit(commit)
        assert reader.blob(reader.tree(found.tree)[0].oid) == b"precious\n"
    second = store.write_commit(found.tree, [commit], "The next step", WHEN)
    store.move([RefUpdate(REF, second, commit)], "test")
    repo.git("fsck", "--strict")


@pytest.mark.parametrize("sign", ["a gc at work", "something was taken"])
def test_a_store_that_closes_beside_a_prune_leaves_a_pack_which_no_prune_takes(repo, open_one, sign) -> None:
    before, store = loose(repo), open_one(repo.git_dir)
    commit = write(store)
    store.move([RefUpdate(REF, commit, ZERO)], "test")
    if sign == "a gc at work":
        (repo.git_dir / "gc.pid").write_text(f"{os.getpid()} here")
    else:
        for file in loose(repo) - before:
            file.unlink()
    repo.git("pack-refs", "--all")
    del store
    gc.collect()
    for file in loose(repo) - before:
        file.unlink()
    repo.git("fsck", "--strict")
    assert len(list(packs(repo))) == 1
    assert list((repo.git_dir / "relay/fresh").iterdir()) == []


def test_a_store_that_closes_in_peace_leaves_no_pack_and_no_folder(repo, open_one) -> None:
    store = open_one(repo.git_dir)
    store.move([RefUpdate(REF, write(store), ZERO)], "test")
    del store
    gc.collect()
    repo.git("fsck", "--strict")
    assert list(packs(repo)) == []
    assert list((repo.git_dir / "relay/fresh").iterdir()) == []


def test_what_a_killed_process_wrote_is_read_by_all_and_made_good_by_the_next_writer(repo, tmp_path) -> None:
    before = loose(repo)
    code = (
        "import os, sys; from pathlib import Path; from relay_git.git.store import *;"
        "s = open_store(Path(sys.argv[1])); b = s.write_blob(b'precious\\n');"
        "c = s.write_commit(s.write_tree([TreeEntry(b'state.json', BLOB_MODE, b)]), [], 'A step', 1790000000);"
        "s.move([RefUpdate(sys.argv[2], c, ZERO)], 'test'); print(c, flush=True); os._exit(9)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(repo.git_dir), REF], capture_output=True, text=True, check=False
    )
    assert done.returncode == 9, done.stderr
    commit = Oid(done.stdout.strip())
    for file in loose(repo) - before:
        file.unlink()
    reader = open_store(repo.git_dir)
    tree = reader.commit(commit).tree
    assert reader.blob(reader.tree(tree)[0].oid) == b"precious\n"
    reader.write_blob(b"another")
    repo.git("fsck", "--strict")
    assert len(list((repo.git_dir / "relay/fresh").iterdir())) == 1


def test_where_files_cannot_be_linked_they_are_copied(repo, store, monkeypatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", refuse)
    store.move([RefUpdate(REF, write(store), ZERO)], "test")
    repo.git("fsck", "--strict")
    assert not [f for f in loose(repo) if f.name.startswith("tmp_")]


def test_a_repository_whose_path_git_must_quote_is_written_like_any_other(make_repo) -> None:
    for name in ("colon:colon", '"quoted"', "back\\slash:", "#hash"):
        repo = make_repo(name)
        store = open_store(repo.git_dir)
        store.move([RefUpdate(REF, write(store), ZERO)], "test")
        repo.git("fsck", "--strict")
