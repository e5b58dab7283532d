"""Conversations of the Cursor editor, which keeps all of a user's in one database.

Promise: only the rows of the one conversation are read, by their keys; others hold tokens and logins and are never
asked for. Order is that of the conversation's own list of messages, since the rows come in none.

Format, from public sources and not seen live: table `cursorDiskKV` of `globalStorage/state.vscdb`, JSON values.
`composerData:<id>` has `fullConversationHeadersOnly` (older: `conversation` or `conversationMap`, the messages
themselves), `bubbleId:<id>:<message>` a message: `type` 1 the user's, 2 the model's, with a tool in `toolFormerData`.
Token counts are often 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from relay_git.agents import jsonl, sqlite
from relay_git.agents.draft import Draft, cut, plan_status, plus
from relay_git.agents.editors import local_path
from relay_git.agents.jsonl import Record
from relay_git.agents.refusal import refusal
from relay_git.agents.sqlite import Database, Value
from relay_git.session import PlanItem, SessionRecord, Usage

DATABASE = "state.vscdb"
_ONE = "SELECT value FROM cursorDiskKV WHERE key = ?"
# By range and not by LIKE, so that the index is used: the database may hold gigabytes.
_RANGE = "SELECT key, value FROM cursorDiskKV WHERE key >= ? AND key < ?"
_CHAT, _BUBBLE = "composerData:", "bubbleId:"
_PATHS = ("target_file", "targetFile", "file_path", "path", "relativeWorkspacePath", "relative_workspace_path")
_EDITS = ("edit", "write", "create", "delete", "search_replace", "apply_patch")
_MAX_MESSAGES = 100_000


def conversations(path: Path) -> tuple[str, ...]:
    """The ids of the conversations that hold a message, the one last written last."""
    found: list[tuple[int, str]] = []
    with sqlite.opened(path) as database:
        if isinstance(database, str) or not _is_cursors(database):
            return ()
        for key, value in database.rows(_RANGE, _CHAT, _after(_CHAT)):
            chat = _json(value)
            if any(chat.get(name) for name in ("fullConversationHeadersOnly", "conversation", "conversationMap")):
                when = jsonl.count(chat.get("lastUpdatedAt")) or jsonl.count(chat.get("createdAt"))
                found.append((when, jsonl.text(key).removeprefix(_CHAT)))
    return tuple(name for _, name in sorted(found))


def read_conversation(path: Path, native_id: str, worktree: Path) -> tuple[SessionRecord, bool]:
    """One conversation, the newest where none is named; and whether the database could not be opened."""
    native_id = native_id or "".join(conversations(path)[-1:])
    draft = Draft("cursor", str(worktree), native_id=native_id)
    with sqlite.opened(path) as database:
        if isinstance(database, str):
            draft.lose(database)
            return draft.record(), True
        if _is_cursors(database):
            _read(draft, database, native_id)
        else:
            draft.lose("the database is none of Cursor's")
        for trouble in database.trouble:
            draft.lose(trouble)
    return draft.record(), False


def _is_cursors(database: Database) -> bool:
    return {"key", "value"} <= set(database.columns("cursorDiskKV"))


def _after(prefix: str) -> str:
    """The first text that sorts after all that begin with this one, which ends in a colon."""
    return prefix[:-1] + ";"


def _read(draft: Draft, database: Database, native_id: str) -> None:
    chat = _json(database.value(_ONE, _CHAT + native_id))
    if not chat:
        draft.lose("the conversation is not in the database")
        return
    draft.branch = jsonl.text(chat.get("createdOnBranch"))
    draft.model = jsonl.text(jsonl.record(chat.get("modelConfig")).get("modelName"))
    draft.cwd = _folder(jsonl.record(jsonl.record(chat.get("workspaceIdentifier")).get("uri")))
    for name in jsonl.items(chat.get("subComposerIds")):
        draft.meet_subagent(jsonl.text(name))
    for message in _messages(draft, database, native_id, chat):
        _message(draft, message)
    draft.set_plan(_plan(chat.get("todos")) or list(draft.plan))
    for file in (*jsonl.record(chat.get("originalFileStates")), *jsonl.items(chat.get("newlyCreatedFiles"))):
        draft.touch(_file(file))
    draft.turn_complete = chat.get("status") == "completed" and not draft.open_prompt
    records = draft.records
    for key in ("createdAt", "lastUpdatedAt"):
        draft.saw(jsonl.epoch_time(chat.get(key)))
    draft.records = records


def _messages(draft: Draft, database: Database, native_id: str, chat: Record) -> Iterator[Record]:
    """The messages in the conversation's order."""
    headers = jsonl.records(chat.get("fullConversationHeadersOnly"))
    inline = jsonl.records(chat.get("conversation")) or jsonl.records(
        list(jsonl.record(chat.get("conversationMap")).values())
    )
    if not headers:
        yield from sorted(inline, key=lambda message: str(message.get("createdAt", "")))
        return
    for header in headers[:_MAX_MESSAGES]:
        key = f"{_BUBBLE}{native_id}:{jsonl.text(header.get('bubbleId'))}"
        message = _json(database.value(_ONE, key))
        if message:
            yield message
        else:
            draft.lose("a message that the conversation names is not in the database")


