"""A session together with those of its subagents, which some tools keep in files of their own.

Promise: what a subagent used and touched is counted in its session and named there; what it said stays its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from relay_git.agents.agent import Following
from relay_git.agents.draft import MAX_FILES, plus
from relay_git.session import SessionRecord

MAX_SUBAGENTS = 200


class Family:
    """Follows a session's transcript and those of its subagents.

    `children` names the subagents of the session that are known by now, with their files; `follow` reads one of these.
    """

    def __init__(
        self,
        main: Following,
        children: Callable[[Following], Iterable[tuple[str, Path]]],
        follow: Callable[[Path], Following],
    ) -> None:
        self._main, self._children, self._follow = main, children, follow
        self._known: dict[str, Following] = {}
        self._left_out = 0

    def poll(self) -> bool:
        """Read what is new in any of them."""
        fresh = self._main.poll()
        # Subagents are told of in the main transcript: their files are looked for when that has grown, and at first.
        if fresh or not self._known:
            for name, path in self._children(self._main):
                if name in self._known:
                    continue
                if len(self._known) >= MAX_SUBAGENTS:
                    self._left_out += 1
                    break
                self._known[name] = self._follow(path)
        return any([child.poll() for child in self._known.values()]) or fresh

    def record(self, *, ended: bool = False) -> SessionRecord:
        """The session's record, with what its subagents used and touched."""
        record = self._main.record(ended=ended)
        usage, active, files, losses = record.usage, record.usage_active, dict.fromkeys(record.files_touched), []
        for name, child in self._known.items():
            theirs = child.record(ended=ended)
            usage, active = plus(usage, theirs.usage), plus(active, theirs.usage)
            files |= dict.fromkeys(theirs.files_touched)
            losses += [f"subagent {name}: {loss}" for loss in theirs.losses]
        if self._left_out:
            losses.append(f"only the first {MAX_SUBAGENTS} subagents were read")
        return replace(
            record,
            subagents=tuple(dict.fromkeys([*record.subagents, *self._known])),
            usage=usage,
            usage_active=active,
            files_touched=tuple(files)[:MAX_FILES],
            losses=(*record.losses, *losses),
        )
