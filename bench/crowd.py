"""Many sessions at once in one repository: what an idle supervisor costs, and whether any of them loses an event."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from statistics import median

from bench.measure import Row, Table, run
from bench.place import relay, repository

CPU_AIM, MEMORY_AIM = 0.01, 60
EVENTS = ["started", "launched", "limit-seen", "snapshot-taken", "contract-built", "chosen", "launched"]
EVENTS += ["acknowledged", "agent-done"]
IDLE = {"legs": [[{"do": "say", "text": "I begin."}, {"do": "hang"}]]}
HANDED_OVER = {
    "legs": [
        [
            {"do": "say", "text": "I begin."},
            {"do": "write", "path": "half.py", "content": "half = True\n"},
            {"do": "limit", "reset_in": 3600},
        ],
        [
            {"do": "accept"},
            {"do": "write", "path": "half.py", "content": "whole = True\n"},
            {"do": "commit", "message": "Finish it"},
            {"do": "say", "text": "It is done."},
        ],
    ]
}


def measure(scratch: Path, *, small: bool) -> Table:
    """Fifty sessions that stand idle, then fifty that are handed over once, all started at the same moment."""
    number, seconds = (5, 5) if small else (50, 30)
    table = Table(
        "crowd",
        f"{number} sessions of the demo agent in one repository, started at the same moment. CPU of a supervisor\n"
        f"whose agent says nothing, as time in a second, median over {number} of them in {seconds} s; memory from\n"
        "/proc/<pid>/smaps_rollup, where PSS counts what is shared in parts.",
    )
    place = scratch / "repo"
    repository(place, 100)
    os.environ["RELAY_DEMO_STEPS"] = str(scratch / "steps.json")
    os.environ["RELAY_DEMO_HOME"] = str(scratch / "demo-home")
    _idle(table, place, number, seconds)
    _handed_over(table, place, number)
    return table


def _idle(table: Table, place: Path, number: int, seconds: int) -> None:
    begun = _start(place, IDLE, number)
    while len(list((place / ".git" / "relay" / "logs").glob("*/leg-1-demo/stdout"))) < number:
        time.sleep(0.2)
    time.sleep(10)  # what is loaded while the agent works is not asked for here
    before = [_cpu(p.pid) for p in begun]
    time.sleep(seconds)
    used = [(_cpu(p.pid) - b) / seconds for p, b in zip(begun, before, strict=True)]
    memory = [_memory(p.pid) for p in begun]
    for process in begun:
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
    for process in begun:
        process.wait()
    aim = f"< {CPU_AIM * 1000:.0f} ms a second"
    table.rows.append(Row("an idle supervisor's CPU", median(used), aim=aim, holds=median(used) < CPU_AIM))
    table.rows.append(Row("the busiest one's", max(used), aim=aim, holds=max(used) < CPU_AIM))
    resident, shared = (max(m[i] for m in memory) for i in (0, 1))
    verdict = "holds" if resident < MEMORY_AIM else "MISSED"
    table.notes.append(
        f"memory, the largest: RSS {resident} MiB, PSS {shared} MiB; aim: RSS < {MEMORY_AIM} MiB {verdict}"
    )


def _handed_over(table: Table, place: Path, number: int) -> None:
    known = set(_sessions(place))
    began = time.perf_counter()
    codes = [process.wait() for process in _start(place, HANDED_OVER, number)]
    took = time.perf_counter() - began
    table.rows.append(Row(f"{number} sessions with a handoff each, all of them", took))
    lost = 0
    fresh = [session for session in _sessions(place) if session not in known]
    for session in fresh:
        entries = json.loads(run(relay(), "log", session, "--json", cwd=place))["entries"]
        seen = [entry["event"] for entry in entries if entry["event"] != "identified"]
        lost += seen != EVENTS
    run(relay(), "verify", "--all", cwd=place)
    whole = len(fresh) == number and not lost and not any(codes)
    table.notes.append(
        f"ended well: {codes.count(0)} of {number}; journals: {len(fresh)}, with an event lost or doubled: {lost}"
        f" ({'holds' if whole else 'MISSED'})"
    )


def _start(place: Path, steps: object, number: int) -> list[subprocess.Popen[bytes]]:
    Path(os.environ["RELAY_DEMO_STEPS"]).write_text(json.dumps(steps))
    argv = [relay(), "start", "the same task", "--agent", "demo", "--then", "demo"]
    null = subprocess.DEVNULL
    return [subprocess.Popen(argv, cwd=place, stdin=null, stdout=null, stderr=null) for _ in range(number)]


def _sessions(place: Path) -> list[str]:
    out = run("git", "for-each-ref", "--format=%(refname:lstrip=3)", "refs/relay/sessions/", cwd=place)
    return out.decode().split()


def _cpu(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def _memory(pid: int) -> tuple[int, int]:
    """RSS and PSS in MiB."""
    found = dict(re.findall(r"^(Rss|Pss):\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M))
    return int(found["Rss"]) >> 10, int(found["Pss"]) >> 10
