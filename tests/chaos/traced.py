"""The command whose writes are recorded: `start` of the stage, with a mark in the trace after each journal entry."""

from __future__ import annotations

import os
import sys

from relay_git import cli
from relay_git.ledger import journal
from relay_git.supervisor import carry, dispatch, pause
from tests.chaos.stage import AGENT, START


def main() -> None:
    sys.executable = str(AGENT)
    carry._STEP = dispatch._STEP = pause._STEP = 0.01
    append = journal.append
    mark = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT, 0o600)

    def told(*args: object, **more: object) -> object:
        recorded = append(*args, **more)  # type: ignore[arg-type]
        os.write(mark, b"recorded\n")
        return recorded

    journal.append = told  # type: ignore[assignment]
    sys.exit(cli.run(START))


main()
