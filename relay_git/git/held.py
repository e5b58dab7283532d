"""The tree of an index, with every object that it needs lying where no prune can take it.

Promise: git adds no object that it finds anywhere, be it in the repository, where no ref may reach it, or where another
session is only about to write it. So what the tree adds to the one before is looked at, and what the store does not
hold itself is written again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from relay_git.git.run import Git
from relay_git.git.store import GITLINK_MODE, TREE_MODE, Oid, Store

_TRIES = 5


def write_tree(git: Git, store: Store, before: Oid, env: Mapping[str, str]) -> Oid:
    """The tree of the index; `before` is one that a ref reaches.

    A prune may take an object also while this looks; that of a file is then made from the file again.
    """
    for _ in range(_TRIES):
        tree = Oid(git.run("write-tree", "--missing-ok", env=env).decode().strip())
        gone = list(_hold(store, before, tree)) if tree != before else []
        if not gone:
            return tree
        for path in gone:
            file = git.cwd / os.fsdecode(path)
            if file.is_symlink():
                store.write_blob(os.fsencode(file.readlink()))
            elif file.is_file():
                git.run("hash-object", "-w", "--", b"./" + path, env=env)
    return Oid(git.run("write-tree", env=env).decode().strip())  # git knows what a partial clone may lack


def _hold(store: Store, before: Oid, after: Oid) -> Iterator[bytes]:
    """Have the store hold what the one tree adds to the other; where an object was gone."""
    todo: list[tuple[bytes, Oid | None, Oid]] = [(b"", before, after)]
    while todo:
        place, old, new = todo.pop()
        had = {e.name: e.oid for e in (store.tree(old) if old is not None else None) or ()}
        entries = store.tree(new)
        if entries is None:
            yield place
            continue
        if not store.holds(new):
            store.write_tree(entries)
        for entry in entries:
            if entry.oid == had.get(entry.name) or entry.mode == GITLINK_MODE:
                continue
            if entry.mode == TREE_MODE:
                todo.append((place + entry.name + b"/", had.get(entry.name), entry.oid))
            elif not store.holds(entry.oid):
                data = store.blob(entry.oid)
                if data is None:
                    yield place + entry.name
                else:
                    store.write_blob(data)
