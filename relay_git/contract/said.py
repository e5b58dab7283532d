"""What was said on purpose, or follows from it by a stated rule: plan, next action, do-not-redo, decisions, rules.

Promise: every item carries its source, and nothing is invented; where nothing was said a list is empty. Text that a
tool printed never becomes a goal, a rule or an action.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from relay_git.contract import notes as noted
from relay_git.contract import ruled, stated
from relay_git.contract.brief import is_ours
from relay_git.contract.canonical import JsonObject
from relay_git.contract.notes import Kind, Note
from relay_git.git.work import WorkCommit, WorkFacts
from relay_git.session import Command, PlanStatus, SessionRecord

LISTED_COMMITS = 30
TASK = "the task"
"""So many of the newest commits are listed one by one; those before are told as one range."""

# Where a command line does something to the world that must not be done twice. It is looked for at the beginning of a
# command, behind what merely starts it, so that `grep migrate` is not one.
_STARTERS = (
    r"(?:(?:[A-Za-z_]\w*=\S*|sudo|env|time|exec|nohup|command|npx|bunx|pnpm|yarn|npm|bun|run|exec|dlx|poetry|uv|pipenv|rye"
    r"|bundle|python3?|-m|php|node|make|just|mix|rake|docker|compose|dotnet|go|cargo|rails|bin/rails|\./manage\.py"
    r"|manage\.py|artisan|\./\S*/)\s+)*"
)
_ONCE = re.compile(
    rf"^{_STARTERS}(?:migrate\b|migration:run|db:(?:migrate|seed|schema:load|push|deploy)|alembic\s+(?:upgrade|downgrade)"
    r"|prisma\s+(?:migrate|db\s+push)|drizzle-kit\s+(?:push|migrate)|knex\s+migrate|sequelize\s+db:|typeorm\s+migration"
    r"|flyway\s+migrate|liquibase\s+update|goose\s+\S*\s*up|dbmate\s+(?:up|migrate)|sqlx\s+migrate|diesel\s+migration"
    r"|ef\s+database\s+update|ecto\.migrate|deploy\b|\S*deploy(?:\.sh|\.py)?(?:\s|$)|publish\b|release\b|semantic-release"
    r"|twine\s+upload|flit\s+publish|gem\s+push|push\s+\S+[:/]\S+|git\s+push|gh\s+(?:release|pr)\s+(?:create|merge)"
    r"|terraform\s+(?:apply|destroy)|tofu\s+(?:apply|destroy)|pulumi\s+(?:up|destroy)|kubectl\s+(?:apply|delete|rollout)"
    r"|helm\s+(?:install|upgrade|uninstall)|(?:vercel|netlify|fly|flyctl|railway|wrangler|serverless|sls|cdk|firebase|eb"
    r"|heroku|gcloud)\s+(?:\S+\s+){0,2}(?:deploy|up|--prod)\b)"
)
_DRY = re.compile(r"--dry-run|--help|\s-h\b|--check\b|--plan\b|--status\b")
_PIECES = re.compile(r"&&|\|\||[;|\n]")


@dataclass(frozen=True, slots=True)
class Said:
    """All that was said, as lists of the contract's items, the most recent leg first."""

    plan: list[JsonObject]
    tasks_remaining: list[JsonObject]
    next_action: tuple[str, str]
    do_not_redo: list[JsonObject]
    decisions: list[JsonObject]
    constraints: list[JsonObject]
    open_questions: list[JsonObject]
    hypotheses: list[JsonObject]


def said(
    record: SessionRecord, work: WorkFacts, before: JsonObject | None, notes: tuple[Note, ...] = (), task: str = ""
) -> Said:
    """What the task, the record, the commits, notes and the verified contract before say."""
    commits = work.commits
    plan = _plan(record, before)
    spoken = stated.spoken(record.texts)
    prompts, unanswered = later_prompts(record, task), _unanswered(record, task)
    left = [] if plan else [_item(text, stated.HYPOTHESIS) for text in stated.left(record.last_text)]
    return Said(
        plan=plan,
        tasks_remaining=[*unanswered, *(_item(step["text"], step["source"]) for step in plan if _is_open(step)), *left],
        next_action=_first_of_all(
            work,
            _noted_action(notes, before)
            or _answer_first(unanswered)
            or _next_action(plan, left, record, commits, before),
        ),
        do_not_redo=_joined(
            "text",
            _items(notes, Kind.DO_NOT_REDO),
            _done(plan, record, commits),
            _carried(before, "doNotRedo"),
            _hypotheses(stated.dead_ends(spoken)),
        ),
        decisions=_joined(
            "summary",
            _noted_decisions(notes),
            _decisions(commits),
            (_decision(text, stated.HYPOTHESIS) for text in stated.decisions(spoken)),
            _carried(before, "decisions"),
        ),
        constraints=_joined(
            "rule",
            _noted_rules(notes),
            _rules(commits),
            (
                {"rule": rule, "source": source}
                for rule, source in ruled.rules([*prompts, (task, TASK)])
                if rule != task.strip()  # which is the goal
            ),
            _carried(before, "constraints"),
        ),
        open_questions=_joined(
            "text",
            _items(notes, Kind.QUESTION),
            _questions(commits),
            _hypotheses(stated.questions(spoken, record.last_text if record.turn_complete else "")),
            _carried((before or {}).get("summary"), "openQuestions"),
        ),
        hypotheses=list(_items(notes, Kind.HYPOTHESIS)),
    )


