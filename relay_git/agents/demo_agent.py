"""The demo agent itself: a small program that plays a script and calls no model.

Run by the demo adapter as `python -m relay_git.agents.demo_agent --session-id ID`, with the prompt on stdin.

Promise: everything it writes is marked as a demo, and its own writes stay inside the worktree. What it plays is a JSON
file named by RELAY_DEMO_STEPS, `{"legs": [[step, ...], ...]}`; RELAY_LEG (from 1) chooses the list, the last one
repeats. With `--ask` it plays the list `"ask"` of that file, or answers that it has nothing to add. Without a file it
plays a harmless script of its own. A step is an object with `do` and its fields:

    plan items=[{text, status}] | say text | write path content | append path content | shell argv=[...]
    commit message | accept | quota used reset_in window
    limit reset_in | logout | retry seconds times | crash code | sleep seconds | flood bytes line
    ignore_term | hang
    spawn seconds (a child in a session of its own, which outlives its parent)
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, NoReturn

from relay_git.agents.demo import TITLE, sessions_dir

VERSION = "1"
TRAILER = "Demo-Agent: scripted, no model"
MAX_PROMPT = 1_048_576
Step = Mapping[str, object]
Steps = list[Step]

_CONTRACT = re.compile(r"^Contract: (c-[0-9A-Za-z-]+)\s*$", re.M)
_OUTPUT_KEPT = 2_000
_OWN_SCRIPT: list[Steps] = [
    [
        {"do": "plan", "items": [{"text": "Write DEMO.md", "status": "in_progress"}, {"text": "Commit it"}]},
        {"do": "say", "text": "Demo: no model was asked. I write one note and commit it."},
        {
            "do": "write",
            "path": "DEMO.md",
            "content": "# Demo\n\nWritten by git relay's demo agent, a script that calls no model.\n",
        },
        {"do": "commit", "message": "Add the demo agent's note", "paths": ["DEMO.md"]},
        {
            "do": "plan",
            "items": [{"text": "Write DEMO.md", "status": "completed"}, {"text": "Commit it", "status": "completed"}],
        },
        {"do": "say", "text": "Demo: the note is committed."},
    ],
    [
        {"do": "accept"},
        {"do": "say", "text": "Demo: I took the contract over; there is nothing left to do."},
    ],
]

_NOTHING_TO_ADD: Steps = [{"do": "say", "text": "{}"}]


class Refused(Exception):
    """A step that cannot be played, with the reason."""


class Play:
    """One run: the transcript, stdout and the steps."""

    def __init__(self, session: str, transcript: BinaryIO, worktree: Path, prompt: str) -> None:
        self.session = session
        self.worktree = worktree
        self.prompt = prompt
        self._transcript = transcript
        self._calls = 0

    def note(self, kind: str, **fields: object) -> None:
        """Append one record to the transcript."""
        record = {"demo": True, "type": kind, "at": datetime.now(UTC).isoformat(timespec="milliseconds"), **fields}
        self._transcript.write(json.dumps(record, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
        self._transcript.flush()

    def tell(self, kind: str, **fields: object) -> None:
        """Print one event on stdout."""
        sys.stdout.buffer.write(json.dumps({"demo": True, "type": kind, **fields}).encode() + b"\n")
        sys.stdout.buffer.flush()

    def end(self, code: int, detail: str = "") -> NoReturn:
        """Say how the run ended, and end it."""
        self.note("end", ok=code == 0, detail=detail)
        self.tell("end", ok=code == 0, detail=detail)
        raise SystemExit(code)

    def act(self, what: str, work: Callable[[], dict[str, object]]) -> None:
        """Do something as a tool call: the call stands open in the transcript until the result is there."""
        self._calls += 1
        call = f"call-{self._calls}"
        self.note("call", call=call, what=what)
        self.tell("doing", what=what)
        self.note("result", call=call, **work())

    def inside(self, step: Step) -> Path:
        """The file that a step names, which must lie in the worktree and not in its git dir."""
        path = (self.worktree / _str(step, "path")).resolve()
        if not path.is_relative_to(self.worktree) or path == self.worktree:
            raise Refused(f"{_str(step, 'path')!r} lies outside the worktree")
        if path.relative_to(self.worktree).parts[0] == ".git":
            raise Refused("the demo agent does not write in .git")
        return path

    def run(self, argv: list[str]) -> dict[str, object]:
        """Run a command in the worktree; its output is kept to a few characters and a digest."""
        try:
            done = subprocess.run(argv, cwd=self.worktree, stdin=subprocess.DEVNULL, capture_output=True, check=False)
            code, output = done.returncode, done.stdout + done.stderr
        except OSError as error:
            code, output = 127, str(error).encode()
        return {
            "command": shlex.join(argv),
            "exitCode": code,
            "output": output[-_OUTPUT_KEPT:].decode("utf-8", "replace"),
            "outputSha256": hashlib.sha256(output).hexdigest(),
        }


def _str(step: Step, key: str, default: str | None = None) -> str:
    value = step.get(key, default)
    if not isinstance(value, str):
        raise Refused(f"step {step.get('do')!r} needs {key!r} as a text")
    return value


def _number(step: Step, key: str, default: float) -> float:
    value = step.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Refused(f"step {step.get('do')!r} needs {key!r} as a number")
    return value


def _strings(step: Step, key: str, default: list[str] | None = None) -> list[str]:
    value = step.get(key, default)
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise Refused(f"step {step.get('do')!r} needs {key!r} as a list of texts")
    return value


def _plan(play: Play, step: Step) -> None:
    items = step.get("items")
    if not isinstance(items, list):
        raise Refused("step 'plan' needs 'items'")
    play.note("plan", items=[item if isinstance(item, dict) else {"text": str(item)} for item in items])
    play.tell("doing", what="plans")


def _say(play: Play, step: Step) -> None:
    play.note("say", text=_str(step, "text"))
    play.tell("doing", what=_str(step, "text"))


def _write(play: Play, step: Step) -> None:
    path, content, mode = play.inside(step), _str(step, "content"), "a" if step.get("do") == "append" else "w"

    def work() -> dict[str, object]:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open(mode, encoding="utf-8") as file:
            file.write(content)
        return {"path": str(path)}

    play.act(f"{step['do']} {path.relative_to(play.worktree)}", work)


def _shell(play: Play, step: Step) -> None:
    argv = _strings(step, "argv")
    play.act(f"shell {shlex.join(argv)}", lambda: play.run(argv))


def _commit(play: Play, step: Step) -> None:
    message = _str(step, "message")
    paths = _strings(step, "paths", [])
    play.act("git add", lambda: play.run(["git", "add", "--", *paths] if paths else ["git", "add", "--all"]))
    play.act(
        f"git commit {message}", lambda: play.run(["git", "commit", "--quiet", "-m", message, "--trailer", TRAILER])
    )


def _accept(play: Play, step: Step) -> None:
    named = _CONTRACT.search(play.prompt)
    if not named:
        play.note("say", text="Demo: the brief names no contract.")
        return
    play.act(f"git relay accept {named[1]}", lambda: play.run(["git", "relay", "accept", named[1]]))


def _quota(play: Play, step: Step) -> None:
    """Tell how much of a window is used, as a share."""
    resets_at = int(time.time() + _number(step, "reset_in", 3_600))
    window, used = str(step.get("window", "demo")), _number(step, "used", 0)
    play.tell("quota", pretend=True, window=window, used=used, resetsAt=resets_at)


def _limit(play: Play, step: Step) -> None:
    resets_at = int(time.time() + _number(step, "reset_in", 3_600))
    play.note("limit", pretend=True, resetsAt=resets_at)
    play.tell("limit", pretend=True, resetsAt=resets_at)
    play.end(1, "demo: pretend usage limit")


def _logout(play: Play, step: Step) -> None:
    """End as a tool does whose login the service does not take any more."""
    play.end(1, "demo: 401 Unauthorized, pretend that the login has expired")


def _retry(play: Play, step: Step) -> None:
    seconds, times = _number(step, "seconds", 1), int(_number(step, "times", 1))
    for attempt in range(1, times + 1):
        play.tell("retry", pretend=True, seconds=math.ceil(seconds), attempt=attempt, of=times)
        time.sleep(seconds)


def _crash(play: Play, step: Step) -> None:
    code = int(_number(step, "code", 70))
    raise SystemExit(code)


def _sleep(play: Play, step: Step) -> None:
    def work() -> dict[str, object]:
        time.sleep(_number(step, "seconds", 1))
        return {}

    play.act("sleeps", work)


def _flood(play: Play, step: Step) -> None:
    left, length = int(_number(step, "bytes", 1_000_000)), int(_number(step, "line", 11))
    line = b"demo flood".ljust(max(length, 11) - 1, b".") + b"\n"
    block = line * max(1, 10_000 // len(line))
    while left > 0:
        sys.stdout.buffer.write(block)
        left -= len(block)
    sys.stdout.buffer.flush()


def _ignore_term(play: Play, step: Step) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    play.tell("doing", what="ignores SIGTERM")


def _hang(play: Play, step: Step) -> None:
    play.note("call", call="hang", what="hang")
    play.tell("doing", what="hangs")
    while True:
        time.sleep(3_600)


def _spawn(play: Play, step: Step) -> None:
    """Leave a grandchild in a session of its own, as a careless tool does with a daemon."""
    seconds = _number(step, "seconds", 600)
    sleeper = f"import time; time.sleep({seconds})"
    starter = (
        "import os, subprocess, sys; child = subprocess.Popen([sys.executable, '-c', sys.argv[1]], stdin=-3, stdout=-3,"
        " stderr=-3, start_new_session=True, cwd=sys.argv[2]); print(child.pid, flush=True); os._exit(0)"
    )
    argv = [sys.executable, "-c", starter, sleeper, str(play.worktree)]
    play.act("leaves a process behind", lambda: {**play.run(argv), "command": "spawn"})


_STEPS: dict[str, Callable[[Play, Step], None]] = {
    "plan": _plan,
    "say": _say,
    "write": _write,
    "append": _write,
    "shell": _shell,
    "commit": _commit,
    "accept": _accept,
    "limit": _limit,
    "logout": _logout,
    "quota": _quota,
    "retry": _retry,
    "crash": _crash,
    "sleep": _sleep,
    "flood": _flood,
    "ignore_term": _ignore_term,
    "hang": _hang,
    "spawn": _spawn,
}


def read_steps(env: Mapping[str, str], *, asked: bool = False) -> Steps:
    """The steps of this leg, or of its answer."""
    named, leg = env.get("RELAY_DEMO_STEPS"), env.get("RELAY_LEG", "1")
    legs: object = [_NOTHING_TO_ADD] if asked else _OWN_SCRIPT
    if named:
        try:
            script = json.loads(Path(named).read_bytes())
        except (OSError, ValueError) as error:
            raise Refused(f"the steps file {named} cannot be read: {error}") from error
        legs = script.get("legs") if isinstance(script, dict) else None
        if asked and isinstance(script, dict):
            legs = [script.get("ask", _NOTHING_TO_ADD)]
    if not isinstance(legs, list) or not legs:
        raise Refused('the steps file needs {"legs": [[step, ...], ...]}')
    number = int(leg) if leg.isascii() and leg.isdigit() and len(leg) < 9 else 1
    steps = legs[min(max(number, 1), len(legs)) - 1]
    if not isinstance(steps, list):
        raise Refused("each leg is a list of steps")
    return steps


def play_step(play: Play, step: object) -> None:
    """Play one step; an unknown one is refused."""
    name = step.get("do") if isinstance(step, dict) else None
    act = _STEPS.get(name) if isinstance(name, str) else None
    if act is None or not isinstance(step, dict):
        raise Refused(f"unknown step {step!r}; known are: {', '.join(_STEPS)}")
    act(play, step)


def main(argv: list[str] | None = None) -> int:
    """Play the script of this leg."""
    parser = argparse.ArgumentParser(prog="demo-agent", description=f"git relay's {TITLE}")
    parser.add_argument("--session-id", required=True)
    parser.add_argument("--resume", default="")
    parser.add_argument("--ask", action="store_true")
    words = parser.parse_args(argv)
    session: str = words.session_id
    worktree = Path.cwd().resolve()
    prompt = sys.stdin.buffer.read(MAX_PROMPT).decode("utf-8", "replace")
    folder = sessions_dir(os.environ)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    past = folder / f"{words.resume}.jsonl"
    if words.resume and not past.is_file():
        print(f"demo agent: no session {words.resume}", file=sys.stderr)
        return 1
    with (folder / f"{session}.jsonl").open("ab") as transcript, contextlib.suppress(BrokenPipeError):
        play = Play(session, transcript, worktree, prompt)
        branch = str(play.run(["git", "branch", "--show-current"])["output"]).strip()
        if words.resume:
            transcript.write(past.read_bytes())
        play.note("session", id=session, cwd=str(worktree), branch=branch, version=VERSION, title=TITLE)
        play.note("prompt", text=prompt)
        play.tell("session", id=session, title=TITLE)
        try:
            for step in read_steps(os.environ, asked=words.ask):
                play_step(play, step)
        except (Refused, OSError) as error:
            print(f"demo agent: {error}", file=sys.stderr)
            play.end(2, str(error))
        play.end(0)
    return 1


if __name__ == "__main__":
    sys.exit(main())
