"""How fast a long transcript is read, and in how much memory, beside parsing the same lines and nothing else."""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path

from bench.measure import Row, Table, run

MIB = 1 << 20
AIM_RATIO, AIM_MIB = 3.0, 120

# Run in a process of its own, so that its peak memory is that of one reading alone.
_READ = """
import resource, sys, time
from pathlib import Path
from relay_git.agents import TOOLS
began = time.process_time()
following = TOOLS["claude"].follow(Path(sys.argv[1]), "", Path("/w/app"))
following.poll()
record = following.record(ended=True)
print(time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, record.records)
"""
_PARSE = """
import resource, sys, time
import orjson
began, records = time.process_time(), 0
with open(sys.argv[1], "rb") as file:
    for line in file:
        orjson.loads(line)
        records += 1
print(time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, records)
"""
# What a look of the watcher costs while an agent writes, twenty records between two looks, and while it does not.
_FOLLOW = """
import sys, time
from pathlib import Path
from relay_git.agents import TOOLS
lines = open(sys.argv[1], "rb").readlines()
following = TOOLS["claude"].follow(Path(sys.argv[2]), "", Path("/w/app"))
busy, looks = 0.0, 0
with open(sys.argv[2], "wb", buffering=0) as out:
    for i in range(0, len(lines), 20):
        out.write(b"".join(lines[i : i + 20]))
        began = time.process_time()
        if following.poll():
            following.record()
        busy, looks = busy + time.process_time() - began, looks + 1
began = time.process_time()
for _ in range(1000):
    following.poll()
print(busy / looks, (time.process_time() - began) / 1000, looks)
"""
# A contract with its redaction and signature: from the whole transcript, and again when twenty records have come.
_CONTRACT = """
import resource, sys, time
from pathlib import Path
from relay_git.agents import TOOLS
from relay_git.contract.build import build
from relay_git.contract.sign import seal
from tests.contract.samples import KEY, PAUSE, WORK, identity
file = Path(sys.argv[1])
with file.open("rb") as source:
    lines = source.readlines()[-20:]
following = TOOLS["claude"].follow(file, "", Path("/w/app"))
def once():
    began = time.process_time()
    following.poll()
    seal(build(identity(), PAUSE, following.record(), WORK), KEY)
    return time.process_time() - began
cold = once()
with file.open("ab") as out:
    out.write(b"".join(lines).replace(b'"uuid": "', b'"uuid": "again '))
print(cold, once(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
COLD_AIM, WARM_AIM = 1.5, 0.1


def measure(scratch: Path, *, small: bool) -> Table:
    """One transcript of Claude Code of 100 MB, and one of 2 GB for the memory."""
    table = Table(
        "transcripts",
        "A made-up transcript of Claude Code: prompts, answers, edits and commands with outputs of 0.2 to 40 KB.\n"
        "Each reading is a process of its own; the time is the CPU time of the reading alone, the best of the runs.",
    )
    size = (10 if small else 100) * MIB
    file = write_claude(scratch / "s.jsonl", size)
    # One beside the other, so that a machine which is busy for a while slows both.
    runs = [(_run(_READ, file), _run(_PARSE, file)) for _ in range(5)]
    ours, bare = map(min, zip(*runs, strict=True))
    ratio = ours[0] / bare[0]
    aim = f"at most {AIM_RATIO:.0f} times"
    table.rows.append(Row(f"read {size // MIB} MiB", ours[0], bare[0], "orjson alone", aim, ratio <= AIM_RATIO))
    table.notes.append(f"   {ours[2]} records; peak memory {ours[1] / 1024:.0f} MiB (aim: {AIM_MIB} MiB at any size)")
    busy, idle, looks = map(float, _follow(file, scratch))
    per_look = size / looks / 1024
    table.rows.append(Row("a look at 20 new records", busy))
    table.rows.append(Row("a look at nothing new", idle))
    table.notes.append(f"   {looks:.0f} looks while it grew by {per_look:.0f} KiB between two of them")
    cold, warm, kib = map(float, run(sys.executable, "-c", _CONTRACT, file, cwd=scratch, env=_env()).split())
    table.rows.append(Row("a contract from it", cold, aim=f"at most {COLD_AIM} s", holds=cold <= COLD_AIM))
    table.rows.append(Row("after 20 more records", warm, aim=f"at most {WARM_AIM} s", holds=warm <= WARM_AIM))
    table.notes.append(f"   peak memory with both contracts {kib / 1024:.0f} MiB")
    if not small:
        big = write_claude(scratch / "big.jsonl", 2048 * MIB)
        seconds, kib, records = _run(_READ, big)
        holds = kib / 1024 <= AIM_MIB
        table.rows.append(Row("read 2 GiB", seconds, aim=f"{AIM_MIB} MiB of memory", holds=holds))
        table.notes.append(f"   2 GiB: {records} records; peak memory {kib / 1024:.0f} MiB")
        big.unlink()
    return table


def _follow(file: Path, scratch: Path) -> list[bytes]:
    return run(sys.executable, "-c", _FOLLOW, file, scratch / "followed.jsonl", cwd=scratch, env=_env()).split()


def _run(code: str, file: Path) -> tuple[float, int, int]:
    seconds, kib, records = run(sys.executable, "-c", code, file, cwd=file.parent, env=_env()).split()
    return float(seconds), int(kib), int(records)


def _env() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}


def write_claude(file: Path, size: int, session: str = "s") -> Path:
    """A transcript of about so many bytes."""
    dice = random.Random(size)
    words = [f"word{n}" for n in range(500)]
    with file.open("wb") as out:
        turn, parent = 0, None
        while out.tell() < size:
            for record in _turn(dice, words, turn, parent, session):
                out.write(json.dumps(record).encode() + b"\n")
                parent = record["uuid"]
            turn += 1
    return file


def _turn(dice: random.Random, words: list[str], turn: int, parent: object, session: str) -> list[dict[str, object]]:
    def text(least: int, most: int) -> str:
        return " ".join(dice.choices(words, k=dice.randint(least, most) // 7 + 1))

    call, made = f"toolu_{turn}", f"src/file{turn % 300}.py"
    edit = turn % 3 == 0
    given = {"file_path": f"/w/app/{made}", "old_string": text(40, 2000), "new_string": text(40, 2000)}
    content = {"type": "tool_use", "id": call, "name": "Edit" if edit else "Bash"}
    content["input"] = given if edit else {"command": f"pytest {made}", "description": "run"}  # type: ignore[assignment]
    output = text(200, 40_000 if turn % 7 == 0 else 4_000)
    outcome = {"stdout": output, "stderr": "", "interrupted": False} if not edit else {"filePath": made}
    result = {"type": "tool_result", "tool_use_id": call, "content": output}
    steps: list[tuple[str, object, dict[str, object]]] = [
        ("assistant", [{"type": "text", "text": text(80, 1500)}], {}),
        ("assistant", [content], {}),
        ("user", [result], {"toolUseResult": outcome}),
    ]
    if turn % 20 == 0:
        steps.insert(0, ("user", text(40, 400), {}))
    records: list[dict[str, object]] = []
    for step, (kind, body, more) in enumerate(steps):
        message: dict[str, object] = {"role": kind, "content": body}
        if kind == "assistant":
            usage = {"input_tokens": 3, "output_tokens": 40, "cache_read_input_tokens": 9000}
            message |= {"id": f"msg_{turn}_{step}", "model": "claude-opus-5-5", "stop_reason": None, "usage": usage}
        record: dict[str, object] = {
            "parentUuid": records[-1]["uuid"] if records else parent,
            "isSidechain": False,
            "cwd": "/w/app",
            "sessionId": session,
            "version": "2.1.332",
            "gitBranch": "main",
            "type": kind,
            "message": message,
            "uuid": f"{session}-{turn}-{step}",
            "timestamp": f"2026-11-29T{turn // 3600 % 24:02}:{turn // 60 % 60:02}:{turn % 60:02}.000Z",
        }
        records.append(record | more)
    return records
