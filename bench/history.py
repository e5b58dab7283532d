"""How long `git relay detect` takes over 1 GB of history, at its first look and once it has seen it before."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

from bench.measure import Row, Table, in_turns, run
from bench.place import relay
from bench.transcripts import MIB, write_claude

SESSIONS, RECENT, PROJECTS = 250, 30, 25
AIM_WARM = 0.3
_DAY = 86_400

# How many transcripts a look opens, as Python itself tells it.
_OPENS = """
import sys
seen = set()
def heard(event, args):
    if event == "open" and str(args[0]).endswith(".jsonl"):
        seen.add(str(args[0]))
sys.addaudithook(heard)
from relay_git.cli import run
run(["detect", "--json"])
print(len(seen), file=open(sys.argv[1], "w"))
"""


def measure(scratch: Path, *, small: bool) -> Table:
    """250 sessions of Claude Code of 4 MB each, 30 of them of the last 24 hours."""
    each = (1 if small else 4) * MIB
    home = _history(scratch, each)
    env, cache = {**os.environ, "HOME": str(home)}, home / ".cache" / "git-relay"
    nothing = {**os.environ, "HOME": str(scratch)}
    command = relay()

    def cold(*more: str) -> float:
        shutil.rmtree(cache, ignore_errors=True)
        began = time.perf_counter()
        run(command, "detect", "--json", *more, cwd=scratch, env=env)
        return time.perf_counter() - began

    whole, first, opened_cold = cold("--all"), cold(), _opened(scratch, env, cache)
    run(command, "detect", cwd=scratch, env=env)
    times = in_turns(
        3 if small else 11,
        warm=lambda: run(command, "detect", "--json", cwd=scratch, env=env),
        empty=lambda: run(command, "detect", "--json", cwd=scratch, env=nothing),
    )
    beyond, aim = times["warm"] - times["empty"], f"{AIM_WARM} s more"
    table = Table(
        "history",
        f"{SESSIONS} transcripts of Claude Code, {SESSIONS * each // MIB} MiB in all, {RECENT} of the last 24 hours.\n"
        "Whole processes, which scan what runs on the machine; the next look and a home without sessions are medians.",
    )
    table.rows += [
        Row("first look, 24 hours", first, times["empty"], "a home without sessions"),
        Row("first look, --all", whole, times["empty"], "a home without sessions"),
        Row("next look", times["warm"], times["empty"], "a home without sessions", aim, beyond <= AIM_WARM),
    ]
    if ccusage := shutil.which("ccusage"):  # only where the user has it: npm install -g ccusage
        began = time.perf_counter()
        run(ccusage, "daily", "--offline", "--json", cwd=scratch, env=env)
        table.rows.append(Row("first look, --all", whole, time.perf_counter() - began, "ccusage daily --offline"))
    opened_warm = _opened(scratch, env)
    table.notes.append(f"   transcripts opened: {opened_cold} at the first look, {opened_warm} at the next")
    return table


def _history(scratch: Path, each: int) -> Path:
    home, now, first = scratch / "home", time.time(), _name(0)
    text = write_claude(scratch / "one.jsonl", each, first).read_bytes()
    for number in range(SESSIONS):
        folder = home / ".claude" / "projects" / f"-w-app{number % PROJECTS}"
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{_name(number)}.jsonl"
        file.write_bytes(text.replace(first.encode(), _name(number).encode()))
        age = number * 2_000 if number < RECENT else (1 + number) * _DAY
        os.utime(file, (now - age, now - age))
    return home


def _name(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012}"


def _opened(scratch: Path, env: dict[str, str], cache: Path | None = None) -> int:
    if cache is not None:
        shutil.rmtree(cache, ignore_errors=True)
    told = scratch / "opened"
    run(sys.executable, "-c", _OPENS, told, cwd=scratch, env={**env, "PYTHONPATH": str(Path(__file__).parents[1])})
    return int(told.read_text())
