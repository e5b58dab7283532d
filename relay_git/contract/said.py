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
from relay_git.contract.answer import SOURCE as ASKED
from relay_git.contract.bounds import COUNTED
from relay_git.contract.brief import is_ours
from relay_git.contract.canonical import JsonObject
from relay_git.contract.next_action import commit_source, has_worked, next_action, trailers
from relay_git.contract.notes import Kind, Note
from relay_git.contract.proof import PIECES
from relay_git.contract.prose import says_nothing
from relay_git.git.work import WorkCommit, WorkFacts
from relay_git.session import Command, PlanStatus, SessionRecord

TASK = "the task"
OF_THE_HUMAN = ("note of the user", "prompt ", TASK)
"""How the source begins of what the human said."""
LISTED_COMMITS = 30
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
    record: SessionRecord,
    work: WorkFacts,
    before: JsonObject | None,
    notes: tuple[Note, ...] = (),
    task: str = "",
    leg: int = 1,
) -> Said:
    """What the task, the record, the commits, notes and the verified contract before say; the human's comes first."""
    commits = work.commits
    plan = _plan(record, before)
    spoken = stated.spoken(record.texts)
    prompts, unanswered = later_prompts(record, task), _unanswered(record, task)
    left = [] if plan else [_item(text, stated.HYPOTHESIS) for text in stated.left(record.last_text)]
    return Said(
        plan=plan,
        tasks_remaining=[*unanswered, *(_item(step["text"], step["source"]) for step in plan if _is_open(step)), *left],
        next_action=next_action(record, work, before, leg, notes, _answer_first(unanswered), plan, left),
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
            "rule", _noted_rules(notes), _stated_rules(prompts, task), _rules(commits), _carried(before, "constraints")
        ),
        open_questions=_joined(
            "text",
            _items(notes, Kind.QUESTION),
            _questions(commits),
            _hypotheses(stated.questions(spoken, record.last_text if record.turn_complete else "")),
            _carried((before or {}).get("summary"), "openQuestions"),
        ),
        hypotheses=_joined("text", _items(notes, Kind.HYPOTHESIS), _answered_before(record, work, before, leg)),
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


def _plan(record: SessionRecord, before: JsonObject | None) -> list[JsonObject]:
    if record.plan:
        return [{"text": step.text, "status": step.status.value, "source": "plan"} for step in record.plan]
    return list(_carried(before, "plan"))


def _is_open(step: JsonObject) -> bool:
    return step.get("status") in (PlanStatus.PENDING.value, PlanStatus.IN_PROGRESS.value)


def _done(plan: list[JsonObject], record: SessionRecord, commits: tuple[WorkCommit, ...]) -> Iterator[JsonObject]:
    for text, commit in trailers(commits, "Relay-Do-Not-Redo"):
        yield _item(text, commit_source(commit))
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
    return any(_ONCE.match(piece.strip()) for piece in PIECES.split(command.command[:4096]))


def _decisions(commits: tuple[WorkCommit, ...]) -> Iterator[JsonObject]:
    for text, commit in reversed(list(trailers(commits, "Relay-Decision"))):
        yield _decision(text, commit_source(commit))


def _decision(text: str, source: str) -> JsonObject:
    summary, _, rationale = text.partition(" because ")
    return {"summary": summary, "rationale": rationale, "source": source}


def _rules(commits: tuple[WorkCommit, ...]) -> Iterator[JsonObject]:
    for text, commit in trailers(commits, "Relay-Constraint"):
        yield _rule(text, commit_source(commit))


def _stated_rules(prompts: list[tuple[str, str]], task: str) -> Iterator[JsonObject]:
    """What prompts and the task say; the task itself is none, since it is the goal."""
    found = [*ruled.rules([*prompts, (task, TASK)]), *ruled.unread(prompts)]
    return (_rule(text, source) for text, source in found if text != task.strip())


def _rule(text: str, source: str) -> JsonObject:
    return {"rule": text, "source": source}


def _questions(commits: tuple[WorkCommit, ...]) -> Iterator[JsonObject]:
    for text, commit in trailers(commits, "Relay-Question"):
        yield _item(text, commit_source(commit))


def _carried(owner: object, name: str) -> Iterator[JsonObject]:
    """Items of the contract before with the leg added to their source; what git tells anew is not carried."""
    items = owner.get(name) if isinstance(owner, dict) else None
    leg = owner.get("leg") if isinstance(owner, dict) else None
    for item in items if isinstance(items, list) else ():
        source = item["source"]
        if source == "git":
            continue
        told = source if leg is None or source.startswith("commit ") or ", leg " in source else f"{source}, leg {leg}"
        yield item | {"source": told}


def _answered_before(
    record: SessionRecord, work: WorkFacts, before: JsonObject | None, leg: int
) -> Iterator[JsonObject]:
    """What the agent added when it was asked, which no file holds, as long as nobody has worked since."""
    if before is not None and not has_worked(record, work, before, leg):
        yield from (item for item in before["summary"]["hypotheses"] if item["source"].startswith(ASKED))


def _joined(member: str, *groups: Iterable[JsonObject]) -> list[JsonObject]:
    """Each text once, the human's before all others, since a list that is too long loses its end.

    Before all comes what a contract before could only count. What is blank, or says that there is
    nothing, is nobody's word, unless the human said it.
    """
    found: dict[str, JsonObject] = {}
    for item in sorted((item for group in groups for item in group), key=_rank):
        text = " ".join(str(item[member]).split())
        if text and (_rank(item) == 1 or not says_nothing(text)):
            found.setdefault(text, item)
    return list(found.values())


def _rank(item: JsonObject) -> int:
    source = item["source"]
    return 0 if source.startswith(COUNTED) else 1 if source.startswith(OF_THE_HUMAN) else 2


def _item(text: str, source: str) -> JsonObject:
    return {"text": text, "source": source}
