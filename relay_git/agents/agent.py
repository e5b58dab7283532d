"""The one Protocol that every agent adapter keeps, and the words it is spoken in.

Promise: an adapter is stateless; it says how its tool is started and how its output and transcript are read, and it
starts nothing itself (`supervisor.process` does). Everything it reads is hostile input: it counts what it cannot
understand and never raises on it. What a tool cannot do is a typed `Unsupported`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol, runtime_checkable

from relay_git.agents.moments import UNKNOWN, Moment
from relay_git.session import LimitNotice, QuotaReading, SessionRecord


class Permission(StrEnum):
    """How far an agent may reach: its own sandbox with the least that works, or all that the user may do."""

    SANDBOX = "sandbox"
    FULL = "full"


# What an agent is told lies in its private folder: as its stdin, or where its CLI is to read it from. Secrets are taken
# out of both once the leg is over.
PROMPT, TOLD = "prompt", "told.md"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a leg works: absolute paths.

    `git_dir` is the worktree's own git dir, `common_dir` the repository's; `private_dir` is ours for this leg (0700),
    for files that the CLI itself reads and its shell commands must not.
    """

    worktree: Path
    git_dir: Path
    common_dir: Path
    branch: str
    private_dir: Path


@dataclass(frozen=True, slots=True)
class LoginPlace:
    """How one login of a tool is kept apart from another.

    `folder` names the variable that moves all of it elsewhere: configuration, login and sessions; empty if none does.
    `keys` are the variables with a credential that outranks the login in that folder, the usual one first. `command`
    are the words after the program that sign in at the terminal; where there are none, `hint` says what to do in it.
    """

    folder: str
    keys: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Ready:
    """The tool can be started: the path of its program and what is worth saying about it.

    `evidence` is by what it is known to be signed in: the name of a variable or of a file, neither of them read.
    """

    program: Path
    notes: tuple[str, ...] = ()
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Unready:
    """The tool cannot be started here, and why; `hint` is the next command to type."""

    reason: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Unsupported:
    """What this tool cannot do, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start one leg.

    `argv` holds no prompt and no secret. `env` is added to the environment that the child gets, `drop_env` taken out
    of it. `stdin` is what the CLI reads as its prompt, handed over as a file. `files` are written (0600) below the
    leg's private folder before the start, by name. `native_id` is the tool's session id where we may choose it.
    `grants` says in words what the agent may do. `ends_turn` says that a hook of the tool's own, given for this run
    only, ends the turn after a tool call when `end-turn` stands in the `relay` folder of the worktree's git dir.
    `hides_git_config` says that the tool's commands do not see the user's own git configuration, so that who commits
    has to be handed over. `repeats` says that the transcript of a run that goes on from an earlier session holds that
    one's records as well.
    """

    argv: tuple[str, ...]
    stdin: bytes
    env: Mapping[str, str]
    grants: tuple[str, ...]
    files: Mapping[str, bytes]
    native_id: str = ""
    drop_env: tuple[str, ...] = ()
    ends_turn: bool = False
    hides_git_config: bool = False
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class Kept:
    """The files that make up one session, each below `home`, the folder that an account of the tool has to itself.

    Laid at the same place below the home of another account, they are the same session there.
    """

    home: Path
    files: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Identified:
    """The tool said which session of its own this leg is."""

    native_id: str


@dataclass(frozen=True, slots=True)
class Doing:
    """What the agent is at, in a few words for the live line (not yet escaped)."""

    what: str


@dataclass(frozen=True, slots=True)
class Limited:
    """The tool's own channel said that a request was refused for good."""

    notice: LimitNotice


@dataclass(frozen=True, slots=True)
class Retrying:
    """The tool's own channel said that a request was refused and that it waits and asks again by itself.

    `notice` says what refused it, with its `resets_at` where the tool named the moment of the next try; `seconds` is
    the wait where it named that instead. `attempt` counts from 1, `of` is the last; 0 where the tool does not say.
    `refused` is False where it waits for something else, such as a line that was cut.
    """

    notice: LimitNotice
    seconds: float | None = None
    attempt: int = 0
    of: int = 0
    refused: bool = True


@dataclass(frozen=True, slots=True)
class Ended:
    """The tool said how its run ended."""

    ok: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Metered:
    """The tool's own channel said how much of its account's windows is used."""

    readings: tuple[QuotaReading, ...]


Heard = Identified | Doing | Limited | Retrying | Metered | Ended


class Reader(Protocol):
    """Folds the records of one transcript; constant memory, whatever the size."""

    def feed(self, line: bytes) -> None:
        """Take one LF-terminated line (without the LF), or any garbage; never raises."""

    def record(self) -> SessionRecord:
        """Everything understood so far."""


@dataclass(frozen=True, slots=True)
class Found:
    """A transcript on this machine: a file, or a folder where the tool keeps one session in many files.

    `native_id` is empty where only the inside tells it. `modified` is Unix time in seconds, `size` in bytes.
    """

    path: Path
    native_id: str
    modified: float
    size: int


