"""What other commands ask of a running supervisor: a handoff or a stop, as a small file in the session's spool.

Promise: the spool lies where no sandboxed agent can write; a request stays until the supervisor has recorded it in the
journal, so it survives a crash.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass

from relay_git.git.repo import Repo, write_private
from relay_git.session import SessionId

_FILE = "request.json"
HANDOFF, STOP, STOP_NOW = "handoff", "stop", "stop-now"
HUMAN = "human"  # in place of an agent: a person is to decide before anyone goes on


@dataclass(frozen=True, slots=True)
class Request:
    """`kind` is one of the three words above; `to` names the next agent where the user chose it."""

    kind: str
    to: str = ""
    reason: str = ""

    @property
    def stops(self) -> bool:
        """Whether the session is to rest afterwards."""
        return self.kind in (STOP, STOP_NOW)


def put(repo: Repo, session: SessionId, request: Request) -> None:
    """Leave the request for the supervisor; a newer one takes an older one's place."""
    write_private(repo.spool_dir(session) / _FILE, json.dumps(asdict(request)).encode())


def get(repo: Repo, session: SessionId) -> Request | None:
    """The request that waits, if any."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        body = json.loads((repo.spool_dir(session) / _FILE).read_bytes())
        return Request(**{k: str(v) for k, v in body.items()})
    return None


def clear_stop(repo: Repo, session: SessionId) -> None:
    """A stop that came too late, or before a newer wish to go on, is no wish any more."""
    asked = get(repo, session)
    if asked is not None and asked.stops:
        clear(repo, session)


def clear(repo: Repo, session: SessionId) -> None:
    """The request has been recorded."""
    (repo.spool_dir(session) / _FILE).unlink(missing_ok=True)
