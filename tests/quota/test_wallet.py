"""What is left of an account, from readings and refusals as they really come."""

from __future__ import annotations

import itertools
import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay_git.quota.entry import DECLARED, HEADERS, Entry, Spent
from relay_git.quota.wallet import Window, build, canonical, model_of
from relay_git.session import LimitKind, LimitNotice, QuotaReading
from tests.quota.samples import CLAUDE, NOW, RESET, ago, read, refused

HOUR = timedelta(hours=1)


def window(*entries: Entry, now: datetime = NOW, name: str = "five_hour") -> Window:
    return {w.name: w for w in build(CLAUDE, entries, now).windows}[name]


def test_the_newest_reading_is_what_is_used() -> None:
    found = window(read(0.40, 20), read(0.46, 5), read(0.43, 10))
    assert (found.used, found.left, found.at, found.resets_at) == (0.46, pytest.approx(0.54), ago(5), RESET)


def test_two_names_of_one_window_are_one_window() -> None:
    names = ("5h", "five_hour", "5-hour", "300_minutes")
    assert {canonical(n) for n in names} == {"five_hour"}
    assert canonical("7d_opus") == "seven_day_opus"
    assert len(build(CLAUDE, [read(0.1, window=n) for n in names], NOW).windows) == 1


def test_headers_win_over_a_newer_reading_of_the_tool_while_they_are_fresh() -> None:
    assert window(read(0.50, 5), read(0.30, 1, source="rollout"), read(0.9, 0, source=DECLARED)).used == 0.50


def test_headers_that_have_fallen_silent_give_way_to_the_tool() -> None:
    assert window(read(0.50, 60), read(0.62, 1, source="rollout")).used == 0.62


@pytest.mark.parametrize("dip", [[0.0], [0.0, 0.0], [0.0, 0.01, 0.0]])
def test_a_transient_zero_is_no_reset(dip: list[float]) -> None:
    dips = [read(used, 9 - i, resets_at=RESET + 2 * HOUR) for i, used in enumerate(dip)]
    found = window(read(0.80, 10), *dips, read(0.81, 2))
    assert (found.used, len(found.trails)) == (0.81, 1)


def test_a_zero_that_is_the_newest_reading_is_not_believed_yet() -> None:
    assert window(read(0.80, 3), read(0.0, 2), read(0.0, 1)).used == 0.80


def test_a_meter_that_stays_low_has_been_reset_early() -> None:
    later = RESET + HOUR
    found = window(read(0.80, 30), *(read(0.02, m, resets_at=later) for m in (9, 6, 3)), read(0.03, 1, resets_at=later))
    assert (found.used, found.resets_at, len(found.trails)) == (0.03, later, 2)


def test_sessions_that_alternate_between_an_old_and_a_new_window_count_as_the_fuller_one() -> None:
    rows = [read(u, 30 - i, resets_at=RESET if u < 0.8 else RESET - HOUR) for i, u in enumerate([0.73, 0.90] * 10)]
    assert window(*rows).used == 0.90


def test_a_window_is_empty_again_once_its_reset_has_passed() -> None:
    found = window(read(0.97, 10), now=RESET + timedelta(minutes=1))
    assert (found.used, found.resets_at, found.renewed) == (0.0, None, RESET)


def test_a_window_without_a_told_reset_is_over_when_its_length_has_gone_by() -> None:
    assert window(read(0.97, 301, resets_at=None)).renewed == ago(1)
    assert window(read(0.97, 299, resets_at=None)).used == 0.97


def test_a_reading_without_its_reset_does_not_take_the_known_one_away() -> None:
    assert window(read(0.5, 5), read(0.52, 1, resets_at=None, minutes=None)).resets_at == RESET


def test_the_old_window_that_is_told_of_just_after_its_reset_does_not_fill_the_new_one() -> None:
    new = RESET + 5 * HOUR
    rows = [
        QuotaReading("five_hour", 0.95, RESET - timedelta(seconds=90), RESET, 300, HEADERS),
        QuotaReading("five_hour", 0.01, RESET - timedelta(seconds=20), new, 300, HEADERS),
        QuotaReading("five_hour", 0.02, RESET + timedelta(seconds=20), new, 300, HEADERS),
    ]
    assert window(*rows, now=RESET + timedelta(minutes=1)).used == 0.02


def test_a_refusal_outranks_a_meter() -> None:
    found = window(refused(5), read(0.93, 1))
    assert (found.used, found.refused, found.resets_at) == (1.0, ago(5), RESET)


def test_a_refusal_is_over_at_its_reset() -> None:
    assert window(refused(5), read(0.93, 6), now=RESET).used == 0.0


