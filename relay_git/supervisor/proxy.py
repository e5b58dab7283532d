"""A proxy on loopback between a leg and its model's service, for as long as the leg runs; only where the user wants it.

Promise: what it tells are rate limit headers, nothing else is ever here. It ends with this process, however that ends.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import queue
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO

from relay_git.errors import AgentError, UserError
from relay_git.supervisor import process

_ARGV = ("-I", "-m", "relay_git.supervisor.proxy_server")
_PATIENCE = 20.0  # seconds for a Python to start on a busy machine
_MOST = 1_000  # answers that are kept until somebody asks for them
_LINE = 8_192


@dataclass(frozen=True, slots=True)
class Answer:
    """What an answer of the service said of limits."""

    status: int
    headers: Mapping[str, str]


class Proxy:
    """One service, behind `address`."""

    def __init__(self, service: str, env: Mapping[str, str]) -> None:
        """Raises UserError where the library is missing, AgentError where it does not start."""
        if importlib.util.find_spec("aiohttp") is None:
            raise UserError(
                "relay.proxy is on, but its library is missing", hint="pip install 'git-relay[proxy]', or turn it off"
            )
        self._child = process.start_beside((sys.executable, *_ARGV), env)
        self.pid = self._child.pid
        self._said: queue.Queue[Mapping[str, object]] = queue.Queue(_MOST)
        assert self._child.stdin is not None  # noqa: S101 - pipes were asked for
        assert self._child.stdout is not None  # noqa: S101
        threading.Thread(target=self._listen, args=(self._child.stdout,), daemon=True).start()
        with contextlib.suppress(OSError):
            self._child.stdin.write(f"{service}\n".encode())
            self._child.stdin.flush()
        first: Mapping[str, object] = {}
        with contextlib.suppress(queue.Empty):
            first = self._said.get(timeout=_PATIENCE)
        self.address = str(first.get("address", ""))
        if not self.address:
            self.close()
            raise AgentError("the proxy on loopback does not start", hint="git config relay.proxy false")

    def heard(self) -> Iterator[Answer]:
        """What the service has said of limits since the last call."""
        with contextlib.suppress(queue.Empty):
            while True:
                said = self._said.get_nowait()
                status, headers = said.get("status"), said.get("headers")
                if isinstance(status, int) and isinstance(headers, dict):
                    yield Answer(status, headers)

    def close(self) -> None:
        """End it; requests that are under way are cut."""
        process.end_beside(self._child)

    def _listen(self, pipe: IO[bytes]) -> None:
        for line in iter(lambda: pipe.readline(_LINE), b""):
            with contextlib.suppress(ValueError, queue.Full):
                said = json.loads(line)
                if isinstance(said, dict):
                    self._said.put_nowait(said)
        with contextlib.suppress(queue.Full):
            self._said.put_nowait({})  # so that nobody waits for the address of one that has died
