"""What has to be on disk before something is announced.

Promise: when `sync_folder` returns, what was renamed into a folder is there after a power cut; when `sync_disks`
returns, so is all that anyone had written on the file systems of these places, an agent and its git included.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import sys
from pathlib import Path

_REFUSED = (errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM)  # by file systems that know no sync of a folder


def sync_folder(folder: Path) -> None:
    """Raises OSError where the disk fails; what is no folder, and a disk that cannot sync one, is left at that."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # a reftable has a file in place of refs/heads
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        except OSError as error:
            if error.errno not in _REFUSED:
                raise
        finally:
            os.close(fd)


def rewrite(file: Path, data: bytes, mode: int) -> None:
    """Give a file of the user's other bytes: at any moment, also after a power cut, it holds the old ones or the new.

    A link stays one. What a kill leaves beside it has a fixed name, so the next call takes its place.
    """
    target = file.resolve()
    part = target.with_name(f".{target.name}.git-relay")
    try:
        with part.open("wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        part.chmod(mode & 0o7777)
        part.replace(target)
        sync_folder(target.parent)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def sync_disks(*places: Path) -> None:
    """One call a file system, however many files there are; raises OSError where the disk fails."""
    seen = {place.stat().st_dev: place for place in places if place.exists()}
    if sys.platform != "linux":
        os.sync()
        return
    libc = ctypes.CDLL(None, use_errno=True)
    for place in seen.values():
        fd = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
        try:
            if libc.syncfs(fd) != 0:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(place))
        finally:
            os.close(fd)


def boot_id() -> str:
    """What changes each time the machine starts; empty where the system does not tell."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii", "replace").strip()
    return ""
