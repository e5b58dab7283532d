"""A disk whose power goes off: what strace saw of a whole process tree, and what would be left of it at any moment.

The model, which is that of a journaling file system: names (made, renamed, removed) reach the disk in their order, and
all of them with the next sync of anything; the bytes of a file only with its own sync, or with that of the whole file
system. So at each moment there are two extremes, and both are made: names as of the last sync, or all names, and in
both cases of each file no byte that was not synced.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

CALLS = (
    "openat,creat,write,pwrite64,writev,rename,renameat,renameat2,unlink,unlinkat,link,linkat,mkdir,mkdirat,rmdir,fsync,"
    "fdatasync,syncfs,sync,ftruncate,sendfile,copy_file_range"
)
PROGRAM = shutil.which("strace", path="/usr/bin:/bin:/usr/local/bin")  # not on the sealed PATH
STRACE = (PROGRAM or "strace", "-f", "-y", "-xx", "-s", "10000000", "-e", f"trace={CALLS}", "-e", "signal=none")
_CALL = re.compile(r"(\d+) +(\w+)\((.*)\) += (\S+?)(?:<([^>]*)>)?(?: .*)?$", re.S)
_PATH = re.compile(r'(\w+)<((?:\\x[0-9a-f]{2})+)>(?:\(deleted\))?|"((?:\\x[0-9a-f]{2})*)"')


@dataclass(eq=False)
class File:
    """Its bytes in memory, and those on disk."""

    now: bytes = b""
    kept: bytes = b""


@dataclass
class Disk:
    """Everything below one folder. A name leads to a file, or to None for a folder."""

    top: str
    names: dict[str, File | None] = field(default_factory=dict)
    kept_names: dict[str, File | None] = field(default_factory=dict)

    def load(self) -> None:
        """What is there now is on disk."""
        for place in Path(self.top).rglob("*"):
            data = place.read_bytes() if place.is_file() else None
            self.names[str(place)] = File(data, data) if data is not None else None
        self.kept_names = dict(self.names)

    def sync(self, files: list[File | None]) -> None:
        """The bytes of these files, and all names."""
        self.kept_names = dict(self.names)
        for file in files:
            if file is not None:
                file.kept = file.now

    def left(self, *, newest: bool) -> dict[str, bytes | None]:
        """What a machine finds that comes up again."""
        names = self.names if newest else self.kept_names
        # A file that was cut in place is cut for good once that is on disk; before, it is as it was.
        return {
            name: None if file is None else file.kept[: len(file.now)] if newest else file.kept
            for name, file in names.items()
        }


def lines(trace: Path) -> Iterator[str]:
    """Whole calls, in the order in which they ended."""
    begun: dict[str, str] = {}
    for line in trace.read_text("ascii").splitlines():
        pid, _, rest = line.partition(" ")
        if rest.endswith("<unfinished ...>"):
            begun[pid] = line.removesuffix("<unfinished ...>").rstrip()
        elif (found := re.match(r"\s*<\.\.\. \w+ resumed>(.*)", rest)) is not None:
            yield begun.pop(pid, "") + found[1]
        else:
            yield line


class Replay:
    """Carries out what a trace tells on a `Disk`."""

    def __init__(self, disk: Disk, mark: str) -> None:
        self.disk, self._mark, self._cwd = disk, mark, dict[str, str]()
        self.recorded = 0

    def moments(self, trace: Path) -> Iterator[int]:
        """Before each sync, and after each journal entry: how many entries had been recorded."""
        for line in lines(trace):
            call = _CALL.match(line)
            if call is None or call[4].startswith("-"):
                continue
            name, words = call[2], [(m[1], _text(m[2] or m[3] or ""), m[1] is None) for m in _PATH.finditer(call[3])]
            if name in ("fsync", "fdatasync", "syncfs", "sync"):
                yield self.recorded
            if name in ("write", "writev") and words[0][1] == self._mark:
                self.recorded += 1
                yield self.recorded
            self._act(call[1], name, call[3], words, _text(call[5] or ""))

    def _act(self, pid: str, name: str, args: str, words: list[tuple[str | None, str, bool]], result: str) -> None:
        disk = self.disk
        if name in ("fsync", "fdatasync"):
            disk.sync([disk.names.get(words[0][1])])
        elif name in ("syncfs", "sync"):
            disk.sync(list(disk.names.values()))
        elif name in ("openat", "creat"):
            self._paths(pid, words)
            self._open(result, args)
        elif name in ("write", "writev", "pwrite64"):
            self._write(name, words, args)
        elif name in ("sendfile", "copy_file_range"):
            ends = [disk.names.get(w[1]) for w in words]
            to, source = (ends[0], ends[1]) if name == "sendfile" else (ends[1], ends[0])
            if to is not None and source is not None:
                to.now = source.now
        elif name == "ftruncate":
            if (file := disk.names.get(words[0][1])) is not None:
                file.now = file.now[: int(args.rsplit(", ", 1)[1])]
        else:
            self._name(name, self._paths(pid, words))

    def _open(self, path: str, args: str) -> None:
        if self._ours(path) and "O_DIRECTORY" not in args:
            if "O_CREAT" in args and path not in self.disk.names:
                self.disk.names[path] = File()
            if "O_TRUNC" in args and (file := self.disk.names.get(path)) is not None:
                file.now = b""

    def _write(self, name: str, words: list[tuple[str | None, str, bool]], args: str) -> None:
        file = self.disk.names.get(words[0][1])
        if file is None:
            return
        data = b"".join(w[1].encode("latin-1") for w in words[1:])
        at = int(args.rsplit(", ", 1)[1]) if name == "pwrite64" else len(file.now)
        file.now = file.now[:at].ljust(at, b"\0") + data + file.now[at + len(data) :]

    def _name(self, name: str, paths: list[str]) -> None:
        names = self.disk.names
        if not self._ours(paths[-1]):
            return
        if name.startswith("rename"):
            for old in [n for n in names if n == paths[0] or n.startswith(f"{paths[0]}/")]:
                names[paths[1] + old.removeprefix(paths[0])] = names.pop(old)
        elif name.startswith("link"):
            names[paths[1]] = names[paths[0]]
        elif name.startswith("mkdir"):
            names[paths[0]] = None
        else:
            names.pop(paths[0], None)

    def _paths(self, pid: str, words: list[tuple[str | None, str, bool]]) -> list[str]:
        """The absolute paths of a call: each string, below the folder that stands before it."""
        found, folder = [], self._cwd.get(pid, self.disk.top)
        for word, text, is_string in words:
            if not is_string:
                folder = text
                if word == "AT_FDCWD":
                    self._cwd[pid] = text
            else:
                path = text.encode("latin-1").decode("utf-8", "surrogateescape")
                found.append(str(Path(folder) / path) if not path.startswith("/") else path)
        return [re.sub(r"/[^/]+/\.\.(?=/)", "", p) for p in found]

    def _ours(self, path: str) -> bool:
        return path.startswith(f"{self.disk.top}/")


def _text(hexed: str) -> str:
    return bytes.fromhex(hexed.replace("\\x", "")).decode("latin-1")


def lay_out(left: dict[str, bytes | None], top: Path) -> None:
    """Make the folder so."""
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir()
    for name, data in sorted(left.items()):
        place, private = Path(name), "/.git/relay" in name
        if data is None:
            place.mkdir(mode=0o700 if private else 0o755, parents=True, exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
            place.chmod(0o600 if private else 0o755 if place.name == "post-commit" else 0o644)
