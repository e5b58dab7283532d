"""Lends the terminal to the program in argv, as a run does: `python -m tests.terminal.lend FOLDER ARGV...`.

`FOLDER/stop` stands for somebody who wants an end; with `FOLDER/twice` it is lent once more when `FOLDER/go` is there.
Exit status, processes left and whether an end was asked for are left in `FOLDER/status`.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

from relay_git.session import SessionId
from relay_git.supervisor.process import Mark
from relay_git.supervisor.terminal import Terminal


def lend(terminal: Terminal, gone: threading.Event, folder: Path, argv: tuple[str, ...]) -> tuple[object, object]:
    leg = terminal.start(argv, folder, dict(os.environ), Mark(SessionId("s-1"), folder))
    while (status := leg.poll()) is None and not (folder / "stop").exists() and not gone.is_set():
        time.sleep(0.02)
    return status, leg.end(2.0)


def main(folder: Path, argv: tuple[str, ...]) -> None:
    gone = threading.Event()
    signal.signal(signal.SIGHUP, lambda number, frame: gone.set())
    with Terminal(gone) as terminal:
        status, left = lend(terminal, gone, folder, argv)
        terminal.tell("back\nagain")
        if (folder / "twice").exists():
            while not (folder / "go").exists():
                time.sleep(0.02)
            status, left = lend(terminal, gone, folder, argv)
    (folder / "status").write_text(f"{status} {left} {gone.is_set()}")
    print("over")


if __name__ == "__main__":
    main(Path(sys.argv[1]), tuple(sys.argv[2:]))
