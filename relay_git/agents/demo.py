"""The demo agent's adapter: it starts our own scripted program, with no model, so that a handoff can be seen anywhere.

Promise: wherever this agent shows, it says that it is a demo. It has no sandbox: the program itself keeps its files
inside the worktree, but the commands of a steps file run as the user's.

The transcript is JSONL, one object a line, each with `demo: true`, `type` and `at`; `demo_agent` writes it.
"""

from __future__ import annotations

import re
import sys
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from relay_git.agents import jsonl, meters, shelf
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
    Metered,
    Permission,
    Place,
    Ready,
    Retrying,
    Unready,
    Unsupported,
    is_plain,
)
from relay_git.agents.draft import MAX_DOING, Draft, cut, plan_status
from relay_git.agents.homes import home
from relay_git.agents.jsonl import Record
from relay_git.agents.moments import UNKNOWN, Moment
from relay_git.agents.transcript import Follower
from relay_git.session import LimitKind, LimitNotice, PlanItem, SessionRecord, Usage

PROGRAM = "relay_git.agents.demo_agent"
TUI_PROGRAM = "relay_git.agents.demo_tui"
RESUMES = "RELAY_DEMO_RESUMES"
TITLE = "demo agent (scripted, no model)"
_SESSION_ID = re.compile(r"[0-9A-Za-z-]{1,64}")
_GRANTS = (
    "demo: plays the steps of a script in the session's worktree; no model is asked",
    "no sandbox: commands in the script run with all that your user may do",
)


class Demo:
    """The adapter of the demo agent."""

    name = "demo"
    title = TITLE
    aliases: tuple[str, ...] = ()
    last_seen = "1"
    unconfined = "the demo agent has no sandbox: commands in its script can do all that your user may do"
    account = LoginPlace("RELAY_DEMO_HOME", ("RELAY_DEMO_KEY",))
    unresumable = "the demo agent plays a script and remembers nothing (with RELAY_DEMO_RESUMES=1 it pretends to)"
    channel = "the prompt on its standard input"

    def check(self, env: Mapping[str, str], permission: Permission) -> Ready | Unready:
        """It is always there: it comes with git relay and needs no login."""
        return Ready(Path(sys.executable), evidence="it needs no login")

    def launch(self, place: Place, prompt: str, ready: Ready, permission: Permission, env: Mapping[str, str]) -> Launch:
        """Say how to start the scripted program."""
        native_id = str(uuid.uuid4())
        argv = (str(ready.program), "-m", PROGRAM, "--session-id", native_id)
        return Launch(argv, prompt.encode("utf-8", "replace"), {}, _GRANTS, {}, native_id)

    def resume(
        self, place: Place, native_id: str, prompt: str, ready: Ready, permission: Permission, env: Mapping[str, str]
    ) -> Launch | Unsupported:
        """Say how to start the program with a copy of this session's transcript before its own."""
        if env.get(RESUMES) != "1" or not is_plain(native_id):
            return Unsupported(self.unresumable)
        plan = self.launch(place, prompt, ready, permission, env)
        return replace(plan, argv=(*plan.argv, "--resume", native_id), repeats=True)

    def ask(
        self, place: Place, native_id: str, question: str, ready: Ready, env: Mapping[str, str]
    ) -> Launch | Unsupported:
        """Say how to have the program play its answer, after a copy of this session's transcript."""
        plan = self.resume(place, native_id, question, ready, Permission.SANDBOX, env)
        return replace(plan, argv=(*plan.argv, "--ask")) if isinstance(plan, Launch) else plan

    def kept(self, native_id: str, worktree: Path, env: Mapping[str, str]) -> Kept | Unsupported:
        """The transcript."""
        path = self.transcript(native_id, worktree, env)
        return Kept(self.home(env), (path,)) if path is not None else Unsupported("its transcript is not there")

    def home(self, env: Mapping[str, str]) -> Path:
        """The folder above that of its transcripts."""
        return sessions_dir(env).parent

    def launch_tui(
        self, place: Place, told: Path | str, ready: Ready, permission: Permission, env: Mapping[str, str]
    ) -> Launch | Unsupported:
        """Say how to start the scripted program's TUI."""
        native_id = str(uuid.uuid4())
        argv = (str(ready.program), "-m", TUI_PROGRAM, "--session-id", native_id)
        more = ("--brief", str(told)) if isinstance(told, Path) else ()
        return Launch((*argv, *more), b"", {}, _GRANTS, {}, native_id)

    def live(self, worktree: Path, env: Mapping[str, str], since: float) -> str:
        """The session that was written last in this worktree."""
        found, here = self.found(env), str(worktree)
        return shelf.newest(found, since, lambda path: any(r.get("cwd") == here for r in shelf.head(path)[:1]))

    def hear(self, line: bytes, moment: Moment = UNKNOWN) -> tuple[Heard, ...]:
        """What one event on stdout says."""
        event = jsonl.parse(line) or {}
        match event.get("type") if event.get("demo") is True else None:
            case "session":
                return (Identified(jsonl.text(event.get("id"))),)
            case "doing":
                return (Doing(cut(jsonl.text(event.get("what")), MAX_DOING)),)
            case "quota":
                window, resets_at = jsonl.text(event.get("window")), jsonl.epoch_time(event.get("resetsAt"))
                said = meters.reading(window, event.get("used"), moment.at, resets_at, None, "demo: pretend meter")
                return (Metered((said,)),) if said else ()
            case "limit":
                return (Limited(_notice(event)),)
            case "retry":
                notice = LimitNotice(LimitKind.RATE, "demo: pretend rate limit")
                seconds, attempt = jsonl.integer(event.get("seconds")) or 0, jsonl.integer(event.get("attempt")) or 0
                return (Retrying(notice, seconds, attempt, jsonl.integer(event.get("of")) or 0),)
            case "end":
                return (Ended(event.get("ok") is True, cut(jsonl.text(event.get("detail")), 300)),)
            case _:
                return ()

    def transcript(self, native_id: str, worktree: Path, env: Mapping[str, str]) -> Path | None:
        """Where the transcript lies."""
        path = sessions_dir(env) / f"{native_id}.jsonl"
        return path if _SESSION_ID.fullmatch(native_id) and path.is_file() else None

    def found(self, env: Mapping[str, str]) -> Iterator[Found]:
        """Every transcript."""
        return shelf.files(sessions_dir(env), 0, _id_in_name)

    def sessions(self, path: Path) -> tuple[str, ...]:
        """The session in this file."""
        own = (r.get("id") for r in shelf.head(path)[:1] if r.get("demo") is True and r.get("type") == "session")
        return tuple(filter(None, map(jsonl.text, own)))

    def follow(self, path: Path, native_id: str, worktree: Path) -> Following:
        """Read one transcript."""
        return Follower(path, lambda: DemoReader(worktree))


