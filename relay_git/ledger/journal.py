"""The journal: a chain of commits on `refs/relay/sessions/<id>`, one a transition.

Promise: an entry is on disk (objects and ref fsynced) before the step that it announces begins, and is added only on
top of the entry that the writer saw. The tree of an entry holds `state.json` and, once one was built, `contract.json`
and `contract.md`; an entry that tells of a new snapshot has that as its second parent. See docs/format.md.
"""

from __future__ import annotations

import fcntl
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from relay_git.contract.canonical import Malformed, canonical, strict_parse
from relay_git.contract.lifecycle import Event, State
from relay_git.contract.sign import Sealed
from relay_git.errors import FormatTooNew, LedgerConflict, RelayError, RepoError, UserError, printable
from relay_git.git.repo import JOURNALS, Repo, make_private
from relay_git.git.store import BLOB_MODE, ZERO, Commit, Oid, RefUpdate, Store, TreeEntry
from relay_git.session import SessionId

FORMAT, VERSION = "git-relay-state", 1
UPGRADE = "pip install --upgrade git-relay"
_OF_THE_NEXT = (Event.CHOSEN, Event.LAUNCHED, Event.IDENTIFIED)  # the leg of such an entry is still the one before
_KEEPING = frozenset({Event.SNAPSHOT_TAKEN, Event.AGENT_DONE, Event.LANDED, Event.DROPPED})
_CONTRACT_FILES = (b"contract.json", b"contract.md")


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A candidate that was not taken, and why."""

    agent: str
    reason: str


@dataclass(frozen=True, slots=True)
class Entry:
    """What one transition recorded.

    `at` is RFC 3339 UTC. `pid` and `pid_started` (milliseconds since 1970) name the leg's process, `supervisor` the pid
    of the writer; 0 means none. `candidates` are the agents still to be tried, in the user's order, `passed_over` those
    that were tried for this contract. `reason` is why the leg paused or ended, in words. `stands` says what HEAD of the
    worktree named when the agent was done, where that was not the session's branch; `landed` is what a landing became.
    `wait` is how many seconds the user lets this session wait for a quota window at most, `wait_until` (RFC 3339 UTC)
    until when it waits for `next_agent`.
    """

    session_id: SessionId
    state: State
    event: Event
    at: str
    leg: int
    agent: str
    title: str
    base_commit: str
    branch: str
    account: str = ""
    pause_reason: str = ""
    native_id: str = ""
    pid: int = 0
    pid_started: int = 0
    supervisor: int = 0
    reason: str = ""
    safe_point: str = ""
    contract_id: str = ""
    snapshot: str = ""
    next_agent: str = ""
    candidates: tuple[str, ...] = ()
    passed_over: tuple[PassedOver, ...] = ()
    permission: str = ""
    stands: str = ""
    landed: str = ""
    wait: int = 0
    wait_until: str = ""

    def to_json(self) -> bytes:
        """The canonical bytes of `state.json`."""
        body: dict[str, Any] = {"format": FORMAT, "version": VERSION}
        body |= {member: _plain(getattr(self, name)) for name, member, _ in _MEMBERS}
        return canonical(body)


@dataclass(frozen=True, slots=True)
class Recorded:
    """An entry as it stands in git: its commit, and the blobs of the contract that was current then."""

    oid: Oid
    commit: Commit
    entry: Entry
    contract: Oid | None
    brief: Oid | None

    @property
    def snapshot(self) -> Oid | None:
        """The second parent: the snapshot that this entry tells of."""
        return self.commit.parents[1] if len(self.commit.parents) > 1 else None


def ref_of(session: SessionId) -> str:
    """The full name of the session's journal ref."""
    return JOURNALS + session


def sessions(store: Store) -> list[SessionId]:
    """The ids of all sessions, by name, also of those whose journal is damaged."""
    return [SessionId(name.removeprefix(JOURNALS)) for name in store.ref_names(JOURNALS)]


