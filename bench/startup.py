"""How long `git relay status` takes to answer, beside Python alone and `git status`."""

from __future__ import annotations

import sys
from pathlib import Path

from bench.measure import Row, Table, in_turns, run
from bench.place import relay, repository
from bench.sessions import write_sessions


def measure(scratch: Path, *, small: bool) -> Table:
    """`status` in a repository with three sessions of three contracts each."""
    place = scratch / "repo"
    repo, store = repository(place, 100)
    write_sessions(repo, store, sessions=3, contracts=3)
    command = relay()
    imports = "import typer, pygit2"
    times = in_turns(
        5 if small else 21,
        status=lambda: run(command, "status", cwd=place),
        through_git=lambda: run("git", "relay", "status", cwd=place),
        python=lambda: run(sys.executable, "-c", "pass", cwd=place),
        libraries=lambda: run(sys.executable, "-c", imports, cwd=place),
        git=lambda: run("git", "status", cwd=place),
    )
    table = Table("startup", "Whole processes, median of interleaved runs, in a repository with three sessions.")
    for peer, name in (
        ("python", "python -c pass"),
        ("libraries", f"python -c '{imports}'"),
        ("git", "git status"),
    ):
        table.rows.append(Row("git-relay status", times["status"], times[peer], name))
    table.rows.append(Row("git relay status", times["through_git"], times["status"], "git-relay status"))
    return table
