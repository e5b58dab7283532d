"""Sessions of the Cline CLI, and the conversation that its editor extension keeps in the same words.

Promise: bounded memory, never an exception; a history that is cut gives what stands whole before the cut.

Format, as written by CLI 3.0.65 to `<data>/sessions/<id>/`: `<id>.json` about the session, `<id>.messages.json` with
`messages` as Anthropic's API has them. What the user said stands in `<user_input>`; an error is a last message whose
`metadata.displayRole` says so.
"""

from __future__ import annotations

import re
from pathlib import Path

from relay_git.agents import jsonl
from relay_git.agents.draft import Draft, plus
from relay_git.agents.jsonl import Record
from relay_git.agents.moments import Moment
from relay_git.agents.refusal import refusal
from relay_git.agents.rewritten import Document
from relay_git.session import SessionRecord, Usage

_INPUT = re.compile(r"<user_input[^>]*>(.*?)(?:</user_input>|\Z)", re.S)
_EDITS = (
    "editor",
    "write_to_file",
    "replace_in_file",
    "apply_diff",
    "insert_content",
    "search_and_replace",
    "new_rule",
)
_COMMANDS = ("run_commands", "execute_command")
_EXITED = re.compile(r"exited with code (\d{1,5})")
_MAX_CALLS = 500


class Conversation:
    """Folds messages in Anthropic's shape into a draft."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self._commands: dict[str, list[str]] = {}

    def user(self, message: Record) -> None:
        """Take a message of the user's side: what the human said, and the results of tools."""
        for block in _blocks(message):
            if block.get("type") == "tool_result":
                self._result(block)
            elif block.get("type") == "text":
                self.said(jsonl.text(block.get("text")))

    def assistant(self, message: Record) -> None:
        """Take an answer of the model."""
        draft, blocks = self.draft, _blocks(message)
        said = "\n".join(jsonl.text(b.get("text")) for b in blocks if b.get("type") == "text").strip()
        draft.turns += 1
        if said:
            draft.say(said)
        calls = [block for block in blocks if block.get("type") == "tool_use"]
        draft.turn_complete = not calls
        for block in calls:
            self._call(block)

    def said(self, text: str) -> None:
        """Take a text block of the user's side."""
        found = _INPUT.search(text)
        said = (found[1] if found else text).strip()
        if said:
            self.draft.prompt(said)
            self.draft.turn_complete = False

    def _call(self, block: Record) -> None:
        name, given = jsonl.text(block.get("name")), jsonl.record(block.get("input"))
        call = jsonl.text(block.get("id"))
        commands = _commands(given) if name in _COMMANDS else []
        path = jsonl.text(given.get("path")) or jsonl.text(given.get("absolutePath"))
        self.draft.called(call, name, "; ".join(commands) or path)
        if name in _EDITS:
            # Counted when it is asked for: an edit that was cut off may have been written all the same.
            self.draft.touch(path)
        if commands and len(self._commands) < _MAX_CALLS:
            self._commands[call] = commands

    def _result(self, block: Record) -> None:
        call, content = jsonl.text(block.get("tool_use_id")), block.get("content")
        results = jsonl.records(content) or [jsonl.parse_text(content)]
        failed = block.get("is_error") is True or any(result.get("success") is False for result in results)
        self.draft.returned(call, ok=not failed)
        for number, command in enumerate(self._commands.pop(call, [])):
            self.draft.ran(command, *_outcome(results[number] if number < len(results) else {}))


def read_session(folder: Path, worktree: Path) -> tuple[SessionRecord, bool]:
    """The session in a folder of the CLI's, and whether one of its files is torn."""
    draft = Draft("cline", str(worktree), native_id=folder.name)
    about = Document(folder / f"{folder.name}.json")
    messages = Document(folder / f"{folder.name}.messages.json", ["messages"])
    told = dict(about)
    _place(draft, told)
    conversation = Conversation(draft)
    for name, value in messages:
        if name == "messages":
            _message(draft, conversation, jsonl.record(value))
    if messages.torn and not draft.prompts and (said := jsonl.text(told.get("prompt")).strip()):
        draft.prompt(said)
    torn = [document for document in (about, messages) if document.torn]
    for document in torn:
        draft.lose(document.torn)
    return draft.record(), bool(torn)


def _place(draft: Draft, told: Record) -> None:
    about = jsonl.record(told.get("metadata"))
    draft.native_id = jsonl.text(told.get("session_id")) or draft.native_id
    draft.cwd, draft.model = jsonl.text(told.get("cwd")), jsonl.text(told.get("model"))
    draft.branch = jsonl.text(jsonl.record(about.get("git")).get("branch"))
    draft.version = jsonl.text(jsonl.record(about.get("sessionHistoryOrigin")).get("version"))
    for key in ("started_at", "ended_at"):
        draft.saw(jsonl.iso_time(told.get(key)))
    draft.records = 0


def _message(draft: Draft, conversation: Conversation, message: Record) -> None:
    draft.saw(jsonl.epoch_time(message.get("ts")))
    shown = jsonl.record(message.get("metadata")).get("displayRole")
    if shown == "error":
        _refused(draft, message)
    elif message.get("role") == "user":
        conversation.user(message)
    elif message.get("role") == "assistant":
        draft.model = jsonl.text(jsonl.record(message.get("modelInfo")).get("id")) or draft.model
        conversation.assistant(message)
        draft.usage = plus(draft.usage, _usage(jsonl.record(message.get("metrics"))))


def _refused(draft: Draft, message: Record) -> None:
    draft.turn_complete = False
    said = "\n".join(jsonl.text(block.get("text")) for block in _blocks(message))
    if found := refusal(said, body=said, moment=Moment(jsonl.epoch_time(message.get("ts")))):
        draft.limit(found)


def _usage(metrics: Record) -> Usage:
    return Usage(
        jsonl.count(metrics.get("inputTokens")),
        jsonl.count(metrics.get("outputTokens")),
        jsonl.count(metrics.get("cacheReadTokens")),
        jsonl.count(metrics.get("cacheWriteTokens")),
    )


def _blocks(message: Record) -> list[Record]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return jsonl.records(content)


def _commands(given: Record) -> list[str]:
    """The commands of a call: a list of texts or of objects, or one text."""
    said = [jsonl.text(c) or jsonl.text(jsonl.record(c).get("command")) for c in jsonl.items(given.get("commands"))]
    return [command for command in (*said, jsonl.text(given.get("command"))) if command]


def _outcome(result: Record) -> tuple[int | None, str | None]:
    """The exit code of a command, where it is told, and what it printed."""
    found = _EXITED.search(jsonl.text(result.get("error")))
    code = int(found[1]) if found else 0 if result.get("success") is True else None
    return code, jsonl.text(result.get("result")) if result else None
