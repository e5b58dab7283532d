"""opencode: how it is started, where its sessions lie, and what its stdout says.

Promise: the prompt goes in by stdin and never by argv. A plugin of ours, given for this run only, says on stdout when
opencode waits for its model, because opencode itself sleeps out a wait of hours without a word. No file of the user's
is written.

Last seen: 1.18.33.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from relay_git.agents import jsonl, shelf
from relay_git.agents.agent import (
    Doing,
    Ended,
    Following,
    Found,
    Heard,
    Identified,
    Kept,
    Launch,
    Limited,
    LoginPlace,
    Permission,
    Place,
    Ready,
    Unready,
    Unsupported,
    is_plain,
)
from relay_git.agents.draft import MAX_DOING, cut
from relay_git.agents.homes import credential_notes, evidence, home
from relay_git.agents.jsonl import Record
from relay_git.agents.moments import UNKNOWN, Moment
from relay_git.agents.opencode_limits import error_notice, retry_notice
from relay_git.agents.opencode_store import (
    AllInDatabase,
    InDatabase,
    InTree,
    database_sessions,
    id_in_name,
    tree_sessions,
)
from relay_git.agents.unconfined import full_grants, not_confined

PLUGIN = "opencode-retries.js"
_CONTENT = "OPENCODE_CONFIG_CONTENT"
_KEYS = (
    "OPENCODE_API_KEY",
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_GENERATIVE_AI_API_KEY",
    "GROQ_API_KEY",
    "DEEPSEEK_API_KEY",
    "XAI_API_KEY",
    "MISTRAL_API_KEY",
)
# Says each wait on stdout, as the event that opencode gives to plugins.
_PLUGIN = """export const GitRelayRetries = async () => ({
  event: async ({ event }) => {
    if (event.type !== "session.status" || event.properties?.status?.type !== "retry") return
    const { sessionID, status } = event.properties
    process.stdout.write(JSON.stringify({ type: event.type, timestamp: Date.now(), sessionID, status }) + "\\n")
  },
})
"""


class Opencode:
    """The adapter of opencode."""

    name = "opencode"
    title = "opencode"
    aliases: tuple[str, ...] = ("opencode-ai",)
    last_seen = "1.18.33"
    unconfined = "opencode has no sandbox: its commands can do all that your user may do"
    account = LoginPlace("XDG_DATA_HOME", _KEYS, ("auth", "login"))
    unresumable = ""
    channel = "the prompt on its standard input"

    def check(self, env: Mapping[str, str], permission: Permission) -> Ready | Unready:
        """Say whether opencode is installed and has a provider; it has no sandbox."""
        found = shutil.which("opencode", path=env.get("PATH", ""))
        if not found:
            return Unready("opencode is not installed: no `opencode` on PATH", "npm install -g opencode-ai")
        signed_in = _has_provider(env)
        if not signed_in:
            return Unready("opencode has no provider signed in", "opencode auth login")
        if permission is Permission.SANDBOX:
            return not_confined(self.name, self.unconfined)
        return Ready(Path(found), credential_notes(env, _KEYS), signed_in)

    def launch(
        self, place: Place, prompt: str, ready: Ready, permission: Permission, env: Mapping[str, str]
    ) -> Launch | Unsupported:
        """Say how to start a new headless run with this prompt on stdin; opencode chooses its session id."""
        return self._headless(place, prompt, ready, permission, env, "--title", f"git relay: {place.branch}")

    def resume(
        self, place: Place, native_id: str, prompt: str, ready: Ready, permission: Permission, env: Mapping[str, str]
    ) -> Launch | Unsupported:
        """Say how to go on in a copy of this session."""
        if not is_plain(native_id):
            return Unsupported("the id of its session is none")
        plan = self._headless(place, prompt, ready, permission, env, "--session", native_id, "--fork")
        return replace(plan, repeats=True) if isinstance(plan, Launch) else plan

    def ask(
        self, place: Place, native_id: str, question: str, ready: Ready, env: Mapping[str, str]
    ) -> Launch | Unsupported:
        """Say how to ask in a copy of this session, with every call of a tool denied.

        Where a tool is denied by `*` the model is not told of it, and what its provider has cached is of no use.
        """
        plan = self.resume(place, native_id, question, ready, Permission.FULL, env)
        if isinstance(plan, Unsupported):
            return plan
        return replace(plan, env={**plan.env, "OPENCODE_PERMISSION": '{"*": {"?*": "deny"}}'})

    def kept(self, native_id: str, worktree: Path, env: Mapping[str, str]) -> Kept | Unsupported:
        """Nothing that could be laid elsewhere."""
        return Unsupported("its sessions are rows of one database, which is not taken apart")

    def home(self, env: Mapping[str, str]) -> Path:
        """The folder that holds its login and sessions."""
        return data_dir(env)

    def _headless(
        self, place: Place, prompt: str, ready: Ready, permission: Permission, env: Mapping[str, str], *more_words: str
    ) -> Launch | Unsupported:
        if permission is Permission.SANDBOX:
            return Unsupported("opencode has no sandbox")
        argv = (str(ready.program), "run", "--format", "json", "--auto", *more_words)
        content = _with_plugin(env.get(_CONTENT, ""), place.private_dir / PLUGIN)
        more = {_CONTENT: content} if content else {}
        files = {PLUGIN: _PLUGIN.encode()} if content else {}
        return Launch(argv, prompt.encode("utf-8", "replace"), more, full_grants(self.name), files)

    def hear(self, line: bytes, moment: Moment = UNKNOWN) -> tuple[Heard, ...]:
        """What one event of `run --format json`, or our plugin's, says."""
        record = jsonl.parse(line) or {}
        part = jsonl.record(record.get("part"))
        match record.get("type"):
            case "step_start":
                return _session(record)
            case "tool_use":
                return (Doing(_call(part)),)
            case "text":
                return (Doing(cut(" ".join(jsonl.text(part.get("text")).split()), MAX_DOING)),)
            case "step_finish" if part.get("reason") == "stop":
                return (Ended(True),)
            case "session.status":
                moment = moment.of(jsonl.epoch_time(record.get("timestamp")))
                retry = retry_notice(jsonl.record(record.get("status")), moment)
                return (*_session(record), retry) if retry else ()
            case "error":  # the first request may be refused, and then nothing else names the session
                return (*_session(record), *_hear_error(record, moment))
            case _:
                return ()

    def transcript(self, native_id: str, worktree: Path, env: Mapping[str, str]) -> Path | None:
        """The database that was written last."""
        return max(databases(env), key=lambda path: shelf.identity(path)[-1:], default=None)

    def found(self, env: Mapping[str, str]) -> Iterator[Found]:
        """Its databases, whose sessions only the inside tells, and the sessions of the older tree by their names."""
        for path in databases(env):
            about = [identity for end in ("", "-wal") if (identity := shelf.identity(path.with_name(path.name + end)))]
            yield Found(path, "", max(time for *_, time in about) / 1e9, sum(size for _, _, size, _ in about))
        yield from shelf.files(data_dir(env) / "storage" / "session", 1, id_in_name)

    def sessions(self, path: Path) -> tuple[str, ...]:
        """The sessions in this database, or in this `storage` folder, or the one of this file in it."""
        if path.suffix == ".db":
            return database_sessions(path)
        return tree_sessions(path) if path.is_dir() else (path.stem,) if _in_tree(path) else ()

    def inside(self, found: Found) -> AllInDatabase:
        """The sessions of a database."""
        return AllInDatabase(found)

    def follow(self, path: Path, native_id: str, worktree: Path) -> Following:
        """Read one session of a database, of a `storage` folder, or of a session's file in it."""
        if _in_tree(path):
            return InTree(path.parents[2], native_id or path.stem, worktree)
        return InTree(path, native_id, worktree) if path.is_dir() else InDatabase(path, native_id, worktree)


