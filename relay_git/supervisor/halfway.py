"""A landing that was cut off: recognised by the next one, and finished or taken back.

Promise: git changes the user's tree and branch for us, and may be killed in between, which leaves its lock, a tree that
is half the one and half the other, or a commit that nobody wrote down. So what a landing is about to do is written down
before git begins. Of the tree only that is taken back which the landing itself put there: a file that holds anything
else is the user's, and stops it by name with nothing touched.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

import psutil

from relay_git.contract.lifecycle import Event
from relay_git.errors import RepoError, UserError, printable
from relay_git.git import debris, links
from relay_git.git.repo import write_private
from relay_git.git.run import Git
from relay_git.git.store import OID, Oid
from relay_git.supervisor.run import Run

FILE = "landing"
_LOCKED = ("index", "HEAD", "ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "AUTO_MERGE")  # what a killed git can leave
_AT_WORK = frozenset({"merge", "commit", "cherry-pick", "reset"})


class How(StrEnum):
    """How the work comes to the user's branch."""

    MERGE = "merge"
    SQUASH = "squash"
    REBASE = "rebase"


@dataclass(frozen=True, slots=True)
class Landed:
    """The user's branch before and after; equal where there was nothing to land."""

    branch: str
    before: Oid
    after: Oid


@dataclass(frozen=True, slots=True)
class Intent:
    """What a landing is about to do: in which work tree, on which branch, from which commit, and to which tree."""

    how: How
    place: str
    branch: str
    before: Oid
    base: Oid
    work: Oid
    tree: Oid


def intend(run: Run, intent: Intent) -> None:
    """Write it down; from here on a cut is recognised."""
    write_private(run.spool / FILE, json.dumps(asdict(intent)).encode())


def forget(run: Run) -> None:
    """The landing has come to an end, of whichever kind."""
    (run.spool / FILE).unlink(missing_ok=True)


def take_back(git: Git, how: How) -> str:
    """End what stands half-done. Only git's own --abort moves HEAD, and only over picks that it made itself.

    Where a hook has changed what came, git leaves it; it is kept as a stash that has no name, whose id is returned.
    """
    if how is How.REBASE:
        git.result("cherry-pick", "--abort")
    git.result("merge", "--abort")
    # The tree was clean before, so what differs from HEAD now is only what landing put there.
    if git.result("reset", "--quiet", "--merge").returncode == 0:
        return ""
    made = git.text("stash", "create")
    staged = [path for path in git.run("diff-index", "--cached", "--name-only", "-z", "HEAD").split(b"\0") if path]
    _stage(git, Path(git.text("rev-parse", "--show-toplevel")), staged)
    git.run("reset", "--quiet", "--merge")
    return made


def _stage(git: Git, top: Path, paths: Iterable[bytes]) -> None:
    """Have the index hold these paths as the tree has them."""
    there, gone = list[bytes](), list[bytes]()
    for path in paths:
        (there if os.path.lexists(top / os.fsdecode(path)) else gone).append(path + b"\0")
    git.run("update-index", "--add", "--replace", "-z", "--stdin", input=b"".join(there))
    git.run("update-index", "--force-remove", "-z", "--stdin", input=b"".join(gone))


def settle(run: Run, git: Git) -> Landed | None:
    """Finish a landing of this session that was cut off, or take it back; what it became, where that is known.

    Raises RelayError, with nothing touched, where it cannot be told what is the landing's and what the user's.
    """
    intent = _read(run)
    repo = run.around.repo
    if intent is None:
        _refuse_lock(repo.git_dir / "index.lock")
        return None
    if not Path(intent.place).is_dir():
        forget(run)
        return None
    if Path(intent.place) != repo.work_tree:
        raise UserError(
            f"a landing of {run.session} was cut off in another work tree",
            hint=f"cd {printable(intent.place)} && git relay land {run.session}",
        )
    _refuse_live_git(Path(intent.place))
    debris.break_locks(repo.git_dir, _LOCKED)
    debris.break_locks(repo.common_dir, ("packed-refs", f"refs/heads/{intent.branch}"))
    _refuse_lock(repo.git_dir / "index.lock")
    head = repo.resolve("HEAD")
    on = git.text("symbolic-ref", "--quiet", "--short", "HEAD", ok=(0, 1))
    picked = _picked(git, intent, head) if head is not None and on == intent.branch else None
    if head is not None and on == intent.branch and _is_whole(run, git, intent, head, picked):
        return _finish(run, git, intent, head)
    if head is not None and picked is not None:
        _undo(run, git, intent, head, picked)
    elif _changed(git):
        raise RepoError(
            f"a landing of {run.session} on {printable(intent.branch)} was cut off, and HEAD has moved since",
            hint="put your work tree in order (git status), then land again",
        )
    forget(run)
    return None


def _read(run: Run) -> Intent | None:
    try:
        body = json.loads(links.read_small(run.spool / FILE) or b"")
        ids = {name: Oid(body[name]) for name in ("before", "base", "work", "tree")}
        if not all(OID.fullmatch(oid) for oid in ids.values()):
            return None
        return Intent(How(body["how"]), str(body["place"]), str(body["branch"]), **ids)
    except (ValueError, TypeError, KeyError):
        return None


def _refuse_lock(lock: Path) -> None:
    """A lock that is no landing's: git would stop at it after it had begun."""
    if lock.exists():
        raise RepoError(
            f"git is at work in your work tree, or was killed there: it is locked by {lock}",
            hint=f"wait for it; if no git runs there any more: rm {lock}",
        )


