"""What this process writes, kept apart until no prune can take it.

A prune deletes each loose object that no ref reached when it began to look: also one that was written since, and one
whose ref has moved meanwhile. So objects of ours are written into a folder of their own, which every git of ours reads
too, and are linked from there into the repository's object folder; what a prune takes there is linked again. An object
that lies elsewhere as well is written all the same: whoever put it there, nothing says that it stays.

Promise: nothing that a store has written is ever missing to git relay; once a store is closed it is in the repository,
where a prune that is still at work cannot take it. What a killed process left, the next writer takes for its own.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from relay_git.errors import RepoError
from relay_git.git.durable import sync_folder
from relay_git.git.store import Oid

if TYPE_CHECKING:  # run and repo look here for what to read
    from relay_git.git.run import Git

_TRIES = 20


class Fresh:
    """The folder of one store below `top`, and the repository's object folder; every method may raise OSError.

    `pack` makes a pack of the objects that it is given the ids of, in the repository; an id has `width` digits.
    """

    def __init__(self, top: Path, objects: Path, width: int, pack: Callable[[list[str]], object]) -> None:
        self._objects, self._width, self._pack = objects, width, pack
        self._linked: set[tuple[str, str]] = set()
        self._pruned = False
        alone = _hold(top, wait=True)  # a folder that nobody holds yet must not be taken for a dead one's
        try:
            self.folder = Path(tempfile.mkdtemp(dir=top))
            self._held = _hold(self.folder)
            for inner in ("info", "pack"):
                (self.folder / inner).mkdir()
            (self.folder / "info" / "alternates").write_bytes(os.fsencode(objects) + b"\n")
            _adopt(top, self.folder)
            self.publish()
        finally:
            os.close(alone)

    @property
    def env(self) -> dict[str, str]:
        """For a git that is to write here too."""
        return {"GIT_OBJECT_DIRECTORY": str(self.folder)}

    def write(self, kind: str, data: bytes) -> str:
        """Store an object, and give its id."""
        whole = b"%s %d\0" % (kind.encode(), len(data)) + data
        algorithm = hashlib.sha1 if self._width == 40 else hashlib.sha256
        oid = algorithm(whole, usedforsecurity=False).hexdigest()
        if not self.holds(oid):
            file = self._file(oid)
            file.parent.mkdir(exist_ok=True)
            part = file.with_name(f"tmp_obj_{os.getpid()}_{threading.get_ident()}")
            try:
                with open(part, "xb", opener=_read_only) as out:
                    out.write(zlib.compress(whole, zlib.Z_BEST_SPEED))
                    out.flush()
                    os.fsync(out.fileno())
                part.replace(file)
                sync_folder(file.parent)
            except OSError:
                part.unlink(missing_ok=True)
                raise
        return oid

    def holds(self, oid: str) -> bool:
        """Whether the object was written here."""
        return self._file(oid).exists() or any(oid in _packed(f, self._width) for f in self.folder.glob("pack/*.idx"))

    def _file(self, oid: str) -> Path:
        return self.folder / oid[:2] / oid[2:]

    def publish(self) -> None:
        """Link into the repository whatever it lacks of what was written here."""
        for folder, names in _objects_of(self.folder):
            lacking = names - _names(self._objects / folder)
            _link(self.folder / folder, self._objects / folder, lacking)
            linked = {(folder, name) for name in lacking}
            self._pruned = self._pruned or not linked.isdisjoint(self._linked)
            self._linked |= linked

    def close(self) -> None:
        """Publish a last time, in a pack where a prune may be at work, since it takes loose objects only.

        Where that fails the folder stays, for the next writer.
        """
        with contextlib.suppress(OSError, RepoError):
            self._close()

    def _close(self) -> None:
        self.publish()
        if self._pruned or (self._objects.parent / "gc.pid").exists():
            loose = ((folder, names) for folder, names in _objects_of(self.folder) if folder != "pack")
            self._pack([folder + name for folder, names in loose for name in names])
        shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._held)


def begin(common_dir: Path, git: Git, width: int) -> Fresh:
    """The folder of a store that begins to write; `git` packs what is in it. Raises RepoError."""
    from relay_git.git.repo import make_private
    from relay_git.git.run import disk_error

    def pack(ids: list[str]) -> None:
        base = common_dir / "objects" / "pack" / "pack"
        git.run("pack-objects", "-q", base, input="".join(f"{oid}\n" for oid in ids).encode())

    make_private(top_of(common_dir))
    try:
        return Fresh(top_of(common_dir), common_dir / "objects", width, pack)
    except OSError as error:
        raise disk_error(error, "a folder for new objects could not be made") from error


def write(fresh: Fresh, kind: str, data: bytes) -> Oid:
    """Write there; raises RepoError."""
    from relay_git.git.run import disk_error

    try:
        return Oid(fresh.write(kind, data))
    except OSError as error:
        raise disk_error(error, f"a {kind} could not be written") from error


def publish(fresh: Fresh | None) -> None:
    """Publish where there is something to; raises RepoError."""
    from relay_git.git.run import disk_error

    try:
        if fresh is not None:
            fresh.publish()
    except OSError as error:
        raise disk_error(error, "new objects could not be put into the repository") from error


def top_of(common_dir: Path) -> Path:
    """Where the folders of all stores lie."""
    return common_dir / "relay" / "fresh"


def folders(top: Path) -> list[Path]:
    """The folders of all stores that write, or did and were killed: a reader looks there too."""
    with contextlib.suppress(OSError):
        return sorted(folder for folder in top.iterdir() if (folder / "pack").is_dir())
    return []


def alternates(top: Path) -> dict[str, str]:
    """The same for a git of ours, as its environment."""
    found = [_quoted(str(folder)) for folder in folders(top)]
    return {"GIT_ALTERNATE_OBJECT_DIRECTORIES": ":".join(found)} if found else {}


def _quoted(path: str) -> str:
    """A path as git wants it in that list."""
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"' if ":" in path or path.startswith('"') else path


def _adopt(top: Path, own: Path) -> None:
    """Take what killed processes left for our own, and their folders away."""
    for folder in top.iterdir():
        with contextlib.suppress(BlockingIOError, FileNotFoundError, NotADirectoryError):
            held = _hold(folder)
            try:
                for name, names in _objects_of(folder):
                    (own / name).mkdir(exist_ok=True)
                    for file in _in_order(names):
                        (folder / name / file).replace(own / name / file)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(held)


def _hold(folder: Path, *, wait: bool = False) -> int:
    """Show that a live process is at work there; raises BlockingIOError where another one is, or waits for its end."""
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        os.close(held)
        raise
    return held


def _objects_of(folder: Path) -> Iterator[tuple[str, set[str]]]:
    """The folders of loose objects, and `pack`, each with the whole files in it."""
    for inner in sorted(_names(folder)):
        if len(inner) == 2 or inner == "pack":
            yield inner, {name for name in _names(folder / inner) if not name.startswith("tmp_")}


def _names(folder: Path) -> set[str]:
    with contextlib.suppress(FileNotFoundError):
        return {entry.name for entry in os.scandir(folder)}
    return set()


def _in_order(names: set[str]) -> list[str]:
    """A pack counts from its index on."""
    return sorted(names, key=lambda name: name.endswith(".idx"))


def _packed(index: Path, width: int) -> set[str]:
    """The ids in the index of a pack (version 2): after 1032 bytes they stand one after the other."""
    data, size = index.read_bytes(), width // 2
    count = int.from_bytes(data[1028:1032], "big")
    return {data[1032 + i * size : 1032 + (i + 1) * size].hex() for i in range(count)}


def _read_only(file: str, flags: int) -> int:
    return os.open(file, flags, 0o444)


def _link(source: Path, target: Path, names: set[str]) -> None:
    """Link these files; raises OSError."""
    for attempt in range(_TRIES if names else 0):
        try:
            _link_all(source, target, names)
        except FileNotFoundError:  # a prune takes empty folders away too
            if attempt == _TRIES - 1:
                raise
        else:
            return


def _link_all(source: Path, target: Path, names: set[str]) -> None:
    if not target.is_dir():
        target.mkdir(exist_ok=True)
        target.chmod(target.parent.stat().st_mode & 0o7777)  # as git does where a repository is shared
    for name in _in_order(names):
        _link_one(source / name, target / name)
    folder = os.open(target, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _link_one(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except FileExistsError:
        return
    except FileNotFoundError:
        raise
    except OSError:  # a file system without hard links, or two of them
        part = target.with_name(f"tmp_obj_{os.getpid()}_{target.name}")
        shutil.copyfile(source, part)
        with part.open("rb+") as copy:
            os.fsync(copy.fileno())
        part.chmod(0o444)
        part.replace(target)
