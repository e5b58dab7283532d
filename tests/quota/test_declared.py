"""Plans that only the user knows of, counted by what went through."""

from __future__ import annotations

from datetime import timedelta

import pytest

from relay_git.errors import UserError
from relay_git.quota.declared import Plan, parse, readings
from relay_git.quota.entry import Spent
from relay_git.quota.wallet import build
from tests.quota.samples import CLAUDE, NOW, ago, read


def test_plans_are_read_as_people_write_them() -> None:
    assert parse("300 requests/5h, 20m tokens per week, 1.5k requests / day") == (
        Plan(300, tokens=False, length=timedelta(hours=5)),
        Plan(20_000_000, tokens=True, length=timedelta(weeks=1)),
        Plan(1_500, tokens=False, length=timedelta(days=1)),
    )
    assert [plan.window for plan in parse("1 requests/5h, 1 requests/2h, 1 tokens/month")] == [
        *("five_hour", "120_minutes", "month")
    ]


@pytest.mark.parametrize("text", ["plenty", "0 requests/5h", "10 euros/day", "10 requests/0h", "10 requests"])
def test_what_is_no_plan_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UserError, match="is no plan") as refused:
        parse(text)
    assert "git config relay.plan.claude" in refused.value.hint


def test_requests_are_counted_from_the_first_of_a_window_to_its_end() -> None:
    turns = [Spent(ago(m), 1, 100) for m in (330, 320, 100, 50, 10)]
    found = readings(parse("10 requests/2h"), turns, NOW)
    assert [round(r.used, 3) for r in found] == [0.1, 0.2, 0.1, 0.2, 0.3]
    assert found[-1].resets_at == ago(100) + timedelta(hours=2)


def test_two_plans_of_one_length_are_two_windows() -> None:
    found = readings(parse("10 requests/day, 1000 tokens/day"), [Spent(ago(5), 1, 800)], NOW)
    assert {(r.window, r.used) for r in found} == {("day", 0.1), ("day_tokens", 0.8)}


def test_a_counted_plan_gives_way_to_a_meter_and_stands_where_there_is_none() -> None:
    counted = readings(parse("10 requests/5h, 10 requests/day"), [Spent(ago(5))], NOW)
    used = {w.name: w.used for w in build(CLAUDE, [read(0.6, 3), *counted], NOW).windows}
    assert used == {"five_hour": 0.6, "day": 0.1}
