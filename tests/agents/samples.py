"""Samples of the tools that keep sessions in other forms than one line a record.

Those of aider, Cline's CLI and Continue's CLI are recordings of the real tools. The others are made up in the shapes
that public sources show, and were never written by the tools themselves.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relay_git.agents import TOOLS
from relay_git.session import SessionRecord
from tests.agents.recordings import DATA

GOAL = "Add a farewell function next to greet and commit it"
CHAT = "33333333-3333-4333-8333-333333333333"


@dataclass(frozen=True, slots=True)
class Sample:
    """A session as it lies on a disk: which tool's, where, its id, and the files that it is made of."""

    tool: str
    entry: Path
    native_id: str
    files: tuple[Path, ...]

    def read(self, worktree: str = "/home/dev/repo") -> SessionRecord:
        """All that its reader understands."""
        following = TOOLS[self.tool].follow(self.entry, self.native_id, Path(worktree))
        following.poll()
        return following.record(ended=True)


def written(path: Path, value: object) -> Path:
    """A file with this JSON in it, or with these lines of JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = value if path.suffix == ".jsonl" and isinstance(value, list) else [value]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def database(path: Path, tables: dict[str, tuple[str, list[tuple[Any, ...]]]]) -> Path:
    """A database with these tables: the columns, and rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    for name, (columns, rows) in tables.items():
        connection.execute(f"CREATE TABLE {name} ({columns})")
        for row in rows:
            connection.execute(f"INSERT INTO {name} VALUES ({','.join('?' * len(row))})", row)
    connection.commit()
    connection.close()
    return path


def aider(top: Path) -> Sample:
    """A recording: an answer, and a restored chat that ended at a spent quota."""
    path = Path(shutil.copy(DATA / "aider/restore-and-quota-killed/.aider.chat.history.md", top))
    return Sample("aider", path, "2026-11-29T18:32:56Z", (path,))


def cline(top: Path) -> Sample:
    """A recording of the CLI that ended at a rate limit."""
    name = "1795976791557_7iyn2"
    folder = Path(shutil.copytree(DATA / "cline/rate-limit-429" / name, top / ".cline/data/sessions" / name))
    return Sample("cline", folder, folder.name, tuple(sorted(folder.iterdir())))


def cline_task(top: Path) -> Sample:
    """A task of the editor's extension, with native tools."""
    folder = top / ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline/tasks/1781082000000"
    told = [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": f"<task>\n{GOAL}\n</task>"},
                {"type": "text", "text": "<environment_details>\n# Current Working Directory (/w/app) Files\na\n"},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I write it."},
                {"type": "tool_use", "id": "c1", "name": "write_to_file", "input": {"path": "src/farewell.py"}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "done"}]},
    ]
    spent = {"request": "…", "tokensIn": 1200, "tokensOut": 40, "cacheReads": 7, "cacheWrites": 3, "cost": 0.1}
    shown = [
        {"ts": 1781082000000, "type": "say", "say": "text", "text": GOAL},
        {"ts": 1781082001000, "type": "say", "say": "api_req_started", "text": json.dumps(spent)},
        {"ts": 1781082002000, "type": "say", "say": "task_progress", "text": "- [x] Write it\n- [ ] Test it"},
        {
            "ts": 1781082003000,
            "type": "say",
            "say": "tool",
            "text": json.dumps({"tool": "newFileCreated", "path": "src/farewell.py"}),
        },
        {"ts": 1781082004000, "type": "ask", "ask": "command", "text": "pytest -qREQ_APP"},
        {"ts": 1781082005000, "type": "say", "say": "command_output", "text": "1 failed"},
        {"ts": 1781082006000, "type": "say", "say": "user_feedback", "text": "mind the docs"},
        {"ts": 1781082007000, "type": "say", "say": "text", "text": "I will.", "partial": False},
        {"ts": 1781082008000, "type": "say", "say": "text", "text": "half of a", "partial": True},
        {
            "ts": 1781082009000,
            "type": "ask",
            "ask": "api_req_failed",
            "text": "429 Too Many Requests: rate_limit_error, retry in 30 seconds",
        },
    ]
    files = (written(folder / "api_conversation_history.json", told), written(folder / "ui_messages.json", shown))
    return Sample("cline", folder, folder.name, files)


