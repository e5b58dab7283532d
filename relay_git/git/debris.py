"""What killed processes leave lying about: half-written files, and locks that nobody holds any more.

Promise: nothing goes that a live process may still need. A part of a file goes when the process whose id is in its
name is gone; the lock of a ref only when it has stayed the same for a while and no live process has it open.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

_PART = re.compile(r".+\.(\d{1,10})(\.lock)?")
_PATIENCE = 1.0  # seconds; gc and pack-refs hold the lock of a ref for milliseconds


def sweep(folder: Path) -> None:
    """Take away the parts of files below `folder` whose writers are gone."""
    for place, _, files in os.walk(folder):
        for name in files:
            part = _PART.fullmatch(name)
            if part is not None and not psutil.pid_exists(int(part[1])):
                with contextlib.suppress(OSError):
                    (Path(place) / name).unlink()


def break_locks(common_dir: Path, refs: Iterable[str]) -> tuple[str, ...]:
    """Remove the locks of these refs that a killed git left; the names of the refs that were locked so."""
    deadline = time.monotonic() + _PATIENCE
    there = {name: _inode(common_dir / f"{name}.lock") for name in refs}
    while any(there.values()) and time.monotonic() < deadline:
        time.sleep(0.05)
        # One that has gone, or come anew, belongs to a git that lives.
        there = {name: was for name, was in there.items() if was and _inode(common_dir / f"{name}.lock") == was}
    dead = {name for name, was in there.items() if was} - _held(common_dir, there)
    for name in dead:
        with contextlib.suppress(OSError):
            (common_dir / f"{name}.lock").unlink()
    return tuple(sorted(dead))


def _inode(file: Path) -> int:
    with contextlib.suppress(OSError):
        return file.stat().st_ino
    return 0


def _held(common_dir: Path, refs: Iterable[str]) -> set[str]:
    """Those whose lock a live process has open."""
    files = {str((common_dir / f"{name}.lock").resolve()): name for name in refs}
    held = set()
    for process in psutil.process_iter() if files else ():
        with contextlib.suppress(psutil.Error, OSError):
            held |= {files[f.path] for f in process.open_files() if f.path in files}
    return held
