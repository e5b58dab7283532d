"""Gemini CLI's sessions, read into a SessionRecord.

Promise: one pass, bounded memory, never an exception. A message that is written again as it grows counts once, by its
last state; a rewind takes back what was said after it, and its tokens stay counted.

Format, as written by 0.61.0 to `<home>/tmp/<project>/chats/session-<minute>-<id8>.jsonl`: a head, then messages and
patches (`$set`, `$rewindTo`). Before that, as published in its sources (not seen live), one object with all `messages`.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from pathlib import Path

from relay_git.agents import jsonl
from relay_git.agents.draft import (
    MAX_PROMPTS,
    Draft,
    Mark,
    cut,
    minus,
    plan_status,
    plus,
)
from relay_git.agents.jsonl import Record
from relay_git.agents.remembered import Remembered
from relay_git.session import PlanItem, SessionRecord, Usage

_EDITS = ("write_file", "replace", "edit")
# What the CLI itself puts in as the user's words, in front of them or alone.
_NOT_SAID = (
    "<session_context>",
    "<state_snapshot>",
    "<hook_context>",
    "This is the Gemini CLI",
    "System: Potential loop detected",
    "System: Please continue",
)
_HOOK = re.compile(r"\A\s*<hook_context>.*?</hook_context>\s*", re.S)
_EXIT = re.compile(r"^Exit Code: (\d{1,5})$", re.M)
_NONE = Usage()
_OUTPUT = re.compile(
    r"^Output: (.*?)(?=^(?:Exit Code|Process Group PGID|Signal|Background PIDs): |^</untrusted|\Z)", re.M | re.S
)


class GeminiReader:
    """Folds one session; `whole` is for an old checkpoint."""

    def __init__(self, worktree: Path) -> None:
        self.draft = Draft("gemini", str(worktree))
        self.open_answer = False
        self._usage: Remembered[Usage] = Remembered()
        self._seen: Remembered[int] = Remembered()
        self._calls: Remembered[int] = Remembered()
        self._marks: OrderedDict[str, Mark] = OrderedDict()

    def feed(self, line: bytes) -> None:
        """Take one line; never raises."""
        record = self.draft.take(line)
        if record is not None:
            self._take(record)

    def whole(self, session: Record) -> None:
        """Take a session that is one object."""
        self._head(session)
        for message in jsonl.records(session.get("messages")):
            self._message(message)

    def record(self) -> SessionRecord:
        """Everything understood so far."""
        return self.draft.record()

    def _take(self, record: Record) -> None:
        if "$set" in record:
            patch = jsonl.record(record.get("$set"))
            self.draft.saw(jsonl.iso_time(patch.get("lastUpdated")))
            for message in jsonl.records(patch.get("messages")):
                self._message(message)
        elif "$rewindTo" in record:
            self.draft.saw(None)
            self._rewind(jsonl.text(record.get("$rewindTo")))
        elif "sessionId" in record and "type" not in record:
            self.draft.saw(None)
            self._head(record)
        else:
            self._message(record)

    def _head(self, head: Record) -> None:
        """A head; a resumed run writes another, whose session may be given in a patch after it."""
        draft, own = self.draft, jsonl.text(head.get("sessionId"))
        draft.native_id = draft.native_id or own
        for key in ("startTime", "lastUpdated"):
            draft.saw(jsonl.iso_time(head.get(key)))
            draft.records -= 1

    def _message(self, message: Record) -> None:
        self.draft.saw(jsonl.iso_time(message.get("timestamp")))
        match message.get("type"):
            case "user":
                self._user(jsonl.text(message.get("id")), message.get("content"))
            case "gemini":
                self._answer(message)
            case _:
                pass  # info, warning and error are for the screen

    def _user(self, key: str, content: object) -> None:
        if _has(content, "functionResponse"):
            self.open_answer = False
        said = _HOOK.sub("", _text(content)).strip()
        if not said or said.startswith(_NOT_SAID) or key in self._seen:
            return
        if key:
            self._seen.put(key, 1)
            self._marks[key] = self.draft.mark()
            if len(self._marks) > MAX_PROMPTS:
                self._marks.popitem(last=False)
        self.draft.prompt(said)
        self.draft.turn_complete = self.open_answer = False

    def _rewind(self, key: str) -> None:
        """Take back this message and all after it."""
        mark = self._marks.get(key)
        if mark is None:
            self.draft.lose("a rewind to a message that is not known was passed over")
            return
        self.draft.go_back(mark)
        while next(reversed(self._marks)) != key:
            self._marks.popitem()
        self._marks.popitem()
        self.open_answer = False
        self.draft.turn_complete = True

    def _answer(self, message: Record) -> None:
        draft, key = self.draft, jsonl.text(message.get("id"))
        self._count(key, jsonl.record(message.get("tokens")))
        draft.model = jsonl.text(message.get("model")) or draft.model
        said = _text(message.get("content")).strip()
        if said:
            draft.say(said)
        calls = jsonl.records(message.get("toolCalls"))
        # Calls are written when they have ended, so an answer without one may have a call that is at work.
        self.open_answer = not calls
        draft.turn_complete = not calls and not _has(message.get("content"), "functionCall")
        for call in calls:
            self._call(call)

    def _count(self, key: str, tokens: Record) -> None:
        now = Usage(
            jsonl.count(tokens.get("input")),
            jsonl.count(tokens.get("output")) + jsonl.count(tokens.get("thoughts")),
            jsonl.count(tokens.get("cached")),
        )
        before = self._usage.get(key)
        if before is None:
            self.draft.turns += 1
        was = before or _NONE
        if now != _NONE:  # a history that is written again has no counts
            self.draft.usage = plus(minus(self.draft.usage, was), now)
            was = now
        self._usage.put(key, was)

    def _call(self, call: Record) -> None:
        draft, key, name = self.draft, jsonl.text(call.get("id")), jsonl.text(call.get("name"))
        if not key or key in self._calls:
            return
        given, status = jsonl.record(call.get("args")), call.get("status")
        path = jsonl.text(given.get("file_path"))
        draft.called(key, name, path or jsonl.text(given.get("command")))
        if name in _EDITS:
            draft.touch(path)
        if status not in ("success", "error", "cancelled"):
            return
        self._calls.put(key, 1)
        draft.returned(key, ok=status == "success")
        if name == "run_shell_command":
            draft.ran(jsonl.text(given.get("command")), *outcome(_response(call.get("result")), status == "success"))
        elif name == "write_todos":
            plan = [
                PlanItem(cut(jsonl.text(item.get("description")), 2_000), plan_status(jsonl.text(item.get("status"))))
                for item in jsonl.records(given.get("todos"))
            ]
            draft.set_plan([item for item in plan if item.text])
        elif name == "activate_skill":
            draft.use_skill(jsonl.text(given.get("name")))


def outcome(printed: str, ok: bool) -> tuple[int | None, str]:
    """A command's exit code and output, out of the text that the model is shown; a code is named where it is not 0."""
    codes = _EXIT.findall(printed)
    output = found[1] if (found := _OUTPUT.search(printed)) else printed
    code = int(codes[-1]) if codes else 0 if ok else None
    return code, output


def _response(result: object) -> str:
    for part in jsonl.records(result):
        response = jsonl.record(jsonl.record(part.get("functionResponse")).get("response"))
        return jsonl.text(response.get("output")) or jsonl.text(response.get("error"))
    return ""


def _text(content: object) -> str:
    if isinstance(content, str):
        return jsonl.text(content)
    parts = (jsonl.text(part.get("text")) for part in jsonl.records(content) if part.get("thought") is not True)
    return "\n".join(part for part in parts if part)


def _has(content: object, kind: str) -> bool:
    return any(kind in part for part in jsonl.records(content))
