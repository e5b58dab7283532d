"""When a window runs dry: the cases that a plain line through the last readings gets wrong."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay_git.quota import forecast
from relay_git.quota.entry import Entry
from relay_git.quota.forecast import Forecast
from relay_git.quota.wallet import build
from tests.quota.samples import CLAUDE, NOW, RESET, ago, read, refused
from tests.quota.test_wallet import entries

HOUR = timedelta(hours=1)


def said(*rows: Entry, after: timedelta = timedelta(0)) -> Forecast | None:
    (window,) = build(CLAUDE, rows, NOW + after).windows
    return forecast.of(window, NOW + after)


def ramp(start: float, end: float, since: float, until: float = 0, every: float = 2) -> list[Entry]:
    """Even use from one share to another, with a reading every few minutes."""
    steps = int((since - until) / every)
    return [read(start + (end - start) * i / steps, since - i * every) for i in range(steps + 1)]


def minutes(found: Forecast | None) -> float:
    assert found is not None
    assert found.dry is not None
    return (found.dry - found.now).total_seconds() / 60


def test_even_use_goes_on_evenly() -> None:
    found = said(*ramp(0.2, 0.6, 80))
    assert minutes(found) == pytest.approx(80, rel=0.1)
    assert found is not None
    assert found.early is not None
    assert found.early < found.dry < (found.late or RESET)


def test_a_window_that_begins_anew_before_it_is_spent_does_not_run_dry() -> None:
    found = said(*ramp(0.1, 0.2, 120))
    assert found is not None
    assert not found.before_reset
    assert found.dry is None


def test_a_night_without_work_does_not_make_the_work_look_slow() -> None:
    night = 16 * 60
    week = {"resets_at": NOW + timedelta(days=5), "minutes": 10080, "window": "seven_day"}
    rows = [read(0.2 + i / 200, night + 120 - 2 * i, **week) for i in range(60)]
    rows += [read(0.5 + i / 200, 60 - 2 * i, **week) for i in range(30)]
    found = said(*rows)
    assert found is not None
    assert found.per_hour == pytest.approx(0.15, rel=0.1)
    assert found.mean < 0.05
    assert minutes(found) > 4 * 60


def test_one_burst_is_no_pace_for_the_rest_of_the_window() -> None:
    rows = [*ramp(0.3, 0.36, 62, 2), read(0.39, 1), read(0.42)]
    found = said(*rows)  # a line through the last two would be at its end in twenty minutes
    assert found is not None
    assert not found.before_reset
    assert found.early is not None
    assert found.early - found.now > HOUR


def test_the_readings_of_earlier_windows_count_for_the_pace() -> None:
    before = [read(u.used, 260 + 2 * i, resets_at=ago(200)) for i, u in enumerate(reversed(ramp(0.2, 0.6, 80)))]
    found = said(*before, read(0.01, 3), read(0.02, 1))
    assert found is not None
    assert found.mean > 0.05


def test_what_others_use_while_no_reading_comes_is_allowed_for() -> None:
    sparse = [read(0.2 + i * 0.06, 80 - 8 * i) for i in range(11)]
    at_once, later = said(*sparse), said(*sparse, after=timedelta(minutes=8))
    assert at_once is not None
    assert later is not None
    assert at_once.dry is not None
    assert later.dry is not None
    assert later.dry - later.now < at_once.dry - at_once.now - timedelta(minutes=6)


@pytest.mark.parametrize("rows", [[read(0.5)], [read(0.5, 5), read(0.5, 1)], [read(0.5, 1), refused()]])
def test_without_a_rise_there_is_no_forecast(rows: list[Entry]) -> None:
    assert said(*rows) is None


def test_a_window_whose_reset_nobody_told_has_a_forecast_all_the_same() -> None:
    rows = [read(0.2 + i / 100, 80 - 2 * i, resets_at=None, minutes=None) for i in range(41)]
    assert minutes(said(*rows)) == pytest.approx(80, rel=0.15)


@given(entries, st.integers(0, 10_000))
def test_any_wallet_has_a_forecast_that_can_be(found: list[Entry], hours: int) -> None:
    now = NOW + timedelta(hours=hours)
    for window in build(CLAUDE, found, now).windows:
        one = forecast.of(window, now)
        if one is None:
            continue
        assert one.per_hour >= 0
        known = [t for t in (one.early, one.dry, one.late) if t is not None]
        assert known == sorted(known)
        assert all(now <= t and (window.resets_at is None or t <= window.resets_at) for t in known)
        assert not (one.dry is not None and one.early is None)
