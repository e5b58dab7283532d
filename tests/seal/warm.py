"""Commands in forks of one process that has imported the program already: Python's start is paid once, not each time.

A command gets its own arguments, folder, environment and files, as a real process would, and leaves through the same
`main`. What is about the start itself, or begins in the background, is tested with the executable.

    python -m tests.seal.warm SOCKET
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryFile

_STREAMS = 3
_MOST = 1 << 20
# A Python reads these when it starts.
_AT_START = ("PYTHON", "LC_", "LANG")


class Warm:
    """The client: one server for each worker, started at the first command."""

    def __init__(self, folder: Path) -> None:
        self._socket = folder / "warm"
        self._server: subprocess.Popen[bytes] | None = None

    def run(
        self, argv: list[str], cwd: Path, env: Mapping[str, str], stdin: bytes, timeout: float
    ) -> subprocess.CompletedProcess[bytes]:
        """As `subprocess.run` with captured output; raises TimeoutExpired."""
        self._start()
        with (
            TemporaryFile() as read,
            TemporaryFile() as out,
            TemporaryFile() as err,
            socket.socket(socket.AF_UNIX) as line,
        ):
            read.write(stdin)
            read.seek(0)
            line.settimeout(timeout)
            line.connect(str(self._socket))
            body = json.dumps([argv, os.fspath(cwd), dict(env)]).encode("utf-8", "surrogateescape")
            line.sendmsg([len(body).to_bytes(4, "big")], _rights([read.fileno(), out.fileno(), err.fileno()]))
            line.sendall(body)
            try:
                pid = int.from_bytes(_exactly(line, 4), "big")
                code = int.from_bytes(_exactly(line, 4), "big", signed=True)
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(argv, timeout) from None
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(argv, code, out.read(), err.read())

    def stop(self) -> None:
        """End the server."""
        if self._server is not None:
            self._server.kill()
            self._server.wait()

    def _start(self) -> None:
        if self._server is not None and self._server.poll() is None:
            return
        self._socket.unlink(missing_ok=True)
        argv, root = [sys.executable, "-m", "tests.seal.warm", self._socket], Path(__file__).parents[2]
        self._server = subprocess.Popen(argv, cwd=root, stdin=subprocess.DEVNULL, start_new_session=True)
        while not self._socket.exists():
            assert self._server.poll() is None, "the server did not start"
            time.sleep(0.01)


def may_run(env: Mapping[str, str]) -> bool:
    """Whether nothing is asked that only a new Python would heed."""
    return not any(name.startswith(_AT_START) for name in env)


def _rights(files: list[int]) -> list[tuple[int, int, bytes]]:
    return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files).tobytes())]


def _exactly(line: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = line.recv(min(size - len(data), _MOST))
        if not piece:
            raise ConnectionError("the other side has gone")
        data += piece
    return data


def main() -> None:
    """Serve; in a fork for a command, come back as that command."""
    import relay_git.cli.app
    import relay_git.supervisor.carry
    import relay_git.supervisor.landing  # noqa: F401 - warmed up

    listener = socket.socket(socket.AF_UNIX)
    beside = f"{sys.argv[1]}.{os.getpid()}"
    listener.bind(beside)
    listener.listen(64)
    Path(beside).rename(sys.argv[1])  # who sees it can connect
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        line, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return _serve(line)
        line.close()


def _serve(line: socket.socket) -> None:
    """Become the command in a child, and say how that ended."""
    head, rights, _, _ = line.recvmsg(4, socket.CMSG_SPACE(_STREAMS * 4))
    files = array.array("i")
    files.frombytes(rights[0][2])
    argv, cwd, env = json.loads(_exactly(line, int.from_bytes(head, "big")).decode("utf-8", "surrogateescape"))
    pid = os.fork()
    if pid == 0:
        line.close()
        return _become(argv, cwd, env, list(files))
    line.sendall(pid.to_bytes(4, "big"))
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with contextlib.suppress(OSError):  # whoever asked may have given up
        line.sendall(code.to_bytes(4, "big", signed=True))
    os._exit(0)


def _become(argv: list[str], cwd: str, env: dict[str, str], files: list[int]) -> None:
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()  # a new process would have looked at TZ
    sys.argv = argv
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", closefd=False, errors="backslashreplace")
    from relay_git.cli import main as command

    command()


if __name__ == "__main__":
    main()