def find(store: Store, word: str | None) -> SessionId:
    """The one session that the user's word names: its id or a unique part of it; without a word, the only one."""
    known = sessions(store)
    hits = [s for s in known if word is None or word == s] or [s for s in known if word and word in s]
    if len(hits) == 1:
        return hits[0]
    if not known:
        raise UserError("there is no session in this repository", hint='git relay start "your task"')
    if not hits:
        raise UserError(f"no session is named {printable(word or '')}", hint="git relay status")
    open_ones = [s for s in hits if word is None and not _is_dropped(store, s)]
    if len(open_ones) == 1:
        return open_ones[0]
    names = ", ".join(hits[:5]) + (", …" if len(hits) > 5 else "")
    raise UserError(f"that can mean {len(hits)} sessions ({names})", hint=f"name one, for example {hits[0]}")


def tip(store: Store, session: SessionId) -> Recorded:
    """The newest entry; raises RepoError where the journal is missing or damaged."""
    oid = store.ref(ref_of(session))
    if oid is not None:
        return read(store, oid)
    if ref_of(session) in store.ref_names(JOURNALS):
        raise RepoError(f"the journal of {session} is damaged: its ref names no object", hint="git fsck")
    raise RepoError(f"the session {session} has no journal", hint="git relay status")


def chain(store: Store, session: SessionId) -> Iterator[Recorded]:
    """The entries from the newest to the first; raises RepoError where the journal is missing or damaged."""
    yield from back_from(store, tip(store, session))


def back_from(store: Store, recorded: Recorded) -> Iterator[Recorded]:
    """This entry and those before it, the newest first, wherever the ref stands; RepoError where one is damaged."""
    yield recorded
    while recorded.commit.parents:
        recorded = read(store, recorded.commit.parents[0])
        yield recorded


def parents(store: Store, oid: Oid) -> tuple[Oid, ...]:
    """The entry before, and the snapshot where the entry tells of one; raises RepoError where there is no commit."""
    commit = store.commit(oid)
    if commit is None:
        raise RepoError(f"the journal entry {oid} is damaged: it is no commit", hint="git fsck")
    return commit.parents


def read(store: Store, oid: Oid) -> Recorded:
    """The entry that a commit holds; raises RepoError where it is none."""
    commit = store.commit(oid)
    names = {e.name: e.oid for e in store.tree(commit.tree) or ()} if commit is not None else {}
    data = store.blob(names[b"state.json"]) if b"state.json" in names else None
    if commit is None or data is None:
        raise RepoError(f"the journal entry {oid} is damaged: it holds no state", hint="git fsck")
    return Recorded(oid, commit, parse(data), names.get(b"contract.json"), names.get(b"contract.md"))


def parse(data: bytes) -> Entry:
    """The entry in the bytes of a `state.json`; unknown members are passed over, wrong ones refused."""
    try:
        body = strict_parse(data)
    except Malformed as error:
        raise RepoError(f"a journal entry is damaged: {error.reason}", hint="git fsck") from error
    if body.get("format") != FORMAT or not isinstance(body.get("version"), int):
        raise RepoError("a journal entry is damaged: it is not in git relay's format", hint="git fsck")
    if body["version"] > VERSION:
        raise FormatTooNew("the session was written by a newer git relay", hint=UPGRADE)
    try:
        values = {name: read(body[member]) for name, member, read in _MEMBERS if member in body}
        return Entry(**values)
    except (TypeError, ValueError, KeyError) as error:
        raise RepoError("a journal entry is damaged: a member is missing or wrong", hint="git fsck") from error


@contextmanager
def writer(repo: Repo, session: SessionId) -> Iterator[None]:
    """Be the session's only writer inside the block; raises LedgerConflict at once where another process is."""
    from filelock import FileLock, Timeout  # 60 ms that a command which only reads does not need

    file = repo.lock_file(session)
    make_private(file.parent)
    lock = FileLock(file, timeout=1, mode=0o600)  # a look by `is_running` may hold it for a moment
    try:
        lock.acquire()
    except Timeout as error:
        raise LedgerConflict(
            f"another git relay is running the session {session}",
            hint=f"git relay attach {session} looks in, git relay stop {session} brings it to rest",
        ) from error
    try:
        yield
    finally:
        lock.release()


