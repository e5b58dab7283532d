"""The terminal is lent to a TUI and comes back as it was, with every byte where it belongs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import termios
import time

import psutil

from tests.terminal.conftest import TUI

DIRTY = r"""
import os, sys, tty
tty.setraw(0)
print("\x1b[?1049h\x1b[?25l\x1b[?1002;1006h\x1b[?2004h\x1b[?1004h\x1b[>7u\x1b[31mred\r\nready", end="", flush=True)
os.read(0, 1)
os.kill(os.getpid(), int(sys.argv[1]))
"""
OFF = b"\x1b[0m\x1b[<u\x1b[?1004l\x1b[?2004l\x1b[?1006l\x1b[?1002l\x1b[?25h\x1b[?1049l"
TELL = "import os; print(os.environ['TERM'], [os.isatty(fd) for fd in range(3)], os.tcgetpgrp(0) == os.getpgrp())"
FLOOD = "import sys; sys.stdout.write(('é' * 40 + '\\n') * 50_000); print('end')"


def test_a_tui_has_a_terminal_of_its_own_with_the_users_size_and_modes(desk) -> None:
    modes = "import termios; print([m if isinstance(m, int) else [c for c in m] for m in termios.tcgetattr(0)])"
    user = desk.lend(sys.executable, "-c", f"{TELL}; {modes}", columns=123, rows=45)
    assert user.ends() == 0
    assert "xterm-256color [True, True, True] True" in user.text()
    assert str(user.modes_before) in user.text()
    assert desk.status() == "0 () False"


def test_keys_and_sizes_reach_the_tui_untouched_and_no_other_byte_does(desk) -> None:
    user = desk.lend(*TUI)
    user.sees("size: 100x30")
    user.resize(80, 25)
    user.sees("size: 80x25")
    keys = "hé\x03\x1c\x11\x13\x7f\x16\x00".encode() + b"\xff\xfe\x1b[<0;10;5M\x1b[200~a\nb\x1b[201~\x1b[I"
    for start in range(len(keys)):  # also a letter of two bytes comes in two
        user.type(keys[start : start + 1])
    user.type(b"\x04")
    assert user.ends() == 0
    assert desk.received() == user.typed


def test_the_terminal_comes_back_as_it_was_and_nothing_is_added_to_a_tui_that_cleans_up(desk) -> None:
    user = desk.lend(*TUI)
    user.sees("size: 100x30")
    assert not user.modes()[3] & (termios.ICANON | termios.ECHO | termios.ISIG)
    user.type(b"\x04")
    assert user.ends() == 0
    assert user.modes() == user.modes_before
    assert user.seen.endswith(b"\x1b[?25h\x1b[?1049lback again\r\nover\r\n")


def test_what_a_killed_tui_left_on_is_switched_off_and_its_signal_is_its_status(desk) -> None:
    user = desk.lend(sys.executable, "-c", DIRTY, str(int(signal.SIGKILL)))
    user.sees("ready")
    user.type("x")
    assert user.ends() == 0
    assert user.modes() == user.modes_before
    assert user.seen.endswith(b"ready" + OFF + b"back again\r\nover\r\n")
    assert desk.status() == "137 () False"


def test_a_line_that_a_tui_left_open_is_ended_before_the_user_is_told(desk) -> None:
    user = desk.lend("printf", "half a line\\033[0m")
    assert user.ends() == 0
    assert user.seen.endswith(b"half a line\x1b[0m\r\n\x1b[Jback again\r\nover\r\n")


def test_a_flood_comes_through_whole(desk) -> None:
    user = desk.lend(sys.executable, "-c", FLOOD)
    assert user.ends() == 0
    assert user.seen.count(("é" * 40).encode() + b"\r\n") == 50_000


def test_a_flood_that_nobody_looks_at_waits_without_work_or_memory(desk) -> None:
    user = desk.lend(sys.executable, "-c", FLOOD.replace("50_000", "500_000"))
    user.until(lambda: b"\n" in user.look())
    lender = psutil.Process(user.process.pid)
    before = lender.memory_info().rss
    assert settled(lender.cpu_times).user < 5
    assert lender.memory_info().rss - before < 8 << 20
    (desk.folder / "stop").touch()
    assert user.ends() == 0
    assert desk.left() == []


def settled(look):
    """What is looked at, once it no longer changes: who is blocked and does not spin uses no processor time."""
    last = None
    while (now := look()) != last:
        last = now
        time.sleep(0.5)
    return now


def test_what_is_typed_between_two_tuis_reaches_neither_the_next_nor_the_shell(desk) -> None:
    (desk.folder / "twice").touch()
    user = desk.lend(*TUI)
    user.sees("size: 100x30")
    user.type("a\x04")
    shown = user.sees("back again")
    user.type("yes\n")
    (desk.folder / "go").touch()
    user.sees("size: 100x30", since=shown)
    user.type("b\x04")
    assert user.ends() == 0
    assert desk.received() == b"a\x04b\x04"
    assert not user.is_asked()


def test_a_terminal_that_goes_away_asks_for_an_end_and_leaves_nobody(desk) -> None:
    user = desk.lend(*TUI)
    user.sees("size: 100x30")
    user.leave()
    user.process.wait(60)
    assert desk.status().endswith(" () True")
    assert desk.left() == []


def test_ctrl_z_suspends_and_fg_goes_on(desk) -> None:
    user = desk.sit("bash", "--norc", "--noprofile", "-i")
    user.type(f"PS1='$ '; {' '.join(desk.lending(*TUI))}\n")
    user.sees("size: 100x30")
    shown = len(user.seen)
    user.type("a\x1a")
    shown = user.sees("Stopped", since=shown)
    assert b"\x1b[?1049l" in user.seen
    user.type("echo $((6*7))\n")
    shown = user.sees("42", since=shown)
    user.type("bg\n")
    shown = user.sees("&", since=shown)
    user.until(lambda: user.type("jobs\n") or "Stopped" in user.text(shown))
    shown = len(user.seen)
    user.type("fg\n")
    shown = user.sees("size: 100x30", since=shown)
    user.type("b\x04")
    user.sees("over", since=shown)
    assert desk.received() == b"a\x1ab\x04"
    user.type("exit\n")
    assert user.ends() == 0


def test_a_job_that_is_started_in_the_background_waits_for_the_foreground(desk) -> None:
    user = desk.sit("bash", "--norc", "--noprofile", "-i")
    user.type(f"PS1='$ '; {' '.join(desk.lending(*TUI))} &\n")
    user.type("\n")
    user.until(lambda: user.type("jobs\n") or "Stopped" in user.text())
    user.type("fg\n")
    user.sees("size: 100x30")
    user.type("\x04")
    user.sees("over")


def test_where_no_shell_could_let_it_go_on_ctrl_z_stops_nobody(desk) -> None:
    user = desk.lend(*TUI)
    shown = user.sees("size: 100x30")
    user.type("\x1a")
    user.sees("size: 100x30", since=shown)
    user.type("\x04")
    assert user.ends() == 0


def test_without_a_terminal_there_is_nothing_to_lend(desk) -> None:
    env, null = {**os.environ, **desk.env}, subprocess.DEVNULL
    done = subprocess.run(desk.lending("true"), cwd=desk.folder, env=env, stdin=null, capture_output=True, check=False)
    assert b"-i needs a terminal" in done.stderr
