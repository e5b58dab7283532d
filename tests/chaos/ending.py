"""A session's end, cut at every act: `land` or `drop` is killed there, typed again, and all is as if it had not been.

Run as a program, which has imported everything once and forks for each command. What git does meanwhile is cut too: a
filter and hooks in the user's repository are called in the midst of it, and kill git and git relay. One JSON object
comes to stdout: how many cuts there are, and what was wrong after which of this part.

    python -m tests.chaos.ending FOLDER PART/PARTS land --squash
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from relay_git import cli
from relay_git.cli import app, ending, interrupted, reading
from relay_git.contract.lifecycle import Event, State
from relay_git.ledger import journal
from relay_git.ledger.journal import Entry
from relay_git.ledger.key import ensure
from tests.chaos.points import Points, Tear
from tests.cli.scene import everything, traces
from tests.git.conftest import open_session
from tests.seal.repo import Repo

WARM = (app, ending, interrupted, reading)
HOOKS = ("pre-merge-commit", "prepare-commit-msg", "commit-msg", "reference-transaction", "post-merge", "post-commit")
AT = "2026-07-01T12:00:00Z"
CUT = """#!/bin/sh
# A hook is called by its name, the filter with its name as an argument.
name=$(basename "$0"); [ "$name" = cut.sh ] && name=filter || name="$name $1"
case "$name" in *msg*) name=${name%% *} ;; esac
count=$(( $(cat "$CUT_DIR/$name" 2>/dev/null || echo 0) + 1 ))
echo $count > "$CUT_DIR/$name"
[ "$name #$count" = "$CUT_AT" ] && kill -9 $CUT_PID $PPID
[ "$name" = filter ] && exec cat
exit 0
"""


class Ending:
    """One command, on one repository after another at the same place."""

    def __init__(self, folder: Path, share: tuple[int, int], argv: list[str]) -> None:
        self.folder, self.argv = folder, argv
        self.part, self.parts = share
        self.repo = Repo(folder / "repo")
        self.seen = folder / "seen"
        self._make(folder)
        shutil.move(self.repo.path, folder / "template")

    def play(self) -> dict[str, Any]:
        """Every cut of the part."""
        self.set_up()
        pipe = self.folder / "points"
        assert self.run(lambda: self._points(lambda name, tear: _append(pipe, name))) == 0, self.said()
        want, points = self.end(), pipe.read_text().splitlines()
        within = [f"{f.name} #{n}" for f in sorted(self.seen.iterdir()) for n in range(1, int(f.read_text()) + 1)]
        wrong = [w for at in points[self.part :: self.parts] for w in self._cut(at, "", want)]
        wrong += [w for at in within[self.part :: self.parts] for w in self._cut("", at, want)]
        return {"cuts": len(points), "within git": len(within), "wrong": wrong}

    def _cut(self, at: str, within: str, want: dict[str, Any]) -> list[str]:
        def reached(name: str, tear: Tear) -> None:
            if name == at:
                tear()
                os.kill(os.getpid(), signal.SIGKILL)

        self.set_up()
        first = self.run(lambda: self._points(reached), within)
        self._let_git_end()
        told = [] if first == -signal.SIGKILL else [f"the command was not cut, it ended with {first}"]
        again = self.run()
        if again != 0 and not (again == 2 and "is dropped already" in self.said()):
            told.append(f"typed again it ended with {again}: {self.said()[-800:]}")
        got = self.end()
        told += [f"{what}: {got[what]!r}, not {want[what]!r}" for what in want if got[what] != want[what]]
        return [f"cut {at or within}: {line}" for line in told]

    def end(self) -> dict[str, Any]:
        """What is left, as stock git and the eye see it; of ids only what is the same each time."""
        path, git = self.repo.path, self.repo.git
        (ref,) = git("for-each-ref", "--format=%(refname)", "refs/relay/sessions/").split()
        subjects = git("log", "--format=%s", ref).split("\n")
        reached = set(git("rev-list", "--all" if self.argv[0] == "land" else ref).split())
        return {
            "tree": git("rev-parse", "HEAD^{tree}"),
            "history": git("log", "--format=%s", "HEAD").split("\n"),
            "branch": git("symbolic-ref", "HEAD"),
            "status": git("status", "--porcelain", "--untracked-files=all").split("\n"),
            "files": sorted(str(f.relative_to(path)) for f in everything(path, leave_out={".git", ".relay"})),
            "branches": git("for-each-ref", "--format=%(refname)", "refs/heads/").split("\n"),
            "landed": sum("landed" in s for s in subjects),
            "dropped": sum("dropped" in s for s in subjects),
            "lost": [oid for oid in self.work if oid not in reached],
            "worktree": (path / ".relay").exists(),
            "spool": [t for t in traces(path) if "refs/" not in t and "worktrees" not in t],
            "half-done": [n for n in ("MERGE_HEAD", "MERGE_MSG", "SQUASH_MSG", "CHERRY_PICK_HEAD", "sequencer")
                          if (path / ".git" / n).exists()],
            "landing": [str(f) for f in path.glob(".git/relay/spool/*/landing")],
            "fsck": self.repo.try_git("fsck", "--strict").returncode,
        }  # fmt: skip

    def run(self, prepare: Callable[[], object] = lambda: None, within: str = "") -> int:
        """The command in a fork of this process; its exit status, negative for a signal."""
        pid = os.fork()
        if pid == 0:
            code = 70
            try:
                os.chdir(self.repo.path)
                os.environ |= {"CUT_PID": str(os.getpid()), "CUT_AT": within, "CUT_DIR": str(self.seen)}
                for number, name in ((0, os.devnull), (1, self.folder / "out"), (2, self.folder / "err")):
                    os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | (os.O_TRUNC if number else 0), 0o600), number)
                prepare()
                code = cli.run(self.argv)
                sys.stdout.flush()
            finally:
                os._exit(code)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def said(self) -> str:
        return (self.folder / "out").read_text() + (self.folder / "err").read_text()

    def set_up(self) -> None:
        for place in (self.repo.path, self.seen):
            shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self.folder / "template", self.repo.path, symlinks=True)
        self.seen.mkdir()

    def _points(self, reached: Callable[[str, Tear], None]) -> None:
        Points(self.repo.path, reached).install()

    def _let_git_end(self) -> None:
        places = (str(self.repo.path), str(self.repo.path / ".git"))
        while any(p.info["name"] == "git" and p.info["cwd"] in places for p in psutil.process_iter(["name", "cwd"])):
            time.sleep(0.005)

    def _make(self, folder: Path) -> None:
        """A session that is done; main has moved on; a file of the user's is untracked."""
        script = folder / "cut.sh"
        script.write_text(CUT)
        script.chmod(0o755)
        subprocess.run(["git", "init", "-q", "--template=", "-b", "main", self.repo.path], check=True)
        files = {"changed.txt": "as it was\n", "goes.txt": "goes\n", "deep/in/it.txt": "deep\n", "kept.txt": "kept\n"}
        self.repo.commit("first", {".gitattributes": "*.txt filter=cut\n", **files})
        session = open_session(self.repo, "carry-it-0001")
        (session.at.path / "goes.txt").unlink()
        session.at.commit("One", {"changed.txt": "changed\n", "new/one.txt": "one\n"})
        self.work = [session.at.commit("Two", {"deep/in/it.txt": "deeper\n", "two.txt": "two\n"})]
        entry = Entry(
            session.id, State.RUNNING, Event.STARTED, AT, 1, "demo", "carry it", session.base, f"relay/{session.id}"
        )
        if self.argv[0] == "drop":
            session.at.git("checkout", "-q", "--detach")
            self.work.append(session.at.commit("On no branch", {"off.txt": "off\n"}))
        ensure(session.repo, session.store)
        done = {"state": State.DONE, "event": Event.AGENT_DONE, "snapshot": self.work[0]}
        first = journal.append(session.store, None, entry)
        journal.append(session.store, first, Entry(**{f: getattr(entry, f) for f in entry.__slots__} | done))
        del session
        self.repo.commit("meanwhile", {"mine.txt": "mine\n"})
        self.repo.write("untracked.txt", "untracked\n")
        self.repo.git("config", "filter.cut.smudge", str(script))
        (self.repo.git_dir / "hooks").mkdir(exist_ok=True)
        for hook in HOOKS:
            (self.repo.git_dir / "hooks" / hook).symlink_to(script)


def _append(file: Path, line: str) -> None:
    with file.open("a") as out:
        out.write(line + "\n")


def main() -> None:
    part, _, parts = sys.argv[2].partition("/")
    print(json.dumps(Ending(Path(sys.argv[1]), (int(part), int(parts)), sys.argv[3:]).play()))


if __name__ == "__main__":
    main()
