"""Record the sessions of `bench/fidelity` with the real agents: not a test, and run by name only.

    RELAY_TEST_AGENTS=~/.cache/git-relay-agents .venv/bin/pytest tests/real/recording.py -k NAME

Each script `bench/fidelity/sessions/NAME.json` that has no recording yet is played in a repository at a path that says
nothing of this machine; what is kept is NAME.tar.xz: the agent's own files, a bundle of the repository, and the
agent's notes. docs/fidelity.md says what a script holds.
"""

from __future__ import annotations

import json
import platform
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.fidelity.corpus import SESSIONS, snapshot_ref
from relay_git.agents import AGENTS
from tests.real.test_main_job import CLAUDE_LIMIT, CODEX_LIMIT
from tests.real.test_more_agents import API as MORE_API
from tests.real.test_more_agents import LIMITS as MORE_LIMITS
from tests.seal.repo import Repo

HOME = Path("/home/dev")
API = {"claude": "claude", "codex": "codex", **MORE_API}
LIMITS = {"claude": CLAUDE_LIMIT, "codex": CODEX_LIMIT, **{name: limit for name, (limit, _) in MORE_LIMITS.items()}}
MARKS = {"x": "completed", ">": "in_progress", ".": "pending", "-": "cancelled"}
FIRST = {
    "claude": ["claude", "-p", "--permission-mode", "bypassPermissions"],
    "codex": ["codex", "exec", "-c", "tools.update_plan.enabled=true", "--dangerously-bypass-approvals-and-sandbox"],
    "opencode": ["opencode", "run", "--auto"],
    "gemini": ["gemini", "--yolo", "--skip-trust"],
    "qwen": ["qwen", "--yolo"],
    "copilot": ["copilot", "--allow-all", "--no-ask-user"],
}
LATER = {
    "claude": ["--continue"],
    "codex": ["resume", "--last"],
    "opencode": ["--continue"],
    "gemini": ["--resume", "latest"],
    "qwen": ["--continue"],
    "copilot": ["--continue"],
}
SECONDS = {"opencode": 90}  # it looks for packages first
FORK = {"claude": ["--fork-session"], "opencode": ["--fork"], "qwen": ["--fork-session"]}
SIDE_TURNS = [  # what some agents ask their model beside the task, with tools in the request
    {"when": "xisting memory files|Do not answer the request", "reply": {"text": "Nothing."}},
    {
        "when": "next LLM seamlessly continue|summary of the conversation|<state_snapshot>",
        "reply": {"text": "Summary."},
    },
]
SCRIPTS = {path.stem: json.loads(path.read_text()) for path in sorted(SESSIONS.glob("*.json"))}
WANTED = [name for name, script in SCRIPTS.items() if "turns" in script and not (SESSIONS / f"{name}.tar.xz").exists()]


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder whose name may stand in a transcript."""
    HOME.mkdir()
    yield HOME
    shutil.rmtree(HOME)


@pytest.fixture
def agent_repo(scratch: Path) -> Repo:
    """The repository that every script begins in."""
    folder = scratch / "shop"
    folder.mkdir()
    made = Repo(folder)
    made.git("init", "-q", "--template=")
    made.git("config", "user.name", "Dev")  # for who hides the user's own settings from its commands
    made.git("config", "user.email", "dev@example.invalid")
    files = {
        "README.md": "# shop\n",
        "src/cart.py": "def total(items):\n    return sum(items)\n",
        "tests/test_cart.py": "from src.cart import total\n\nassert total([1, 2]) == 3\n",
    }
    made.commit("initial commit", files)
    return made


class Player:
    """Turns of a script as turns of the scripted model."""

    def __init__(self, tool: str) -> None:
        self.tool, self.tasks, self.stood = tool, dict[str, int](), dict[str, str]()

    def turn(self, given: Any) -> dict[str, Any]:
        if isinstance(given, str):
            return {"text": given}
        if given.get("limit"):
            return {**LIMITS[self.tool], "sticky": True}
        tools: list[dict[str, Any]] = [*given.get("tools", [])]
        for path, content in given.get("write", {}).items():
            tools.append({"do": "write", "path": f"{{{{cwd}}}}/{path}", "content": content})
        if "edit" in given:
            path, old, new = given["edit"]
            tools.append({"do": "edit", "path": f"{{{{cwd}}}}/{path}", "old": old, "new": new})
        if "run" in given:
            tools.append({"do": "shell", "command": given["run"]})
        if "read" in given:
            tools.append({"do": "read", "path": f"{{{{cwd}}}}/{given['read']}"})
        if "task" in given:
            tools.append({"do": "task", "prompt": f"SUBTASK: {given['task']}"})
        tools += self._plan([(line[2:], MARKS[line[0]]) for line in given.get("plan", ())])
        kept = {key: given[key] for key in ("usage", "delay", "times") if key in given}
        return kept | ({"text": given["say"]} if "say" in given else {}) | ({"tools": tools} if tools else {})

    def _plan(self, items: list[tuple[str, str]]) -> list[dict[str, Any]]:
        if not items:
            return []
        if self.tool == "claude":
            return [call for text, status in items for call in self._claude_task(text, status)]
        if self.tool == "copilot":
            return [call for text, status in items for call in self._todo(text, status)]
        return [{"do": "plan", "items": [{"text": text, "status": status} for text, status in items]}]

    def _claude_task(self, text: str, status: str) -> Iterator[dict[str, Any]]:
        if text not in self.tasks:
            self.tasks[text], self.stood[text] = len(self.tasks) + 1, "pending"
            args = {"subject": text, "description": text, "activeForm": text}
            yield {"name": "TaskCreate", "args": args}
        if self.stood[text] != status:
            self.stood[text] = status
            word = "deleted" if status == "cancelled" else status
            yield {"name": "TaskUpdate", "args": {"taskId": str(self.tasks[text]), "status": word}}

    def _todo(self, text: str, status: str) -> Iterator[dict[str, Any]]:
        word = {"completed": "done", "cancelled": "blocked"}.get(status, status)
        quoted = text.replace("'", "''")
        if text not in self.tasks:
            self.tasks[text], self.stood[text] = len(self.tasks) + 1, status
            row = f"('t{self.tasks[text]}', '{quoted}', '{quoted}', '{word}')"
            query = f"INSERT INTO todos (id, title, description, status) VALUES {row}"
            yield {"name": "sql", "args": {"description": "Add a todo", "query": query}}
        elif self.stood[text] != status:
            self.stood[text] = status
            query = f"UPDATE todos SET status = '{word}' WHERE id = 't{self.tasks[text]}'"
            yield {"name": "sql", "args": {"description": "Update a todo", "query": query}}


def _wandered(given: Any) -> list[Any]:
    """`{"wander": N}` stands for N turns that only look at files, none twice in a row: some agents stop at that."""
    if isinstance(given, str) or "wander" not in given:
        return [given]
    files = ("src/cart.py", "README.md", "tests/test_cart.py")
    return [{"read": files[i % len(files)]} for i in range(given["wander"])]


def more_env(tool: str, home: Path) -> dict[str, str]:
    if tool == "claude":
        return {"CLAUDE_CODE_ENABLE_TODO_TOOLS": "1", "CLAUDE_CODE_MAX_RETRIES": "1"}
    if tool == "qwen":
        file = home / ".qwen" / "settings.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"tools": {"todoWrite": {"enabled": True}}}))
    return {}


@pytest.mark.parametrize("name", WANTED)
def test_record(lo, model, agent_repo, base_env, agent_home, request, name) -> None:
    script = SCRIPTS[name]
    tool, player = script["tool"], Player(script["tool"])
    routes = [{"when": "SUBTASK", **reply} for reply in script.get("routes", [])]
    for route in routes:
        route["reply"] = player.turn(route["reply"])
    for given in script.get("answers", []):
        routes.append({"when": given["when"], "reply": {"text": given["say"]}})
    turns = [player.turn(turn) for given in script["turns"] for turn in _wandered(given)]
    played = model({API[tool]: {"turns": turns, "routes": [*routes, *SIDE_TURNS]}})
    more = {"more": script["config"]} if "config" in script else {}
    env = base_env | request.getfixturevalue(f"{tool}_env")(played, **more) | more_env(tool, agent_home)
    base = agent_repo.head
    at, notes = agent_repo.path, b""
    if script.get("relay"):
        agent_repo.git("config", f"relay.{tool}.permission", "full")
        lo.run(["git-relay", "start", script["prompts"][0], "--agent", tool], cwd=at, env=env, timeout=200)
        (at,) = (at / ".relay" / "sessions").iterdir()
        (kept,) = (agent_repo.git_dir / "worktrees").glob("*/relay")
        notes = (kept / "notes").read_bytes() if (kept / "notes").exists() else b""
    else:
        for number, prompt in enumerate(script["prompts"]):
            fork = FORK.get(tool, []) if number in script.get("forks", ()) else []
            argv = [*FIRST[tool], *([*LATER[tool], *fork] if number else []), *(["-"] if tool == "codex" else [])]
            # A limit makes some of them wait for hours: what is to be recorded stands on the disk by then.
            done = lo.run(
                ["timeout", "-k", "2", str(script.get("seconds", SECONDS.get(tool, 40))), *argv],
                cwd=at,
                env=env,
                stdin=prompt,
            )
            print(name, number, done.rc, done.stderr[-300:], done.stdout[-200:])
    found = max(AGENTS[tool].found(env), key=lambda one: one.modified)
    (agent_home / "wanted").write_text(str(len(played.requests(API[tool]))))
    pack(name, agent_repo, at, base, found.path, notes)


def pack(name: str, repo: Repo, at: Path, base: str, found: Path, notes: bytes) -> None:
    """Keep what the agent wrote, the repository with what was not committed as a commit on top, and the notes."""
    top = HOME / "kept"
    top.mkdir()
    work = Repo(at)
    head = work.head
    work.git("add", "-A", ".", ":!.relay")
    last = head
    if work.git("diff", "--cached", "--name-only"):
        last = work.git("commit-tree", work.git("write-tree"), "-p", head, "-m", "snapshot")
    for ref, oid in (("base", base), ("head", head), ("snapshot", last)):
        repo.git("update-ref", snapshot_ref(ref), oid)
    repo.git("bundle", "create", "-q", str(top / "repo.bundle"), *map(snapshot_ref, ("base", "head", "snapshot")))
    (top / "notes").write_bytes(notes)
    files = [found, *(path for end in ("-wal", "-shm") if (path := found.with_name(found.name + end)).exists())]
    if found.suffix == ".jsonl" and found.with_suffix("").is_dir():  # subagents of Claude Code
        files += [path for path in found.with_suffix("").rglob("*") if path.is_file()]
    if found.is_dir() or found.name == "events.jsonl":
        folder = found if found.is_dir() else found.parent
        files = [path for path in folder.rglob("*") if path.is_file() and "rewind" not in str(path)]
    root = found if found.is_dir() else found.parent
    for file in files:
        target = top / "agent" / file.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        data = file.read_bytes()  # a database is left as it is: its pages have their lengths
        target.write_bytes(data if b"\0" in data else data.replace(platform.release().encode(), b"6.0.0"))
    about = {"entry": "" if found.is_dir() else found.name, "worktree": str(at)}
    (top / "about.json").write_text(json.dumps(about))
    with tarfile.open(SESSIONS / f"{name}.tar.xz", "w:xz") as kept:
        for path in sorted(top.rglob("*")):
            if path.is_file():
                kept.add(path, path.relative_to(top), filter=_plain)


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime, entry.mode = 0, 0o644
    return entry
