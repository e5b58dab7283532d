"""Transcripts as files in folders: listed by name and `stat` alone, and told apart by their first records.

Promise: nothing is opened to be listed, nothing that is no regular file is ever opened (a FIFO would block, a device
may never end), and a folder that cannot be read or leads in a circle costs only itself.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from relay_git.agents import jsonl
from relay_git.agents.agent import Found
from relay_git.agents.jsonl import Record

_HEAD_BYTES = 1 << 18


def files(top: Path, depth: int, native_id: Callable[[str], str]) -> Iterator[Found]:
    """The regular files `depth` folders below `top` whose name gives an id; linked folders are not entered."""
    try:
        entries = list(os.scandir(top))
    except OSError:
        return
    for entry in entries:
        try:
            if depth > 0:
                if entry.is_dir(follow_symlinks=False):
                    yield from files(Path(entry.path), depth - 1, native_id)
            elif (name := native_id(entry.name)) and entry.is_file():
                about = entry.stat()
                yield Found(Path(entry.path), name, about.st_mtime, about.st_size)
        except OSError:
            continue


def is_regular(path: Path) -> bool:
    """Whether this is a regular file, or a link to one."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


def identity(path: Path) -> tuple[int, ...]:
    """What changes whenever a regular file is written or replaced (device, inode, size, mtime); empty for all else."""
    try:
        about = path.stat()
    except OSError:
        return ()
    return (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns) if stat.S_ISREG(about.st_mode) else ()


def document(path: Path) -> Record:
    """The JSON object that a small file holds; empty where it holds none or cannot be read."""
    if not is_regular(path):
        return {}
    try:
        with path.open("rb") as file:
            return jsonl.parse(file.read(_HEAD_BYTES)) or {}
    except OSError:
        return {}


def content(path: Path, most: int) -> bytes | None:
    """What a regular file holds; None where it is none, cannot be read, or has more than so many bytes."""
    if not is_regular(path):
        return None
    try:
        with path.open("rb") as file:
            held = file.read(most + 1)
    except OSError:
        return None
    return held if len(held) <= most else None


def head(path: Path) -> list[Record]:
    """The records in the first 256 KiB of a JSONL file; empty where it is none or cannot be read."""
    if not is_regular(path):
        return []
    try:
        with path.open("rb") as file:
            *whole, rest = file.read(_HEAD_BYTES).split(b"\n")
    except OSError:
        return []
    return [record for line in (*whole, rest) if (record := jsonl.parse(line)) is not None]


def below(top: Path) -> Iterator[Path]:
    """Every regular file in a folder and in those in it; what is linked is not entered and not named."""
    for folder, _, names in os.walk(top):
        for name in sorted(names):
            path = Path(folder, name)
            if not path.is_symlink() and is_regular(path):
                yield path


def newest(found: Iterable[Found], since: float, ours: Callable[[Path], bool]) -> str:
    """The id of the transcript that was written last since then, of those that are `ours`; empty if there is none."""
    fresh = sorted((f for f in found if f.modified >= since), key=lambda f: f.modified, reverse=True)
    return next((f.native_id for f in fresh if ours(f.path)), "")


def folders(top: Path, parts: Callable[[str], Iterable[str]]) -> Iterator[Found]:
    """The folders in `top` that hold at least one of the files which `parts` gives for a folder's name."""
    try:
        entries = list(os.scandir(top))
    except OSError:
        return
    for entry in entries:
        try:
            stamps = [identity(Path(entry.path, part)) for part in parts(entry.name)] if entry.is_dir() else []
        except OSError:
            continue
        if any(stamps):
            whole = [stamp for stamp in stamps if stamp]
            newest = max(stamp[3] for stamp in whole) / 1e9
            yield Found(Path(entry.path), entry.name, newest, sum(stamp[2] for stamp in whole))


def subfolders(top: Path) -> tuple[Path, ...]:
    """The folders in a folder, by name; linked ones are not entered."""
    try:
        return tuple(sorted(Path(entry.path) for entry in os.scandir(top) if entry.is_dir(follow_symlinks=False)))
    except OSError:
        return ()
