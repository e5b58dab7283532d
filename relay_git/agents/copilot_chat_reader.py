"""Sessions of Copilot Chat in VS Code, in all three forms that it has kept them in.

Promise: never an exception; a log that is cut gives the session as it stood before. What a session holds of other
things than the conversation is let go as it is read.

Format, from public sources and not seen live. Since VS Code 1.109 `chatSessions/<id>.jsonl`, a log of changes (its
`objectMutationLog.ts`): `kind` 0 the whole session `v`; 1 sets what lies at path `k`; 2 puts `v` at the end of the
array at `k`, which is cut to `i` entries before where `i` is given; 3 deletes. Before that `<id>.json`, the session as
one object, and before March 2025 all of a folder's in one row of `state.vscdb`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from relay_git.agents import jsonl
from relay_git.agents.draft import MAX_TEXT_CHARS, Draft, cut, plan_status, plus
from relay_git.agents.editors import local_path
from relay_git.agents.jsonl import Record
from relay_git.agents.refusal import refusal
from relay_git.session import LimitKind, LimitNotice, PlanItem, SessionRecord, Usage

# Whole copies of what the model was sent, by far the most of a session.
_HEAVY = {"renderedUserMessage", "renderedGlobalContext", "toolCallResults", "codeBlocks", "variableData", "agent"}
_HEAVY |= {"contentReferences", "codeCitations", "edits", "summaries", "inputState", "responderAvatarIconUri"}
_MAX_LOG = 268_435_456
_MAX_DEPTH = 12
_MAX_NESTED = 40


class LogReader:
    """Folds a log of changes; the session is made anew for each record that is asked for."""

    def __init__(self, worktree: Path, native_id: str, cwd: str) -> None:
        self._draft = Draft("copilot-chat", str(worktree), native_id=native_id, cwd=cwd)
        self._worktree, self._cwd = worktree, cwd
        self._session: dict[str, object] = {}
        self._room = _MAX_LOG

    def feed(self, line: bytes) -> None:
        """Take one change; never raises."""
        entry = self._draft.take(line)
        if entry is None:
            return
        self._draft.records += 1
        self._room -= len(line)
        if entry.get("kind") == 0:
            self._session, self._room = dict(jsonl.record(_lean(entry.get("v")))), _MAX_LOG
        elif self._room < 0:
            self._draft.lose(f"changes after {_MAX_LOG} bytes of the log were left out")
        elif not self._change(entry):
            self._draft.skip()

    def record(self) -> SessionRecord:
        """The session as it stands now."""
        draft = Draft("copilot-chat", str(self._worktree), native_id=self._draft.native_id, cwd=self._cwd)
        fold(draft, self._session)
        log, told = self._draft.record(), draft.record()
        skipped, lines, losses = log.skipped, log.skipped_lines, (*told.losses, *log.losses)
        return replace(told, records=log.records, skipped=skipped, skipped_lines=lines, losses=losses)

    def _change(self, entry: Record) -> bool:
        """Make one change; whether there is a place for it."""
        path = jsonl.items(entry.get("k"))
        if not path or len(path) > _MAX_DEPTH:
            return False
        if any(isinstance(step, str) and step in _HEAVY for step in path):
            return True
        place: object = self._session
        for step in path[:-1]:
            place = _inside(place, step)
        match entry.get("kind"):
            case 1:
                return _put(place, path[-1], _lean(entry.get("v")))
            case 2:
                return _push(place, path[-1], _lean(entry.get("v")), entry.get("i"))
            case 3:
                return _put(place, path[-1], None)
            case _:
                return False


def fold(draft: Draft, session: Record) -> None:
    """Put a whole session into a draft."""
    draft.native_id = jsonl.text(session.get("sessionId")) or draft.native_id
    for key in ("creationDate", "lastMessageDate"):
        draft.saw(jsonl.epoch_time(session.get(key)))
    for request in jsonl.records(session.get("requests")):
        take_request(draft, request)


def take_request(draft: Draft, request: Record) -> None:
    """Take one request of the user's, with what came of it."""
    draft.saw(jsonl.epoch_time(request.get("timestamp")))
    message = request.get("message")
    said = (jsonl.text(message) or jsonl.text(jsonl.record(message).get("text"))).strip()
    if said:
        draft.prompt(said)
    draft.model = jsonl.text(request.get("modelId")) or draft.model
    parts = jsonl.records(request.get("response"))
    texts = [_text(part) for part in parts]
    if answer := "".join(texts).strip():
        draft.turns += 1
        draft.say(answer)
    for number, part in enumerate(parts):
        _part(draft, part, f"{jsonl.text(request.get('requestId'))}.{number}")
    result = jsonl.record(request.get("result"))
    spent = jsonl.record(result.get("metadata"))
    usage = Usage(jsonl.count(spent.get("promptTokens")), jsonl.count(spent.get("outputTokens")))
    draft.usage = plus(draft.usage, usage)
    error = jsonl.record(result.get("errorDetails"))
    draft.turn_complete = bool(result) and not error and request.get("isCanceled") is not True
    if error:
        _refused(draft, error)