def continue_(top: Path) -> Sample:
    """A recording of the CLI."""
    name = "e61802f3-6f2c-4342-b528-e89d96fee544"
    folder = top / ".continue/sessions"
    folder.mkdir(parents=True)
    files = [Path(shutil.copy(DATA / "continue/normal" / f"{part}.json", folder)) for part in (name, "sessions")]
    return Sample("continue", files[0], name, tuple(files))


def cursor_chat(top: Path) -> Sample:
    """A conversation of the editor's; its rows do not lie in its order."""
    chat = {
        "composerId": CHAT,
        "createdAt": 1781082000000,
        "lastUpdatedAt": 1781082060000,
        "status": "completed",
        "createdOnBranch": "feature/greeting",
        "modelConfig": {"modelName": "some-model"},
        "fullConversationHeadersOnly": [{"bubbleId": f"b{n}", "type": 2 - (n == 1)} for n in (1, 2, 3, 4, 5)],
        "todos": [{"content": "Write it", "status": "completed"}, {"content": "Test it", "status": "in_progress"}],
        "newlyCreatedFiles": [{"uri": {"path": "/w/app/src/farewell.py"}}],
    }
    edit = {
        "name": "edit_file",
        "toolCallId": "t1",
        "rawArgs": json.dumps({"target_file": "src/greet.py"}),
        "status": "completed",
        "result": "{}",
    }
    run = {
        "name": "run_terminal_cmd",
        "toolCallId": "t2",
        "params": json.dumps({"command": "pytest -q"}),
        "status": "completed",
        "result": json.dumps({"output": "1 failed", "exitCode": 1}),
    }
    bubbles: dict[str, dict[str, Any]] = {
        "b1": {"type": 1, "text": GOAL, "workspaceUris": ["file:///w/app"]},
        "b2": {"type": 2, "text": "I write it.", "tokenCount": {"inputTokens": 100, "outputTokens": 9}},
        "b3": {"type": 2, "text": "", "toolFormerData": edit},
        "b4": {"type": 2, "text": "", "toolFormerData": run},
        "b5": {"type": 2, "text": "Done, but a test fails.", "createdAt": "2026-06-10T09:01:00.000Z"},
    }
    rows = [
        (f"bubbleId:{CHAT}:{n}", json.dumps({"bubbleId": n, **b})) for n, b in sorted(bubbles.items(), reverse=True)
    ]
    rows += [(f"composerData:{CHAT}", json.dumps(chat)), ("composerData:empty", json.dumps({"composerId": "empty"}))]
    tables = {
        "ItemTable": ("key TEXT UNIQUE, value BLOB", [("cursorAuth/accessToken", "MADE-UP-TOKEN")]),
        "cursorDiskKV": ("key TEXT UNIQUE, value BLOB", list(rows)),
    }
    path = database(top / ".config/Cursor/User/globalStorage/state.vscdb", tables)
    return Sample("cursor", path, CHAT, (path,))


def cursor_transcript(top: Path) -> Sample:
    """A transcript of the agent's, which leaves out what tools answered."""

    def said(role: str, *blocks: dict[str, Any]) -> dict[str, Any]:
        return {"role": role, "message": {"content": list(blocks)}}

    def text(words: str) -> dict[str, Any]:
        return {"type": "text", "text": words}

    def call(name: str, **given: object) -> dict[str, Any]:
        return {"type": "tool_use", "name": name, "input": given}

    lines = [
        said("user", text("<user_info>\nOS: linux\n</user_info>")),
        said("user", text(f"<attached_files>x</attached_files>\n<user_query>\n{GOAL}\n</user_query>")),
        said("assistant", text("I write it."), call("Write", path="/w/app/src/farewell.py", contents="x")),
        said("assistant", call("TodoWrite", todos=[{"content": "Test it", "status": "pending"}])),
        said("assistant", call("Shell", command="pytest -q")),
        said("assistant", text("Done.")),
    ]
    path = written(top / ".cursor/projects/w-app/agent-transcripts" / CHAT / f"{CHAT}.jsonl", lines)
    return Sample("cursor", path, CHAT, (path,))


