"""Run in a mount namespace of its own: a session on a disk that is full after N KiB, for each N on the command line.

    unshare --mount python full_disk.py WORK_DIR N...

Prints one JSON object a level: how the command ended on the full disk, and how again after room was made.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.cli.scene import photograph, states, traces

RELAY = [sys.executable, "-m", "relay_git"]
START = [*RELAY, "start", "a task", "--agent", "demo", "--then", "demo"]


def run(argv: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    # A pipe that is not closed when a command ends in a hurry is no message for a user: only -W shows it.
    env = {k: v for k, v in os.environ.items() if k != "PYTHONWARNINGS"}
    return subprocess.run(argv, cwd=cwd, env=env, capture_output=True, text=True, errors="replace", check=False)


def fill(disk: Path, leave_kib: int) -> Path:
    """Take all the room but this much."""
    stone = disk / "stone"
    with stone.open("wb") as out:
        free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
        out.write(b"\0" * max(0, free - leave_kib * 1024))
    return stone


def sessions(repo: Path) -> dict[str, str]:
    """The state of each session, by stock git."""
    refs = run(["git", "for-each-ref", "--format=%(refname:lstrip=3)", "refs/relay/sessions/"], repo).stdout.split()
    return {name: str(states(repo, name)[-1]["state"]) for name in refs}


def level(disk: Path, leave_kib: int) -> dict[str, object]:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", disk], check=True)
    try:
        repo = disk / "repo"
        repo.mkdir()
        for argv in (["init", "-q", "--template="], ["commit", "-q", "--allow-empty", "-m", "one"]):
            subprocess.run(["git", *argv], cwd=repo, check=True)
        (repo / "file.txt").write_text("as it was\n")
        before = photograph(repo)
        stone = fill(disk, leave_kib)
        first = run(START, repo)
        told = {"level": leave_kib, "rc": first.returncode, "stdout": first.stdout, "stderr": first.stderr}
        told["untouched"] = photograph(repo) == before
        told["left"] = traces(repo)
        told["sessions"] = sessions(repo)
        stone.unlink()
        open_ones = [name for name, state in sessions(repo).items() if state != "DONE"]
        argv = [*RELAY, "handoff", open_ones[0], "--to", "demo"] if open_ones else START
        again = run(argv, repo)
        told["again"] = {"rc": again.returncode, "stderr": again.stderr}
        told["verified"] = run([*RELAY, "verify", "--all"], repo).returncode
        told["states"] = sorted(sessions(repo).values())
        told["still untouched"] = photograph(repo) == before
        return told
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def main() -> None:
    work = Path(sys.argv[1])
    disk = work / "disk"
    disk.mkdir(exist_ok=True)
    for word in sys.argv[2:]:
        print(json.dumps(level(disk, int(word))), flush=True)


main()
