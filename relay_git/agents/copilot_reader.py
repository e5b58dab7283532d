"""Copilot CLI's events, read into a SessionRecord.

Promise: one pass, bounded memory, never an exception. Usage is what the tool recorded for each call of a model.

Format, as written by 1.0.102 to `<home>/session-state/<id>/events.jsonl`: `{type, data, id, timestamp, parentId}` a
line. The plan is in `session.db` beside it, table `todos`, which the model itself writes with SQL.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

from relay_git.agents import jsonl, meters
from relay_git.agents.draft import MAX_PLAN, Draft, cut, plan_status, plus
from relay_git.agents.jsonl import Record
from relay_git.agents.moments import UNKNOWN, Moment
from relay_git.agents.refusal import refusal
from relay_git.agents.sqlite import Database, Mirror
from relay_git.agents.transcript import Follower
from relay_git.session import LimitNotice, PlanItem, SessionRecord, Usage

_SHELLS = ("bash", "shell", "powershell")


class CopilotReader:
    """Folds one session's events."""

    def __init__(self, worktree: Path, moment: Moment = UNKNOWN) -> None:
        self._draft = Draft("copilot", str(worktree))
        self._moment = moment
        self._commands: dict[str, str] = {}

    def feed(self, line: bytes) -> None:
        """Take one line; never raises."""
        record = self._draft.take(line)
        if record is None:
            return
        when = jsonl.iso_time(record.get("timestamp"))
        self._draft.saw(when)
        self._event(jsonl.text(record.get("type")), jsonl.record(record.get("data")), when)

    def record(self) -> SessionRecord:
        """Everything understood so far."""
        return self._draft.record()

    def _event(self, kind: str, data: Record, when: datetime | None) -> None:
        match kind:
            case "user.message":
                self._prompt(data)
            case "assistant.message":
                self._answer(data)
            case "tool.execution_start":
                self._begin_call(data, jsonl.text(data.get("toolName")))
            case "tool.execution_complete":
                self._result(data)
            case "skill.invoked":
                self._draft.use_skill(jsonl.text(data.get("name")))
            case "subagent.started":
                self._draft.meet_subagent(jsonl.text(data.get("toolCallId")) or jsonl.text(data.get("agentName")))
            case _:
                self._about(kind, data, when)

    def _about(self, kind: str, data: Record, when: datetime | None) -> None:
        """Events of the session as a whole."""
        draft = self._draft
        match kind:
            case "session.start" | "session.resume":
                self._begin(data)
            case "session.model_change":
                draft.model = jsonl.text(data.get("newModel")) or draft.model
            case "session.compaction_complete" if data.get("success") is not False:
                draft.compactions += 1
            case "session.error":
                draft.turn_complete = False
                if notice := error_notice(data, self._moment.of(when)):
                    draft.limit(notice)
            case "assistant.usage":
                draft.meter(meters.copilot(jsonl.record(data.get("quotaSnapshots")), when))
            case "session.usage_record":
                draft.usage = plus(draft.usage, _usage(jsonl.record(data.get("usage"))))
            case _:
                pass

    def _begin(self, data: Record) -> None:
        draft, context = self._draft, jsonl.record(data.get("context"))
        own = jsonl.text(data.get("sessionId"))
        if own and draft.native_id and own != draft.native_id:
            draft.meet_stranger(own)
            return
        draft.native_id = draft.native_id or own
        draft.cwd = draft.cwd or jsonl.text(context.get("cwd"))
        draft.branch = jsonl.text(context.get("branch")) or draft.branch
        draft.model = jsonl.text(data.get("selectedModel")) or draft.model
        draft.version = jsonl.text(data.get("copilotVersion")) or draft.version

    def _prompt(self, data: Record) -> None:
        said = jsonl.text(data.get("content")).strip()
        source = jsonl.text(data.get("source"))
        if said and not said.startswith("<system") and source in ("", "user"):
            self._draft.prompt(said)
            self._draft.turn_complete = False

    def _answer(self, data: Record) -> None:
        draft = self._draft
        if data.get("parentToolCallId"):
            return  # a subagent's words
        draft.turns += 1
        draft.model = jsonl.text(data.get("model")) or draft.model
        said = jsonl.text(data.get("content")).strip()
        if said:
            draft.say(said)
        asked = jsonl.records(data.get("toolRequests"))
        draft.turn_complete = not asked
        for request in asked:
            self._begin_call(request, jsonl.text(request.get("name")))

    def _begin_call(self, data: Record, name: str) -> None:
        call, given = jsonl.text(data.get("toolCallId")), data.get("arguments")
        arguments = jsonl.parse_text(given) if isinstance(given, str) else jsonl.record(given)
        command = jsonl.text(arguments.get("command"))
        self._draft.called(call, name, command or jsonl.text(arguments.get("path")))
        self._draft.use_mcp_server(jsonl.text(data.get("mcpServerName")))
        if name in _SHELLS and len(self._commands) < MAX_PLAN:
            self._commands[call] = command
        elif name == "skill":
            self._draft.use_skill(jsonl.text(arguments.get("skill")))

    def _result(self, data: Record) -> None:
        draft, call = self._draft, jsonl.text(data.get("toolCallId"))
        draft.returned(call, ok=data.get("success") is True)
        for edit in jsonl.records(data.get("fileEdits")):
            draft.touch(jsonl.text(edit.get("path")))
        command = self._commands.pop(call, None)
        if command is not None:
            result = jsonl.record(data.get("result"))
            output = jsonl.text(result.get("content")) or jsonl.text(jsonl.record(data.get("error")).get("message"))
            code = jsonl.integer(jsonl.record(data.get("shellExecution")).get("exitCode"))
            draft.ran(command, code, output)


class CopilotFollower:
    """Follows the events, and the plan in the database beside them."""

    def __init__(self, events: Path, worktree: Path) -> None:
        self._events = Follower(events, lambda: CopilotReader(worktree))
        self._database = Mirror(events.with_name("session.db"))
        self._plan: tuple[PlanItem, ...] = ()

    def poll(self) -> bool:
        """Read what is new in either."""
        fresh = self._events.poll()
        if self._database.changed() and self._database.path.is_file():
            with self._database.opened() as database:
                if isinstance(database, Database) and {"title", "status"} <= set(database.columns("todos")):
                    rows = database.rows(f"SELECT title, status FROM todos ORDER BY rowid LIMIT {MAX_PLAN}")  # noqa: S608
                    plan = [PlanItem(cut(jsonl.text(t), 2_000), plan_status(jsonl.text(s))) for t, s in rows]
                    self._plan = tuple(item for item in plan if item.text)
            return True
        return fresh

    def record(self, *, ended: bool = False) -> SessionRecord:
        """Everything understood so far."""
        if ended:
            self._database.close()
        return replace(self._events.record(ended=ended), plan=self._plan)


def error_notice(data: Record, moment: Moment) -> LimitNotice | None:
    """The limit in a `session.error`, in the transcript and on stdout."""
    codes = " ".join(jsonl.text(data.get(key)) for key in ("errorType", "errorCode"))
    said = jsonl.text(data.get("message"))
    if data.get("errorType") == "quota":
        codes += " quota_reached"
    return refusal(said, status=jsonl.integer(data.get("statusCode")), body=codes, moment=moment)


def _usage(usage: Record) -> Usage:
    return Usage(
        jsonl.count(usage.get("inputTokens")),
        jsonl.count(usage.get("outputTokens")),
        jsonl.count(usage.get("cacheReadTokens")),
        jsonl.count(usage.get("cacheWriteTokens")),
    )
