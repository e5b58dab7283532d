"""Codex: how it is started, what it may do, and what its stdout says.

Promise: the prompt goes in by stdin and never by argv; commands run in Codex's own sandbox, which lets them write in
the worktree, the temp folders and exactly the places below the git dir that a commit needs, and keeps git relay's key,
spool and logs from them.

Last seen: 0.171.0.
"""

from __future__ import annotations

import re
import shutil
import tomllib
from collections.abc import Iterator, Mapping
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
    pointer,
)
from relay_git.agents.codex_limits import sentence_notice
from relay_git.agents.codex_reader import CodexReader
from relay_git.agents.codex_sandbox import reading_options, sandbox_options, toml_string
from relay_git.agents.draft import MAX_DOING, cut
from relay_git.agents.family import Family
from relay_git.agents.homes import credential_notes, evidence, home
from relay_git.agents.jsonl import Record
from relay_git.agents.moments import UNKNOWN, Moment
from relay_git.agents.transcript import Follower
from relay_git.agents.zstd import Unpacked
from relay_git.session import SessionRecord

_KEYS = ("OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN")
_THREAD_ID = re.compile(r"[0-9A-Za-z-]{1,64}")
_ROLLOUT = re.compile(r"rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-([0-9A-Za-z-]{1,64})\.jsonl(?:\.zst)?")
_PACKED = ".jsonl.zst"
_DAYS_OF_SUBAGENTS = 7


