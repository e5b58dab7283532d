"""Sample records that the tests of this room share; every value is made up."""

from __future__ import annotations

from datetime import UTC, datetime

from relay_git.contract.build import Identity, Party, Previous, build
from relay_git.contract.canonical import JsonObject
from relay_git.contract.pause import PauseFacts, SafePoint
from relay_git.contract.sign import Key, Sealed, seal
from relay_git.contract.verify import ExpectedPlace, Verified, verify
from relay_git.git.work import FileChange, FileStatus, Hunk, WorkCommit, WorkFacts
from relay_git.session import (
    Command,
    LimitKind,
    LimitNotice,
    PlanItem,
    PlanStatus,
    SessionId,
    SessionRecord,
    Usage,
)

KEY = Key(bytes(range(32)))
OTHER_KEY = Key(bytes(range(1, 33)))
SESSION = SessionId("refund-flow-7c1e")
TASK = "Add a refund flow to the orders service"
BASE, HEAD, SNAPSHOT, TREE = "a" * 40, "b" * 40, "c" * 40, "d" * 40
PAUSE = PauseFacts("usage-limit", SafePoint.COMMIT, "five-hour window")

RECORD = SessionRecord(
    agent="claude",
    model="opus",
    prompts=(TASK, "Also update the docs"),
    last_text="I believe that the refund endpoint works.\n# It does\n```\nend",
    plan=(
        PlanItem("Write the model", PlanStatus.COMPLETED),
        PlanItem("Write the endpoint", PlanStatus.IN_PROGRESS),
        PlanItem("Document it", PlanStatus.PENDING),
        PlanItem("Think about fees", PlanStatus.CANCELLED),
    ),
    commands=(
        Command("npm test", 1, "0" * 64),
        Command("npx prisma migrate deploy", 0, None),
        Command("npm test", 0, "1" * 64),
        Command("tail -f log", None, None),
    ),
    skills=("pdf",),
    usage=Usage(1200, 340, 9000, 12),
    limits=(LimitNotice(LimitKind.USAGE, "You have hit your limit", "5h", datetime(2026, 1, 2, 8, 0, tzinfo=UTC)),),
    skipped=2,
)
WORK = WorkFacts(
    branch=f"relay/{SESSION}",
    base_commit=BASE,
    head_commit=HEAD,
    snapshot_commit=SNAPSHOT,
    snapshot_tree=TREE,
    commits=(
        WorkCommit("9" * 40, "Start", ()),
        WorkCommit(
            HEAD,
            "Add the refund model",
            (
                ("Relay-Decision", "Amounts are cents because floats lie"),
                ("Relay-Constraint", "Never touch billing/"),
                ("Relay-Do-Not-Redo", "The orders table was migrated by hand"),
                ("relay-question", "Who pays the fee?"),
            ),
        ),
    ),
    files=(
        FileChange(b"src/refund.py", FileStatus.ADDED, "2" * 64),
        FileChange(b"caf\xe9.txt", FileStatus.MODIFIED, "3" * 64),
        FileChange(b"old.py", FileStatus.DELETED, None),
        FileChange(b"vendor/lib", FileStatus.MODIFIED, None),
    ),
    hunks=(Hunk(b"src/refund.py", "@@ -1 +1,2 @@\n def refund():\n+    return 1\n", truncated=False),),
)


def identity(leg: int = 1, **changes: object) -> Identity:
    """Who hands over what, for one leg."""
    made: dict[str, object] = {
        "session_id": SESSION,
        "task_id": "t-1",
        "leg": leg,
        "created_at": datetime(2026, 1, 2, 3, leg, 5, tzinfo=UTC),
        "task": TASK,
        "sender": Party("claude", "work", "opus"),
        "receiver": Party("codex", "home"),
    }
    return Identity(**(made | changes))  # type: ignore[arg-type]


def unsigned() -> JsonObject:
    """The contract of the first leg."""
    return build(identity(), PAUSE, RECORD, WORK)


def sealed() -> Sealed:
    """The same, signed with KEY."""
    return seal(unsigned(), KEY)


def link(sealed_contract: Sealed) -> Previous:
    """The contract as the one that a next contract follows."""
    found = verified(sealed_contract)
    return Previous(found.contract_id, found.sha256, found.contract)


def verified(sealed_contract: Sealed) -> Verified:
    """The verified form of a contract that must be valid."""
    found = verify(sealed_contract.stored, KEY)
    assert isinstance(found, Verified), found
    return found


def place(sealed_contract: Sealed, **changes: object) -> ExpectedPlace:
    """The place where the first leg's contract belongs."""
    made: dict[str, object] = {
        "session_id": SESSION,
        "leg": 1,
        "snapshot_commit": SNAPSHOT,
        "previous": None,
        "seen": frozenset(),
        "brief": sealed_contract.brief.encode(),
    }
    return ExpectedPlace(**(made | changes))  # type: ignore[arg-type]


class Snapshots:
    """A repository in a dict: commit to tree, and (tree, path) to the SHA-256 of a blob."""

    def __init__(self, trees: dict[str, str] | None = None, blobs: dict[bytes, str] | None = None) -> None:
        self.trees = {SNAPSHOT: TREE} if trees is None else trees
        self.blobs = {file.path: file.sha256 for file in WORK.files if file.sha256} if blobs is None else blobs

    def tree_of(self, commit: str) -> str | None:
        return self.trees.get(commit)

    def blob_sha256(self, tree: str, path: bytes) -> str | None:
        assert tree == TREE
        return self.blobs.get(path)
