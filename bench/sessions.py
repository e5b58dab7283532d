"""Sessions with contracts, made as the supervisor would have made them but without any agent.

Promise: the contracts are built, redacted and signed by the program's own code over real snapshots; each leg leaves
the journal entries of a whole handoff, and its note. Objects go in by one `git fast-import`: to fsync each of them
would take longer than all that is measured.
"""

from __future__ import annotations

import hashlib
import io
import subprocess
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from relay_git.contract.build import Identity, Party, Previous, build
from relay_git.contract.lifecycle import Event, State
from relay_git.contract.pause import PauseFacts, SafePoint
from relay_git.contract.sign import Key, Sealed, seal
from relay_git.contract.verify import Verified, verify
from relay_git.git.repo import BRANCHES, Repo
from relay_git.git.store import AUTHOR, Oid, Store
from relay_git.git.work import FileChange, FileStatus, Hunk, WorkCommit, WorkFacts
from relay_git.ledger import journal, notes
from relay_git.ledger.journal import Entry
from relay_git.ledger.key import ensure
from relay_git.session import Command, PlanItem, PlanStatus, SessionId, SessionRecord, Usage

_START = datetime(2026, 9, 21, 14, 0, tzinfo=UTC)
_TASK = "Add a refund flow to the orders service"


def write_sessions(repo: Repo, store: Store, *, sessions: int, contracts: int) -> Key:
    """So many sessions, each with so many contracts; the key that signed them."""
    key = ensure(repo, store)
    base = repo.resolve("HEAD")
    assert base is not None
    feed = Feed(repo.common_dir)
    for number in range(sessions):
        _Writer(feed, key, base, SessionId(f"refund-flow-{number:04x}")).write(contracts)
    feed.end()
    return key


