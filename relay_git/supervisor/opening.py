"""Opening a session: its id, journal, branch and worktree, or nothing at all.

Promise: the user's work tree, index and branches stay as they are; when a step fails, what was made before it is taken
away again. A session that is adopted from an agent which runs elsewhere begins with that one's pause.
"""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from relay_git.contract.lifecycle import Event, State
from relay_git.contract.redact import redact
from relay_git.errors import RelayError, RepoError, UserError, printable
from relay_git.git import debris, snapshot, worktree
from relay_git.git.repo import Repo, write_private
from relay_git.git.store import ZERO, Oid, RefUpdate, Store
from relay_git.ledger import journal
from relay_git.ledger.journal import Entry
from relay_git.quota.entry import Account
from relay_git.session import SessionId
from relay_git.supervisor import handoff, recover, source
from relay_git.supervisor.run import Run, Surroundings, begin, stamp
from relay_git.supervisor.source import Source

MAX_TASK = 1 << 20
_TITLE = 100
_CONTROL = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-_])|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Order:
    """What the user asked for; `adopted` is where the work has been so far, if elsewhere, `wait` as in Settings."""

    task: str
    agent: str
    then: tuple[str, ...]
    base: str = "HEAD"
    carry: bool = False
    adopted: Source | None = None
    wait: float = 0.0


def clean_task(data: bytes) -> str:
    """The task as text an agent can be given; raises UserError where it cannot be one.

    Terminal sequences, as they come along with pasted output, are taken out; a NUL byte means that this is no text.
    """
    if b"\0" in data:
        raise UserError("the task holds a NUL byte, so it is not text", hint='git relay start "your task in words"')
    if len(data) > MAX_TASK:
        raise UserError(
            f"the task has {len(data)} bytes, the limit is {MAX_TASK}",
            hint="put the long part into a file of the repository and name it in the task",
        )
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError("the task is not UTF-8 text", hint="iconv -t UTF-8 < FILE | git relay start -") from error
    text = _CONTROL.sub("", text).strip()
    if not text:
        raise UserError("the task is empty", hint='git relay start "your task in words"')
    return text


@contextmanager
def open_session(around: Surroundings, order: Order) -> Iterator[Run]:
    """A new session with its first journal entry, worktree and branch, under its lock from the first file on.

    Raises RelayError with nothing left behind.
    """
    repo, store = around.repo, around.store
    base = _base(repo, order.base)
    worktree.check_place(repo)
    title = printable(redact(order.task.split("\n", 1)[0], around.redaction)[0]).strip()[:_TITLE] or "at the terminal"
    session, first = _fresh_id(store, title), Account.parse(order.agent)
    if found := redact(order.task, around.redaction)[1]:
        told = "the first agent is told it, contracts and later agents are not"
        around.teller.say(f"note: the task holds what looks like a secret ({', '.join(sorted(found))}): {told}")
    entry = Entry(
        session_id=session,
        state=State.RUNNING,
        event=Event.STARTED,
        at=stamp(around.now()),
        leg=1,
        agent=first.agent,
        account=first.label,
        title=title,
        base_commit=base,
        branch=f"relay/{session}",
        candidates=order.then,
        wait=int(order.wait),
    )
    recover.tidy(repo, store)
    with journal.writer(repo, session):
        try:
            write_private(repo.spool_dir(session) / "task", order.task.encode())
            recover.note_boot(repo, session)
            worktree.exclude(repo)
            tip, losses = base, list[str]()
            if order.adopted is not None:
                entry = _hold(around, order.adopted, entry)
            if order.carry:
                tip = _carried(around, session, base, losses)
            if order.adopted is not None:
                order.adopted.losing(losses).keep(repo.spool_dir(session))
            for loss in losses:
                around.teller.say(f"note: {loss}")
            # What was copied has its ref in the very moment in which the session comes to be.
            also = (RefUpdate(worktree.branch_of(session), tip, ZERO),) if tip != base else ()
            run = begin(around, entry, also)
            worktree.add(repo, session, tip)
        except (RelayError, OSError, KeyboardInterrupt):
            _undo(repo, store, session)
            raise
        yield run


