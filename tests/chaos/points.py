"""Every point at which a supervisor can be cut: before and after each act that changes something outside its memory.

Acts are seen where they happen: Python's audit events for files, folders, signals and programs; the store's writes,
which go through a C library; and the journal. A point has a name, made of the act and of what it acts on, and a number
where the same happens again, so that it is the same point in every run, whatever else moves on meanwhile.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from relay_git.git.libgit2 import Libgit2Store
from relay_git.ledger import journal

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_NAMES = (
    (re.compile(r"carry-it-[0-9a-f]{4}"), "SESSION"),
    (re.compile(r"\.\d+\b"), ".PID"),
    (re.compile(r"\b[0-9a-f]{2}/([0-9a-f]{38}|tmp_obj_\d+_\d+)\b"), "OBJECT"),
    (re.compile(r"/tmp\w+"), "/TMP"),
    (re.compile(r"/[0-9a-f]{2}/TMP\b"), "/OBJECT"),
)
# What git is asked for that leaves the repository as it is.
_LOOKS = frozenset(
    [
        "version",
        "rev-parse",
        "symbolic-ref",
        "config",
        "ls-files",
        "log",
        "diff-tree",
        "rev-list",
        "cat-file",
        "status",
        "for-each-ref",
        "merge-base",
        "var",
    ]
)


# Acts on a path, and when they change anything. Folders for objects are made when they are first needed, in no order
# that could be relied on; each is cut before its first object comes in.
_ACTS: dict[str, Callable[[str], bool]] = {
    "os.rename": os.path.lexists,
    "os.link": os.path.lexists,
    "os.mkdir": lambda path: not Path(path).is_dir() and not _FAN_OUT.search(path),
    "os.chmod": lambda path: not _FAN_OUT.search(path),
    "os.remove": os.path.lexists,
    "os.rmdir": os.path.lexists,
    "os.truncate": os.path.lexists,
    "os.utime": os.path.lexists,
}
_FAN_OUT = re.compile(r"/(objects|fresh/\w+)/[0-9a-f]{2}$")

# Does the half of an act that a cut leaves behind; what comes back makes that undone.
Tear = Callable[[], Callable[[], object]]


class Points:
    """Counts the points of this process, and does `act` when the one named `at` is reached."""

    def __init__(self, top: Path, reached: Callable[[str, Tear], None]) -> None:
        self._top = str(top)
        self._reached = reached
        self._seen: Counter[str] = Counter()
        self._inside = False

    def install(self) -> None:
        """From now on; there is no way back, so this is for a process of its own."""
        for name in ("write_blob", "write_tree", "write_commit", "move"):
            self._wrap(Libgit2Store, name, lambda args, name=name: f"store {name}")
        self._wrap(journal, "append", lambda args: f"journal {args[2].event}", before=True)
        self._wrap(subprocess.Popen, "__init__", lambda args: self._program(args[1], "runs"))
        self._wrap(subprocess.Popen, "communicate", lambda args: self._program(args[0].args, "has run"))
        sys.addaudithook(self._heard)

    def reach(self, name: str, tear: Tear = lambda: lambda: None) -> None:
        """Here is a point."""
        if self._inside:
            return
        self._seen[name] += 1
        self._inside = True
        try:
            self._reached(f"{name} #{self._seen[name]}", tear)
        finally:
            self._inside = False

    def _wrap(self, room: Any, name: str, label: Callable[[Any], str], before: bool = False) -> None:
        original = getattr(room, name)

        @wraps(original)
        def wrapped(*args: Any, **more: Any) -> Any:
            said = label(args)
            if before and said:
                self.reach(f"before {said}")
            result = original(*args, **more)
            if said:
                self.reach(f"after {said}")
            return result

        setattr(room, name, wrapped)

    def _heard(self, event: str, args: tuple[Any, ...]) -> None:
        if self._inside:
            return
        if event == "open":
            self._opened(*args)
        elif event == "subprocess.Popen":
            if said := self._program(args[1], "is started"):
                self.reach(f"before {said}")
        elif event in ("os.kill", "os.killpg"):
            if args[1]:
                self.reach(f"before signal {args[1]}")
        elif event in _ACTS and _ACTS[event](_path(args[0])):
            self._act(event, *args[: 2 if event in ("os.rename", "os.link") else 1])

    def _opened(self, path: Any, mode: Any, flags: int) -> None:
        if not flags & _WRITES or mode is not None or not isinstance(path, str | bytes | os.PathLike):
            return
        name = _path(path)
        if not name.startswith(self._top):
            return
        there = os.path.lexists(name)
        self._act("open", name)
        if not there or flags & os.O_TRUNC:
            self.reach(f"torn {self._named(name)}", lambda: _tear(Path(name)))

    def _act(self, what: str, *paths: Any) -> None:
        names = [_path(p) for p in paths]
        if names[-1].startswith(self._top):
            self.reach(f"before {what} {' '.join(map(self._named, names))}")

    def _named(self, path: str) -> str:
        for pattern, word in _NAMES:
            path = pattern.sub(word, path)
        return path.removeprefix(self._top + "/")

    def _program(self, argv: Any, what: str) -> str:
        words = [os.fsdecode(w) for w in argv]
        if not words[0].endswith("/git"):
            return f"agent {what}"
        rest = iter(words[1:])
        for word in rest:
            if word == "-c":
                next(rest)
            elif not word.startswith("-"):
                return "" if word in _LOOKS else f"git {word} {what}"
        return ""


def _tear(file: Path) -> Callable[[], object]:
    """Leave the file empty, as opening it does."""
    was = file.read_bytes() if file.exists() else None
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
    return file.unlink if was is None else lambda: file.write_bytes(was)


def _path(path: Any) -> str:
    """Absolute, links left alone; of what is named by a number, where that leads."""
    return str(
        Path(f"/proc/self/fd/{path}").readlink() if isinstance(path, int) else Path(os.fsdecode(path)).absolute()
    )
