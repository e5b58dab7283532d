"""Signs of life of one leg: is it at work, does it wait for its model, or does it hang?

Promise: silence alone is no hang. A leg hangs when for the whole of the limit nothing was heard on its output or in its
transcript, its branch did not move, and its processes used next to no processor. A wait that the tool announced counts
from its first announcement until the next sign of work. Only time in which we were awake counts.
"""

from __future__ import annotations

from datetime import datetime

from relay_git.agents.agent import Retrying
from relay_git.session import LimitNotice
from relay_git.supervisor.patience import Patience
from relay_git.supervisor.process import LegProcess

_IDLE = 0.02  # of one core: an idle CLI's timers and spinners use less, whatever computes uses more


class Pulse:
    """Told of every sign; asked once a look."""

    def __init__(self, process: LegProcess, hang_timeout: float, max_wait: float) -> None:
        self._process, self._hang_timeout, self._max_wait = process, hang_timeout, max_wait
        self._retry: Retrying | None = None
        self._waits = Patience(max_wait)
        self.beat()

    def beat(self) -> None:
        """Something was heard or done."""
        self._silence = Patience(self._hang_timeout / 2)
        self._used: float | None = None  # processor seconds when half of the time had passed in silence

    def works(self) -> None:
        """The model has answered: whatever wait there was is over."""
        self._retry = None
        self.beat()

    def waits(self, retry: Retrying) -> None:
        """The tool has announced that it waits and tries again."""
        if self._retry is None:
            self._waits = Patience(self._max_wait)
        self._retry = retry
        self.beat()

    def limit(self, now: datetime) -> LimitNotice | None:
        """The refusal that the tool waits out, once that is too long."""
        retry = self._retry
        if retry is None or not self._max_wait:
            return None
        until = retry.notice.resets_at
        ahead = retry.seconds or (max(0.0, (until - now).total_seconds()) if until is not None else 0.0)
        return retry.notice if ahead > self._max_wait or self._waits.is_over else None

    def hangs(self) -> bool:
        """Whether there was no sign of life for the whole of the limit."""
        if not self._hang_timeout or not self._silence.is_over:
            return False
        used, half = self._process.processor_seconds(), self._hang_timeout / 2
        if self._used is not None and abs(used - self._used) < _IDLE * half:
            return True
        self._silence, self._used = Patience(half), used
        return False
