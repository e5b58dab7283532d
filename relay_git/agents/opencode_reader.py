"""One session of opencode, read into a SessionRecord.

Promise: what the two kinds of store hold comes out the same. Every message counts once, subagents' tokens and files
included; what opencode itself puts in as the user's words is left out, and so is what the user took back.

Format, as written by 1.18.33: a session has messages, in the order of their ids, and a message has parts (`text`,
`tool`, `patch`, …); a tool part has its state, input and output in it.
"""

from __future__ import annotations

import re
from pathlib import Path

from relay_git.agents import jsonl
from relay_git.agents.draft import Draft, Mark, cut, plan_status, plus
from relay_git.agents.jsonl import Record
from relay_git.agents.moments import Moment
from relay_git.agents.opencode_limits import error_notice
from relay_git.session import PlanItem, SessionRecord, Usage

# `opencode run` puts quotes around an argument that holds a blank, and keeps them in the prompt.
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*\s(?:[^"\\]|\\.)*)"', re.S)
_SHELLS = ("bash", "shell")


class OpencodeReader:
    """Folds one session: `begin`, then each `message` with its parts in order, then `todos`."""

    def __init__(self, worktree: Path) -> None:
        self.draft = Draft("opencode", str(worktree))
        self._back_to = ""
        self._mark: Mark | None = None

    def begin(self, session: Record) -> None:
        """Take the session's own row."""
        draft = self.draft
        draft.native_id = jsonl.text(session.get("id"))
        draft.cwd = jsonl.text(session.get("directory"))
        draft.version = jsonl.text(session.get("version"))
        for key in ("time_created", "time_updated"):
            self._saw(session.get(key))
        draft.records -= 2
        self._back_to = jsonl.text(_object(session.get("revert")).get("messageID"))

    def goes_on_as(self, other: OpencodeReader) -> bool:
        """Whether the session's row says the same of what was taken back."""
        return self._back_to == other._back_to

    def message(self, key: str, message: Record, parts: list[Record]) -> None:
        """Take the next message with its parts."""
        if self._back_to and key >= self._back_to and self._mark is None:
            self._mark = self.draft.mark()
        times = jsonl.record(message.get("time"))
        self._saw(times.get("created"))
        if times.get("completed") is not None:
            self._saw(times.get("completed"))
            self.draft.records -= 1
        if message.get("role") == "user":
            self._user(parts)
        elif message.get("role") == "assistant":
            self._answer(message, parts)

    def todos(self, todos: list[Record]) -> None:
        """Take the plan as it stands."""
        plan = [
            PlanItem(cut(jsonl.text(item.get("content")), 2_000), plan_status(jsonl.text(item.get("status"))))
            for item in todos
        ]
        self.draft.set_plan([item for item in plan if item.text])

    def subagent(self, name: str, reader: OpencodeReader) -> None:
        """Count what a subagent used and touched."""
        self.draft.meet_subagent(name)
        self.draft.usage = plus(self.draft.usage, reader.draft.usage)
        for path in reader.draft.files:
            self.draft.touch(path)

    def record(self) -> SessionRecord:
        """Everything understood; call it once, at the end."""
        if self._mark is not None:
            plan = self.draft.plan
            self.draft.go_back(self._mark)
            self.draft.set_plan(list(plan))
            self.draft.lose("a branch of the conversation that the user took back was left out")
        return self.draft.record()

    def _saw(self, when: object) -> None:
        self.draft.saw(jsonl.epoch_time(when))

    def _user(self, parts: list[Record]) -> None:
        said = [
            jsonl.text(part.get("text"))
            for part in parts
            if part.get("type") == "text" and part.get("synthetic") is not True and part.get("ignored") is not True
        ]
        prompt = "\n".join(said).strip()
        quoted = _QUOTED.fullmatch(prompt)
        if quoted:
            prompt = quoted[1].replace('\\"', '"').strip()
        if prompt:
            self.draft.prompt(prompt)
            self.draft.turn_complete = False

    def _answer(self, message: Record, parts: list[Record]) -> None:
        draft, error = self.draft, jsonl.record(message.get("error"))
        times, finish = jsonl.record(message.get("time")), jsonl.text(message.get("finish"))
        draft.usage = plus(draft.usage, _usage(jsonl.record(message.get("tokens"))))
        draft.model = jsonl.text(message.get("modelID")) or draft.model
        draft.turn_complete = finish not in ("", "tool-calls", "unknown") and not error
        if error and (notice := error_notice(error, Moment(jsonl.epoch_time(times.get("completed"))))):
            draft.limit(notice)
        if message.get("summary") is True:
            draft.compactions += 1
            return
        tools = False
        for part in parts:
            draft.records += 1
            tools = self._part(part) or tools
        if tools or (times.get("completed") is not None and not error):
            draft.turns += 1

    def _part(self, part: Record) -> bool:
        """Take one part of an answer; whether it is a tool's."""
        match part.get("type"):
            case "text":
                said = jsonl.text(part.get("text")).strip()
                if said and part.get("synthetic") is not True:
                    self.draft.say(said)
            case "patch":
                for path in jsonl.items(part.get("files")):
                    self.draft.touch(jsonl.text(path))
            case "tool":
                self._tool(jsonl.text(part.get("tool")), part)
                return True
            case _:
                pass
        return False

    def _tool(self, name: str, part: Record) -> None:
        draft, call = self.draft, jsonl.text(part.get("callID"))
        state = jsonl.record(part.get("state"))
        given, status = jsonl.record(state.get("input")), state.get("status")
        path = jsonl.text(given.get("filePath"))
        draft.called(call, name, path or jsonl.text(given.get("command")))
        if status in ("completed", "error"):
            draft.returned(call, ok=status == "completed")
        if name in ("edit", "write", "multiedit", "patch", "apply_patch"):
            draft.touch(path)
        elif name == "skill":
            draft.use_skill(jsonl.text(given.get("name")))
        elif name == "todowrite":
            self.todos(jsonl.records(given.get("todos")))
        elif name == "question" and status == "completed":
            self._answers(jsonl.records(given.get("questions")), jsonl.record(state.get("metadata")))
        elif name in _SHELLS and status in ("completed", "error"):
            about = jsonl.record(state.get("metadata"))
            output = jsonl.text(about.get("output")) or jsonl.text(state.get("output"))
            draft.ran(jsonl.text(given.get("command")), jsonl.integer(about.get("exit")), output)

    def _answers(self, questions: list[Record], about: Record) -> None:
        """What the user answered to the agent's questions, in its tool for them."""
        lines = []
        for question, answer in zip(questions, jsonl.items(about.get("answers")), strict=False):
            if told := ", ".join(filter(None, map(jsonl.text, jsonl.items(answer)))):
                lines.append(f'Asked "{jsonl.text(question.get("question"))}": {told}')
        if lines:
            self.draft.prompt("\n".join(lines))


def _object(value: object) -> Record:
    """An object as it is, or as JSON in a string."""
    return jsonl.parse_text(value) if isinstance(value, str) else jsonl.record(value)


def _usage(tokens: Record) -> Usage:
    cache = jsonl.record(tokens.get("cache"))
    return Usage(
        jsonl.count(tokens.get("input")),
        jsonl.count(tokens.get("output")) + jsonl.count(tokens.get("reasoning")),
        jsonl.count(cache.get("read")),
        jsonl.count(cache.get("write")),
    )