def cursor_store(top: Path) -> Sample:
    """A store of the CLI's: a root in protobuf that names its messages, one of which is none."""
    messages: list[object] = [
        {"role": "system", "content": "You are an agent."},
        {"role": "user", "content": [{"type": "text", "text": f"<user_query>\n{GOAL}\n</user_query>"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I run it."},
                {"type": "tool-call", "toolCallId": "t1", "toolName": "Shell", "args": {"command": "pytest -q"}},
            ],
        },
        {
            "role": "tool",
            "content": [{"type": "tool-result", "toolCallId": "t1", "toolName": "Shell", "result": "Exit code: 1\nno"}],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "Done, but a test fails."}]},
    ]
    blobs = [(f"{n:064x}", json.dumps(message).encode()) for n, message in enumerate(messages)]
    blobs.append(("ff" * 32, b"\x0a\x05\x0a\x03abc"))
    root = b"".join(b"\x0a\x20" + bytes.fromhex(name) for name, _ in blobs) + b"\x4a\x06/w/app"
    about = {
        "agentId": CHAT,
        "latestRootBlobId": "ee" * 32,
        "createdAt": 1781082000000,
        "lastUsedModel": "some-model",
    }
    tables = {
        "blobs": ("id TEXT PRIMARY KEY, data BLOB", [*blobs, ("ee" * 32, root)]),
        "meta": ("key TEXT PRIMARY KEY, value TEXT", [("0", json.dumps(about).encode().hex())]),
    }
    path = database(top / ".cursor/chats/0123456789abcdef" / CHAT / "store.db", tables)
    return Sample("cursor", path, CHAT, (path,))


def antigravity(top: Path) -> Sample:
    """A session with a transcript and a task list."""
    folder = top / ".gemini/antigravity-cli/brain" / CHAT
    steps: list[dict[str, Any]] = [
        {
            "source": "USER_EXPLICIT",
            "type": "USER_INPUT",
            "content": f"<USER_REQUEST>\n{GOAL}\n</USER_REQUEST>\n<USER_SETTINGS_CHANGE>\nThe user changed setting "
            "`Model Selection` from None to Some Model (High). No need to comment.\n</USER_SETTINGS_CHANGE>",
        },
        {"source": "SYSTEM", "type": "CONVERSATION_HISTORY", "content": "GOAL of another"},
        {
            "source": "MODEL",
            "type": "PLANNER_RESPONSE",
            "content": "I write it.",
            "thinking": "hm",
            "usage": {"input_tokens": 100, "output_tokens": 50, "cached_content_token_count": 20},
            "tool_calls": [
                {"name": "write_to_file", "args": {"TargetFile": '"/w/app/src/farewell.py"'}},
                {"name": "run_command", "args": {"CommandLine": '"pytest -q"', "Cwd": '"/w/app"'}},
            ],
        },
        {"source": "MODEL", "type": "CODE_ACTION", "content": "written"},
        {"source": "MODEL", "type": "RUN_COMMAND", "content": "Exit code: 1\nno"},
        {"source": "SYSTEM", "type": "CHECKPOINT", "content": "{{ CHECKPOINT 0 }}"},
        {"source": "MODEL", "type": "PLANNER_RESPONSE", "content": "Done, but a test fails."},
    ]
    lines = [
        {"step_index": n, "status": "DONE", "created_at": f"2026-06-10T09:00:0{n}Z", **step}
        for n, step in enumerate(steps)
    ]
    path = written(folder / ".system_generated/logs/transcript_full.jsonl", lines)
    (folder / "task.md").write_text("# Farewell\n- [x] Write it\n  - [/] Test it\n- [ ] Commit it\n")
    return Sample("antigravity", folder, CHAT, (path, folder / "task.md"))


def _request(number: int, said: str, response: list[object], **more: object) -> dict[str, Any]:
    return {
        "requestId": f"r{number}",
        "timestamp": 1781082000000 + number * 1000,
        "modelId": "copilot/some-model",
        "message": {"text": said, "parts": []},
        "response": response,
        **more,
    }