class Codex:
    """The adapter of Codex."""

    name = "codex"
    title = "Codex"
    aliases: tuple[str, ...] = ("codex-cli", "openai-codex")
    last_seen = "0.171.0"
    unconfined = ""
    account = LoginPlace("CODEX_HOME", ("CODEX_API_KEY", "OPENAI_API_KEY", "CODEX_ACCESS_TOKEN"), ("login",))
    unresumable = ""
    channel = "the prompt on its standard input"

    def check(self, env: Mapping[str, str], permission: Permission) -> Ready | Unready:
        """Say whether Codex is installed and signed in; its sandbox comes with it."""
        found = shutil.which("codex", path=env.get("PATH", ""))
        if not found:
            return Unready("Codex is not installed: no `codex` on PATH", "npm install -g @openai/codex")
        config = _config(env)
        provider_key = _provider_key(config)
        signed_in = evidence(env, _KEYS, (codex_home(env) / "auth.json",))
        if not signed_in and config.get("model_provider"):
            signed_in = f"{codex_home(env) / 'config.toml'} names a model_provider"
        if not signed_in:
            return Unready("Codex is not signed in", "codex login")
        names = (*_KEYS, provider_key) if provider_key and provider_key not in _KEYS else _KEYS
        return Ready(Path(found), credential_notes(env, names), signed_in)

    def launch(
        self, place: Place, prompt: str, ready: Ready, permission: Permission, env: Mapping[str, str]
    ) -> Launch | Unsupported:
        """Say how to start a new headless run with this prompt on stdin; Codex chooses its session id."""
        return self._headless(place, prompt, ready, permission, env)

    def resume(
        self, place: Place, native_id: str, prompt: str, ready: Ready, permission: Permission, env: Mapping[str, str]
    ) -> Launch | Unsupported:
        """Say how to go on in a copy of this session; what it is told comes as its next prompt.

        A resumed session keeps the developer instructions that it began with, so that nothing could come by those.
        """
        if not is_plain(native_id):
            return Unsupported("the id of its session is none")
        return self._headless(place, prompt, ready, permission, env, native_id)

    def ask(
        self, place: Place, native_id: str, question: str, ready: Ready, env: Mapping[str, str]
    ) -> Launch | Unsupported:
        """Say how to ask in a copy of this session, where its sandbox lets commands read only."""
        if not is_plain(native_id):
            return Unsupported("the id of its session is none")
        argv = [str(ready.program), "exec", "fork", "--json", "-c", "tools.update_plan.enabled=true"]
        argv += ["-c", 'approval_policy="never"', *reading_options(place), native_id, "-"]
        return Launch(tuple(argv), question.encode(), {}, (), {})

    def _headless(
        self, place: Place, prompt: str, ready: Ready, permission: Permission, env: Mapping[str, str], *before: str
    ) -> Launch | Unsupported:
        argv = [str(ready.program), "exec", *(["fork"] if before else []), "--json"]
        argv += ["-c", "tools.update_plan.enabled=true"]
        if permission is Permission.FULL:
            argv += ["--dangerously-bypass-approvals-and-sandbox", *before, "-"]
            return Launch(tuple(argv), prompt.encode("utf-8", "replace"), {}, _FULL_GRANTS, {})
        branches = place.common_dir / "refs" / "heads" / "relay"
        if not branches.is_dir():
            return Unsupported(f"{branches} does not exist: Codex's sandbox could not commit")
        argv += ["-c", 'approval_policy="never"', *sandbox_options(place, _config(env)), *before, "-"]
        return Launch(tuple(argv), prompt.encode("utf-8", "replace"), {}, _SANDBOX_GRANTS, {})

    def kept(self, native_id: str, worktree: Path, env: Mapping[str, str]) -> Kept | Unsupported:
        """The rollout; those of its subagents stay where they are, since nothing of theirs is asked again."""
        path = self.transcript(native_id, worktree, env)
        return Kept(self.home(env), (path,)) if path is not None else Unsupported("its rollout is not there")

    def launch_tui(
        self, place: Place, told: Path | str, ready: Ready, permission: Permission, env: Mapping[str, str]
    ) -> Launch | Unsupported:
        """Say how to start the TUI in the same sandbox; when it asks to leave it is as the user has set it."""
        argv = [str(ready.program), "-c", "tools.update_plan.enabled=true"]
        grants: tuple[str, ...] = _FULL_GRANTS
        if permission is Permission.FULL:
            argv += ["--dangerously-bypass-approvals-and-sandbox"]
        elif not (branches := place.common_dir / "refs" / "heads" / "relay").is_dir():
            return Unsupported(f"{branches} does not exist: Codex's sandbox could not commit")
        else:
            argv += sandbox_options(place, _config(env))
            grants = _TUI_GRANTS
        if isinstance(told, Path):
            argv += ["--", pointer(told)]
        else:
            own = jsonl.text(_config(env).get("developer_instructions"))  # which the option would replace
            words = toml_string("\n\n".join(filter(None, (own, told))))
            argv += ["-c", f"developer_instructions={words}"]
        return Launch(tuple(argv), b"", {}, grants, {})

    def live(self, worktree: Path, env: Mapping[str, str], since: float) -> str:
        """The thread of the user's that was written last in this worktree; Codex tells its id nowhere else."""
        sessions = shelf.files(codex_home(env) / "sessions", 3, _id_in_name)
        return shelf.newest(sessions, since, lambda path: _is_users_thread(path, worktree))

    def home(self, env: Mapping[str, str]) -> Path:
        """The folder that holds its configuration, login and sessions."""
        return codex_home(env)

    def hear(self, line: bytes, moment: Moment = UNKNOWN) -> tuple[Heard, ...]:
        """What one event of `exec --json` says; items are what the agent does and never a limit."""
        record = jsonl.parse(line) or {}
        match record.get("type"):
            case "thread.started":
                thread = jsonl.text(record.get("thread_id"))
                return (Identified(thread),) if thread else ()
            case "item.started" | "item.completed":
                return _hear_item(jsonl.record(record.get("item")))
            case "error":
                return _limit(jsonl.text(record.get("message")), moment)
            case "turn.failed":
                said = jsonl.text(jsonl.record(record.get("error")).get("message"))
                return (*_limit(said, moment), Ended(False, cut(said, 300)))
            case "turn.completed":
                return (Ended(True),)
            case _:
                return ()

    def transcript(self, native_id: str, worktree: Path, env: Mapping[str, str]) -> Path | None:
        """Where the rollout lies, looked for from the newest day back."""
        if not _THREAD_ID.fullmatch(native_id):
            return None
        sessions = codex_home(env) / "sessions"
        try:
            for day in sorted(sessions.glob("*/*/*"), reverse=True):
                for path in sorted(day.glob(f"rollout-*-{native_id}.jsonl")):
                    return path
        except OSError:
            return None
        return None

    def found(self, env: Mapping[str, str]) -> Iterator[Found]:
        """Every rollout, by year, month and day, and those that were archived."""
        yield from shelf.files(codex_home(env) / "sessions", 3, _id_in_name)
        yield from shelf.files(codex_home(env) / "archived_sessions", 0, _id_in_name)

    def sessions(self, path: Path) -> tuple[str, ...]:
        """The session in this rollout, by its first record; by its name where it is compressed."""
        if path.is_dir():
            rollouts = sorted(_rollouts_below(path), key=lambda found: found.path.name)
            return tuple(found.native_id for found in rollouts)
        if path.name.endswith(_PACKED) and shelf.is_regular(path):
            return tuple(filter(None, (_id_in_name(path.name),)))
        for record in shelf.head(path)[:1]:
            meta = record.get("payload") if record.get("type") == "session_meta" else record
            own = jsonl.text(jsonl.record(meta).get("id"))
            return (own,) if own and ("payload" in record or "instructions" in record) else ()
        return ()

    def follow(self, path: Path, native_id: str, worktree: Path) -> Following:
        """Read one rollout and those of its subagents."""
        if path.is_dir():
            path = next((f.path for f in _rollouts_below(path) if f.native_id == native_id), path)

        def one(file: Path) -> Following:
            follow = Unpacked if file.name.endswith(_PACKED) else Follower
            return follow(file, lambda: CodexReader(worktree))

        return Family(one(path), lambda main: _subagents(path, main.record()), one)


