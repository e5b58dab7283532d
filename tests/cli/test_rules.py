"""The user's words for when to hand over, and what is said of words that mean nothing."""

from __future__ import annotations

from datetime import time, timedelta

import pytest

from relay_git.cli.rules import budgets, rules
from relay_git.errors import UserError
from relay_git.quota.entry import Account
from relay_git.quota.policy import Prefer, Quiet, Rules


def test_without_settings_the_rules_are_the_documented_ones():
    assert rules({}, 0) == Rules(threshold=0.9, prefer=Prefer.ACCOUNT, per_hour=6)


def test_settings_are_read_as_people_write_them():
    found = rules(
        {
            "relay.threshold": "85 %",
            "relay.prefer": "Wait",
            "relay.maxhandoffs": "2",
            "relay.quiethours": "22:30 - 7:00",
        },
        3600,
    )
    assert found == Rules(0.85, Prefer.WAIT, timedelta(hours=1), 2, Quiet(time(22, 30), time(7)))


@pytest.mark.parametrize(("text", "share"), [("90", 0.9), ("90%", 0.9), ("0.9", 0.9), ("92.5%", 0.925), ("1.0", 1.0)])
def test_a_share_may_be_written_as_percent_or_as_a_fraction(text, share):
    assert rules({"relay.threshold": text}, 0).threshold == pytest.approx(share)


def test_a_budget_is_of_an_account():
    found = budgets({"relay.budget.claude.work": "70%", "relay.budget.codex": "50", "relay.threshold": "80"})
    assert found == {Account("claude", "work"): 0.7, Account("codex"): 0.5}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("relay.threshold", text) for text in ("0", "101", "-5", "much", "nan", "1e9", "")),
        *(("relay.prefer", text) for text in ("cheapest", "")),
        *(("relay.maxhandoffs", text) for text in ("-1", "many", "9999")),
        *(("relay.quiethours", text) for text in ("22-7", "25:00-07:00", "10:00-10:00", "22:61-07:00")),
        ("relay.budget.claude", "120%"),
    ],
)
def test_what_means_nothing_is_refused_with_an_example(name, text):
    with pytest.raises(UserError) as refused:
        (budgets({name: text}), rules({name: text}, 0))
    assert refused.value.hint.startswith("git config ")
