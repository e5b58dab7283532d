"""Sixteen processes at once in one repository: each opens a session and hands it over twice, with commits between.

python -m tests.race.sixteen REPOSITORY
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from relay_git.git import hooks, worktree
from tests.git.conftest import open_session
from tests.ledger.conftest import write_session
from tests.seal.repo import Repo

WRITERS = 16


def write(repo: Repo, number: int) -> None:
    """One writer: worktree, branch, key, hook, journal, contracts, notes and safe points of a session of its own."""
    session = open_session(repo, f"work-{number:04x}")
    with worktree.alone(session.repo):
        hooks.install(hooks.plan(session.repo, session.at.path))
    written = write_session(session)
    for text in ("one\n", "two\n"):
        session.at.commit(f"before {text}", {f"{number}.txt": text})
        written.hand_over(text)


def main() -> None:
    repo, children = Repo(Path(sys.argv[1])), []
    for number in range(WRITERS):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                write(repo, number)
                code = 0
            finally:
                sys.stderr.flush()
                os._exit(code)
        children.append(pid)
    sys.exit(sum(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0 for pid in children))


if __name__ == "__main__":
    main()
