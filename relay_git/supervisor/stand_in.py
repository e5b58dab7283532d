"""The small program between the supervisor and an agent at the terminal: it stands where a shell would stand.

Run as `python -I -S stand_in.py ARGV...` in a session of its own, with the agent's pseudo-terminal on 0, 1 and 2.

Promise: the agent is the foreground of that terminal, with somebody of its own session above it, and this program ends
as the agent ends (128 + n for a signal). It reads and writes nothing. Without it Ctrl-Z in an agent's TUI would do
nothing, or leave it half suspended: SIGTSTP stops no process group whose parents are all in other sessions.
"""

import fcntl
import os
import signal
import sys
import termios

# Its own death would hang up on the agent, so it waits for the agent, whoever is told to end.
_LEFT_TO_THE_AGENT = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGTSTP,
    signal.SIGTTIN,
    signal.SIGTTOU,
)
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def main(argv: list[str]) -> int:
    """Start the agent and wait until it has ended."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for number in _LEFT_TO_THE_AGENT:
        signal.signal(number, signal.SIG_IGN)
    agent = os.fork()
    if agent == 0:
        _become(argv)
    status = os.waitpid(agent, 0)[1]
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _become(argv: list[str]) -> None:
    try:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        for number in (*_LEFT_TO_THE_AGENT, *_IGNORED_BY_PYTHON):
            signal.signal(number, signal.SIG_DFL)
        os.execvp(argv[0], argv)
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\r\n".encode())
    os._exit(127)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