def test_a_refusal_is_over_when_the_account_answers_again() -> None:
    assert window(read(0.93, 6), refused(5), Spent(ago(2))).used == 0.93


def test_an_answer_that_was_on_its_way_does_not_lift_a_refusal() -> None:
    assert window(read(0.93, 6), refused(5), Spent(ago(4.5))).used == 1.0


def test_an_answer_of_another_model_does_not_lift_the_refusal_of_one() -> None:
    found = window(refused(5, "seven_day_opus"), Spent(ago(2)), name="seven_day_opus")
    assert found.refused is not None


def test_a_refusal_without_a_window_is_of_the_one_with_its_reset() -> None:
    wallet = build(CLAUDE, [read(0.93, 6), refused(5, window=None, resets_at=RESET + timedelta(seconds=30))], NOW)
    assert [(w.name, w.used) for w in wallet.windows] == [("five_hour", 1.0)]


def test_a_refusal_of_which_nothing_is_known_makes_a_window_of_its_own() -> None:
    assert window(refused(5, window=None, resets_at=None), name="limit").used == 1.0
    assert window(refused(5, None, None, LimitKind.BILLING), name="credits").used == 1.0


@pytest.mark.parametrize("kind", [LimitKind.OVERLOAD, LimitKind.RATE])
def test_a_full_service_says_nothing_of_the_account(kind: LimitKind) -> None:
    assert not build(CLAUDE, [refused(1, kind=kind)], NOW).windows


def test_a_window_of_another_model_does_not_bind() -> None:
    wallet = build(CLAUDE, [read(1.0, window="seven_day_opus"), read(0.2)], NOW)
    assert [w.name for w in wallet.binding("claude-sonnet-5")] == ["five_hour"]
    assert [w.name for w in wallet.binding("claude-opus-5")] == ["seven_day_opus", "five_hour"]
    assert len(wallet.binding()) == 2
    assert model_of("seven_day") == model_of("five_hour") == model_of("requests_per_minute") == ""


@pytest.mark.parametrize("used", [math.nan, math.inf, -0.1, 45.0])
def test_a_value_that_cannot_be_is_dropped(used: float) -> None:
    assert window(read(0.4, 2), read(used, 1)).used == 0.4


def test_a_clock_that_was_ahead_does_not_hide_what_was_read() -> None:
    found = window(read(0.4, 60), read(0.95, -120))
    assert (found.used, found.at) == (0.95, NOW)


def test_a_reading_from_another_year_is_dropped() -> None:
    rows = [read(0.4, 60), QuotaReading("five_hour", 0.9, datetime(2090, 1, 1, tzinfo=UTC))]
    assert window(*rows).used == 0.4


@pytest.mark.parametrize("resets_at", [ago(500), NOW + timedelta(days=4000)])
def test_an_absurd_reset_is_not_known(resets_at: datetime) -> None:
    assert window(read(0.4, 1, resets_at=resets_at)).resets_at is None


_times = st.datetimes(datetime(2026, 3, 1), datetime(2026, 4, 20), timezones=st.just(UTC))
_readings = st.builds(
    QuotaReading,
    st.sampled_from(["5h", "seven_day", "", "x y", "seven_day_opus"]),
    st.floats(),
    _times,
    st.none() | _times,
    st.none() | st.integers(),
    st.sampled_from([HEADERS, DECLARED, "statusline"]),
)
_notices = st.builds(LimitNotice, st.sampled_from(LimitKind), st.just("x"), st.none() | st.text(), st.none() | _times)
entries = st.lists(_readings | st.builds(Spent, _times) | st.builds(refused, st.floats(-1e4, 1e4)), max_size=30)


@given(entries, _times)
def test_any_entries_make_a_wallet_that_can_be(found: list[Entry], now: datetime) -> None:
    for w in build(CLAUDE, found, now).windows:
        assert 0.0 <= w.used <= 10.0
        assert w.at <= now
        assert w.resets_at is None or w.resets_at > now
        assert all(a.at <= b.at for row in w.trails for a, b in itertools.pairwise(row))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=15), st.randoms())
def test_without_a_reset_the_use_never_falls_by_a_dip_shorter_than_what_confirms_it(rises: list[float], rng) -> None:
    rises.sort()
    rows, top = [], 0.0
    for i, used in enumerate(rises):
        rows.append(read(used, 200 - 4 * i))
        if rng.random() < 0.5:
            rows.append(read(used * rng.random(), 200 - 4 * i - 1))
        top = window(*rows).used
        assert top == pytest.approx(used)