def _message(draft: Draft, message: Record) -> None:
    when = message.get("createdAt")
    draft.saw(jsonl.iso_time(when) or jsonl.epoch_time(when))
    said = jsonl.text(message.get("text")).strip()
    for uri in jsonl.items(message.get("workspaceUris")):
        draft.cwd = draft.cwd or local_path(uri)
    if message.get("type") == 1:
        if said:
            draft.prompt(said)
        return
    draft.model = jsonl.text(jsonl.record(message.get("modelInfo")).get("modelName")) or draft.model
    spent = jsonl.record(message.get("tokenCount"))
    draft.usage = plus(
        draft.usage, Usage(jsonl.count(spent.get("inputTokens")), jsonl.count(spent.get("outputTokens")))
    )
    if said:
        draft.turns += 1
        draft.say(said)
    if tool := jsonl.record(message.get("toolFormerData")):
        _tool(draft, jsonl.text(message.get("bubbleId")), tool)
    error = jsonl.record(message.get("errorDetails"))
    told = jsonl.text(error.get("message")) or jsonl.text(error.get("error"))
    if told and (found := refusal(told, body=told)):
        draft.limit(found)


def _tool(draft: Draft, bubble: str, tool: Record) -> None:
    name, call = jsonl.text(tool.get("name")), jsonl.text(tool.get("toolCallId")) or bubble
    given = {**_given(tool.get("params")), **_given(tool.get("rawArgs"))}
    path = next((told for key in _PATHS if (told := jsonl.text(given.get(key)))), "")
    command = jsonl.text(given.get("command"))
    draft.called(call, name, command or path)
    status, result = jsonl.text(tool.get("status")), _given(tool.get("result"))
    if status in ("completed", "success", "error", "cancelled", "rejected"):
        draft.returned(call, ok=status in ("completed", "success"))
    if path and name.startswith(_EDITS) and status not in ("cancelled", "rejected"):
        draft.touch(path)
    if command and "terminal" in name and status:
        output = jsonl.text(result.get("output"))
        code = jsonl.integer(result.get("exitCode"))
        code = code if code is not None else jsonl.integer(result.get("exitCodeV2"))
        draft.ran(command, code, output)
    if name.startswith("todo"):
        draft.set_plan(_plan(given.get("todos")) or list(draft.plan))


def _plan(todos: object) -> list[PlanItem]:
    items = [jsonl.record(todo) or jsonl.parse_text(todo) for todo in jsonl.items(todos)]
    return [
        PlanItem(cut(text, 2_000), plan_status(jsonl.text(item.get("status"))))
        for item in items
        if (text := jsonl.text(item.get("content")))
    ]


def _file(told: object) -> str:
    uri = jsonl.record(told).get("uri") if isinstance(told, dict) else told
    return _folder(jsonl.record(uri)) or local_path(uri) or jsonl.text(uri)


def _folder(uri: Record) -> str:
    return jsonl.text(uri.get("fsPath")) or jsonl.text(uri.get("path"))


def _given(value: object) -> Record:
    return jsonl.record(value) or jsonl.parse_text(value)


def _json(value: Value) -> Record:
    data = value if isinstance(value, bytes) else value.encode("utf-8", "replace") if isinstance(value, str) else b""
    return jsonl.parse(data) or {}
