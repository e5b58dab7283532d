"""docs/format.md tells the truth: its example verifies, and it names every member, outcome and cap."""

from __future__ import annotations

import json
import re
from pathlib import Path

from relay_git.contract.bounds import LISTS, TEXTS
from relay_git.contract.canonical import canonical
from relay_git.contract.model import Contract
from relay_git.contract.verify import Outcome, Verified, verify
from tests.contract.samples import KEY

PAGE = (Path(__file__).parents[2] / "docs" / "format.md").read_text(encoding="utf-8").split("\n## The journal\n")[0]


def example() -> dict[str, object]:
    """The contract that the page shows."""
    found = re.search(r"<!-- example: contract -->\n```json\n(.*?)\n```\n", PAGE, re.DOTALL)
    assert found
    parsed = json.loads(found[1])
    assert isinstance(parsed, dict)
    return parsed


def test_the_example_is_a_valid_contract() -> None:
    found = verify(canonical(example()), KEY)
    assert isinstance(found, Verified), found
    assert Contract.model_validate(found.contract).contract_id == found.contract_id


def test_the_page_names_every_member() -> None:
    members = {field.alias or name for name, field in Contract.model_fields.items()}
    assert members == set(re.findall(r"^\| `(\w+)` \| (?!\d)[^|]+ \| ", PAGE, re.MULTILINE)) == set(example())


def test_the_page_names_every_outcome_and_cap() -> None:
    for outcome in Outcome:
        assert f"| `{outcome}` |" in PAGE
    for name, limit in TEXTS.items():
        assert f"| `{name}` | {size(limit)} |" in PAGE
    for name, cap in LISTS.items():
        assert f"| `{name}` | {cap.items} items, {size(cap.text)} a text, {size(cap.total)} in all |" in PAGE


def size(count: int) -> str:
    """A number of bytes as the page writes it."""
    return f"{count // 1024} KiB" if count % 1024 == 0 else f"{count} bytes"
