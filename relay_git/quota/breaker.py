"""Whether an account that refused may be asked again, so that no session burns its attempts on a closed door.

Promise: pure; an account is open from a refusal until its reset, or for a time that doubles with each failed probe
where no reset is known. Then it may be probed; an answer closes it. The jitter is the caller's, so that two sessions
do not probe at once and a test can say what comes out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from relay_git.quota.entry import Entry, Refusal, Spent, happened
from relay_git.quota.wallet import model_of
from relay_git.session import LimitKind, LimitNotice

JITTER = timedelta(minutes=1)
_FIRST = {
    LimitKind.USAGE: timedelta(minutes=15),
    LimitKind.BILLING: timedelta(hours=1),
    LimitKind.LOGIN: timedelta(minutes=15),  # another process of the tool's may just have renewed the token
}  # a throttle and a full service are waited out by the tool itself
_LONGEST = timedelta(hours=6)
_ANSWERED = timedelta(minutes=1)  # an answer so soon after a refusal was on its way before


@dataclass(frozen=True, slots=True)
class Breaker:
    """`probe_at` is when the account may be asked again, None where it does not refuse; `failures` in a row.

    `refused_at` is when it last refused, `kind` why.
    """

    probe_at: datetime | None = None
    failures: int = 0
    refused_at: datetime | None = None
    kind: LimitKind | None = None

    def is_open(self, now: datetime) -> bool:
        """Whether it is of no use to ask now."""
        return self.probe_at is not None and now < self.probe_at


def of(entries: Iterable[Entry], now: datetime, jitter: float) -> Breaker:
    """The breaker of an account; `jitter` is a share, 0 to 1, that a session draws once."""
    found = Breaker()
    for entry in sorted((e for e in entries if e.at <= now), key=happened):
        match entry:
            case Refusal(notice, at) if notice.kind in _FIRST and not model_of(notice.window or ""):
                found = _refused(found, notice, at, jitter)
            case Spent(at) if found.refused_at is not None and at - found.refused_at >= _ANSWERED:
                found = Breaker()
    return found


def _refused(before: Breaker, notice: LimitNotice, at: datetime, jitter: float) -> Breaker:
    # Sessions that run into one wall together are one failure; the next is that of a probe.
    failures = before.failures if before.is_open(at) else before.failures + 1
    if notice.resets_at is not None and notice.resets_at > at:
        return Breaker(notice.resets_at + JITTER * jitter, failures, at, notice.kind)
    if before.is_open(at):
        return Breaker(before.probe_at, failures, at, notice.kind)
    pause = min(_FIRST[notice.kind] * 2 ** min(failures - 1, 10), _LONGEST)
    return Breaker(at + pause * (1 + jitter / 5), failures, at, notice.kind)
