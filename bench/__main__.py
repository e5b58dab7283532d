"""Run the topics that are named, or all, and print one table each; the exit status says nothing about the aims."""

from __future__ import annotations

import argparse
import platform
import sys
import tempfile
from pathlib import Path

from bench import chaos, crowd, forecast, handoff, history, hook, proxy, redact, startup, transcripts, verify
from bench.fidelity import measure as fidelity
from bench.measure import Table
from bench.place import seal
from relay_git.git.run import version

TOPICS = {
    "hook": hook.measure,
    "handoff": handoff.measure,
    "verify": verify.measure,
    "startup": startup.measure,
    "transcripts": transcripts.measure,
    "history": history.measure,
    "crowd": crowd.measure,
    "forecast": forecast.measure,
    "proxy": proxy.measure,
    "redact": redact.measure,
    "fidelity": fidelity.measure,
    "chaos": chaos.measure,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help=f"of {', '.join(TOPICS)}; default: all")
    parser.add_argument("--small", action="store_true", help="Smaller repositories and fewer runs, to try it out.")
    parser.add_argument("--runs", type=int, default=0, help="How many handoffs chaos plays; default: 1,000.")
    asked = parser.parse_args()
    unknown = [t for t in asked.topics if t not in TOPICS]
    if unknown:
        parser.error(f"no topic {unknown[0]!r}: choose from {', '.join(TOPICS)}")
    with tempfile.TemporaryDirectory(prefix="git-relay-bench-") as scratch:
        seal(Path(scratch))
        print(f"git {'.'.join(map(str, version()))}, Python {platform.python_version()}, {platform.platform()}")
        for name in asked.topics or TOPICS:
            print(f"measuring {name} ...", file=sys.stderr, flush=True)
            (Path(scratch) / name).mkdir()
            more = {"runs": asked.runs} if name == "chaos" else {}
            table: Table = TOPICS[name](Path(scratch) / name, small=asked.small, **more)
            print(f"\n{table.text()}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