class Feed:
    """One `git fast-import` that says the id of everything it is given."""

    def __init__(self, git_dir: Path) -> None:
        self._git = subprocess.Popen(
            ["git", "fast-import", "--quiet", "--date-format=raw"],
            cwd=git_dir,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._mark = 0
        self._marks: dict[Oid, int] = {}  # it knows its own commits by mark only, until it has ended

    def commit(self, ref: str, parents: list[Oid], message: str, when: int, changes: list[bytes], *, ours: bool) -> Oid:
        """On top of the first parent's tree; `changes` are lines of fast-import."""
        who = AUTHOR if ours else ("Agent", "agent@example.invalid")
        text = (message.rstrip("\n") + "\n").encode()
        self._mark += 1
        self._put(f"commit {ref}\nmark :{self._mark}\ncommitter {who[0]} <{who[1]}> {when} +0000\n".encode())
        self._put(b"data %d\n" % len(text), text)
        for word, parent in zip(("from", "merge"), parents, strict=False):
            self._put(f"{word} {self._named(parent)}\n".encode())
        self._put(*(line + b"\n" for line in changes), b"\n")
        self._put(b"get-mark :%d\n" % self._mark)
        oid = Oid(self._answer().strip().decode())
        self._marks[oid] = self._mark
        return oid

    def tree(self, commit: Oid) -> Oid:
        """The root tree of a commit that was given before."""
        self._put(f'ls {self._named(commit)} ""\n'.encode())
        return Oid(self._answer().split()[2].decode())

    def end(self) -> None:
        assert self._git.stdin is not None
        self._git.stdin.close()
        if self._git.wait() != 0:
            raise SystemExit("git fast-import failed")

    def _named(self, commit: Oid) -> str:
        return f":{self._marks[commit]}" if commit in self._marks else commit

    def _put(self, *parts: bytes) -> None:
        assert isinstance(self._git.stdin, io.BufferedWriter)
        self._git.stdin.write(b"".join(parts))

    def _answer(self) -> bytes:
        assert self._git.stdin is not None
        assert self._git.stdout is not None
        self._git.stdin.flush()
        return self._git.stdout.readline()


@dataclass
class _Writer:
    """One session as it grows: its branch, its journal and its notes."""

    feed: Feed
    key: Key
    base: Oid
    session: SessionId
    head: Oid = field(init=False)
    journal: Oid | None = None
    note: Oid | None = None
    entry: Entry = field(init=False)
    previous: Previous | None = None
    files: dict[bytes, FileChange] = field(default_factory=dict)
    minutes: int = 0

    def __post_init__(self) -> None:
        self.head = self.base
        self.entry = Entry(
            session_id=self.session,
            state=State.RUNNING,
            event=Event.STARTED,
            at="",
            leg=1,
            agent="claude",
            title=_TASK,
            base_commit=self.base,
            branch=f"relay/{self.session}",
            candidates=("codex", "claude"),
        )

    def write(self, contracts: int) -> None:
        self._step(Event.STARTED, State.RUNNING)
        self._step(Event.LAUNCHED, State.RUNNING, pid=4711, pid_started=1_790_000_000_000, native_id=self._native_id())
        for _ in range(contracts):
            self._leg()
        self._step(Event.AGENT_DONE, State.DONE, reason=f"{self.entry.agent} finished", pid=0, pid_started=0)

    def _leg(self) -> None:
        leg, agent = self.entry.leg, self.entry.agent
        following = "codex" if agent == "claude" else "claude"
        limit = "usage limit (five_hour), resets at 2026-09-21 18:00 UTC"
        self._step(Event.LIMIT_SEEN, State.PAUSING, pause_reason="usage-limit", reason=limit, safe_point="")
        work = self._work(leg)
        self._step(
            Event.SNAPSHOT_TAKEN,
            State.SNAPSHOTTED,
            safe_point=str(SafePoint.TOOL_BOUNDARY),
            snapshot=work.snapshot_commit,
        )
        sealed = self._contract(work, agent, following)
        self._step(Event.CONTRACT_BUILT, State.ENVELOPE_BUILT, sealed, contract_id=sealed.contract_id, passed_over=())
        self._note(sealed, Oid(work.snapshot_commit))
        self._step(Event.CHOSEN, State.DISPATCHED, next_agent=following, candidates=(agent,))
        self._step(Event.LAUNCHED, State.RESUMING, pid=4712, pid_started=1_790_000_001_000, native_id=self._native_id())
        self._step(
            Event.ACKNOWLEDGED,
            State.RUNNING,
            leg=leg + 1,
            agent=following,
            next_agent="",
            reason=f"{following} ran git relay accept",
            pause_reason="",
            safe_point="",
        )

    def _step(self, event: Event, state: State, sealed: Sealed | None = None, **changes: object) -> None:
        self.minutes += 1
        now = _START + timedelta(minutes=self.minutes)
        entry = replace(self.entry, event=event, state=state, at=now.strftime("%Y-%m-%dT%H:%M:%SZ"), **changes)
        lines = [_inline("state.json", entry.to_json())]
        if sealed is not None:
            lines += [
                _inline("contract.json", sealed.stored),
                _inline("contract.md", sealed.brief.encode()),
            ]
        parents = [self.journal] if self.journal is not None else []
        if sealed is not None or event is Event.SNAPSHOT_TAKEN:
            parents.append(Oid(entry.snapshot))
        text, when = journal.message(entry), int(now.timestamp())
        self.journal = self.feed.commit(journal.ref_of(self.session), parents, text, when, lines, ours=True)
        self.entry = entry

    def _work(self, leg: int) -> WorkFacts:
        """A commit by the agent, and a snapshot of the file that it had in hand."""
        names = [b"src/refund_%02d.py" % leg, b"src/d0000/f%02d.py" % (leg % 100)]
        texts = [f"# {self.session} leg {leg}: {n.decode()}\n".encode() + b"line of code\n" * 40 for n in names]
        ref, when = BRANCHES + self.session, int((_START + timedelta(minutes=self.minutes)).timestamp())
        subject = f"Take step {leg} of the refund flow"
        self.head = head = self.feed.commit(
            ref, [self.head], subject, when, [_inline(names[0].decode(), texts[0])], ours=False
        )
        self.head = self.feed.commit(
            ref, [head], "relay: snapshot", when, [_inline(names[1].decode(), texts[1])], ours=True
        )
        for name, text, status in zip(names, texts, (FileStatus.ADDED, FileStatus.MODIFIED), strict=True):
            self.files[name] = FileChange(name, status, hashlib.sha256(text).hexdigest())
        # As many files as a session of usual size has touched since its base.
        listed = tuple(self.files[n] for n in sorted(list(self.files)[-6:]))
        return WorkFacts(
            branch=f"relay/{self.session}",
            base_commit=self.base,
            head_commit=head,
            snapshot_commit=self.head,
            snapshot_tree=self.feed.tree(self.head),
            commits=(WorkCommit(head, subject, (("Relay-Do-Not-Redo", f"step {leg} is applied"),)),),
            files=listed,
            hunks=(Hunk(names[1], "@@ -1,3 +1,4 @@\n" + "+line of code\n" * 12, truncated=False),),
        )

    def _contract(self, work: WorkFacts, agent: str, following: str) -> Sealed:
        record = SessionRecord(
            agent=agent,
            native_id=self._native_id(),
            model="a-model",
            prompts=(_TASK,),
            last_text="The refund model is written; next is the HTTP endpoint and its test.",
            plan=(
                PlanItem("Write the migration", PlanStatus.COMPLETED),
                PlanItem("Write the refund model", PlanStatus.IN_PROGRESS),
                PlanItem("Write the HTTP endpoint", PlanStatus.PENDING),
            ),
            commands=(Command("pytest tests/orders -q", 0, hashlib.sha256(b"ok").hexdigest(), "12 passed"),),
            files_touched=tuple(f.path.decode() for f in work.files),
            model_turns=14,
            usage=Usage(120_000, 8_000, 90_000, 4_000),
        )
        identity = Identity(
            session_id=self.session,
            task_id="t-0123456789ab",
            leg=self.entry.leg,
            created_at=_START + timedelta(minutes=self.minutes),
            task=_TASK,
            sender=Party(agent, "", record.model),
            receiver=Party(following),
        )
        why = PauseFacts("usage-limit", SafePoint.TOOL_BOUNDARY, self.entry.reason)
        sealed = seal(build(identity, why, record, work, self.previous), self.key)
        verdict = verify(sealed.stored, self.key)
        assert isinstance(verdict, Verified)
        # Without its words: a hundred legs that inherit all of them would make contracts larger than real ones are.
        self.previous = Previous(verdict.contract_id, verdict.sha256)
        return sealed

    def _note(self, sealed: Sealed, snapshot: Oid) -> None:
        when = int((_START + timedelta(minutes=self.minutes)).timestamp())
        parents = [self.note] if self.note is not None else []
        lines = [_inline(snapshot, sealed.brief.encode())]
        ref = notes.ref_of(self.session)
        self.note = self.feed.commit(ref, parents, "Notes added by git relay", when, lines, ours=True)

    def _native_id(self) -> str:
        return f"0b9c2f6e-5d1a-4c1e-9f00-{self.minutes:012d}"


def _inline(path: str, data: bytes) -> bytes:
    return f"M 100644 inline {path}\ndata {len(data)}\n".encode() + data
