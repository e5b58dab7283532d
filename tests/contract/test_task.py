"""What a task asks for in lines of its own."""

from __future__ import annotations

import pytest

from relay_git.contract.build import build
from relay_git.contract.task import acceptance, form
from tests.contract.samples import PAUSE, RECORD, WORK, identity

WHOLE = """\
Add the refund flow.

**Done when:**
- `make check` is green
- `npm test -- refund` passes, `npm run lint` too
- the manager is happy
- $ ./scripts/smoke.sh --fast

Output: a table of the endpoints
  in docs/refunds.md

Acceptance: cargo test --all
"""


def test_commands_and_form_are_found_in_lines_of_their_own() -> None:
    wanted = ("make check", "npm test -- refund", "npm run lint", "./scripts/smoke.sh --fast", "cargo test --all")
    assert acceptance(WHOLE) == wanted
    assert form(WHOLE) == "a table of the endpoints\nin docs/refunds.md"


def test_they_are_in_the_contract() -> None:
    asked = identity(task=WHOLE, acceptance=acceptance(WHOLE), output_contract=form(WHOLE))
    made = build(asked, PAUSE, RECORD, WORK)
    assert [item["command"] for item in made["acceptance"]] == list(acceptance(WHOLE))
    assert made["outputContract"] == form(WHOLE)


@pytest.mark.parametrize(
    "task",
    [
        "Write the acceptance tests for the output module",
        "The output: see below for more",  # not at the beginning of its line
        "Acceptance: npm test must be green and everybody is happy",
        "Acceptance criteria: the user can log in",
        "Done when: it works",
        "Fix `make check`: it fails",
        "",
    ],
)
def test_nothing_is_made_up(task: str) -> None:
    assert acceptance(task) == ()
    assert form(task) == ""


def test_a_long_task_takes_no_time_to_speak_of() -> None:
    assert acceptance("Done when: " + "`" * 200_000) == ()
    assert acceptance(("- " + "a" * 500 + "\n") * 5_000) == ()
