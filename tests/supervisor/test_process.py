"""Processes: a tree is found, frozen, ended and proven gone; output is heard whatever its size."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import psutil
import pytest

from relay_git.errors import AgentError
from relay_git.session import SessionId
from relay_git.supervisor import process
from relay_git.supervisor.output import LINE_BYTES, Log
from relay_git.supervisor.process import Mark

DOUBLE_FORK = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open(sys.argv[1], "w").write(str(os.getpid()))
        time.sleep(300)
    os._exit(0)
os.wait()
time.sleep(300)
"""
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(300)"


@pytest.fixture
def begin(tmp_path):
    mark = Mark(SessionId("s-1"), tmp_path / "relay")
    begun = []

    def make(code: str, *args: str, log_bytes: int = 1 << 20, clean=str):
        prompt = tmp_path / "prompt"
        prompt.write_text("do it\n")
        argv = (sys.executable, "-c", code, *args)
        leg = process.start(argv, tmp_path, dict(os.environ), prompt, Log(tmp_path / "log", log_bytes, clean), mark)
        begun.append(leg)
        return leg

    yield make
    for leg in begun:
        leg.end(0.1)


def wait_until(true, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def heard(leg) -> list[bytes]:
    wait_until(lambda: leg.poll() is not None)
    leg.output.drain(5)
    return list(leg.output.lines())


def test_the_prompt_comes_by_stdin_and_then_its_end(begin) -> None:
    leg = begin("import sys; print(repr(sys.stdin.read()))")
    assert heard(leg) == [b"'do it\\n'"]
    assert leg.poll() == 0


def test_a_double_forked_child_is_found_and_ended(begin, tmp_path) -> None:
    leg = begin(DOUBLE_FORK, str(tmp_path / "pid"))
    wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    child = int((tmp_path / "pid").read_text())
    assert {leg.pid, child} <= {p.pid for p in process.tree(Mark(SessionId("s-1"), tmp_path / "relay"), leg.pid)}
    assert leg.end(5) == ()
    assert process.tree(Mark(SessionId("s-1"), tmp_path / "relay"), leg.pid) == []
    assert leg.poll() is not None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has child subreapers")
def test_a_child_that_left_group_session_and_environment_is_found_and_leaves_no_zombie(begin, tmp_path) -> None:
    code = f"import os, time; open('{tmp_path}/pid', 'w').write(str(os.getpid())); time.sleep(300)"
    clean = f'env -i {sys.executable} -c "{code}"'
    leg = begin(f"import subprocess, time; subprocess.Popen(['setsid', 'sh', '-c', {clean!r} + ' &']); time.sleep(0.5)")
    wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    wait_until(lambda: leg.poll() is not None)
    child = int((tmp_path / "pid").read_text())
    assert leg.end(2) == ()
    assert not psutil.pid_exists(child)


def test_a_process_deaf_to_term_is_killed(begin) -> None:
    leg = begin(DEAF)
    wait_until(lambda: list(leg.output.lines()) == [b"deaf"])
    assert leg.end(0.2) == ()
    assert leg.poll() == -9


def test_a_process_of_another_session_is_left_alone(begin, tmp_path) -> None:
    leg = begin("import time; time.sleep(300)")
    for other in (Mark(SessionId("s-2"), tmp_path / "relay"), Mark(SessionId("s-1"), tmp_path / "elsewhere")):
        assert process.end_tree(other, 0, 0.1) == ()
    assert leg.poll() is None


def test_a_frozen_tree_does_nothing_until_it_is_thawed(begin, tmp_path) -> None:
    out = tmp_path / "ticks"
    leg = begin("import sys, time\nwhile True:\n open(sys.argv[1], 'a').write('.'); time.sleep(0.01)", str(out))
    wait_until(lambda: out.exists() and out.stat().st_size > 3)
    leg.freeze()
    assert psutil.Process(leg.pid).status() == psutil.STATUS_STOPPED
    before = out.stat().st_size
    time.sleep(0.2)
    assert out.stat().st_size == before
    leg.thaw()
    wait_until(lambda: out.stat().st_size > before)


def test_a_flood_is_bounded_on_disk_and_in_lines_and_does_not_block(begin, tmp_path) -> None:
    code = f"for size in [{LINE_BYTES // 2 + 1} * 3] * 40 + [999] * 999: print('x' * size)\nprint('end')"
    leg = begin(code, log_bytes=1 << 16)
    lines = heard(leg)
    assert lines[-1] == b"end"
    assert max(map(len, lines)) <= LINE_BYTES
    assert leg.output.dropped_lines == 40
    assert (tmp_path / "log" / "stdout").stat().st_size == 1 << 16
    assert (tmp_path / "log" / "stdout").stat().st_mode & 0o777 == 0o600


def test_a_grandchild_that_holds_the_pipe_does_not_hold_us(begin) -> None:
    leg = begin("import subprocess; subprocess.Popen(['sleep', '300']); print('done', flush=True)")
    wait_until(lambda: leg.poll() is not None)
    leg.output.drain(0.3)
    assert list(leg.output.lines()) == [b"done"]
    assert leg.end(2) == ()


def test_stderr_is_kept_and_made_printable(begin) -> None:
    leg = begin("import sys; sys.stderr.write('\\x1b[31mno login\\x1b[0m\\nsecond\\n'); sys.exit(3)")
    heard(leg)
    assert leg.poll() == 3
    assert "no login" in leg.complaint()
    assert "\x1b" not in leg.complaint()


def test_a_program_that_is_not_there_is_an_agent_error(tmp_path) -> None:
    (tmp_path / "prompt").write_text("")
    mark = Mark(SessionId("s"), Path("/r"))
    with pytest.raises(AgentError, match="could not be started"):
        process.start(("/no/such",), tmp_path, {}, tmp_path / "prompt", Log(tmp_path / "log", 1, str), mark)


def test_what_the_log_keeps_is_made_clean_and_what_is_heard_is_not(begin, tmp_path) -> None:
    code = "import sys; print('a key'); print('no end: key', end=''); sys.stderr.buffer.write(b'key key\\n\\xff key')"
    leg = begin(code, clean=lambda said: said.replace("key", "***"))
    assert heard(leg) == [b"a key"]
    assert (tmp_path / "log" / "stdout").read_bytes() == b"a ***\nno end: ***"
    assert (tmp_path / "log" / "stderr").read_bytes() == b"*** ***\n\xff ***"
    assert leg.complaint() == "key key"
