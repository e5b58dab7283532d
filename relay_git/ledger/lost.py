"""Sessions whose journal is gone: its ref was deleted, by an agent or by hand, and what it named still lies in git.

Promise: nothing is changed here. That there was a session is known from our private folder, out of any agent's reach;
where its journal stood, git knows until its next gc takes what no ref reaches.
"""

from __future__ import annotations

import contextlib
import re

from relay_git.errors import RelayError
from relay_git.git import links
from relay_git.git.repo import Repo
from relay_git.git.store import OID, Oid, Store
from relay_git.ledger import journal
from relay_git.session import SessionId

_COMMIT = re.compile(rf"unreachable commit ({OID.pattern})")


def lost(repo: Repo, store: Store) -> list[SessionId]:
    """The sessions that had a worktree once, were not dropped, are not running and have no journal any more."""
    spool = repo.relay_dir / "spool"
    names = [SessionId(p.name) for p in sorted(spool.iterdir())] if spool.is_dir() else []
    known = set(journal.sessions(store)) if names else set()
    made = [name for name in names if name not in known and links.were_kept(repo, name)]
    return [name for name in made if not journal.is_running(repo, name)]


def newest(repo: Repo, store: Store, session: SessionId) -> Oid | None:
    """The last entry of a lost journal, if git still has it; it looks at all that no ref reaches."""
    out = repo.git().result("fsck", "--unreachable", "--no-reflogs", "--no-progress", "--connectivity-only").stdout
    found: dict[Oid, Oid | None] = {}
    for oid in map(Oid, _COMMIT.findall(out.decode("ascii", "replace"))):
        with contextlib.suppress(RelayError):
            commit = store.commit(oid)
            if commit is not None and commit.ours and commit.message.startswith(f"{session}: "):
                journal.read(store, oid)
                found[oid] = commit.parents[0] if commit.parents else None
    ends = found.keys() - {before for before in found.values() if before is not None}
    return ends.pop() if len(ends) == 1 else None