def is_running(repo: Repo, session: SessionId) -> bool:
    """Whether a supervisor holds the session now."""
    try:
        with repo.lock_file(session).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)  # as `writer` locks it; many may look at once
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def append(
    store: Store,
    before: Recorded | None,
    entry: Entry,
    sealed: Sealed | None = None,
    also: tuple[RefUpdate, ...] = (),
) -> Recorded:
    """Add an entry on top of `before` (None: the first); raises LedgerConflict where the ref has moved since.

    The refs of `also` move with it.
    """
    blobs = {b"state.json": store.write_blob(entry.to_json())}
    if sealed is not None:
        blobs |= {
            b"contract.json": store.write_blob(sealed.stored),
            b"contract.md": store.write_blob(sealed.brief.encode()),
        }
    elif before is not None and before.contract is not None and before.brief is not None:
        blobs |= dict(zip(_CONTRACT_FILES, (before.contract, before.brief), strict=True))
    tree = store.write_tree(TreeEntry(name, BLOB_MODE, oid) for name, oid in blobs.items())
    parents = [before.oid] if before is not None else []
    if sealed is not None or (entry.event in _KEEPING and entry.snapshot):
        parents.append(Oid(entry.snapshot))  # so that no gc can take it, wherever the branch stands
    when = int(datetime.fromisoformat(entry.at).timestamp())
    oid = store.write_commit(tree, parents, message(entry), when)
    moved = RefUpdate(ref_of(entry.session_id), oid, before.oid if before is not None else ZERO)
    store.move([moved, *also], f"relay: {entry.event}")
    return read(store, oid)


def message(entry: Entry) -> str:
    """The entry in words, for `git log`."""
    event = entry.event.replace("-", " ")
    if entry.next_agent and entry.event in _OF_THE_NEXT:
        event = f"handed over; {entry.next_agent} {event} as leg {entry.leg + 1}"
    first = f"{entry.session_id}: leg {entry.leg} ({entry.agent}) {event}"
    lines = [f"Task: {entry.title}"]
    if entry.reason:
        lines.append(f"Reason: {entry.reason}")
    lines += [f"Passed over: {p.agent}: {p.reason}" for p in entry.passed_over]
    if entry.next_agent:
        lines.append(f"Next: {entry.next_agent}")
    trailers = [f"State: {entry.state}"]
    if entry.contract_id:
        trailers.append(f"Contract: {entry.contract_id}")
    return "\n".join([first, "", *map(printable, lines), "", *trailers])


def _is_dropped(store: Store, session: SessionId) -> bool:
    try:
        return tip(store, session).entry.event is Event.DROPPED
    except RelayError:
        return False  # a damaged one is not passed over in silence: the user names the session meant


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def _plain(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    if isinstance(value, PassedOver):
        return {"agent": _plain(value.agent), "reason": _plain(value.reason)}
    # A reason may quote a file name that is not UTF-8: the journal holds what can be written down of it.
    return str(value).encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _names(value: Any) -> tuple[str, ...]:  # noqa: ANN401 - JSON
    return tuple(_text(v) for v in _typed(value, list))


def _passed_over(value: Any) -> tuple[PassedOver, ...]:  # noqa: ANN401 - JSON
    return tuple(PassedOver(_text(v["agent"]), _text(v["reason"])) for v in _typed(value, list))


def _number(value: Any) -> Any:  # noqa: ANN401 - JSON
    return _typed(value, int)


def _word(kind: Callable[[str], Any], value: Any) -> Any:  # noqa: ANN401 - JSON
    """A word of a closed set; one that we do not know was added since, also where the version did not change."""
    try:
        return kind(_text(value))
    except ValueError as error:
        if re.fullmatch(r"[A-Za-z_-]{1,40}", str(value)) is None:
            raise
        raise FormatTooNew(f"the session was written by a newer git relay ({value})", hint=UPGRADE) from error


def _text(value: Any) -> Any:  # noqa: ANN401 - JSON
    if type(value) is not str:
        raise ValueError("not a str")
    return value


def _typed(value: Any, kind: type) -> Any:  # noqa: ANN401 - JSON
    if type(value) is not kind:
        raise ValueError(f"not a {kind.__name__}")
    return value


_READ: dict[str, Callable[[Any], Any]] = {
    "state": lambda value: _word(State, value),
    "event": lambda value: _word(Event, value),
    "leg": _number,
    "pid": _number,
    "pid_started": _number,
    "supervisor": _number,
    "wait": _number,
    "candidates": _names,
    "passed_over": _passed_over,
}
_MEMBERS = tuple((f.name, _camel(f.name), _READ.get(f.name, _text)) for f in fields(Entry))
"""Name, member of `state.json`, and how it is read; made once, since `verify --all` reads many entries."""