def _refused(draft: Draft, error: Record) -> None:
    said = jsonl.text(error.get("message"))
    found = refusal(said, body=jsonl.text(error.get("code")))
    if error.get("isQuotaExceeded") is True:
        found = LimitNotice(LimitKind.USAGE, cut(said or "isQuotaExceeded", 300))
    elif error.get("isRateLimited") is True and found is None:
        found = LimitNotice(LimitKind.RATE, cut(said or "isRateLimited", 300))
    if found:
        draft.limit(found)


def _text(part: Record) -> str:
    """The words in a part of an answer; a part without a kind is Markdown, in older versions within an object."""
    if part.get("kind") not in (None, "markdownContent"):
        return ""
    value = part.get("value") if "value" in part else part.get("content")
    return jsonl.text(value) or jsonl.text(jsonl.record(value).get("value"))


def _part(draft: Draft, part: Record, key: str) -> None:
    match part.get("kind"):
        case "textEditGroup" | "notebookEditGroup":
            draft.touch(_file(part.get("uri")))
        case "codeblockUri" if part.get("isEdit") is True:
            draft.touch(_file(part.get("uri")))
        case "toolInvocationSerialized" | "toolInvocation":
            _tool(draft, part, jsonl.text(part.get("toolCallId")) or key)


def _tool(draft: Draft, part: Record, call: str) -> None:
    about = jsonl.record(part.get("toolSpecificData"))
    line = jsonl.record(about.get("commandLine"))
    forms = (line.get("userEdited"), line.get("toolEdited"), line.get("original"), about.get("command"))
    command = next((told for form in forms if (told := jsonl.text(form))), "")
    message = part.get("invocationMessage")
    target = command or jsonl.text(message) or _text(jsonl.record(message))
    draft.called(call, jsonl.text(part.get("toolId")), target)
    result = jsonl.record(part.get("resultDetails"))
    if part.get("isComplete") is True:
        draft.returned(call, ok=result.get("isError") is not True)
    if command and part.get("isComplete") is True:
        state = jsonl.record(about.get("terminalCommandState"))
        output = jsonl.text(jsonl.record(about.get("terminalCommandOutput")).get("text"))
        draft.ran(command, jsonl.integer(state.get("exitCode")), output or None)
    if about.get("kind") == "todoList":
        draft.set_plan(_plan(about.get("todoList")))


def _plan(todos: object) -> list[PlanItem]:
    return [
        PlanItem(cut(text, 2_000), plan_status(jsonl.text(todo.get("status")).replace("-", "_")))
        for todo in jsonl.records(todos)
        if (text := jsonl.text(todo.get("title")))
    ]


def _file(uri: object) -> str:
    parts = jsonl.record(uri)
    return jsonl.text(parts.get("fsPath")) or jsonl.text(parts.get("path")) or local_path(uri)


def _inside(place: object, step: object) -> object:
    if isinstance(place, dict):
        return place.get(step) if isinstance(step, str) else None
    if isinstance(place, list) and isinstance(step, int) and 0 <= step < len(place):
        return place[step]
    return None


def _put(place: object, step: object, value: object) -> bool:
    if isinstance(place, dict) and isinstance(step, str):
        place[step] = value
        return True
    if isinstance(place, list) and isinstance(step, int) and 0 <= step < len(place):
        place[step] = value
        return True
    return False


def _push(place: object, step: object, values: object, keep: object) -> bool:
    array = _inside(place, step)
    array = array if isinstance(array, list) else []
    if isinstance(keep, int) and keep >= 0:
        del array[keep:]
    array.extend(values if isinstance(values, list) else [])
    return _put(place, step, array)


def _lean(value: object, depth: int = 0) -> object:
    """A value without what is no part of the conversation; places in arrays stay what they are."""
    if depth > _MAX_NESTED:
        return None
    if isinstance(value, dict):
        return {key: _lean(inner, depth + 1) for key, inner in value.items() if key not in _HEAVY}
    if isinstance(value, list):
        return [_lean(inner, depth + 1) for inner in value]
    return cut(value, MAX_TEXT_CHARS) if isinstance(value, str) else value
