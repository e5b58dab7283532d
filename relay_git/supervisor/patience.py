"""How long to wait, counted while awake.

Promise: time in which nobody could have done anything does not count. A machine that was suspended, or a supervisor
that was stopped, wakes up with the patience that it went to sleep with.
"""

from __future__ import annotations

import time

_LONGEST_LOOK = 1.0  # seconds; between two looks more than that passes only while we sleep


class Patience:
    """A limit in seconds; whoever waits asks `is_over` at least once a second."""

    def __init__(self, seconds: float) -> None:
        self._left, self._seen = seconds, time.monotonic()

    @property
    def is_over(self) -> bool:
        """Whether that many seconds have passed in which we were awake."""
        now = time.monotonic()
        self._left -= min(now - self._seen, _LONGEST_LOOK)
        self._seen = now
        return self._left <= 0
