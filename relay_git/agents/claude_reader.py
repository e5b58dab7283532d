"""Claude Code's transcript, read into a SessionRecord.

Promise: one pass, bounded memory, never an exception. What the human said is told apart from what the CLI put in
(`isMeta`, summaries, notifications, command output); of a subagent only what it used and touched is taken, and records
of another session in the same file are left out and named.

Format, as written by 2.1.332 to `<config>/projects/<cwd with - for />/<session id>.jsonl`: one JSON object a line;
`user` and `assistant` records form a tree by `parentUuid`, with one record for each content block of an answer, all
with the same `message.id`.
"""

from __future__ import annotations

from collections import OrderedDict
from operator import add, sub
from pathlib import Path
from typing import NamedTuple

from relay_git.agents import claude_said, jsonl, meters
from relay_git.agents.claude_limits import message_text, transcript_notice
from relay_git.agents.draft import MAX_PLAN, Draft, Mark, cut, plan_status
from relay_git.agents.jsonl import Record
from relay_git.agents.moments import UNKNOWN, Moment
from relay_git.agents.remembered import Remembered
from relay_git.session import PlanItem, PlanStatus, SessionRecord, Usage

SYNTHETIC = "<synthetic>"
_EDITS = {"Write": "file_path", "Edit": "file_path", "MultiEdit": "file_path", "NotebookEdit": "notebook_path"}
# What the CLI itself writes as the user's words: slash commands and their output, notifications, interruptions.
_NOT_SAID = (
    "<command-name>",
    "<command-message>",
    "<local-command-",
    "<task-notification>",
    "<bash-",
    "<system-reminder>",
    "[Request interrupted by user",
)
_SUBAGENTS = ("Task", "Agent")
_EXIT = "Exit code "
_Counts = tuple[int, int, int, int]
_MAX_MARKS = 200


class _Call(NamedTuple):
    """A tool call whose result is still to come."""

    name: str
    target: str
    task: str = ""
    status: str = ""


