"""What comes next: the one action that a contract names, and the rule that chose it.

Promise: what was said on purpose since the contract before comes first. Where no agent has worked since that contract,
as when it is built again, what it named on purpose stays named.
"""

from __future__ import annotations

from collections.abc import Iterator

from relay_git.contract import notes as noted
from relay_git.contract.canonical import JsonObject
from relay_git.contract.notes import Kind, Note
from relay_git.contract.prose import says_nothing
from relay_git.git.work import WorkCommit, WorkFacts
from relay_git.session import PlanStatus, SessionRecord

Action = tuple[str, str]
"""What is to be done, and its source."""

HALF_DONE = "git: state of the worktree"
_THEN = ", then: "
_ON_PURPOSE = ("note of ", "answer of ", "commit ")  # how a source begins


def trailers(commits: tuple[WorkCommit, ...], name: str) -> Iterator[tuple[str, WorkCommit]]:
    """The values of such trailers, oldest first; what says that there is nothing is none."""
    for commit in commits:
        for key, value in commit.trailers:
            if key.lower() == name.lower() and value.strip() and not says_nothing(value):
                yield value.strip(), commit


def commit_source(commit: WorkCommit) -> str:
    """How a commit is named as a source."""
    return f"commit {commit.oid[:12]}"


def next_action(
    record: SessionRecord,
    work: WorkFacts,
    before: JsonObject | None,
    leg: int,
    notes: tuple[Note, ...],
    asked: Action | None,
    plan: list[JsonObject],
    left: list[JsonObject],
) -> Action:
    """The first that has something to say; `asked` is what the human said last, where it was not answered."""
    idle = before is not None and not has_worked(record, work, before, leg)
    kept = _kept(before) if before is not None and idle else None
    noted_one, trailer = _noted(notes, before, idle=idle), _new_trailer(work.commits, before)
    if before is not None and before["leg"] == leg:  # which was built from the same words, but for what is new
        action = noted_one or trailer or kept or asked
    else:
        action = noted_one or asked or trailer or kept
    return _first_of_all(work, action or _following(record, work.commits, plan, left))


def has_worked(record: SessionRecord, work: WorkFacts, before: JsonObject, leg: int) -> bool:
    """Whether an agent has worked since the contract before: one of the same leg was built from the same work."""
    if before["leg"] == leg:
        return False
    did = (record.texts, record.last_text, record.commands, record.calls, record.pending_calls, record.plan)
    return any(did) or work.snapshot_tree != before["snapshotTree"]


def _noted(notes: tuple[Note, ...], before: JsonObject | None, *, idle: bool) -> Action | None:
    """What was noted since the contract before: what was next earlier may be done by now.

    Where nobody has worked since, a note of the contract's own second is none that could be over.
    """
    leg, at = (before["leg"], before["createdAt"]) if before is not None else (0, "")
    fresh = (note for note in noted.of(Kind.NEXT, notes) if note.leg > leg or note.at > at or (idle and note.at == at))
    return next(((note.text, note.source) for note in fresh if not says_nothing(note.text)), None)


def _new_trailer(commits: tuple[WorkCommit, ...], before: JsonObject | None) -> Action | None:
    known = {(before or {}).get("headCommit"), (before or {}).get("snapshotCommit")}
    last = max((place for place, commit in enumerate(commits) if commit.oid in known), default=-1)
    found = [(text, commit_source(commit)) for text, commit in trailers(commits[last + 1 :], "Relay-Next")]
    return found[-1] if found else None


def _kept(before: JsonObject) -> Action | None:
    """What the contract before named, where somebody had said it; not what stood half-done then."""
    action, source = before["nextAction"], before["nextActionSource"]
    if source.startswith(HALF_DONE):
        action, source = action.partition(_THEN)[2], source.removeprefix(HALF_DONE).strip("; ")
    return (action, source) if action and source.startswith(_ON_PURPOSE) else None


def _first_of_all(work: WorkFacts, action: Action) -> Action:
    """Before anything else, what stands half-done in the worktree: a commit on top of it would end it by accident."""
    if not work.operation:
        return action
    first = f"First finish or abort the {work.operation} that stands half-done in the worktree (git status)"
    return f"{first}{_THEN}{action[0]}", f"{HALF_DONE}; {action[1]}"


def _following(
    record: SessionRecord, commits: tuple[WorkCommit, ...], plan: list[JsonObject], left: list[JsonObject]
) -> Action:
    """What follows from plan, calls and last words where nobody has said anew what is next."""
    for status in (PlanStatus.IN_PROGRESS, PlanStatus.PENDING):
        for step in plan:
            if step["status"] == status.value:
                return step["text"], f"{step['source']}: first step {status.value.replace('_', ' ')}"
    if record.pending_calls:
        call = record.pending_calls[-1]
        return f"Look at what this interrupted call left, and finish it: {call}", "transcript: call without a result"
    for text, commit in reversed(list(trailers(commits, "Relay-Next"))):
        return text, f"{commit_source(commit)}, of an earlier leg"
    if left:
        return left[0]["text"], left[0]["source"]
    if record.turn_complete:
        return "Check the work against the goal and finish what is missing", "rule: no plan; the agent ended its turn"
    return "Read the commits since the base and the code in flight, and go on with the goal", "rule: no plan was left"
