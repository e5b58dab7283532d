"""What is known of every account, kept across sessions and repositories in a folder of the user's.

One file an account, of one JSON object a line: a header, then entries, the newest last. It holds names of windows,
shares, counts and times; no text of any tool, and nothing of a login.

Promise: any number of processes may write at once and nothing that was recorded is lost to another; a crash costs at
most what was being written. The file stays below `MAX_BYTES`: what is older gets coarser. Nothing here raises for what
lies on the disk, so that no session ends for want of its history: what is wrong is told in words, a file of a newer
git relay is left alone, and one that is none of ours is put aside.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from relay_git.quota import lines
from relay_git.quota.entry import Account, Entry, Refusal, Spent, happened
from relay_git.session import QuotaReading

MAX_BYTES = 512 << 10
_KEEP = timedelta(days=40)
_FINE = (timedelta(hours=12), timedelta(hours=1), timedelta(0))  # what is older is kept once a slot
_SLOT = timedelta(minutes=10)
_SAME = timedelta(seconds=60)
_PATIENCE = 2.0  # seconds to wait for another writer; a reading is not worth more
_HEAD = 4096


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a file holds; `trouble` says in words what could not be read."""

    entries: tuple[Entry, ...] = ()
    skipped: int = 0
    trouble: str = ""


@dataclass(slots=True)
class History:
    """The histories of all accounts, in a folder that is made when something is first recorded."""

    folder: Path
    _last: dict[tuple[Account, bool, str, str], QuotaReading | Refusal] = field(default_factory=dict)
    _read: dict[Account, tuple[tuple[int, int, int], Loaded]] = field(default_factory=dict)

    def record(self, account: Account, entries: Iterable[Entry], now: datetime) -> str:
        """Keep these, unless the same was just said; what hinders it in words, empty if nothing."""
        new = [entry for entry in entries if not self._is_known(account, entry)]
        if not new:
            return ""
        file = self._file(account)
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with _locked(file):
                return _append(file, account, new, now)
        except TimeoutError:
            return f"the quota history {file} is held by another process"
        except OSError as error:
            return f"the quota history {file} cannot be written: {error.strerror or error}"

    def load(self, account: Account) -> Loaded:
        """All that is kept of an account, as it was written; a file that did not change is not read again."""
        file = self._file(account)
        with contextlib.suppress(OSError):
            found = file.lstat()
            version = (found.st_ino, found.st_size, found.st_mtime_ns)
            if self._read.get(account, (None,))[0] != version:
                self._read[account] = version, _load(file)
            return self._read[account][1]
        return _load(file)

    def accounts(self) -> tuple[Account, ...]:
        """Every account of which something is kept."""
        found = set()
        with contextlib.suppress(OSError):
            for file in self.folder.glob("*.jsonl"):
                with contextlib.suppress(OSError):
                    header = lines.header(_look(file)[0]) or {}
                    account = Account(str(header.get("agent", "")), str(header.get("account", "")))
                    if self._file(account) == file:
                        found.add(account)
        return tuple(sorted(found))

    def strangers(self) -> tuple[str, ...]:
        """What lies where a history should and is none, in words."""
        found = []
        with contextlib.suppress(OSError):
            for file in sorted(self.folder.glob("*.jsonl")):
                try:
                    head = _look(file)[0]
                    why = "" if lines.header(head) or lines.is_newer(head) else "it is none any more"
                except OSError as error:
                    why = error.strerror or str(error)
                found += [f"the quota history {file} cannot be read: {why}"] if why else []
        return tuple(found)

    def _file(self, account: Account) -> Path:
        return self.folder / f"{quote(str(account), safe='')[:200]}.jsonl"

    def _is_known(self, account: Account, entry: Entry) -> bool:
        if isinstance(entry, Spent):
            return False
        refused = isinstance(entry, Refusal)
        about = (entry.notice.window or "", "") if isinstance(entry, Refusal) else (entry.window, entry.source)
        key = (account, refused, *about)
        last = self._last.get(key)
        if last is not None and _same(last, entry) and abs(entry.at - last.at) < _SAME:
            return True
        self._last[key] = entry
        return False


def _same(one: Entry, other: Entry) -> bool:
    match one, other:
        case QuotaReading(), QuotaReading():
            return one.used == other.used and one.resets_at == other.resets_at
        case Refusal(), Refusal():
            return (one.notice.kind, one.notice.resets_at) == (other.notice.kind, other.notice.resets_at)
    return False


@contextlib.contextmanager
def _locked(file: Path) -> Iterator[None]:
    from filelock import FileLock  # 60 ms that a command which only reads does not need

    with FileLock(file.with_suffix(".lock"), timeout=_PATIENCE):
        yield