def later_prompts(record: SessionRecord, task: str) -> list[tuple[str, str]]:
    """What the human said to the agent beside the task, the newest first, with the source of each."""
    return [
        (prompt, f"prompt {number} of the user to {record.agent}")
        for number, prompt in reversed(list(enumerate(record.prompts, 1)))
        if not _is_ours(prompt, number, task)
    ]


def _is_ours(prompt: str, number: int, task: str) -> bool:
    return is_ours(prompt) or prompt.strip() == task.strip() or (number == 1 and task.strip() in prompt)


def _unanswered(record: SessionRecord, task: str) -> list[JsonObject]:
    """The human's last prompt, where the agent did not get to it."""
    return [_item(text, source) for text, source in later_prompts(record, task)[:1] if text == record.open_prompt]


def _answer_first(unanswered: list[JsonObject]) -> tuple[str, str] | None:
    return next(((f"Answer what the user said last: {item['text']}", item["source"]) for item in unanswered), None)


def _hypotheses(texts: Iterable[str]) -> Iterator[JsonObject]:
    return (_item(text, stated.HYPOTHESIS) for text in texts)


def _items(notes: tuple[Note, ...], kind: Kind) -> Iterator[JsonObject]:
    return (_item(note.text, note.source) for note in noted.of(kind, notes))


def _noted_decisions(notes: tuple[Note, ...]) -> Iterator[JsonObject]:
    for note in noted.of(Kind.DECISION, notes):
        made = _decision(note.text, note.source)
        yield made | {"summary": _with_question(made["summary"], note)}


def _noted_rules(notes: tuple[Note, ...]) -> Iterator[JsonObject]:
    for note in noted.of(Kind.CONSTRAINT, notes):
        yield {"rule": _with_question(note.text, note), "source": note.source}


def _with_question(text: str, note: Note) -> str:
    """An answer alone says little: "yes" is one."""
    return f"{text} (asked: {'; '.join(note.answers)})" if note.answers else text


def _noted_action(notes: tuple[Note, ...], before: JsonObject | None) -> tuple[str, str] | None:
    """What was noted as next since the contract before: what was next earlier may be done by now."""
    since = (before or {}).get("leg", 0)
    fresh = (note for note in noted.of(Kind.NEXT, notes) if note.leg > since)
    return next(((note.text, note.source) for note in fresh), None)


def _plan(record: SessionRecord, before: JsonObject | None) -> list[JsonObject]:
    if record.plan:
        return [{"text": step.text, "status": step.status.value, "source": "plan"} for step in record.plan]
    return list(_carried(before, "plan"))


def _is_open(step: JsonObject) -> bool:
    return step.get("status") in (PlanStatus.PENDING.value, PlanStatus.IN_PROGRESS.value)


def _first_of_all(work: WorkFacts, action: tuple[str, str]) -> tuple[str, str]:
    """Before anything else, what stands half-done in the worktree: a commit on top of it would end it by accident."""
    if not work.operation:
        return action
    first = f"First finish or abort the {work.operation} that stands half-done in the worktree (git status)"
    return f"{first}, then: {action[0]}", "git: state of the worktree"


