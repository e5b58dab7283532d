"""The budget of a brief: it is kept, what is never cut is whole, and what is left out is said in the contract."""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from relay_git.contract.brief import brief
from relay_git.contract.budget import Claim, share, tokens
from relay_git.contract.build import build
from relay_git.contract.canonical import JsonObject
from relay_git.contract.model import Unsigned
from relay_git.git.work import FileChange, FileStatus, Hunk, WorkCommit
from relay_git.session import Command, PlanItem, PlanStatus
from tests.contract.samples import HEAD, PAUSE, RECORD, WORK, identity, unsigned

_RULES = [("Relay-Constraint", f"Keep rule {n}") for n in range(40)]
_RULES += [("Relay-Do-Not-Redo", f"Moved table {n}") for n in range(40)]
_RULES += [("Relay-Decision", f"Use way {n} because it is shorter") for n in range(100)]


def crowded(budget: int = 4000) -> JsonObject:
    """The contract of a long leg."""
    record = replace(
        RECORD,
        plan=tuple(PlanItem(f"Write part {n} of the service", PlanStatus.PENDING) for n in range(120)),
        commands=tuple(Command(f"pytest tests/part_{n}.py -k something", 0, "0" * 64) for n in range(50)),
        prompts=tuple(f"and another thing, number {n}" for n in range(30)),
        last_text="I believe that all of it works. " * 60,
    )
    work = replace(
        WORK,
        commits=(WorkCommit(HEAD, "Add the parts", tuple(_RULES)),),
        files=tuple(FileChange(f"src/part_{n}.py".encode(), FileStatus.ADDED, "2" * 64) for n in range(200)),
        hunks=tuple(Hunk(f"src/p{n}.py".encode(), "@@ -1 +1 @@\n-a\n+b\n" * 180, truncated=False) for n in range(10)),
    )
    return build(identity(), PAUSE, record, work, budget=budget)


def test_the_brief_of_a_long_leg_keeps_to_its_budget_and_uses_it() -> None:
    for budget in (3200, 4000, 9000):
        text = brief(crowded(budget))
        assert budget * 0.8 < tokens(text) <= budget


def test_what_is_never_cut_is_whole_however_small_the_budget() -> None:
    text = brief(crowded(500))
    for words in ("Keep rule 39", "Moved table 39", identity().task, "Write part 0 of the service", "Add the parts"):
        assert words in text


def test_what_is_left_out_is_said_in_the_contract_and_in_the_brief() -> None:
    made = crowded()
    Unsigned.model_validate(made)
    told = {cut["section"]: cut for cut in made["budget"]["cuts"]}
    left_out = re.findall(r"^## (.*)\n(?:(?!## ).*\n)*?- and (\d+) more, see", brief(made), re.MULTILINE)
    assert {title: int(count) for title, count in left_out} == {t: c["of"] - c["shown"] for t, c in told.items()}
    assert told["Files changed since the base"]["of"] == 200
    assert {cut["rule"] for cut in told.values()} == {"budget"}
    assert {cut["rule"] for cut in crowded(90_000)["budget"]["cuts"]} == {"limit of the section"}
    assert not {"Do not redo", "Goal", "Next action", "Constraints"} & told.keys()
    assert build(identity(), PAUSE, RECORD, WORK)["budget"] == {"tokens": 4000, "cuts": []}


def test_sections_of_more_worth_come_first_and_none_is_starved() -> None:
    told = {cut["section"]: cut for cut in crowded()["budget"]["cuts"]}
    assert told["Remaining plan"]["shown"] > 40
    assert told["Commands that it ran"]["shown"] > 0


def test_a_contract_of_before_the_budget_is_shown_as_it_was() -> None:
    old = {name: value for name, value in crowded().items() if name != "budget"}
    assert tokens(brief(old)) > 6000
    assert brief({name: value for name, value in unsigned().items() if name != "budget"}) == brief(unsigned())


@given(
    st.lists(st.builds(Claim, st.lists(st.integers(1, 400), max_size=12), st.integers(0, 13)), max_size=10),
    st.integers(0, 3000),
)
def test_a_share_never_goes_over_what_is_left(claims: list[Claim], budget: int) -> None:
    shown = share(claims, budget)
    spent = sum(sum(c.costs[:n]) for c, n in zip(claims, shown, strict=True) if c.worth)
    never = sum(sum(c.costs) for c in claims if c.worth == 0)
    assert spent <= max(0, budget - never)
    for claim, count in zip(claims, shown, strict=True):
        assert count <= len(claim.costs)
        if claim.worth == 0:
            assert count == len(claim.costs)
