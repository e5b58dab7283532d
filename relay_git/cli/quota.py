"""`quota`: what is left of every account, window by window, and when it runs dry."""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from relay_git.cli import context
from relay_git.cli.render import print_json
from relay_git.errors import ExitCode, UserError
from relay_git.quota import declared, forecast, wallet
from relay_git.quota.entry import Account, Entry, Refusal
from relay_git.quota.forecast import Forecast
from relay_git.quota.wallet import Wallet, Window

if TYPE_CHECKING:
    from relay_git.supervisor.detect import Detector

_SINCE = timedelta(days=7)  # transcripts not touched for longer tell of windows that are over
_REFRESH = 5.0


def quota(*, watch: bool, as_json: bool) -> int:
    """Every account of which anything is known; with `watch`, again and again until Ctrl-C."""
    if watch and as_json:
        raise UserError("--watch is for people, --json for programs", hint="git relay quota --json")
    if watch and not sys.stdout.isatty():
        raise UserError("--watch needs a terminal", hint="git relay quota")
    from relay_git.cli.detecting import a_detector

    detector = a_detector()
    if as_json:
        now = context.now()
        wallets, troubles = _wallets(detector, now)
        print_json({"now": now.isoformat(), "accounts": [_json(w, now) for w in wallets], "troubles": troubles})
        return ExitCode.DONE
    from relay_git.cli import quota_table

    if not watch:
        now = context.now()
        quota_table.show(*_wallets(detector, now), now)
        return ExitCode.DONE
    with quota_table.screen() as draw:
        while True:
            now = context.now()
            draw(*_wallets(detector, now), now)
            time.sleep(_REFRESH)
    return ExitCode.DONE


def _wallets(detector: Detector, now: datetime) -> tuple[list[Wallet], list[str]]:
    """The wallet of each account, and what of it could not be read."""
    history, plans = context.history(), context.plans()
    troubles = list(history.strangers())
    known: dict[Account, list[Entry]] = defaultdict(list)
    for account in (*history.accounts(), *plans):
        if account not in known:
            loaded = history.load(account)
            known[account] += loaded.entries
            troubles += [loaded.trouble] if loaded.trouble else []
    for account, entries in _of_transcripts(detector, now):
        known[account] += entries
    for account, plan in plans.items():
        known[account] += declared.readings(plan, known[account], now)
    made = [wallet.build(account, entries, now) for account, entries in sorted(known.items())]
    return [one for one in made if one.windows], troubles


def _of_transcripts(detector: Detector, now: datetime) -> Iterable[tuple[Account, list[Entry]]]:
    """What the tools' own files say, also of sessions that git relay did not start."""
    from relay_git.supervisor.accounts import owner
    from relay_git.supervisor.meter import PRETENDED

    logins = context.accounts().all()
    # A session that went on in another account is there twice, and what both tell was said to the first.
    told: set[Entry] = set()
    for row in sorted(detector.look(now, _SINCE), key=lambda row: row.active or now):
        record = row.record
        entries: list[Entry] = list(record.quota)
        if record.at_limit and record.limits:
            entries.append(Refusal(record.limits[-1], record.last_activity or row.active))
        entries = [entry for entry in entries if entry not in told]
        told.update(entries)
        if entries and row.tool != PRETENDED.agent:
            yield owner(logins, row.tool, row.path), entries


def _json(one: Wallet, now: datetime) -> dict[str, Any]:
    return {
        "agent": one.account.agent,
        "account": one.account.label or None,
        "windows": [_window_json(window, forecast.of(window, now)) for window in one.windows],
    }


def _window_json(window: Window, said: Forecast | None) -> dict[str, Any]:
    return {
        "name": window.name,
        "used": round(window.used, 4),
        "left": round(window.left, 4),
        "resetsAt": _iso(window.resets_at),
        "minutes": window.minutes,
        "readAt": window.at.isoformat(),
        "source": window.source or None,
        "refusedAt": _iso(window.refused),
        "renewedAt": _iso(window.renewed),
        "perHour": round(said.per_hour, 4) if said else None,
        "dryAt": _iso(said.dry) if said else None,
        "dryEarliest": _iso(said.early) if said else None,
        "dryLatest": _iso(said.late) if said else None,
    }


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