class Following(Protocol):
    """One session's transcript while its agent may still be writing it; the tool's own files stay as they are."""

    def poll(self) -> bool:
        """Read what is new; whether there was anything. Never raises on what the file holds, or where it is gone."""

    def record(self, *, ended: bool = False) -> SessionRecord:
        """Everything understood so far; with `ended`, nothing is to come any more."""


class Tool(Protocol):
    """One tool whose transcripts can be read. `name` is ours, `aliases` are the tool's own, `last_seen` its version.

    `last_seen` is the version that it was tested with; empty where the format is known from public sources only.
    """

    name: str
    title: str
    aliases: tuple[str, ...]
    last_seen: str

    def found(self, env: Mapping[str, str]) -> Iterator[Found]:
        """Every transcript that the tool keeps for this user; nothing is opened that a name tells."""

    def sessions(self, path: Path) -> tuple[str, ...]:
        """The ids of the sessions in this file or folder, oldest first; empty where it is not this tool's."""

    def follow(self, path: Path, native_id: str, worktree: Path) -> Following:
        """Read one session there; an empty id means the newest.

        Files are named from `worktree`; `Path()` stands for the session's own cwd.
        """


class Many(Protocol):
    """The sessions that lie in one file; it may be asked again and again, and reads what has changed."""

    def listed(self) -> tuple[Found, ...]:
        """Each session with the time of its last sign of life, as far as that can be told without reading it."""

    def follow(self, native_id: str) -> Following:
        """Read one of them."""


@runtime_checkable
class HoldsMany(Protocol):
    """A tool that keeps many sessions in one file whose name tells nothing of them."""

    def inside(self, found: Found) -> Many:
        """What lies in such a file."""


class Agent(Tool, Protocol):
    """A tool that can be started as well.

    `unconfined` says why it has no sandbox that would do, empty where it has; `unresumable` why it cannot go on in a
    session of its own, empty where it can. `channel` is the way by which it is told what to do, in words.
    """

    unconfined: str
    account: LoginPlace
    unresumable: str
    channel: str

    def check(self, env: Mapping[str, str], permission: Permission) -> Ready | Unready:
        """Say whether the tool is installed, signed in and able to keep the permission, without starting it."""

    def launch(
        self, place: Place, prompt: str, ready: Ready, permission: Permission, env: Mapping[str, str]
    ) -> Launch | Unsupported:
        """Say how to start a new headless run with this prompt."""

    def resume(
        self, place: Place, native_id: str, prompt: str, ready: Ready, permission: Permission, env: Mapping[str, str]
    ) -> Launch | Unsupported:
        """Say how to start a headless run that has all of this session in mind, and this prompt as what is said next.

        It goes on in a copy of the session, so that it can be tried again; Copilot CLI alone goes on in the session
        itself.
        """

    def kept(self, native_id: str, worktree: Path, env: Mapping[str, str]) -> Kept | Unsupported:
        """Say which files a session is made of, so that it can be laid into the home of another account."""

    def home(self, env: Mapping[str, str]) -> Path:
        """The folder that the account has to itself: configuration, login and sessions."""

    def hear(self, line: bytes, moment: Moment = UNKNOWN) -> tuple[Heard, ...]:
        """What a line of stdout says, read at that moment, on the tool's own channel; prose and output say nothing."""

    def transcript(self, native_id: str, worktree: Path, env: Mapping[str, str]) -> Path | None:
        """Where the transcript of that run lies, or None while there is none."""


@runtime_checkable
class Askable(Protocol):
    """An agent that can be asked something about a session of its own without leave to change or to run anything."""

    def ask(
        self, place: Place, native_id: str, question: str, ready: Ready, env: Mapping[str, str]
    ) -> Launch | Unsupported:
        """Say how to put this question in a copy of the session; the answer is what is said last in the copy."""


@runtime_checkable
class HasTui(Protocol):
    """An agent whose own TUI can be started at the user's terminal, too."""

    def launch_tui(
        self, place: Place, told: Path | str, ready: Ready, permission: Permission, env: Mapping[str, str]
    ) -> Launch | Unsupported:
        """Say how to start the TUI, confined as a headless run is.

        `told` is the file with its task or, where the user begins, a word on how to work that is no prompt.
        What the confinement does not allow is asked of the user, by the tool's own dialogs.
        """

    def live(self, worktree: Path, env: Mapping[str, str], since: float) -> str:
        """The id of the session that was written last in this worktree, since that Unix time; empty if none was.

        In a TUI the user may begin another session at any moment.
        """


@runtime_checkable
class MetersItsTui(Protocol):
    """An agent whose TUI tells elsewhere than in its transcript how much is used."""

    def metered(self, private: Path) -> tuple[QuotaReading, ...]:
        """What it told last, by what it keeps in the leg's private folder."""


def is_plain(native_id: str) -> bool:
    """Whether an id that a tool or its transcript told can stand in a command line, and be nothing else there."""
    return re.fullmatch(r"[0-9A-Za-z][0-9A-Za-z_-]{0,99}", native_id) is not None


def pointer(brief: Path) -> str:
    """The first prompt of a TUI: short, and nothing of the task, since everybody on the machine can read argv."""
    return f"Your task is in the file {brief} (from git relay, on my behalf). Read it first, then carry it out."
