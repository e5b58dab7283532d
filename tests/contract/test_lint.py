"""The score of a contract: each thing that the next agent needs and does not find costs, and the reason is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from relay_git.contract.build import build
from relay_git.contract.canonical import JsonObject
from relay_git.contract.lint import BAR, lint
from relay_git.session import SessionRecord
from tests.contract.samples import PAUSE, RECORD, WORK, identity, sealed, unsigned, verified

GOOD = build(identity(), PAUSE, replace(RECORD, skipped=0), WORK)
SAID = {"text": "Next steps:\n- wire the endpoint", "source": "the agent's last message"}


def test_a_good_contract_has_all_and_a_contract_reads_alike_once_it_is_verified() -> None:
    assert lint(GOOD).score == 100
    assert lint(GOOD).thin == []
    assert lint(verified(sealed()).contract).findings == lint(unsigned()).findings


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("goal", {"taskGoal": "fix it"}),
        ("goal", {"taskGoal": "do it please"}),
        ("goal", {"taskGoal": "a b c"}),
        ("next action", {"nextAction": "Continue working on the remaining stuff"}),
        ("plan", {"plan": [{"text": "Continue working on the rest", "status": "pending", "source": "plan"}]}),
        ("prohibitions", {"constraints": [{"rule": "x", "source": "plan"}], "doNotRedo": []}),
        ("proof", {"checks": [{"command": "true", "exitCode": 0, "outputSha256": None, "leg": 1}]}),
        ("proof", {"checks": [{"command": "npm test", "exitCode": 1, "outputSha256": None, "leg": 1}]}),
        ("next action", {"nextAction": "Continue with the work."}),
        ("next action", {"nextAction": "go on"}),
        ("next action", {"nextActionSource": "rule: no plan was left"}),
        ("plan", {"plan": [], "tasksRemaining": []}),
        ("prohibitions", {"constraints": [], "doNotRedo": [{"text": "Committed as 1", "source": "git"}]}),
        ("reasons", {"decisions": [{"summary": "x", "rationale": "", "source": "plan"}]}),
        ("proof", {"checks": [], "acceptance": []}),
        ("sources", {"tasksRemaining": [{"text": "x", "source": ""}]}),
        ("evidence", {"evidence": []}),
        ("nothing hidden in messages", {"tasksRemaining": [], "summary": GOOD["summary"] | {"hypotheses": [SAID]}}),
        ("whole record", {"losses": ["3 records of the transcript could not be read"]}),
        ("ids", {"leg": 2, "previous": None}),
        ("size", {"budget": {"tokens": 5, "cuts": []}}),
    ],
)
def test_what_is_missing_costs_and_is_named(rule: str, changes: JsonObject) -> None:
    verdict = lint(GOOD | changes)
    assert verdict.score < 100
    assert [line.split(":")[0] for line in verdict.thin] == [rule]
    assert verdict.thin[0] != f"{rule}: "


@pytest.mark.parametrize(
    "action", ["Write the endpoint", "Continue with the refund endpoint in src/refund.py", "编写退款接口", "Lint"]
)
def test_a_next_action_that_names_something_is_good(action: str) -> None:
    assert lint(GOOD | {"nextAction": action}).score == 100


def test_a_thin_contract_says_so_itself_and_a_good_one_does_not() -> None:
    bare = replace(WORK, commits=(), files=(), hunks=())
    made = build(identity(), PAUSE, SessionRecord(agent="x"), bare)
    assert lint(made).score < BAR
    assert any(loss.startswith(f"thin, {lint(made).score} of 100") for loss in made["losses"])
    assert any(loss.startswith("thin, ") and "no plan" in loss for loss in made["losses"])
    assert not any(loss.startswith("thin") for loss in GOOD["losses"])