def _next_action(
    plan: list[JsonObject],
    left: list[JsonObject],
    record: SessionRecord,
    commits: tuple[WorkCommit, ...],
    before: JsonObject | None,
) -> tuple[str, str]:
    """The action and the rule that chose it, the first that has something to say."""
    old = {commit.oid for commit in commits_until(commits, before)}
    spoken = [(text, commit) for text, commit in _trailers(commits, "Relay-Next")]
    for text, commit in reversed(spoken):
        if commit.oid not in old:
            return text, _commit_source(commit)
    for status in (PlanStatus.IN_PROGRESS, PlanStatus.PENDING):
        for step in plan:
            if step["status"] == status.value:
                return step["text"], f"{step['source']}: first step {status.value.replace('_', ' ')}"
    if record.pending_calls:
        call = record.pending_calls[-1]
        return f"Look at what this interrupted call left, and finish it: {call}", "transcript: call without a result"
    if spoken:
        text, commit = spoken[-1]
        return text, f"{_commit_source(commit)}, of an earlier leg"
    if left:
        return left[0]["text"], left[0]["source"]
    if record.turn_complete:
        return "Check the work against the goal and finish what is missing", "rule: no plan; the agent ended its turn"
    return "Read the commits since the base and the code in flight, and go on with the goal", "rule: no plan was left"


def commits_until(commits: tuple[WorkCommit, ...], before: JsonObject | None) -> tuple[WorkCommit, ...]:
    """The commits that the contract before already knew."""
    known = {(before or {}).get("headCommit"), (before or {}).get("snapshotCommit")}
    last = max((place for place, commit in enumerate(commits) if commit.oid in known), default=-1)
    return commits[: last + 1]


def _done(plan: list[JsonObject], record: SessionRecord, commits: tuple[WorkCommit, ...]) -> Iterator[JsonObject]:
    for text, commit in _trailers(commits, "Relay-Do-Not-Redo"):
        yield _item(text, _commit_source(commit))
    for command in dict.fromkeys(command.command for command in record.commands if _is_done_once(command)):
        yield _item(f"Already run with success: {command}", "command")
    for step in plan:
        if step["status"] == PlanStatus.COMPLETED.value:
            yield _item(step["text"], step["source"])
    own = [commit for commit in commits if commit.own]
    for commit in own[: -LISTED_COMMITS - 1 : -1]:
        yield _item(f"Committed as {commit.oid[:12]}: {commit.subject}", "git")
    earlier = own[:-LISTED_COMMITS]
    if earlier:
        span = f"{earlier[0].oid[:12]} to {earlier[-1].oid[:12]}"
        yield _item(f"Committed before those: {len(earlier)} commits, {span}", "git")


def _is_done_once(command: Command) -> bool:
    if command.exit_code != 0 or _DRY.search(command.command):
        return False
    return any(_ONCE.match(piece.strip()) for piece in _PIECES.split(command.command[:4096]))


def _decisions(commits: tuple[WorkCommit, ...]) -> Iterator[JsonObject]:
    for text, commit in reversed(list(_trailers(commits, "Relay-Decision"))):
        yield _decision(text, _commit_source(commit))


def _decision(text: str, source: str) -> JsonObject:
    summary, _, rationale = text.partition(" because ")
    return {"summary": summary, "rationale": rationale, "source": source}


def _rules(commits: tuple[WorkCommit, ...]) -> Iterator[JsonObject]:
    for text, commit in _trailers(commits, "Relay-Constraint"):
        yield {"rule": text, "source": _commit_source(commit)}


def _questions(commits: tuple[WorkCommit, ...]) -> Iterator[JsonObject]:
    for text, commit in _trailers(commits, "Relay-Question"):
        yield _item(text, _commit_source(commit))


def _trailers(commits: tuple[WorkCommit, ...], name: str) -> Iterator[tuple[str, WorkCommit]]:
    for commit in commits:
        for key, value in commit.trailers:
            if key.lower() == name.lower() and value.strip():
                yield value.strip(), commit


def _carried(owner: object, name: str) -> Iterator[JsonObject]:
    """Items of the contract before with the leg added to their source; what git tells anew is not carried."""
    items = owner.get(name) if isinstance(owner, dict) else None
    leg = owner.get("leg") if isinstance(owner, dict) else None
    for item in items if isinstance(items, list) else ():
        source = item["source"]
        if source in ("git", "git relay"):
            continue
        told = source if leg is None or source.startswith("commit ") or ", leg " in source else f"{source}, leg {leg}"
        yield item | {"source": told}


def _joined(member: str, *groups: Iterable[JsonObject]) -> list[JsonObject]:
    """All items in order, each text once; blank ones are nobody's word."""
    found: dict[str, JsonObject] = {}
    for group in groups:
        for item in group:
            text = " ".join(str(item[member]).split())
            if text:
                found.setdefault(text, item)
    return list(found.values())


def _item(text: str, source: str) -> JsonObject:
    return {"text": text, "source": source}


def _commit_source(commit: WorkCommit) -> str:
    return f"commit {commit.oid[:12]}"