def _append(file: Path, account: Account, entries: Sequence[Entry], now: datetime) -> str:
    told = ""
    head, size, whole = _look(file)
    if lines.is_newer(head):
        return _newer(file)
    if size and lines.header(head) is None:
        aside = file.with_suffix(".torn")
        file.replace(aside)
        size, told = 0, f"{file} was no quota history any more; it is kept as {aside.name}"
    new = b"".join(map(lines.line, entries))
    if size + len(new) > MAX_BYTES:
        known = lines.entries(_read(file))[0] if size else ()
        # A clock that is far ahead for once must not make all that was known look too old to be kept.
        today = min(now, max(map(happened, known), default=now))
        _replace(file, lines.first_line(account) + _coarser([*known, *entries], today, now))
        return told
    # Where a power cut has torn the last line, it ends here.
    new = (b"" if whole else b"\n") + new if size else lines.first_line(account) + new
    handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as out:
        out.write(new)
        out.flush()
        if any(isinstance(entry, Refusal) for entry in entries):
            os.fsync(out.fileno())  # the next reading of a meter comes by itself, a refusal costs a failed request
    return told


def _look(file: Path) -> tuple[bytes, int, bool]:
    """The first line of a file, its size, and whether its last line is whole."""
    try:
        with _open(file) as source:
            size = os.fstat(source.fileno()).st_size
            return source.readline(_HEAD), size, size > 0 and os.pread(source.fileno(), 1, size - 1) == b"\n"
    except FileNotFoundError:
        return b"", 0, True


def _load(file: Path) -> Loaded:
    try:
        body = _read(file)
    except FileNotFoundError:
        return Loaded()
    except OSError as error:
        return Loaded(trouble=f"the quota history {file} cannot be read: {error.strerror or error}")
    if lines.is_newer(body):
        return Loaded(trouble=_newer(file))
    entries, skipped = lines.entries(body)
    trouble = f"{skipped} lines of {file} cannot be read and do not count" if skipped else ""
    return Loaded(entries, skipped, trouble)


def _open(file: Path) -> BinaryIO:
    source = os.fdopen(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")
    if not stat.S_ISREG(os.fstat(source.fileno()).st_mode):
        source.close()
        raise OSError("it is no file")
    return source


def _read(file: Path) -> bytes:
    """The first line and the end of a file; of one that is larger than we write the middle is left out."""
    with _open(file) as source:
        size, most = os.fstat(source.fileno()).st_size, 2 * MAX_BYTES
        if size <= most:
            return source.read(most)
        head = source.readline(_HEAD)
        source.seek(size - most)
        return head + source.read(most).partition(b"\n")[2]


def _replace(file: Path, body: bytes) -> None:
    part = file.with_suffix(".part")  # under the lock there is one writer, and what a kill leaves is written over
    part.unlink(missing_ok=True)
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as out:
        out.write(body)
        out.flush()
        os.fsync(out.fileno())
    part.replace(file)


def _coarser(entries: Sequence[Entry], today: datetime, now: datetime) -> bytes:
    """The same history in at most half of the room: as fine as goes, and only then without its oldest part."""
    ordered = sorted((e for e in entries if today - _KEEP <= e.at <= now + _KEEP), key=happened)
    for fine in _FINE:
        rows = [lines.line(entry) for entry in _thinned(ordered, now, fine)]
        if sum(map(len, rows)) <= MAX_BYTES // 2:
            break
    while sum(map(len, rows)) > MAX_BYTES // 2:
        del rows[: len(rows) // 8 + 1]
    return b"".join(rows)


def _thinned(ordered: Iterable[Entry], now: datetime, fine: timedelta) -> list[Entry]:
    """What is older than `fine` once a slot: the last reading and refusal of each window, and all turns summed up."""
    kept: dict[tuple[object, ...], Entry] = {}
    for number, entry in enumerate(ordered):
        slot: object = number if now - entry.at < fine else -(entry.at.timestamp() // _SLOT.total_seconds())
        match entry:
            case QuotaReading():
                kept[entry.window, entry.source, slot] = entry
            case Refusal():
                kept["refusal", entry.notice.window, slot] = entry
            case Spent():
                one = kept.get(("spent", slot))
                more = one if isinstance(one, Spent) else Spent(entry.at, 0)
                kept["spent", slot] = Spent(entry.at, more.requests + entry.requests, more.tokens + entry.tokens)
    return sorted(kept.values(), key=happened)


def _newer(file: Path) -> str:
    return f"the quota history {file} was written by a newer git relay; it is left alone"
