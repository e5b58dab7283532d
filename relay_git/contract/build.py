"""Building: one contract from what an agent's record, git and the verified contract before it say.

Promise: the same input gives the same contract, id included, so that building may be repeated after a crash; free
texts are redacted before anything is hashed or cut, and the result is signed within 256 KiB. It is unsigned:
`sign.seal` binds the brief and signs.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from relay_git.contract import facts
from relay_git.contract.bounds import LISTS, cut, fit, whole
from relay_git.contract.brief import cuts
from relay_git.contract.budget import DEFAULT, LEAST
from relay_git.contract.canonical import MAX_INTEGER, JsonObject
from relay_git.contract.lint import BAR, lint
from relay_git.contract.notes import Note
from relay_git.contract.pause import PauseFacts
from relay_git.contract.placeholder import PLAIN, Policy
from relay_git.contract.redact import redact_contract
from relay_git.contract.said import Said, later_prompts, said
from relay_git.contract.verify import FORMAT, VERSION
from relay_git.git.work import WorkFacts
from relay_git.session import SessionId, SessionRecord, Usage


@dataclass(frozen=True, slots=True)
class Party:
    """One agent, the label of the account that it uses, and its model where that is known."""

    agent: str
    account: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class Identity:
    """What the contract is about: which leg of which session ends, when, and who hands over to whom.

    `created_at` is aware; `task` is the user's task as given; `receiver` is None where no successor is chosen yet.
    """

    session_id: SessionId
    task_id: str
    leg: int
    created_at: datetime
    task: str
    sender: Party
    receiver: Party | None = None
    acceptance: tuple[str, ...] = ()
    output_contract: str = ""


@dataclass(frozen=True, slots=True)
class Previous:
    """The contract before this one in the session, by id and SHA-256; `words` only where it verified."""

    contract_id: str
    sha256: str
    words: JsonObject | None = None


def build(
    identity: Identity,
    pause: PauseFacts,
    record: SessionRecord,
    work: WorkFacts,
    previous: Previous | None = None,
    redaction: Policy = PLAIN,
    budget: int = DEFAULT,
    notes: tuple[Note, ...] = (),
) -> JsonObject:
    """The unsigned contract of a leg that has ended; the words of a contract that was refused are not carried on."""
    from relay_git.contract.model import Unsigned

    before = previous.words if previous is not None else None
    raw = (
        _header(identity, work.snapshot_commit, previous)
        | _said_members(said(record, work, before, notes, identity.task, identity.leg), record, work, pause)
        | _work_members(identity, record, work, before)
        | {"pause": {"reason": pause.reason, "detail": pause.detail, "safePoint": pause.safe_point.value}}
    )
    contract, counts = redact_contract(_whole(raw), redaction)
    contract["redactions"] = dict(counts)
    contract |= {name: _told_once(name, contract[name]) for name in ("doNotRedo", "decisions", "constraints")}
    contract["summary"] |= {"openQuestions": _unanswered(contract["summary"]["openQuestions"], notes)}
    contract |= _initial_prompt(contract, before)
    contract["evidence"] = [item | {"sha256": _sha256(item["excerpt"])} for item in contract["evidence"]]
    allowed = {"budget": {"tokens": max(LEAST, budget)}}
    verdict = lint(fit(contract) | allowed)
    if verdict.score < BAR:
        contract["losses"] += [f"thin, {verdict.score} of 100 ({told})" for told in verdict.thin[:4]]
    contract = fit(contract) | allowed
    contract["budget"] |= {"cuts": [asdict(cut) for cut in cuts(contract)]}
    Unsigned.model_validate(contract)
    return contract


def contract_id(identity: Identity, snapshot_commit: str, previous: Previous | None) -> str:
    """The id, made from what the contract is about; equal input gives an equal id."""
    parts = (
        identity.session_id,
        str(identity.leg),
        _instant(identity.created_at),
        snapshot_commit,
        previous.sha256 if previous is not None else "",
    )
    return "c-" + _sha256("\0".join(("git-relay contract id", *parts)))[:16]


def _header(identity: Identity, snapshot_commit: str, previous: Previous | None) -> JsonObject:
    return {
        "format": FORMAT,
        "version": VERSION,
        "contractId": contract_id(identity, snapshot_commit, previous),
        "sessionId": identity.session_id,
        "taskId": identity.task_id,
        "leg": identity.leg,
        "createdAt": _instant(identity.created_at),
        "previous": {"contractId": previous.contract_id, "sha256": previous.sha256} if previous is not None else None,
        "from": _party(identity.sender),
        "to": _party(identity.receiver) if identity.receiver is not None else None,
    }


def _party(party: Party) -> JsonObject:
    return {"agent": party.agent, "account": party.account, "model": party.model}


def _said_members(found: Said, record: SessionRecord, work: WorkFacts, pause: PauseFacts) -> JsonObject:
    action, source = found.next_action
    return {
        "plan": found.plan,
        "tasksRemaining": found.tasks_remaining,
        "nextAction": action,
        "nextActionSource": source,
        "doNotRedo": found.do_not_redo,
        "decisions": found.decisions,
        "constraints": found.constraints,
        "summary": {
            "facts": facts.facts(record, work, pause),
            "hypotheses": [*found.hypotheses, *facts.hypotheses(record)],
            "openQuestions": found.open_questions,
        },
    }


def _told_once(name: str, items: list[JsonObject]) -> list[JsonObject]:
    """Each text once: what was carried on is redacted and cut already, and its source may tell it anew as it was."""
    found: dict[str, JsonObject] = {}
    for item in items:
        found.setdefault(_as_kept(name, item), item)
    return list(found.values())


def _unanswered(questions: list[JsonObject], notes: tuple[Note, ...]) -> list[JsonObject]:
    """Without those that a note answers: it names them as a contract has them."""
    answered = {text for note in notes for text in note.answers}
    name = "openQuestions"
    return [item for item in _told_once(name, questions) if _as_kept(name, item) not in answered]


def _as_kept(name: str, item: JsonObject) -> str:
    (text,) = (item[member] for member in ("text", "summary", "rule") if member in item)
    return cut(text, LISTS[name].text)


def _work_members(identity: Identity, record: SessionRecord, work: WorkFacts, before: JsonObject | None) -> JsonObject:
    return {
        "taskGoal": identity.task,
        "initialPrompt": identity.task,
        "evidence": facts.evidence(record, work, identity.task, before),
        "checks": facts.checks(record, identity.leg, before),
        "acceptance": [{"command": command} for command in identity.acceptance],
        "outputContract": identity.output_contract,
        "fileManifest": facts.manifest(work),
        "inFlightCode": facts.in_flight(work),
        "skills": list(record.skills),
        "baseCommit": work.base_commit,
        "headCommit": work.head_commit,
        "snapshotCommit": work.snapshot_commit,
        "snapshotTree": work.snapshot_tree,
        "branch": work.branch,
        "usage": _usage(record.usage),
        "losses": _losses(record, work, identity.task),
    }


def _usage(usage: Usage) -> JsonObject:
    counted = {
        "input": usage.input,
        "output": usage.output,
        "cacheRead": usage.cache_read,
        "cacheWrite": usage.cache_write,
    }
    return {name: max(0, min(count, MAX_INTEGER)) for name, count in counted.items()}


def _losses(record: SessionRecord, work: WorkFacts, task: str) -> list[str]:
    skipped = [f"{record.skipped} records of the transcript could not be read"] if record.skipped else []
    if (unquoted := len(later_prompts(record, task)) - facts.LISTED_EVIDENCE) > 0:
        skipped.append(f"{unquoted} older prompts of the user are not quoted: the transcript of the agent has them")
    return [*skipped, *record.losses, *work.losses]


def _initial_prompt(contract: JsonObject, before: JsonObject | None) -> JsonObject:
    """The first leg's prompt with its length and hash, as the contract before has it or else as it is now."""
    names = ("initialPrompt", "initialPromptBytes", "initialPromptSha256")
    if before is not None:
        return {name: before[name] for name in names}
    prompt = contract["initialPrompt"]
    return dict(zip(names, (prompt, len(prompt.encode()), _sha256(prompt)), strict=True))


def _instant(moment: datetime) -> str:
    if moment.tzinfo is None:
        raise ValueError("a contract's time must be aware")
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _whole(value: object) -> JsonObject:
    """The contract with every string fit for UTF-8."""
    found = _mended(value)
    assert isinstance(found, dict)  # noqa: S101
    return found


def _mended(value: object) -> object:
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, list):
        return [_mended(item) for item in value]
    if isinstance(value, dict):
        return {name: _mended(item) for name, item in value.items()}
    return value


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
