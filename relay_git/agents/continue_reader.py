"""Sessions of Continue, whose CLI and editor extension keep them in the same folder and shape.

Promise: bounded memory, never an exception; a session that is cut gives what stands whole before the cut.

Format, as written by the CLI 1.5.47 to `<home>/sessions/<id>.json`: one object with `workspaceDirectory` and `history`,
whose items hold a `message` in OpenAI's shape and `toolCallStates` with arguments, outputs and status. Neither times
nor a branch are in it; `sessions.json` beside it has the time of the start. The names of the extension's own tools are
from public sources and not seen live.
"""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

from relay_git.agents import jsonl
from relay_git.agents.cline_tasks import checklist
from relay_git.agents.draft import Draft, plus
from relay_git.agents.jsonl import Record
from relay_git.agents.rewritten import Document
from relay_git.session import SessionRecord, Usage

INDEX = "sessions.json"
_EDITS = (
    "Write",
    "Edit",
    "MultiEdit",
    "create_new_file",
    "edit_existing_file",
    "single_find_and_replace",
    "multi_edit",
)
_COMMANDS = ("Bash", "run_terminal_command")
_EXITED = re.compile(r"\(exit code (\d{1,5})\): |exit code:? (\d{1,5})\b")
_ENDS = {"done": True, "errored": False, "canceled": False}


def read_session(path: Path, worktree: Path) -> tuple[SessionRecord, bool]:
    """The session in a file, and whether it is torn."""
    draft = Draft("continue", str(worktree), native_id=path.stem)
    document, total = Document(path, ["history"]), Usage()
    for name, value in document:
        match name:
            case "sessionId":
                draft.native_id = jsonl.text(value) or draft.native_id
            case "workspaceDirectory":
                draft.cwd = jsonl.text(value).removeprefix("file://")
            case "history":
                draft.saw(None)
                _item(draft, jsonl.record(value))
            case "usage":
                total = _usage(jsonl.record(value), "promptTokens", "completionTokens", "promptTokensDetails")
    if draft.usage == Usage():
        draft.usage = total
    draft.started = draft.last_activity = _created(path)
    if document.torn:
        draft.lose(document.torn)
    return draft.record(), bool(document.torn)


def _created(path: Path) -> datetime | None:
    for _, entry in Document(path.with_name(INDEX)):
        told = jsonl.record(entry)
        if told.get("sessionId") == path.stem:
            when = jsonl.text(told.get("dateCreated"))
            return jsonl.epoch_time(int(when)) if when.isascii() and when.isdigit() and len(when) < 16 else None
    return None


def _item(draft: Draft, item: Record) -> None:
    message = jsonl.record(item.get("message"))
    if jsonl.text(item.get("conversationSummary")):
        draft.compactions += 1
    match message.get("role"):
        case "user":
            if said := _text(message).strip():
                draft.prompt(said)
                draft.turn_complete = False
        case "assistant":
            _answer(draft, message, jsonl.records(item.get("toolCallStates")))


def _answer(draft: Draft, message: Record, states: list[Record]) -> None:
    spent = jsonl.record(message.get("usage"))
    draft.turns += 1
    draft.usage = plus(draft.usage, _usage(spent, "prompt_tokens", "completion_tokens", "prompt_tokens_details"))
    draft.model = jsonl.text(spent.get("model")) or draft.model
    if said := _text(message).strip():
        draft.say(said)
    draft.turn_complete = not (states or jsonl.records(message.get("toolCalls")))
    known = {jsonl.text(state.get("toolCallId")) for state in states}
    for call in jsonl.records(message.get("toolCalls")):
        if jsonl.text(call.get("id")) not in known:
            given = jsonl.parse_text(jsonl.record(call.get("function")).get("arguments"))
            draft.called(jsonl.text(call.get("id")), _name(call), _target(given))
    for state in states:
        _call(draft, state)


def _call(draft: Draft, state: Record) -> None:
    call, name = jsonl.text(state.get("toolCallId")), _name(jsonl.record(state.get("toolCall")))
    given = jsonl.record(state.get("parsedArgs")) or jsonl.parse_text(
        jsonl.record(jsonl.record(state.get("toolCall")).get("function")).get("arguments")
    )
    status = jsonl.text(state.get("status"))
    draft.called(call, name, _target(given))
    if name in _EDITS and status != "canceled":
        draft.touch(_target(given))
    if status not in _ENDS:
        return
    draft.returned(call, ok=_ENDS[status])
    output = "\n".join(jsonl.text(part.get("content")) for part in jsonl.records(state.get("output")))
    if name in _COMMANDS:
        draft.ran(_target(given), *_outcome(name, output, done=status == "done"))
    elif name == "Checklist":
        draft.set_plan(checklist(jsonl.text(given.get("checklist"))))


def _outcome(name: str, output: str, *, done: bool) -> tuple[int | None, str]:
    """The exit code of a command, where it is told, and what it printed."""
    found = _EXITED.search(output) if name != "Bash" or not done else None
    code = int(found[1] or found[2]) if found else 0 if done and name == "Bash" else None
    # The CLI puts a sentence of its own before what a command that failed has printed.
    return code, output[found.end() :] if found and found[1] else output


def _name(call: Record) -> str:
    return jsonl.text(jsonl.record(call.get("function")).get("name"))


def _target(given: Record) -> str:
    return next((told for key in ("filepath", "file_path", "command") if (told := jsonl.text(given.get(key)))), "")


def _text(message: Record) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return jsonl.text(content)
    return "\n".join(jsonl.text(part.get("text")) for part in jsonl.records(content) if part.get("type") == "text")


def _usage(spent: Record, sent: str, received: str, details: str) -> Usage:
    more = jsonl.record(spent.get(details))
    hit = jsonl.count(more.get("cachedTokens")) or jsonl.count(more.get("cached_tokens"))
    written = jsonl.count(more.get("cacheWriteTokens")) or jsonl.count(more.get("cache_write_tokens"))
    return Usage(jsonl.count(spent.get(sent)), jsonl.count(spent.get(received)), hit, written)
