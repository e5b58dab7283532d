"""Tasks of the Cline extension in an editor, and of Roo Code and Kilo Code, which keep theirs in the same shape.

Promise: as `cline_reader`'s. Each of the two files of a task is read as far as it goes, and either will do.

Format, from public sources and not seen live: `tasks/<id>/` with `ui_messages.json`, what the user saw: an array of
`{ts, type: say|ask, say|ask, text}`, where the text of a tool is JSON; and `api_conversation_history.json`, what the
model saw: messages in Anthropic's shape, with the tools as XML in older versions. `task_metadata.json` names models.
"""

from __future__ import annotations

import re
from pathlib import Path

from relay_git.agents import jsonl, shelf
from relay_git.agents.cline_reader import Conversation
from relay_git.agents.draft import MAX_COMMAND_CHARS, MAX_PLAN, Draft, cut, plan_status, plus
from relay_git.agents.jsonl import Record
from relay_git.agents.moments import Moment
from relay_git.agents.refusal import refusal
from relay_git.agents.rewritten import Document
from relay_git.session import PlanItem, PlanStatus, SessionRecord, Usage

UI, API, ABOUT, HISTORY = "ui_messages.json", "api_conversation_history.json", "task_metadata.json", "history_item.json"
_EDITED = ("newFileCreated", "editedExistingFile", "appliedDiff", "fileDeleted", "insertContent", "searchAndReplace")
_TASK = re.compile(r"<(task|feedback|user_message)>(.*?)(?:</\1>|\Z)", re.S)
_XML_EDIT = re.compile(
    r"<(?:write_to_file|replace_in_file|apply_diff|insert_content|search_and_replace)>\s*<path>(.*?)</path>", re.S
)
_CWD = re.compile(r"# Current (?:Working|Workspace) Directory \(([^\n]{1,4096}?)\) Files")
_CHECK = re.compile(r"\s*[-*] \[([ xX~-])\] (.+)")
_PLAN_TEXT = 2_000


def read_task(folder: Path, worktree: Path) -> tuple[SessionRecord, bool]:
    """The task in a folder of the extension's, and whether one of its files is torn."""
    draft = Draft("cline", str(worktree), native_id=folder.name)
    shown, told = Document(folder / UI), Document(folder / API)
    _about(draft, folder)
    api = Draft("cline", str(worktree))
    conversation = _ToldConversation(api)
    for _, message in told:
        conversation.take(jsonl.record(message))
    screen = _Screen(draft)
    draft.cwd = draft.cwd or api.cwd
    for _, event in shown:
        screen.take(jsonl.record(event))
    if not screen.prompts:
        for prompt in api.prompts:
            draft.prompt(prompt)
        draft.last_text, draft.turn_complete = draft.last_text or api.last_text, api.turn_complete
    for path in api.files:
        draft.touch(path)
    draft.turns, draft.pending, draft.calls = api.turns, api.pending, api.calls
    torn = [document for document in (shown, told) if document.torn]
    for document in torn:
        draft.lose(document.torn)
    return draft.record(), bool(torn)


def checklist(text: str) -> list[PlanItem]:
    """The items of a Markdown checklist."""
    found = [match for line in text.splitlines() if (match := _CHECK.fullmatch(line))][:MAX_PLAN]
    marks = {" ": PlanStatus.PENDING, "-": PlanStatus.IN_PROGRESS, "~": PlanStatus.IN_PROGRESS}
    return [PlanItem(cut(m[2].strip(), _PLAN_TEXT), marks.get(m[1], PlanStatus.COMPLETED)) for m in found]


class _Screen:
    """Folds what the user saw."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._command = ""
        self._output = ""
        self.prompts = 0

    def take(self, event: Record) -> None:
        """Take one event; one that is still being written is passed over."""
        self._draft.saw(jsonl.epoch_time(event.get("ts")))
        if event.get("partial") is True:
            return
        kind = jsonl.text(event.get("say")) or jsonl.text(event.get("ask"))
        text = jsonl.text(event.get("text"))
        if kind == "command_output":
            self._output += text if len(self._output) < MAX_COMMAND_CHARS else ""
            return
        self._end_command()
        if kind in ("tool", "command"):
            self._draft.open_prompt = ""
        self._say(kind, text, asked=event.get("type") == "ask")
        if kind in ("completion_result", "resume_completed_task"):
            self._draft.turn_complete = True

    def _say(self, kind: str, text: str, *, asked: bool) -> None:
        draft = self._draft
        match kind:
            case "text" if not asked and not self.prompts:
                self._prompt(text)  # the first text of a task is the task, in versions that have no word for it
            case "task" | "user_feedback":
                self._prompt(text)
            case "text" | "completion_result" | "followup" | "plan_mode_respond" if text.strip():
                draft.say(text.strip())
            case "tool":
                self._tool(jsonl.parse_text(text))
            case "command":
                self._command = text.removesuffix("REQ_APP").strip()
            case "api_req_started":
                self._spent(jsonl.parse_text(text))
            case "task_progress":
                draft.set_plan(checklist(text))
            case "error" | "api_req_failed":
                draft.turn_complete = False
                if found := refusal(text, body=text, moment=Moment(draft.last_activity)):
                    draft.limit(found)

    def _prompt(self, text: str) -> None:
        if text.strip():
            self.prompts += 1
            self._draft.prompt(text.strip())
            self._draft.turn_complete = False

    def _tool(self, told: Record) -> None:
        name = jsonl.text(told.get("tool"))
        if name in _EDITED:
            self._draft.touch(jsonl.text(told.get("path")))
        elif name == "updateTodoList":
            todos = jsonl.records(told.get("todos"))
            plan = [
                PlanItem(cut(jsonl.text(t.get("content")), _PLAN_TEXT), plan_status(jsonl.text(t.get("status"))))
                for t in todos
            ]
            self._draft.set_plan(plan)

    def _spent(self, told: Record) -> None:
        now = Usage(
            jsonl.count(told.get("tokensIn")),
            jsonl.count(told.get("tokensOut")),
            jsonl.count(told.get("cacheReads")),
            jsonl.count(told.get("cacheWrites")),
        )
        self._draft.usage = plus(self._draft.usage, now)

    def _end_command(self) -> None:
        if self._command:
            self._draft.ran(self._command, None, self._output or None)
        self._command = self._output = ""


class _ToldConversation(Conversation):
    """Folds what the model was told: the human's words stand in tags, beside what the extension put in."""

    def take(self, message: Record) -> None:
        """Take one message."""
        if message.get("role") == "user":
            self.user(message)
        elif message.get("role") == "assistant":
            self.assistant(message)
            for found in _XML_EDIT.finditer(self.draft.last_text):
                self.draft.touch(found[1].strip())

    def said(self, text: str) -> None:
        """Take a text block of the user's side."""
        if found := _TASK.search(text):
            self.draft.prompt(found[2].strip())
            self.draft.turn_complete = False
        elif found := _CWD.search(text):
            self.draft.cwd = self.draft.cwd or found[1]


def _about(draft: Draft, folder: Path) -> None:
    """What the smaller files beside the two tell, where they are there."""
    for name in (ABOUT, HISTORY):
        if shelf.is_regular(folder / name):
            told = dict(Document(folder / name))
            models = jsonl.records(told.get("model_usage"))
            draft.model = jsonl.text(models[-1].get("model_id")) if models else draft.model
            draft.cwd = (
                jsonl.text(told.get("workspace")) or jsonl.text(told.get("cwdOnTaskInitialization")) or draft.cwd
            )