def copilot_chat(top: Path) -> Sample:
    """A log of changes: a session, a request, what came of it, and one that was taken back."""
    run = {
        "kind": "toolInvocationSerialized",
        "toolId": "run_in_terminal",
        "toolCallId": "t1",
        "isComplete": True,
        "invocationMessage": {"value": "Running"},
        "toolSpecificData": {
            "kind": "terminal",
            "commandLine": {"original": "pytest -q"},
            "terminalCommandState": {"exitCode": 1},
        },
    }
    todos = {
        "kind": "toolInvocationSerialized",
        "toolId": "manage_todo_list",
        "toolCallId": "t2",
        "isComplete": True,
        "toolSpecificData": {"kind": "todoList", "todoList": [{"id": 1, "title": "Test it", "status": "in-progress"}]},
    }
    edit = {"kind": "textEditGroup", "uri": {"scheme": "file", "path": "/w/app/src/farewell.py"}, "edits": [[{"x": 1}]]}
    done = {"timings": {}, "metadata": {"promptTokens": 100, "outputTokens": 9, "renderedUserMessage": ["heavy"]}}
    spent = {"errorDetails": {"message": "You have used all premium requests.", "isQuotaExceeded": True}}
    lines = [
        {"kind": 0, "v": {"version": 3, "sessionId": CHAT, "creationDate": 1781082000000, "requests": []}},
        {"kind": 2, "k": ["requests"], "v": [_request(0, GOAL, [])]},
        {"kind": 2, "k": ["requests", 0, "response"], "v": [{"value": "I write "}, {"value": "it."}]},
        {"kind": 2, "k": ["requests", 0, "response"], "i": 1, "v": [{"value": "it now."}, edit, run, todos]},
        {"kind": 1, "k": ["inputState", "inputText"], "v": "typing"},
        {"kind": 1, "k": ["requests", 0, "result"], "v": done},
        {"kind": 2, "k": ["requests"], "v": [_request(1, "no, wait", []), _request(2, "gone", [])]},
        {"kind": 2, "k": ["requests"], "i": 2},
        {"kind": 1, "k": ["requests", 1, "result"], "v": spent},
        {"kind": 3, "k": ["requests", 1, "isCanceled"]},
    ]
    storage = top / ".config/Code/User/workspaceStorage/0123"
    written(storage / "workspace.json", {"folder": "file:///w/app"})
    path = written(storage / "chatSessions" / f"{CHAT}.jsonl", lines)
    return Sample("copilot-chat", path, CHAT, (path,))


def copilot_chat_file(top: Path) -> Sample:
    """The older form: the session as one object."""
    session = {
        "version": 3,
        "sessionId": CHAT,
        "creationDate": 1781082000000,
        "requests": [_request(0, GOAL, [{"kind": "markdownContent", "content": {"value": "Done."}}], result={"t": 1})],
    }
    path = written(top / ".config/Code/User/globalStorage/emptyWindowChatSessions" / f"{CHAT}.json", session)
    return Sample("copilot-chat", path, CHAT, (path,))


def copilot_chat_database(top: Path) -> Sample:
    """The oldest form: all sessions of a folder in one row."""
    sessions = [
        {"sessionId": "older", "creationDate": 1, "requests": [_request(0, "before", [{"value": "Yes."}])]},
        {"sessionId": CHAT, "creationDate": 2, "requests": [_request(0, GOAL, [{"value": "Done."}], result={"t": 1})]},
    ]
    tables = {"ItemTable": ("key TEXT UNIQUE, value BLOB", [("interactive.sessions", json.dumps(sessions))])}
    path = database(top / ".config/Code/User/workspaceStorage/0123/state.vscdb", tables)
    return Sample("copilot-chat", path, CHAT, (path,))


SAMPLES: dict[str, Callable[[Path], Sample]] = {
    maker.__name__: maker
    for maker in (
        aider,
        cline,
        cline_task,
        continue_,
        cursor_chat,
        cursor_transcript,
        cursor_store,
        antigravity,
        copilot_chat,
        copilot_chat_file,
        copilot_chat_database,
    )
}