def _rollouts_below(path: Path) -> Iterator[Found]:
    for depth in range(5):  # a day, a month, a year, all of them, or Codex's home itself
        yield from shelf.files(path, depth, _id_in_name)


def _subagents(path: Path, record: SessionRecord) -> Iterator[tuple[str, Path]]:
    """The rollouts of the threads that this one started: they lie in the same day's folder or in the next one's."""
    if not record.subagents or len(path.parents) < 4:
        return
    began = path.parent
    days = [day for day in sorted(path.parents[3].glob("[0-9]*/[0-9]*/[0-9]*")) if day >= began][:_DAYS_OF_SUBAGENTS]
    wanted = set(record.subagents)
    for day in days:
        for found in shelf.files(day, 0, _id_in_name):
            if found.native_id in wanted:
                yield found.native_id, found.path


def _id_in_name(name: str) -> str:
    found = _ROLLOUT.fullmatch(name)
    return found[1] if found else ""


def _is_users_thread(path: Path, worktree: Path) -> bool:
    first = shelf.head(path)[:1]
    meta = jsonl.record(first[0].get("payload")) if first else {}
    return meta.get("cwd") == str(worktree) and meta.get("thread_source") in (None, "user")


def codex_home(env: Mapping[str, str]) -> Path:
    """The folder that holds Codex's configuration, login and rollouts."""
    chosen = env.get("CODEX_HOME")
    return Path(chosen) if chosen else home(env) / ".codex"


def _config(env: Mapping[str, str]) -> dict[str, object]:
    try:
        return tomllib.loads((codex_home(env) / "config.toml").read_bytes().decode("utf-8", "replace"))
    except (OSError, tomllib.TOMLDecodeError):
        return {}


def _provider_key(config: Record) -> str:
    """The name of the variable from which a provider of the user's own takes its key."""
    provider = jsonl.record(config.get("model_providers")).get(jsonl.text(config.get("model_provider")))
    return jsonl.text(jsonl.record(provider).get("env_key"))


def _limit(said: str, moment: Moment) -> tuple[Limited, ...]:
    notice = sentence_notice(said, moment)
    return (Limited(notice),) if notice else ()


def _hear_item(item: Record) -> tuple[Heard, ...]:
    match item.get("type"):
        case "command_execution" if item.get("status") == "in_progress":
            return (Doing(cut(jsonl.text(item.get("command")), MAX_DOING)),)
        case "file_change":
            paths = [jsonl.text(change.get("path")) for change in jsonl.records(item.get("changes"))]
            return (Doing(cut(f"edits {', '.join(paths)}", MAX_DOING)),)
        case "agent_message":
            return (Doing(cut(" ".join(jsonl.text(item.get("text")).split()), MAX_DOING)),)
        case _:
            return ()


_SANDBOX_GRANTS = (
    "edit files in the session's worktree",
    "run commands in Codex's sandbox: writing in the worktree, its own git dir, git's objects, the branches below "
    "refs/heads/relay and their logs, and the temp folders; temp folders and network as your Codex settings say",
    "commands can neither read git relay's key, spool and logs, nor write hooks, git's configuration or another branch",
    "commands can read the rest of the disk, as your user",
)
_TUI_GRANTS = (
    *_SANDBOX_GRANTS,
    "whatever else it wants to do, it asks you in its own dialogs, as your Codex settings say",
)
_FULL_GRANTS = ("everything that your user may do: no sandbox, no questions (relay.codex.permission is full)",)