def _in_tree(path: Path) -> bool:
    return path.suffix == ".json" and path.parent.parent.name == "session"


def data_dir(env: Mapping[str, str]) -> Path:
    """The folder that holds opencode's sessions and its login."""
    chosen = env.get("XDG_DATA_HOME")
    return (Path(chosen) if chosen else home(env) / ".local" / "share") / "opencode"


def databases(env: Mapping[str, str]) -> list[Path]:
    """Its databases; one that is no release writes another file."""
    chosen = env.get("OPENCODE_DB", "")
    try:
        found = sorted(data_dir(env).glob("opencode*.db"))
    except OSError:
        found = []
    if chosen and chosen != ":memory:":
        found.append(data_dir(env) / chosen)
    return [path for path in dict.fromkeys(found) if shelf.is_regular(path)]


def _has_provider(env: Mapping[str, str]) -> str:
    """A key, a login, or a configuration of the user's own, which may name a provider that needs neither."""
    chosen = env.get("XDG_CONFIG_HOME")
    config = (Path(chosen) if chosen else home(env) / ".config") / "opencode"
    files = (data_dir(env) / "auth.json", config / "opencode.json", config / "opencode.jsonc")
    return evidence(env, (*_KEYS, _CONTENT, "OPENCODE_CONFIG"), files)


def _with_plugin(content: str, plugin: Path) -> str:
    """The user's configuration for this run with our plugin in it; empty where theirs cannot be read as JSON."""
    theirs = jsonl.parse_text(content)
    if content.strip() and not theirs:
        return ""
    plugins = [name for name in jsonl.items(theirs.get("plugin")) if isinstance(name, str)]
    return json.dumps({**theirs, "plugin": [*plugins, plugin.as_uri()]})


def _session(record: Record) -> tuple[Identified, ...]:
    session = jsonl.text(record.get("sessionID"))
    return (Identified(session),) if session else ()


def _call(part: Record) -> str:
    state = jsonl.record(part.get("state"))
    given = jsonl.record(state.get("input"))
    target = jsonl.text(state.get("title")) or jsonl.text(given.get("filePath")) or jsonl.text(given.get("command"))
    return cut(f"{jsonl.text(part.get('tool'))} {target}".strip(), MAX_DOING)


def _hear_error(record: Record, moment: Moment) -> tuple[Heard, ...]:
    error = jsonl.record(record.get("error"))
    data = jsonl.record(error.get("data"))
    said = jsonl.text(data.get("message")) or jsonl.text(error.get("name"))
    if status := jsonl.integer(data.get("statusCode")):
        said = f"status {status}: {said}"
    notice = error_notice(error, moment.of(jsonl.epoch_time(record.get("timestamp"))))
    ended = Ended(False, cut(said, 300))
    return (Limited(notice), ended) if notice else (ended,)