def _refuse_live_git(place: Path) -> None:
    """A git outlives who started it, and is then about to finish what this would take back."""
    for process in psutil.process_iter(["pid", "name", "cwd", "cmdline"]):
        seen = process.info
        if seen["name"] == "git" and seen["cwd"] == str(place) and not _AT_WORK.isdisjoint(seen["cmdline"] or ()):
            raise RepoError(
                f"a git that a landing began is still at work in your work tree (pid {seen['pid']})",
                hint="wait for its end, then land again",
            )


def _picked(git: Git, intent: Intent, head: Oid) -> int | None:
    """How many commits of its own a landing has made that is not whole; None where others have moved the branch."""
    if head == intent.before:
        return 0
    if intent.how is not How.REBASE:
        return None
    ours, theirs = (_told(git, r) for r in (f"{intent.before}..{head}", f"{intent.base}..{intent.work}"))
    return len(ours) if ours and ours == theirs[: len(ours)] else None


def _told(git: Git, commits: str) -> list[bytes]:
    """Who wrote each commit, when, and under which subject: what a pick leaves as it was."""
    words = ("log", "-z", "--reverse", "--first-parent", "--format=%an%x01%ae%x01%at%x01%s", commits)
    return [line for line in git.run(*words).split(b"\0") if line]


def _is_whole(run: Run, git: Git, intent: Intent, head: Oid, picked: int | None) -> bool:
    """Whether all came over before the cut."""
    commit = run.around.store.commit(head)
    if commit is None:
        return False
    match intent.how:
        case How.MERGE:
            return commit.parents == (intent.before, intent.work)
        case How.SQUASH:  # a hook of the user's may have changed tree or message, hardly both
            told = f"Relay-Session: {run.session}" in commit.message
            return commit.parents == (intent.before,) and (told or commit.tree == intent.tree)
        case How.REBASE:
            return bool(picked) and picked == len(_told(git, f"{intent.base}..{intent.work}"))


def _finish(run: Run, git: Git, intent: Intent, head: Oid) -> Landed:
    git.result("cherry-pick" if intent.how is How.REBASE else "merge", "--quit")
    if intent.how is How.SQUASH:
        (run.around.repo.git_dir / "SQUASH_MSG").unlink(missing_ok=True)
    record(run, intent, head)
    return Landed(intent.branch, intent.before, head)


def record(run: Run, intent: Intent, after: Oid) -> None:
    """The landing is whole: the journal keeps what was landed, and what it became."""
    if run.tip.entry.event is not Event.LANDED or run.tip.entry.landed != after:
        reason = f"{intent.how} on {intent.branch}: {intent.before[:12]} to {after[:12]}"
        run.record(Event.LANDED, reason=reason, snapshot=intent.work, landed=after)
    forget(run)


def _undo(run: Run, git: Git, intent: Intent, head: Oid, picked: int) -> None:
    """Take back what the landing has put into tree and index, and nothing else."""
    came, repo = _coming(git, intent, picked), run.around.repo
    top = Path(intent.place)
    foreign = [path for path in came.paths if not _is_of(git, top, path, (head, came.tree))]
    staged = git.run("diff-index", "--cached", "--name-only", "--no-renames", "-z", head).split(b"\0")
    foreign += [path for path in staged if path and path not in came.paths]
    if foreign:
        named = ", ".join(printable(os.fsdecode(path)) for path in foreign[:5])
        raise RepoError(
            f"a landing of {run.session} was cut off halfway, and of what it changes {named} holds something else"
            " by now; nothing was touched",
            hint=f"copy that elsewhere and delete it here, then: git relay land {run.session}",
        )
    _stage(git, top, came.paths)
    take_back(git, intent.how)
    if repo.resolve("HEAD") != intent.before:
        git.run("reset", "--quiet", "--keep", intent.before)
    run.around.teller.say(f"an earlier landing of {run.session} was cut off: it was taken back")


@dataclass(frozen=True, slots=True)
class _Coming:
    """What git was about to bring to the tree: these paths, as they are there."""

    paths: tuple[bytes, ...]
    tree: str


def _coming(git: Git, intent: Intent, picked: int) -> _Coming:
    old, new = str(intent.before), str(intent.tree)
    if intent.how is How.REBASE:
        row = git.text("rev-list", "--reverse", f"{intent.base}..{intent.work}").split()
        old, new = f"{row[picked]}^", row[picked]
    out = git.run("diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new)
    return _Coming(tuple(path for path in out.split(b"\0") if path), new)


def _is_of(git: Git, top: Path, path: bytes, commits: tuple[str, ...]) -> bool:
    """Whether a file is as one of these has it, or the beginning of that: git writes a file bit by bit."""
    file = top / os.fsdecode(path)
    if file.is_symlink():
        data = os.fsencode(file.readlink())
    elif file.is_file():
        data = file.read_bytes()
    else:
        return True  # not there yet or any more, or a submodule, which git leaves alone
    stored = (git.result("cat-file", "--filters", commit.encode() + b":" + path) for commit in commits)
    return any(done.returncode == 0 and done.stdout.startswith(data) for done in stored)


def _changed(git: Git) -> bool:
    return git.run("status", "--porcelain", "-z", "--untracked-files=no") != b""
