"""Antigravity's transcript, read into a SessionRecord.

Promise: one pass, bounded memory, never an exception; `antigravity` has the format, which was not seen live.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from pathlib import Path

from relay_git.agents import jsonl
from relay_git.agents.draft import MAX_PLAN, Draft, cut, plus
from relay_git.agents.jsonl import Record
from relay_git.agents.moments import Moment
from relay_git.agents.refusal import refusal
from relay_git.session import PlanItem, PlanStatus, SessionRecord, Usage

_REQUEST = re.compile(r"<USER_REQUEST>(.*?)(?:</USER_REQUEST>|\Z)", re.S)
_MODEL = re.compile(r"`Model Selection` from .{1,100}? to (.{1,100}?)\.(?:\s|$)")
_EXITED = re.compile(r"[Ee]xit code:? (\d{1,5})\b")
_TASK = re.compile(r"\s*[-*] \[([ xX/~-])\] (.+)")
_PATHS = ("TargetFile", "AbsolutePath", "File")
_EDITS = ("write_to_file", "replace_file_content", "multi_replace_file_content", "edit_file")
_MAX_CALLS = 500


def tasks(text: str) -> list[PlanItem]:
    """The items of a checklist in which `/` marks what is being done."""
    found = [match for line in text.splitlines() if (match := _TASK.fullmatch(line))][:MAX_PLAN]
    marks = {" ": PlanStatus.PENDING, "-": PlanStatus.CANCELLED, "~": PlanStatus.CANCELLED, "/": PlanStatus.IN_PROGRESS}
    return [PlanItem(cut(match[2].strip(), 2_000), marks.get(match[1], PlanStatus.COMPLETED)) for match in found]


class AntigravityReader:
    """Folds one transcript of Antigravity."""

    def __init__(self, worktree: Path, native_id: str) -> None:
        self._draft = Draft("antigravity", str(worktree), native_id=native_id)
        self._calls: OrderedDict[str, Record] = OrderedDict()

    def feed(self, line: bytes) -> None:
        """Take one step; never raises."""
        step = self._draft.take(line)
        if step is None:
            return
        self._draft.saw(jsonl.iso_time(step.get("created_at")))
        if step.get("status") == "RUNNING":
            return  # it comes again when it is done
        content = step.get("content")
        text = jsonl.text(content) or jsonl.text(jsonl.record(content).get("text"))
        match step.get("type"):
            case "USER_INPUT" if step.get("source") in (None, "USER_EXPLICIT", "USER"):
                self._user(text)
            case "PLANNER_RESPONSE":
                self._answer(step, text.strip())
            case "CHECKPOINT":
                self._draft.compactions += 1
            case "ERROR_MESSAGE":
                self._refused(text)
            case _ if step.get("source") == "MODEL":
                self._result(text)

    def record(self) -> SessionRecord:
        """Everything understood so far."""
        return self._draft.record()

    def _user(self, text: str) -> None:
        found, model = _REQUEST.search(text), _MODEL.search(text)
        self._draft.model = model[1] if model else self._draft.model
        said = (found[1] if found else text).strip()
        if said:
            self._draft.prompt(said)
            self._draft.turn_complete = False

    def _answer(self, step: Record, said: str) -> None:
        draft, spent = self._draft, jsonl.record(step.get("usage"))
        draft.turns += 1
        draft.model = jsonl.text(step.get("model")) or draft.model
        draft.usage = plus(
            draft.usage,
            Usage(
                jsonl.count(spent.get("input_tokens")) or jsonl.count(spent.get("prompt_token_count")),
                jsonl.count(spent.get("output_tokens")) or jsonl.count(spent.get("candidates_token_count")),
                jsonl.count(spent.get("cached_content_token_count")),
            ),
        )
        if said:
            draft.say(said)
        calls = jsonl.records(step.get("tool_calls"))
        draft.turn_complete = not calls
        for number, call in enumerate(calls):
            self._call(f"{step.get('step_index')}.{number}", call)

    def _call(self, key: str, call: Record) -> None:
        draft, name = self._draft, jsonl.text(call.get("name")).rpartition(":")[2]
        given = {k: _plain(v) for k, v in jsonl.record(call.get("args")).items()}
        path = next((told for field in _PATHS if (told := given.get(field, ""))), "")
        command = given.get("CommandLine", "")
        draft.cwd = draft.cwd or given.get("Cwd", "")
        draft.called(key, name, command or path)
        if name in _EDITS:
            draft.touch(path)
        if len(self._calls) < _MAX_CALLS:
            self._calls[key] = {"command": command}

    def _result(self, output: str) -> None:
        """A step of a tool's: they come in the order in which the tools were called."""
        if not self._calls:
            return
        key, call = self._calls.popitem(last=False)
        self._draft.returned(key, ok=None)
        command = jsonl.text(call.get("command"))
        if command:
            found = _EXITED.search(output)
            self._draft.ran(command, int(found[1]) if found else None, output)

    def _refused(self, said: str) -> None:
        self._draft.turn_complete = False
        if found := refusal(said, body=said, moment=Moment(self._draft.last_activity)):
            self._draft.limit(found)


def _plain(value: object) -> str:
    """An argument, which is written as JSON once more."""
    text = jsonl.text(value)
    if len(text) > 1 and text[0] == text[-1] == '"':
        return jsonl.text(jsonl.parse_text(f'{{"v": {text}}}').get("v"))
    return text
