"""`git relay verify --all` over many contracts, as a whole process."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from bench.measure import Row, Table, in_turns, run
from bench.place import relay, repository
from bench.sessions import write_sessions

AIM = 2.0


def measure(scratch: Path, *, small: bool) -> Table:
    """10,000 contracts in 100 sessions: every object loose, as it was written, and in one pack, after `git gc`."""
    sessions, contracts = (10, 20) if small else (100, 100)
    table = Table(
        "verify",
        f"git relay verify --all as a process, median; {sessions * contracts:,} contracts in {sessions} sessions,\n"
        "built and signed by the program's own code, six journal entries each. Peer: git rev-list --objects --all.",
    )
    packed = scratch / "packed"
    repo, store = repository(packed, 100)
    write_sessions(repo, store, sessions=sessions, contracts=contracts)
    run("git", "gc", "--quiet", cwd=packed)
    loose = scratch / "loose"
    command = relay()
    for name, place in (("after git gc", packed), ("loose", loose)):
        if place is loose:
            print("taking the pack apart ...", file=sys.stderr, flush=True)
            shutil.copytree(packed, loose)
            _loosen(loose)
        out = run(command, "verify", "--all", cwd=place)
        assert out.count(b"\n") == sessions * contracts + 1
        times = in_turns(
            3 if place is packed else 1,  # a few hundred thousand files are slow to read for everybody
            verify=lambda place=place: run(command, "verify", "--all", cwd=place),
            git=lambda place=place: run("git", "rev-list", "--objects", "--all", cwd=place),
        )
        # The aim is for the full number.
        aim, holds = ("", None) if small else (f"< {AIM:.0f} s", times["verify"] < AIM)
        row = Row(name, times["verify"], times["git"], "git rev-list", aim, holds)
        table.rows.append(row)
        print(f"  {name}: {times['verify']:.1f} s", file=sys.stderr, flush=True)
    size = len(run("git", "cat-file", "blob", "refs/relay/sessions/refund-flow-0000:contract.json", cwd=packed))
    table.notes.append(f"a contract of {size:,} bytes; {_objects(packed)} objects")
    return table


def _loosen(place: Path) -> None:
    """Take the pack apart again: each object becomes a file, each ref too."""
    packs = place / ".git" / "objects" / "pack"
    aside = place.with_name("aside")
    packs.rename(aside)
    packs.mkdir()
    for pack in aside.glob("*.pack"):
        run("sh", "-c", 'git unpack-objects -q <"$1"', "sh", str(pack), cwd=place)


def _objects(place: Path) -> str:
    out = run("git", "count-objects", "-v", cwd=place).decode()
    return next(f"{int(line.split()[1]):,}" for line in out.splitlines() if line.startswith("in-pack"))