class DemoReader:
    """Folds one transcript of the demo agent."""

    def __init__(self, worktree: Path) -> None:
        self._draft = Draft("demo", str(worktree))

    def feed(self, line: bytes) -> None:
        """Take one line; never raises."""
        record = self._draft.take(line)
        if record is None:
            return
        if record.get("demo") is not True:
            self._draft.skip()
            return
        self._draft.saw(jsonl.iso_time(record.get("at")))
        self._take(record)

    def record(self) -> SessionRecord:
        """Everything understood so far."""
        return self._draft.record()

    def _take(self, record: Record) -> None:
        draft = self._draft
        match record.get("type"):
            case "session":
                draft.native_id, draft.cwd = jsonl.text(record.get("id")), jsonl.text(record.get("cwd"))
                draft.branch, draft.version = jsonl.text(record.get("branch")), jsonl.text(record.get("version"))
                draft.model = "none (scripted demo)"
            case "prompt":
                draft.prompt(jsonl.text(record.get("text")))
            case "say":
                draft.say(jsonl.text(record.get("text")))
                self._answered()
            case "plan":
                draft.set_plan([_plan_item(item) for item in jsonl.records(record.get("items"))])
                self._answered()
            case "call":
                draft.called(jsonl.text(record.get("call")), jsonl.text(record.get("what")))
            case "result":
                draft.returned(jsonl.text(record.get("call")), ok=None)
                self._result(record)
            case "limit":
                draft.limit(_notice(record))
            case "end":
                draft.turn_complete = record.get("ok") is True

    def _answered(self) -> None:
        """A pretend answer of the pretend model, which costs pretend tokens."""
        draft = self._draft
        draft.turns += 1
        draft.usage = Usage(draft.usage.input + 100, draft.usage.output + 10)

    def _result(self, record: Record) -> None:
        self._draft.touch(jsonl.text(record.get("path")))
        command = jsonl.text(record.get("command"))
        if command:
            output = jsonl.text(record.get("output"))
            code, digest = jsonl.integer(record.get("exitCode")), jsonl.text(record.get("outputSha256"))
            self._draft.ran(command, code, output, digest)


def _id_in_name(name: str) -> str:
    stem = name.removesuffix(".jsonl")
    return stem if stem != name and _SESSION_ID.fullmatch(stem) else ""


def sessions_dir(env: Mapping[str, str]) -> Path:
    """The folder of the demo agent's transcripts."""
    chosen = env.get("RELAY_DEMO_HOME")
    if chosen:
        return Path(chosen) / "sessions"
    state = Path(env.get("XDG_STATE_HOME", ""))
    base = state if state.is_absolute() else home(env) / ".local" / "state"
    return base / "git-relay" / "demo-agent" / "sessions"


def _plan_item(item: Record) -> PlanItem:
    return PlanItem(cut(jsonl.text(item.get("text")), 2_000), plan_status(jsonl.text(item.get("status"))))


def _notice(record: Record) -> LimitNotice:
    return LimitNotice(LimitKind.USAGE, "demo: pretend usage limit", "demo", jsonl.epoch_time(record.get("resetsAt")))
