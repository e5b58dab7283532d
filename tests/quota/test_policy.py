"""What a session does about its quota: each rule by an example, the promises by any row of wallets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay_git.quota import breaker
from relay_git.quota.breaker import Breaker
from relay_git.quota.entry import Account, Entry, Spent
from relay_git.quota.policy import Act, Decision, Handoff, Prefer, Quiet, Rules, Standing, decide
from relay_git.quota.wallet import build
from relay_git.session import LimitKind
from tests.quota.samples import CLAUDE, CODEX, NOW, RESET, WORK, ago, read, refused

RULES = Rules()
WAITS = replace(RULES, max_wait=timedelta(hours=6))
GEMINI = Account("gemini")


def at(account: Account, *entries: Entry, now: datetime = NOW, **more: object) -> Standing:
    return Standing(build(account, entries, now), breaker.of(entries, now, 0.5), **more)  # type: ignore[arg-type]


def has(account: Account, used: float, **more: object) -> Standing:
    return at(account, read(used, 1), **more)


def told(present: Standing, *candidates: Standing, rules: Rules = RULES, handoffs: Sequence[Handoff] = ()) -> Decision:
    return decide(present, candidates, handoffs, rules, NOW)


def test_with_room_it_stays() -> None:
    assert told(has(CLAUDE, 0.5), has(CODEX, 0.0)).act is Act.STAY


def test_not_far_from_the_wall_the_successor_is_chosen_so_that_it_can_be_checked() -> None:
    found = told(has(CLAUDE, 0.8), has(CODEX, 0.1))
    assert (found.act, found.to) == (Act.CHECK, CODEX)


def test_at_the_threshold_it_hands_over_and_says_why() -> None:
    found = told(has(CLAUDE, 0.93), has(CODEX, 0.1))
    assert (found.act, found.to) == (Act.HAND_OVER, CODEX)
    assert found.reason == "93 % of five_hour is used, the threshold is 90 %"


def test_a_window_that_may_be_spent_before_the_handoff_is_done_is_left_earlier() -> None:
    rows = [read(0.24 + 0.066 * i, 20 - 2 * i) for i in range(10)]
    found = told(at(CLAUDE, *rows), has(CODEX, 0.1))
    assert (found.act, found.to) == (Act.HAND_OVER, CODEX)
    assert "may be spent in" in found.reason


def test_a_plan_step_that_the_window_does_not_last_for_is_not_begun() -> None:
    rows = [read(0.45 + 0.02 * i, 38 - 2 * i) for i in range(20)]
    present, other = at(CLAUDE, *rows), has(CODEX, 0.1)
    assert decide(present, [other], (), replace(RULES, lead=timedelta(0)), NOW).act is Act.CHECK
    rules = replace(RULES, lead=timedelta(0), longest_step=timedelta(minutes=30))
    found = decide(present, [other], (), rules, NOW, step=timedelta(hours=2))
    assert found.act is Act.HAND_OVER
    assert "before the present plan step is done" in found.reason


def test_a_reset_in_a_moment_is_not_fled_from() -> None:
    rows = [read(0.95, 1, resets_at=NOW + timedelta(minutes=8)), read(0.99, 1, "1m", NOW + timedelta(seconds=20))]
    assert told(at(CLAUDE, *rows), has(CODEX, 0.1)).act is Act.STAY


@pytest.mark.parametrize(("prefer", "to"), [(Prefer.ACCOUNT, WORK), (Prefer.PROVIDER, CODEX)])
def test_the_users_preference_comes_before_the_users_order(prefer: Prefer, to: Account) -> None:
    rules = replace(RULES, prefer=prefer)
    assert told(has(CLAUDE, 0.95), has(CODEX, 0.1), has(WORK, 0.1), has(GEMINI, 0.1), rules=rules).to == to


def test_among_equals_the_users_order_counts_and_not_who_has_most() -> None:
    assert told(has(CLAUDE, 0.95), has(GEMINI, 0.7), has(CODEX, 0.1)).to == GEMINI


@pytest.mark.parametrize("resets_at", [RESET, None])
def test_a_leg_that_was_begun_in_spite_of_a_refusal_is_not_ended_for_it(resets_at: datetime | None) -> None:
    rows = [read(0.5, 60), refused(20, resets_at=resets_at)]
    assert told(at(CLAUDE, *rows, since=ago(5)), has(CODEX, 0.1)).act is Act.STAY
    assert told(at(CLAUDE, *rows, refused(2), since=ago(5)), has(CODEX, 0.1)).act is Act.HAND_OVER


def test_a_leg_that_waited_for_the_reset_is_not_ended_while_others_are_kept_from_asking() -> None:
    rows = [read(0.99, 200, resets_at=ago(0.5)), refused(190, resets_at=ago(0.5))]
    late = Standing(build(CLAUDE, rows, NOW), breaker.of(rows, NOW, 1.0), since=ago(0.2))
    assert late.breaker.is_open(NOW)
    assert told(late, has(CODEX, 0.1)).act is Act.STAY


def test_a_successor_that_is_not_ready_is_passed_by() -> None:
    assert told(has(CLAUDE, 0.95), has(WORK, 0.1, unready="not signed in"), has(CODEX, 0.1)).to == CODEX


def test_one_of_which_nothing_is_known_is_taken_to_have_room() -> None:
    assert told(has(CLAUDE, 0.95), at(CODEX)).to == CODEX


def test_before_the_wall_a_successor_with_hardly_more_room_is_not_worth_it() -> None:
    found = told(has(CLAUDE, 0.91), has(CODEX, 0.82))
    assert found.act is Act.STAY
    assert "no other account has more room" in found.reason


def test_at_the_wall_any_room_will_do() -> None:
    assert told(at(CLAUDE, refused()), has(CODEX, 0.82)).to == CODEX


def test_an_account_that_was_left_a_moment_ago_is_not_gone_back_to() -> None:
    left = [Handoff(ago(5), CODEX, CLAUDE)]
    found = told(at(CLAUDE, refused()), has(CODEX, 0.1), handoffs=left)
    assert found.act is Act.ASK
    assert told(at(CLAUDE, refused()), has(CODEX, 0.1), handoffs=[Handoff(ago(16), CODEX, CLAUDE)]).to == CODEX


def test_more_handoffs_than_the_cap_are_not_made() -> None:
    many = [Handoff(ago(50 - i), GEMINI, CLAUDE) for i in range(6)]
    assert told(has(CLAUDE, 0.95), has(CODEX, 0.1), handoffs=many).act is Act.STAY
    assert told(at(CLAUDE, refused()), has(CODEX, 0.1), handoffs=many).act is Act.ASK


def test_a_session_that_may_wait_waits_for_the_first_that_opens() -> None:
    soon = NOW + timedelta(hours=1)
    found = told(at(CLAUDE, refused()), at(CODEX, refused(resets_at=soon)), rules=WAITS)
    assert (found.act, found.to) == (Act.WAIT, CODEX)
    assert soon <= (found.until or NOW) <= soon + breaker.JITTER


def test_who_prefers_to_wait_waits_where_that_is_not_too_long() -> None:
    rules = replace(WAITS, prefer=Prefer.WAIT)
    assert told(has(CLAUDE, 0.95), has(CODEX, 0.1), rules=rules).act is Act.STAY
    found = told(at(CLAUDE, refused()), has(CODEX, 0.1), rules=rules)
    assert (found.act, found.to) == (Act.WAIT, CLAUDE)
    short = replace(rules, max_wait=timedelta(hours=1))
    assert told(at(CLAUDE, refused()), has(CODEX, 0.1), rules=short).to == CODEX


def test_nobody_is_waited_for_where_waiting_is_not_allowed_or_its_end_not_known() -> None:
    assert told(at(CLAUDE, refused())).act is Act.ASK
    assert told(at(CLAUDE, read(1.0, 2, resets_at=None, minutes=None)), rules=WAITS).act is Act.STAY
    billed = at(CLAUDE, refused(kind=LimitKind.BILLING, window=None, resets_at=None))
    assert told(billed, rules=replace(WAITS, max_wait=timedelta(minutes=30))).act is Act.ASK


def test_in_quiet_hours_no_other_account_is_begun() -> None:
    rules = replace(RULES, quiet=Quiet(time(22), time(7), ZoneInfo("Europe/Berlin")))
    assert told(has(CLAUDE, 0.95), has(CODEX, 0.1), rules=rules).act is Act.STAY
    found = told(at(CLAUDE, refused(resets_at=NOW + timedelta(hours=9))), has(CODEX, 0.1), rules=rules)
    assert (found.act, found.until) == (Act.WAIT, datetime(2026, 3, 29, 5, tzinfo=UTC))


def test_quiet_hours_end_by_the_users_clock_across_a_change_of_it() -> None:
    quiet = Quiet(time(22), time(7), ZoneInfo("Europe/Berlin"))  # the clock goes on an hour in this night
    assert quiet.until(datetime(2026, 3, 28, 22, tzinfo=UTC)) == datetime(2026, 3, 29, 5, tzinfo=UTC)
    assert quiet.until(datetime(2026, 3, 27, 22, tzinfo=UTC)) == datetime(2026, 3, 28, 6, tzinfo=UTC)
    assert quiet.until(datetime(2026, 3, 29, 12, tzinfo=UTC)) is None
    day = Quiet(time(9), time(12), ZoneInfo("UTC"))
    assert day.until(datetime(2026, 3, 29, 10, tzinfo=UTC)) == datetime(2026, 3, 29, 12, tzinfo=UTC)


def test_a_budget_is_a_wall_of_the_users_own() -> None:
    found = told(has(CLAUDE, 0.72, budget=0.7), has(WORK, 0.65, budget=0.6), has(CODEX, 0.3))
    assert (found.act, found.to) == (Act.HAND_OVER, CODEX)
    assert "your budget is 70 %" in found.reason


def test_a_spent_window_of_another_model_is_no_wall() -> None:
    rows = [read(0.3, 1), refused(5, "seven_day_opus")]
    assert told(at(CLAUDE, *rows, model="claude-sonnet-5"), has(CODEX, 0.1)).act is Act.STAY
    assert told(at(CLAUDE, *rows, model="claude-opus-5"), has(CODEX, 0.1)).to == CODEX


def test_the_breaker_opens_until_the_reset_and_a_little_more() -> None:
    found = breaker.of([refused(5)], NOW, 0.5)
    assert found == Breaker(RESET + breaker.JITTER / 2, 1, ago(5), LimitKind.USAGE)
    assert found.is_open(RESET)
    assert not found.is_open(RESET + breaker.JITTER)


def test_where_no_reset_is_known_each_failed_probe_doubles_the_pause() -> None:
    rows = [refused(m, resets_at=None) for m in (100, 99, 80, 78)]
    first, second = breaker.of(rows[:1], NOW, 0), breaker.of(rows, NOW, 0)
    assert (first.probe_at, first.failures) == (ago(85), 1)
    assert (second.probe_at, second.failures) == (ago(50), 2)


def test_an_answer_closes_the_breaker() -> None:
    assert breaker.of([refused(5), Spent(ago(2))], NOW, 0) == Breaker()
    assert breaker.of([refused(5), Spent(ago(4.5))], NOW, 0).failures == 1


@pytest.mark.parametrize(
    "row", [refused(1, kind=LimitKind.OVERLOAD), refused(1, kind=LimitKind.RATE), refused(1, "seven_day_opus")]
)
def test_neither_a_throttle_nor_a_full_service_nor_one_model_opens_the_breaker(row: Entry) -> None:
    assert breaker.of([row], NOW, 0) == Breaker()


def test_an_account_whose_login_is_refused_is_neither_chosen_nor_waited_for() -> None:
    out = at(WORK, refused(1, None, None, LimitKind.LOGIN))
    spent = at(CLAUDE, refused(1, resets_at=RESET))
    assert told(has(CLAUDE, 0.95), out, has(CODEX, 0.1)).to == CODEX
    found = told(spent, out, rules=WAITS)
    assert (found.act, found.to) == (Act.WAIT, CLAUDE)
    assert told(out, rules=WAITS).act is Act.ASK
    assert not out.breaker.is_open(NOW + timedelta(minutes=20))


def test_a_refusal_without_a_reset_may_be_probed_once_its_pause_is_over() -> None:
    present = at(CLAUDE, refused())
    assert told(present, at(CODEX, refused(10, resets_at=None))).act is Act.ASK
    assert told(present, at(CODEX, refused(20, resets_at=None))).to == CODEX


_ACCOUNTS = (CLAUDE, WORK, CODEX)
_word = st.tuples(
    st.sampled_from(_ACCOUNTS),
    st.floats(0, 1.1) | st.none(),  # a reading, or a refusal
    st.integers(0, 8),  # minutes that go by
    st.sampled_from([1, 3, 15, 300, None]),  # minutes until the reset
)
_rules = st.builds(
    Rules,
    threshold=st.floats(0.5, 1),
    prefer=st.sampled_from(Prefer),
    max_wait=st.sampled_from([timedelta(0), timedelta(hours=6)]),
    per_hour=st.integers(1, 6),
    quiet=st.none() | st.just(Quiet(time(22), time(7), ZoneInfo("Europe/Berlin"))),
)


@given(st.lists(_word, max_size=40), _rules, st.floats(0, 1))
def test_whatever_meters_say_two_accounts_never_play_ping_pong_and_the_cap_holds(words, rules: Rules, jitter) -> None:
    known: dict[Account, list[Entry]] = {account: [] for account in _ACCOUNTS}
    present, made, now = CLAUDE, [], NOW
    for account, used, minutes, until in words:
        now += timedelta(minutes=minutes)
        shift = (now - NOW).total_seconds() / 60
        resets_at = now + timedelta(minutes=until) if until else None
        known[account].append(
            refused(-shift, resets_at=resets_at) if used is None else read(used, -shift, resets_at=resets_at)
        )
        standing = {a: Standing(build(a, k, now), breaker.of(k, now, jitter)) for a, k in known.items()}
        found = decide(standing[present], list(standing.values()), made, rules, now)
        assert found.reason
        if found.act is Act.WAIT:
            assert found.until is not None
            assert found.until > now
            assert rules.quiet is not None or found.until - now <= rules.max_wait
        if found.act is Act.HAND_OVER:
            assert found.to is not None
            assert found.to != present
            assert not standing[found.to].breaker.is_open(now)
            assert not [h for h in made if h.left == found.to and now - h.at < rules.hold]
            made.append(Handoff(now, present, found.to))
            present = found.to
            assert sum(now - h.at < timedelta(hours=1) for h in made) <= rules.per_hour