class ClaudeReader:
    """Folds one transcript of Claude Code.

    With `counted` shared by several readers, a message that a continued session copied from another file counts once.
    """

    def __init__(self, worktree: Path, counted: Remembered[_Counts] | None = None, moment: Moment = UNKNOWN) -> None:
        self._draft = Draft("claude", str(worktree))
        self._moment = moment
        self._seen: Remembered[int] = Remembered()
        self._messages: Remembered[_Counts] = counted if counted is not None else Remembered()
        self._calls: OrderedDict[str, _Call] = OrderedDict()
        self._tasks: OrderedDict[str, PlanItem] = OrderedDict()
        self._marks: list[tuple[int, Mark]] = []
        self._spent = [0, 0, 0, 0]

    def feed(self, line: bytes) -> None:
        """Take one line; never raises."""
        draft = self._draft
        record = draft.take(line)
        if record is None or (record.get("sessionId") != draft.native_id and self._is_strange(record)):
            return
        draft.saw_at(record.get("timestamp"))
        kind = record.get("type")
        if kind in ("assistant", "user"):
            if self._is_new(record):
                self._place(record)
                if record.get("isSidechain") is True:
                    self._aside(record)
                elif kind == "assistant":
                    self._answer(record)
                else:
                    self._user(record)
        elif record.get("subtype") == "compact_boundary" and self._is_new(record):
            draft.compactions += 1
        elif kind == "attachment" and (said := claude_said.meanwhile(record)) and self._is_new(record):
            self._hear(said)

    def _is_strange(self, record: Record) -> bool:
        """Whether the record is another session's; the first that names one is this one's."""
        session = jsonl.text(record.get("sessionId"))
        self._draft.native_id = self._draft.native_id or session
        if session in ("", self._draft.native_id):
            return False
        self._draft.meet_stranger(session)
        return True

    def record(self) -> SessionRecord:
        """Everything understood so far."""
        self._draft.usage = Usage(*self._spent)
        return self._draft.record()

    def _is_new(self, record: Record) -> bool:
        """Whether the record was not there before: a compaction writes earlier ones again."""
        uuid = record.get("uuid")
        if uuid and isinstance(uuid, str):
            if uuid in self._seen:
                return False
            self._seen.put(uuid, self._draft.lines)
        return True

    def _aside(self, record: Record) -> None:
        """A record of a subagent, in its own file or, as older versions wrote it, among the others."""
        draft, message = self._draft, jsonl.record(record.get("message"))
        draft.meet_subagent(jsonl.text(record.get("agentId")))
        if record.get("type") != "assistant" or jsonl.text(message.get("model")) == SYNTHETIC:
            return
        self._count(message, jsonl.text(message.get("id")) or jsonl.text(record.get("uuid")))
        for block in jsonl.records(message.get("content")):
            if block.get("type") == "tool_use":
                given, name = jsonl.record(block.get("input")), jsonl.text(block.get("name"))
                draft.touch(jsonl.text(given.get(_EDITS[name])) if name in _EDITS else "")

    def _place(self, record: Record) -> None:
        draft = self._draft
        draft.cwd = draft.cwd or jsonl.text(record.get("cwd"))
        if record.get("gitBranch") != draft.branch:
            draft.branch = jsonl.text(record.get("gitBranch")) or draft.branch
        if record.get("version") != draft.version:
            draft.version = jsonl.text(record.get("version")) or draft.version

    def _user(self, record: Record) -> None:
        answered = False
        for block in jsonl.records(jsonl.record(record.get("message")).get("content")):
            if block.get("type") == "tool_result":
                self._result(block, record.get("toolUseResult"))
                answered = True
        if not answered and _said_by_human(record):
            self._prompt(message_text(record).strip(), record)

    def _hear(self, said: str) -> None:
        """What the human said while a turn went on."""
        if said and not said.startswith(_NOT_SAID):
            self._draft.prompt(said)
            self._draft.turn_complete = False

    def _prompt(self, said: str, record: Record) -> None:
        said = claude_said.command(said) or said
        if not said or said.startswith(_NOT_SAID):
            return
        self._go_back(record.get("parentUuid"))
        self._draft.usage = Usage(*self._spent)
        self._marks.append((self._draft.lines, self._draft.mark()))
        del self._marks[:-_MAX_MARKS]
        self._draft.prompt(said)
        self._draft.turn_complete = False

    def _go_back(self, parent: object) -> None:
        """A prompt that hangs on a record older than an earlier prompt takes that prompt's branch back."""
        at = self._seen.get(parent) if isinstance(parent, str) else None
        if at is None:
            return
        left = [mark for line, mark in self._marks if line > at]
        if left:
            self._draft.go_back(left[0])
            self._marks = self._marks[: -len(left)]
            self._draft.lose("a branch of the conversation that the user took back was left out")

    def _answer(self, record: Record) -> None:
        draft = self._draft
        if record.get("isApiErrorMessage") is True:
            draft.turn_complete = False
            notice = transcript_notice(record, self._moment)
            if notice:
                draft.limit(notice)
            info = jsonl.record(jsonl.record(record.get("apiErrorParams")).get("rate_limit_info"))
            at = jsonl.iso_time(record.get("timestamp"))
            draft.meter(meters.claude_event(info, at, "Claude Code's transcript"))
            return
        message = jsonl.record(record.get("message"))
        model = jsonl.text(message.get("model"))
        if model == SYNTHETIC:
            return
        draft.model = model or draft.model
        if self._count(message, jsonl.text(message.get("id")) or jsonl.text(record.get("uuid"))):
            draft.turns += 1
        draft.turn_complete = message.get("stop_reason") in ("end_turn", "stop_sequence")
        content = message.get("content")
        said = [jsonl.text(content)]
        for block in jsonl.records(content):
            kind = block.get("type")
            if kind == "text":
                said.append(jsonl.text(block.get("text")))
            elif kind == "tool_use":
                draft.turn_complete = False
                self._call(block)
        if words := "\n".join(said).strip():
            draft.say(words)

    def _count(self, message: Record, key: str) -> bool:
        """Count a message's tokens; a later record of the same message counts only what it adds. Whether it is new."""
        count, get = jsonl.count, jsonl.record(message.get("usage")).get
        now = (
            count(get("input_tokens")),
            count(get("output_tokens")),
            count(get("cache_read_input_tokens")),
            count(get("cache_creation_input_tokens")),
        )
        before = self._messages.get(key)
        if now != before:
            self._messages.put(key, now)
            self._spent = [*map(add, self._spent, now if before is None else map(sub, now, before))]
        return before is None

    def _call(self, block: Record) -> None:
        name, call = jsonl.text(block.get("name")), jsonl.text(block.get("id"))
        given = jsonl.record(block.get("input"))
        target = jsonl.text(given.get(_EDITS.get(name, "command")))
        self._draft.called(call, name, target)
        match name:
            case "Bash":
                self._await(call, _Call(name, target))
            case _ if name in _EDITS:
                # Counted when it is asked for: an edit that was cut off may have been written all the same.
                self._draft.touch(target)
            case "TodoWrite":
                self._todos(given.get("todos"))
            case "TaskCreate" | "TaskUpdate":
                subject, task, status = (jsonl.text(given.get(key)) for key in ("subject", "taskId", "status"))
                self._await(call, _Call(name, subject, task, status))
            case claude_said.ASKS | claude_said.PLANS | "Task" | "Agent":
                self._await(call, _Call(name, ""))
            case "Skill":
                self._draft.use_skill(jsonl.text(given.get("skill")) or jsonl.text(given.get("command")))
            case _ if name.startswith("mcp__"):
                self._draft.use_mcp_server(name.split("__")[1])

    def _await(self, call: str, about: _Call) -> None:
        """Remember a call whose result is looked at."""
        self._calls[call] = about
        if len(self._calls) > MAX_PLAN:
            self._calls.popitem(last=False)

    def _result(self, block: Record, outcome: object) -> None:
        key, failed = jsonl.text(block.get("tool_use_id")), block.get("is_error") is True
        if failed and isinstance(outcome, str):
            self._hear(claude_said.reason(self._draft.awaited(key), _result_text(block), outcome))
        self._draft.returned(key, ok=not failed)
        call = self._calls.pop(key, None)
        if call is None:
            return
        if call.name == "Bash":
            self._draft.ran(call.target, *_outcome(block, outcome))
        elif failed:
            return
        elif call.name == claude_said.ASKS:
            self._hear(claude_said.answers(outcome))
        elif call.name == claude_said.PLANS:
            if not self._draft.plan:
                self._draft.set_plan(claude_said.steps(outcome))
        elif call.name in _SUBAGENTS:
            self._draft.state(_result_text(block))
        else:
            self._task(call, jsonl.record(jsonl.record(outcome).get("task")))

    def _task(self, call: _Call, created: Record) -> None:
        key = call.task or jsonl.text(created.get("id")) or f"#{len(self._tasks) + 1}"
        before = self._tasks.get(key)
        status = plan_status(call.status) if call.status else before.status if before else PlanStatus.PENDING
        if call.status == "deleted":
            self._tasks.pop(key, None)
        elif before or len(self._tasks) < MAX_PLAN:
            self._tasks[key] = PlanItem(cut(call.target or (before.text if before else key), 2_000), status)
        self._draft.set_plan(list(self._tasks.values()))

    def _todos(self, todos: object) -> None:
        plan = [
            PlanItem(cut(jsonl.text(item.get("content")), 2_000), plan_status(jsonl.text(item.get("status"))))
            for item in jsonl.records(todos)
        ]
        self._draft.set_plan([item for item in plan if item.text])


