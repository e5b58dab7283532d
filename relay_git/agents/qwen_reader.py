"""Qwen Code's transcript, read into a SessionRecord.

Promise: one pass, bounded memory, never an exception. Records form a tree by `parentUuid`: what the user took back is
left out, its tokens stay counted.

Format, as written by 0.24.4 to `<home>/projects/<cwd with - for />/chats/<id>.jsonl`: one object a line, with the parts
of Gemini's API in `message` and the tool's own telemetry in `system` records.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from relay_git.agents import jsonl
from relay_git.agents.draft import MAX_PLAN, MAX_PROMPTS, Draft, Mark, cut, plan_status, plus
from relay_git.agents.gemini_reader import outcome
from relay_git.agents.jsonl import Record
from relay_git.agents.moments import UNKNOWN, Moment
from relay_git.agents.refusal import refusal
from relay_git.agents.remembered import Remembered
from relay_git.session import PlanItem, SessionRecord, Usage

_EDITS = ("write_file", "edit", "replace")
_NOT_SAID = ("<session_context>", "<system-reminder>", "<hook_context>", "This is the Qwen Code")


class QwenReader:
    """Folds one session."""

    def __init__(self, worktree: Path, moment: Moment = UNKNOWN) -> None:
        self._draft = Draft("qwen", str(worktree))
        self._moment = moment
        self._seen: Remembered[int] = Remembered()
        self._order = 0
        self._marks: list[tuple[int, Mark]] = []
        self._commands: dict[str, str] = {}

    def feed(self, line: bytes) -> None:
        """Take one line; never raises."""
        record = self._draft.take(line)
        if record is None:
            return
        draft, session = self._draft, jsonl.text(record.get("sessionId"))
        if session and draft.native_id and session != draft.native_id:
            draft.meet_stranger(session)
            return
        when = jsonl.iso_time(record.get("timestamp"))
        draft.saw(when)
        draft.native_id = draft.native_id or session
        draft.cwd = draft.cwd or jsonl.text(record.get("cwd"))
        draft.branch = jsonl.text(record.get("gitBranch")) or draft.branch
        draft.version = jsonl.text(record.get("version")) or draft.version
        self._order += 1
        if uuid := jsonl.text(record.get("uuid")):
            self._seen.put(uuid, self._order)
        self._take(record, when)

    def record(self) -> SessionRecord:
        """Everything understood so far."""
        return self._draft.record()

    def _take(self, record: Record, when: datetime | None) -> None:
        parts = jsonl.records(jsonl.record(record.get("message")).get("parts"))
        match record.get("type"):
            case "user":
                self._user(record, parts)
            case "assistant":
                self._answer(record, parts)
            case "tool_result":
                self._result(record, parts)
            case "system":
                self._system(record, when)
            case _:
                pass

    def _user(self, record: Record, parts: list[Record]) -> None:
        said = "\n".join(jsonl.text(part.get("text")) for part in parts if "text" in part).strip()
        if not said or said.startswith(_NOT_SAID) or record.get("provenance") not in (None, "real_user"):
            return
        at = self._seen.get(jsonl.text(record.get("parentUuid")))
        left = [mark for order, mark in self._marks if at is not None and order > at]
        if left:
            self._draft.go_back(left[0])
            self._marks = self._marks[: -len(left)]
            self._draft.lose("a branch of the conversation that the user took back was left out")
        self._marks = [*self._marks, (self._order, self._draft.mark())][-MAX_PROMPTS:]
        self._draft.prompt(said)
        self._draft.turn_complete = False

    def _answer(self, record: Record, parts: list[Record]) -> None:
        draft = self._draft
        draft.turns += 1
        draft.model = jsonl.text(record.get("model")) or draft.model
        draft.usage = plus(draft.usage, _usage(jsonl.record(record.get("usageMetadata"))))
        texts = (jsonl.text(part.get("text")) for part in parts if part.get("thought") is not True)
        said = "\n".join(text for text in texts if text).strip()
        if said:
            draft.say(said)
        calls = [jsonl.record(part.get("functionCall")) for part in parts if "functionCall" in part]
        draft.turn_complete = not calls
        for call in calls:
            self._call(call)

    def _call(self, call: Record) -> None:
        draft, key, name = self._draft, jsonl.text(call.get("id")), jsonl.text(call.get("name"))
        given = jsonl.record(call.get("args"))
        path, command = jsonl.text(given.get("file_path")), jsonl.text(given.get("command"))
        draft.called(key, name, path or command)
        if name in _EDITS:
            draft.touch(path)
        elif name == "run_shell_command" and len(self._commands) < MAX_PLAN:
            self._commands[key] = command
        elif name == "todo_write":
            plan = [
                PlanItem(cut(jsonl.text(item.get("content")), 2_000), plan_status(jsonl.text(item.get("status"))))
                for item in jsonl.records(given.get("todos"))
            ]
            draft.set_plan([item for item in plan if item.text])
        elif name == "skill":
            draft.use_skill(jsonl.text(given.get("skill")))

    def _result(self, record: Record, parts: list[Record]) -> None:
        status = jsonl.record(record.get("toolCallResult")).get("status")
        for part in parts:
            answer = jsonl.record(part.get("functionResponse"))
            key, response = jsonl.text(answer.get("id")), jsonl.record(answer.get("response"))
            ok = status == "success" and "error" not in response
            self._draft.returned(key, ok=ok)
            command = self._commands.pop(key, None)
            if command is not None:
                printed = jsonl.text(response.get("output")) or jsonl.text(response.get("error"))
                self._draft.ran(command, *outcome(printed, ok))

    def _system(self, record: Record, when: datetime | None) -> None:
        event = jsonl.record(jsonl.record(record.get("systemPayload")).get("uiEvent"))
        if record.get("subtype") == "chat_compression":
            self._draft.compactions += 1
        elif event.get("event.name") == "qwen-code.api_error":
            self._draft.turn_complete = False
            notice = refusal(
                jsonl.text(event.get("error_message")) or jsonl.text(event.get("error")),
                status=jsonl.integer(event.get("status_code")),
                body=f"{jsonl.text(event.get('error_type'))} {jsonl.text(event.get('error_message'))}",
                moment=self._moment.of(when),
            )
            if notice:
                self._draft.limit(notice)


def _usage(usage: Record) -> Usage:
    return Usage(
        jsonl.count(usage.get("promptTokenCount")),
        jsonl.count(usage.get("candidatesTokenCount")),
        jsonl.count(usage.get("cachedContentTokenCount")),
    )