def _hold(around: Surroundings, adopted: Source, entry: Entry) -> Entry:
    """The first entry of a session that begins with the pause of an agent which git relay did not start.

    Whom to let go on after a crash lies in the spool before anybody is frozen.
    """
    adopted.keep(around.repo.spool_dir(entry.session_id))
    if adopted.stops:
        around.teller.say(f"{adopted.title} (pid {adopted.pid}): waiting for the end of a tool call")
        point = source.hold(adopted, around.settings.hard_limit, around.stop.is_set)
        fate = f"its process {adopted.pid} is ended"
    else:
        point = source.where_it_stands(adopted)
        fate = f"its process {adopted.pid} is left running" if adopted.pid else "no process of it was found"
    return replace(
        entry,
        state=State.PAUSING,
        event=Event.ADOPTED,
        native_id=adopted.native_id,
        pause_reason=source.ADOPTED,
        reason=f"adopted from a session of {adopted.title} ({adopted.native_id}); {fate}",
        safe_point=str(point),
    )


def what_is_left_out(repo: Repo) -> int:
    """How many uncommitted entries of the user's work tree are not in a session that starts from HEAD."""
    if repo.work_tree is None:
        return 0
    out = repo.git().run("status", "--porcelain", "-z", "--untracked-files=normal", "--no-renames")
    return sum(1 for line in out.split(b"\0") if line)


def _base(repo: Repo, rev: str) -> Oid:
    found = repo.resolve(rev)
    if found is not None:
        return found
    if rev == "HEAD":
        raise RepoError(
            "this repository has no commit yet, so there is nothing to start from",
            hint='git add -A && git commit -m "First commit"',
        )
    raise UserError(f"{printable(rev)} names no commit", hint="git log --oneline --all")


def _fresh_id(store: Store, title: str) -> SessionId:
    words = re.sub(r"[^a-z0-9]+", " ", title.lower().replace("'", "")).split()
    slug = "-".join(w for w in words if w not in {"a", "an", "the", "to", "of", "and", "in", "for"})[:30].strip("-")
    while True:
        session = SessionId(f"{slug or 'session'}-{secrets.token_hex(2)}")
        if store.ref(journal.ref_of(session)) is None and store.ref(worktree.branch_of(session)) is None:
            return session


def _carried(around: Surroundings, session: SessionId, base: Oid, losses: list[str]) -> Oid:
    """The uncommitted work there as a commit on top of `base`, taken through a copied index: the original stays."""
    repo = around.repo
    if repo.work_tree is None or repo.resolve("HEAD") != base:
        raise UserError(
            "--carry copies what lies uncommitted on HEAD, so it goes with the default base only",
            hint="leave --base out",
        )
    commit = around.store.commit(base)
    if commit is None:
        raise RepoError(f"the commit {base} that HEAD names is missing", hint="git fsck")
    index = repo.spool_dir(session) / "index.carry"
    try:
        most = around.settings.max_file
        source = repo.git_dir / "index"
        tree = snapshot.tree_of(repo.git(), around.store, commit.tree, source, index, losses, max_file=most)
    finally:
        index.unlink(missing_ok=True)
    if commit.tree == tree:
        return base
    text = "relay: uncommitted work carried along\n\nCopied by git relay from the user's work tree."
    return around.store.write_commit(tree, [base], text, int(around.now().timestamp()))


def _undo(repo: Repo, store: Store, session: SessionId) -> None:
    """Best effort, since the disk may be full: every step is tried, the first error is the one the user sees."""
    with contextlib.suppress(RelayError, OSError):
        worktree.remove(repo, session)
    debris.break_locks(repo.common_dir, handoff.refs_of(session))  # a git that was killed on the way left them
    for name in (worktree.branch_of(session), journal.ref_of(session)):
        with contextlib.suppress(RelayError, OSError):
            _delete(store, name)
    recover.clear_spool(repo, session)
    repo.lock_file(session).unlink(missing_ok=True)


def _delete(store: Store, name: str) -> None:
    now = store.ref(name)
    if now is not None:
        store.move([RefUpdate(name, ZERO, now)], "relay: undo")