def _said_by_human(record: Record) -> bool:
    if any(record.get(key) is True for key in ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly")):
        return False
    origin = jsonl.record(record.get("origin")).get("kind")
    return record.get("promptSource") != "system" and origin in (None, "human")


def _outcome(block: Record, outcome: object) -> tuple[int | None, str]:
    """The exit code of a command, where it is told, and what it printed."""
    code: int | None = None
    if isinstance(outcome, dict):
        output = jsonl.text(outcome.get("stdout")) + jsonl.text(outcome.get("stderr"))
        # The dictionary is written for success; an interpreted code ("no matches found") or a command that was
        # interrupted or sent to the background has an exit code that is not told.
        told = not (outcome.get("returnCodeInterpretation") or outcome.get("backgroundTaskId"))
        code = 0 if told and outcome.get("interrupted") is not True else None
    else:
        output = _result_text(block)
        first, _, rest = output.partition("\n")
        number = first.removeprefix(_EXIT)
        if first.startswith(_EXIT) and number.isascii() and number.isdigit() and len(number) < 6:
            code, output = int(number), rest
    return code, output


def _result_text(block: Record) -> str:
    content = block.get("content")
    if isinstance(content, str):
        return jsonl.text(content)
    return "\n".join(jsonl.text(part.get("text")) for part in jsonl.records(content))
