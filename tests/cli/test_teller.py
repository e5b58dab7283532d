"""What the user sees while an agent works: one line that is redrawn on a terminal, plain lines elsewhere."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest

SCRIPT = """
import sys, time
from relay_git.cli.teller import ConsoleTeller
with ConsoleTeller() as teller:
    teller.live(1, "claude", "Read orders.py")
    teller.live(1, "claude", "Read orders.py")
    time.sleep(float(sys.argv[1]))
    teller.live(1, "claude", "Bash " + "make test && " * 9 + "\\x1b[31mred", "5h 62 %")
    time.sleep(0.4)
    teller.say("leg 1 (claude): usage limit")
    teller.live(2, "codex", "edits src/a.py")
    time.sleep(0.4)
"""


def on_a_terminal(width: int, seconds: float) -> list[str]:
    """Every picture of the line, and what was printed above it, in order."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    env = {**os.environ, "TERM": "xterm", "PYTHONUTF8": "1"}
    env = {name: value for name, value in env.items() if name not in {"COLUMNS", "LINES", "NO_COLOR"}}
    with subprocess.Popen([sys.executable, "-c", SCRIPT, str(seconds)], stdin=theirs, stderr=theirs, env=env) as run:
        os.close(theirs)
        seen = b""
        try:
            while data := os.read(ours, 65536):
                seen += data
        except OSError:  # Linux says EIO when the other end is closed
            pass
        os.close(ours)
    assert run.returncode == 0
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "\r", seen.decode())
    return [line for line in re.split(r"[\r\n]+", text) if line]


def test_on_a_terminal_one_line_is_redrawn_and_fits() -> None:
    seen = on_a_terminal(60, 1.5)
    assert "leg 1 · claude · Read orders.py · 0:00" in seen
    assert "leg 1 · claude · Read orders.py · 0:01" in seen
    assert any(re.fullmatch(r"leg 1 · claude · Bash make test && m.*… · 5h 62 % · 0:01", line) for line in seen)
    assert seen.count("leg 1 (claude): usage limit") == 1
    assert "leg 2 · codex · edits src/a.py · 0:00" in seen, "the time is that of the leg"
    assert max(map(len, seen)) <= 60
    assert not any("[31m" in line and "\x1b" in line for line in seen)


@pytest.mark.parametrize("width", [10, 24, 33])
def test_a_narrow_terminal_gets_a_shorter_line_and_never_two(width: int) -> None:
    seen = [line for line in on_a_terminal(width, 0.4) if "usage limit" not in line]
    assert max(map(len, seen)) <= width
    assert all(line.startswith(("leg ", "starting")) for line in seen)


def test_elsewhere_each_thing_is_one_plain_line_and_none_comes_twice() -> None:
    run = subprocess.run([sys.executable, "-c", SCRIPT, "0"], capture_output=True, text=True, check=True)
    assert run.stdout == ""
    lines = run.stderr.splitlines()
    assert lines[0] == "leg 1 claude: Read orders.py"
    assert lines[1].startswith("leg 1 claude: Bash make test")
    assert lines[2:] == ["leg 1 (claude): usage limit", "leg 2 codex: edits src/a.py"]
    assert "\x1b" not in run.stderr
