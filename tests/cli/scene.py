"""What the tests of the commands share: a steps file for the demo agent, and pictures of a repository to compare."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from tests.seal.records import records

Step = dict[str, Any]
_BLOCK = re.compile(rb"^# >>> git relay >>>.*?^# <<< git relay <<<\n", re.M | re.S)
OURS = ("refs/heads/relay/", "refs/relay/", "refs/notes/relay/")


def say(text: str) -> Step:
    return {"do": "say", "text": text}


def write(path: str, content: str) -> Step:
    return {"do": "write", "path": path, "content": content}


def commit(message: str) -> Step:
    return {"do": "commit", "message": message}


def shell(*argv: str) -> Step:
    return {"do": "shell", "argv": list(argv)}


LIMIT: Step = {"do": "limit", "reset_in": 3600}
ACCEPT: Step = {"do": "accept"}
HANG: Step = {"do": "hang"}

WORK = [say("I begin."), write("made.txt", "made\n"), commit("Make it"), say("It is made.")]
TO_THE_LIMIT = [say("I begin."), write("made.txt", "made\n"), commit("Make it"), write("half.txt", "half\n"), LIMIT]
TAKE_OVER = [ACCEPT, say("I go on."), write("half.txt", "whole\n"), commit("Finish it"), say("It is done.")]


@dataclass(frozen=True, slots=True)
class Demo:
    """The demo agent's files: its script, and the folder with its transcripts."""

    script: Path
    home: Path

    def plays(self, *legs: list[Step]) -> None:
        """From now on leg n plays the nth list, and every later one the last."""
        self.script.write_text(json.dumps({"legs": legs}))

    def prompts(self) -> list[str]:
        """What each agent that was started was told, in the order of the transcripts' first lines."""
        found = []
        for file in (self.home / "sessions").glob("*.jsonl"):
            said = records(file)
            found.append((said[0]["at"], next(r["text"] for r in said if r["type"] == "prompt")))
        return [text for _, text in sorted(found)]


def photograph(repo: Path) -> dict[str, object]:
    """All that is the user's in a repository with its work tree; our hook block and our refs are left out."""
    git_dir = repo / ".git"
    return {
        "status": _git(repo, "status", "--porcelain", "--untracked-files=all"),
        "HEAD": (git_dir / "HEAD").read_bytes(),
        "index": (git_dir / "index").read_bytes() if (git_dir / "index").exists() else b"",
        "config": (git_dir / "config").read_bytes(),
        "hooks": dict(_hooks(git_dir / "hooks")),
        "refs": [line for line in _git(repo, "for-each-ref").split("\n") if not _is_ours(line)],
        "files": {
            str(f.relative_to(repo)): (f.lstat().st_mode, str(f.readlink()) if f.is_symlink() else digest(f))
            for f in everything(repo, leave_out={".git", ".relay"})
        },
    }


def traces(repo: Path) -> list[str]:
    """What a session leaves in a repository: none of it may be there after a command that failed."""
    git_dir = repo / ".git"
    found = [line for line in _git(repo, "for-each-ref").split("\n") if _is_ours(line)]
    for folder in ("worktrees", "relay/spool", "relay/logs"):
        if (git_dir / folder).is_dir():
            found += [str(f) for f in (git_dir / folder).iterdir()]
    found += [str(f) for f in (git_dir / "relay").glob("*.*")] if (git_dir / "relay").is_dir() else []
    found += [
        str(f) for f in everything(git_dir, leave_out=set()) if f.name.endswith(".lock") and "locks" not in f.parts
    ]
    return found + ([str(repo / ".relay")] if (repo / ".relay").is_dir() and not (repo / ".relay").is_symlink() else [])


def everything(top: Path, leave_out: set[str]) -> Iterator[Path]:
    """Every file and link below `top`, without what lies in the named folders of the top."""
    for folder, inner, files in os.walk(top):
        if Path(folder) == top:
            inner[:] = [n for n in inner if n not in leave_out]
        yield from (Path(folder) / n for n in [*files, *(n for n in inner if (Path(folder) / n).is_symlink())])


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def only_session(repo: Path) -> str:
    """The id of the one session in a repository."""
    names = _git(repo, "for-each-ref", "--format=%(refname)", "refs/relay/sessions/").split("\n")
    assert len(names) == 1, names
    return names[0].removeprefix("refs/relay/sessions/")


def states(repo: Path, session: str) -> list[dict[str, Any]]:
    """The states of the journal, oldest first, read by stock git alone."""
    ids = _git(repo, "rev-list", "--first-parent", "--reverse", f"refs/relay/sessions/{session}").split("\n")
    return [json.loads(_git(repo, "cat-file", "blob", f"{oid}:state.json")) for oid in ids]


def processes_of(session: str) -> list[int]:
    """Every live process that carries the session's mark."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and process.environ().get("RELAY_SESSION") == session:
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def end_survivors(repo: Path) -> None:
    """Kill every process of any session of a repository: what a failed test has left must not slow the others down."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("RELAY_DIR", "").startswith(f"{repo}/"):
                process.kill()


def wait_for(what: Callable[[], object], seconds: float = 30) -> Any:
    """The first true value of `what`; fails when it does not come."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if got := what():
                return got
        except (AssertionError, OSError, ValueError, subprocess.SubprocessError):
            pass
        time.sleep(0.03)
    raise AssertionError("what was waited for did not come")


def _git(repo: Path, *args: str) -> str:
    # Without optional locks, so that looking does not refresh the index that is compared.
    env = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    done = subprocess.run(["git", *args], cwd=repo, env=env, capture_output=True, check=True)
    return done.stdout.decode("utf-8", "surrogateescape").removesuffix("\n")


def _is_ours(line: str) -> bool:
    return line.partition("\t")[2].startswith(OURS)


def _hooks(folder: Path) -> Iterator[tuple[str, tuple[int, bytes]]]:
    for file in folder.iterdir() if folder.is_dir() else ():
        data = _BLOCK.sub(b"", file.read_bytes())
        if data != b"#!/bin/sh\n":
            yield file.name, (file.stat().st_mode, data)
