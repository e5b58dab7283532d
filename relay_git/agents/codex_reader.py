"""Codex's rollout, read into a SessionRecord.

Promise: one pass, bounded memory, never an exception. Commands and file changes are taken from the `item_completed`
records, which are the same whether the model calls tools one by one or writes JavaScript ("code mode"); what is
written twice, as an item of the model's input and as an event, counts once.

Format, as written by 0.171.0 to `$CODEX_HOME/sessions/Y/M/D/rollout-<time>-<id>.jsonl`: `{timestamp, type, payload}`
a line. Older rollouts have events of other names and, before that, no envelope; both are understood as far as they go.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import deque
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from relay_git.agents import jsonl, meters
from relay_git.agents.codex_limits import rollout_notice
from relay_git.agents.draft import (
    MAX_FILES,
    MAX_PROMPT_CHARS,
    MAX_PROMPTS,
    Draft,
    cut,
    plan_status,
)
from relay_git.agents.jsonl import Record
from relay_git.agents.moments import UNKNOWN, Moment
from relay_git.session import PlanItem, SessionRecord, Usage

# How texts begin that Codex itself puts in as the user's words.
_NOT_SAID = (
    "<environment_context>",
    "<user_instructions>",
    "<user_shell_command>",
    "<subagent_notification>",
    "<turn_aborted>",
    "<skill",
    "<permissions",
    "# AGENTS.md instructions",
)
_PLAN_CALL = re.compile(r"\bupdate_plan\s*\(\s*(?=\{)")
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+?)\s*$|^\*\*\* Move to: (.+?)\s*$", re.M)


class CodexReader:
    """Folds one rollout of Codex."""

    def __init__(self, worktree: Path, moment: Moment = UNKNOWN) -> None:
        self._draft = Draft("codex", str(worktree))
        self._moment = moment
        self._quota: Record = {}
        self._at: datetime | None = None
        self._responses = 0
        self._messages = 0
        self._event_prompts = False
        self._event_answers = False
        self._event_files = False
        self._input_prompts: deque[str] = deque(maxlen=MAX_PROMPTS)
        self._patched: dict[str, None] = {}
        self._fork_time = ""
        self._subagent = False
        self._inherited = Usage()

    def feed(self, line: bytes) -> None:
        """Take one line; never raises."""
        record = self._draft.take(line)
        if record is None:
            return
        self._at = jsonl.iso_time(record.get("timestamp"))
        self._draft.saw(self._at)
        kind, payload = jsonl.text(record.get("type")), record.get("payload")
        if not isinstance(payload, dict):
            self._bare(kind, record)
        elif kind == "session_meta":
            self._meta(payload)
        elif self._fork_time and record.get("timestamp") == self._fork_time:
            self._inherit(kind, payload)
        else:
            self._enveloped(kind, payload)

    def record(self) -> SessionRecord:
        """Everything understood so far."""
        record = self._draft.record()
        patched = tuple(dict.fromkeys(self._draft.relative(path) for path in self._patched))
        return replace(
            record,
            prompts=record.prompts if self._event_prompts else tuple(self._input_prompts),
            files_touched=record.files_touched if self._event_files else patched,
            model_turns=self._responses or self._messages,
        )

    def _bare(self, kind: str, record: Record) -> None:
        """A record of the time before the envelope: the first is the session's, the rest are items."""
        if kind:
            self._item(record)
        elif jsonl.text(record.get("id")) and not self._draft.native_id:
            self._meta(record)

    def _meta(self, meta: Record) -> None:
        draft, own = self._draft, jsonl.text(meta.get("id"))
        if draft.native_id:
            if own and own != draft.native_id and not self._fork_time:
                draft.meet_stranger(own)
            return
        draft.native_id = own
        draft.cwd = jsonl.text(meta.get("cwd"))
        draft.version = jsonl.text(meta.get("cli_version"))
        draft.branch = jsonl.text(jsonl.record(meta.get("git")).get("branch"))
        if meta.get("thread_source") == "subagent":
            self._subagent = True
            draft.lose("this is a subagent's session: its prompts are not the user's and were left out")
        if meta.get("forked_from_id"):
            # What was copied from the parent bears the time of the copy.
            self._fork_time = jsonl.text(meta.get("timestamp"))
            draft.forked_from = jsonl.text(meta.get("forked_from_id"))

    def _inherit(self, kind: str, payload: Record) -> None:
        if kind == "event_msg" and payload.get("type") == "user_message":
            self._draft.inherited.append(cut(jsonl.text(payload.get("message")).strip(), MAX_PROMPT_CHARS))
        elif kind == "event_msg" and payload.get("type") == "token_count":
            total = jsonl.record(jsonl.record(payload.get("info")).get("total_token_usage"))
            self._inherited = _usage(total) if total else self._inherited

    def _enveloped(self, kind: str, payload: Record) -> None:
        match kind:
            case "turn_context":
                self._draft.model = jsonl.text(payload.get("model")) or self._draft.model
                self._draft.cwd = self._draft.cwd or jsonl.text(payload.get("cwd"))
            case "response_item":
                self._item(payload)
            case "event_msg":
                self._event(payload)
            case "compacted":
                self._draft.compactions += 1
            case "token_usage_record":
                self._responses += 1
                self._count(jsonl.record(payload.get("thread_token_usage")))

    def _item(self, item: Record) -> None:
        """An item of the model's input or output."""
        draft, call = self._draft, jsonl.text(item.get("call_id"))
        match item.get("type"):
            case "message":
                self._message(item)
            case "function_call":
                name, given = jsonl.text(item.get("name")), jsonl.parse_text(item.get("arguments"))
                target = jsonl.text(given.get("cmd")) or jsonl.text(given.get("command"))
                draft.called(call, name, target)
                if name == "update_plan":
                    self._plan(given)
            case "custom_tool_call":
                self._custom_call(jsonl.text(item.get("name")), jsonl.text(item.get("input")), call)
            case "function_call_output" | "custom_tool_call_output" | "local_shell_call_output":
                draft.returned(call, ok=None)
            case "local_shell_call":
                draft.called(call, "shell")

    def _custom_call(self, name: str, given: str, call: str) -> None:
        first = next(iter(given.splitlines()), "")
        self._draft.called(call, name, first if name == "exec" else "")
        if name == "apply_patch":
            for found in _PATCHED.finditer(given):
                if len(self._patched) < MAX_FILES:
                    self._patched[found[1] or found[2]] = None
        for found in _PLAN_CALL.finditer(given) if name == "exec" else ():
            try:
                plan, _ = json.JSONDecoder().raw_decode(given, found.end())
            except (ValueError, RecursionError):
                self._draft.lose("a plan written in JavaScript could not be read")
            else:
                self._plan(jsonl.record(plan))

    def _message(self, item: Record) -> None:
        said = _texts(item.get("content")).strip()
        if item.get("role") == "assistant":
            if not self._event_answers:
                self._answer(said)
        elif item.get("role") == "user" and said and not self._subagent and not said.startswith(_NOT_SAID):
            kinds = jsonl.record(item.get("internal_chat_message_metadata_passthrough")).get("content_item_kinds")
            if all(kind == "user.text" for kind in jsonl.items(kinds)):
                self._input_prompts.append(cut(said, MAX_PROMPT_CHARS))

    def _event(self, event: Record) -> None:
        draft = self._draft
        match event.get("type"):
            case "item_completed":
                self._completed(jsonl.record(event.get("item")))
            case "task_started" | "turn_started" | "turn_aborted":
                draft.turn_complete = False
            case "task_complete" | "turn_complete":
                self._end(event)
            case "token_count":
                self._quota = jsonl.record(event.get("rate_limits")) or self._quota
                self._draft.meter(meters.codex(self._quota, self._at))
                self._count(jsonl.record(jsonl.record(event.get("info")).get("total_token_usage")))
            case "error":
                self._fail(event)
            case _:
                self._older_event(event)

    def _older_event(self, event: Record) -> None:
        """Events that older versions wrote in place of `item_completed`."""
        match event.get("type"):
            case "user_message":
                self._prompt(jsonl.text(event.get("message")))
            case "agent_message":
                self._event_answer(jsonl.text(event.get("message")))
            case "exec_command_end":
                self._ran(event, event.get("stdout"))
            case "patch_apply_end":
                self._changed(event)
            case "plan_update":
                self._plan(event)

    def _completed(self, item: Record) -> None:
        match item.get("type"):
            case "UserMessage":
                self._prompt(_texts(item.get("content")))
            case "AgentMessage":
                self._event_answer(_texts(item.get("content")))
            case "CommandExecution":
                self._ran(item, None)
            case "FileChange" if item.get("status") != "failed":
                self._changed(item)
            case "CollabAgentToolCall":
                for thread in jsonl.items(item.get("receiver_thread_ids")):
                    self._draft.meet_subagent(jsonl.text(thread))
            case "McpToolCall":
                self._draft.use_mcp_server(jsonl.text(item.get("server")))

    def _prompt(self, said: str) -> None:
        said = said.strip()
        if said and not said.startswith(_NOT_SAID) and not self._subagent:
            self._event_prompts = True
            self._draft.prompt(said)

    def _event_answer(self, said: str) -> None:
        if not self._event_answers:
            self._event_answers, self._messages = True, 0  # what was counted from the items is the same again
        self._answer(said.strip())

    def _answer(self, said: str) -> None:
        if said:
            self._messages += 1
            self._draft.say(said)

    def _ran(self, run: Record, output: object) -> None:
        given = run.get("command")
        words = [jsonl.text(word) for word in jsonl.items(given)]
        shell = len(words) == 3 and words[1] in ("-lc", "-c")
        command = words[2] if shell else shlex.join(words) if words else jsonl.text(given)
        printed = jsonl.text(run.get("aggregated_output")) or jsonl.text(output)
        self._draft.ran(command, jsonl.integer(run.get("exit_code")), printed)

    def _changed(self, change: Record) -> None:
        self._event_files = True
        for path, how in jsonl.record(change.get("changes")).items():
            self._draft.touch(jsonl.text(path))
            self._draft.touch(jsonl.text(jsonl.record(how).get("move_path")))

    def _plan(self, given: Record) -> None:
        plan = [
            PlanItem(cut(jsonl.text(item.get("step")), 2_000), plan_status(jsonl.text(item.get("status"))))
            for item in jsonl.records(given.get("plan"))
        ]
        self._draft.set_plan([item for item in plan if item.text])

    def _count(self, total: Record) -> None:
        """Totals are of the whole thread, so the newest is the sum; a fork's begin with its parent's."""
        if not total:
            return
        usage, before = _usage(total), self._inherited
        self._draft.usage = Usage(
            max(usage.input - before.input, 0),
            max(usage.output - before.output, 0),
            max(usage.cache_read - before.cache_read, 0),
            max(usage.cache_write - before.cache_write, self._draft.usage.cache_write, 0),
        )

    def _end(self, event: Record) -> None:
        error = jsonl.record(event.get("error"))
        self._draft.turn_complete = not error and bool(event.get("last_agent_message"))
        if error:
            self._fail(error)

    def _fail(self, error: Record) -> None:
        notice = rollout_notice(error, self._quota, self._moment.of(self._at))
        if notice:
            self._draft.limit(notice)


def _usage(total: Record) -> Usage:
    return Usage(
        jsonl.count(total.get("input_tokens")),
        jsonl.count(total.get("output_tokens")),
        jsonl.count(total.get("cached_input_tokens")),
        jsonl.count(total.get("cache_write_input_tokens")),
    )


def _texts(content: object) -> str:
    if isinstance(content, str):
        return jsonl.text(content)
    return "\n".join(text for part in jsonl.records(content) if (text := jsonl.text(part.get("text"))))
