"""Every row of the tables in docs/repositories.md names tests, and they are there."""

from __future__ import annotations

import re

from tests.seal.environment import ROOT

ROW = re.compile(r"^\|(?! ---| kind | way | manager )(.*)\|$", re.M)
NAMED = re.compile(r"`([a-z_/]+\.py)::([a-z0-9_]+)`")


def test_each_kind_names_a_test_that_exists() -> None:
    rows = ROW.findall((ROOT / "docs/repositories.md").read_text())
    wrong = [row.split("|")[0].strip() for row in rows if not NAMED.search(row)]
    for file, name in NAMED.findall("\n".join(rows)):
        page = ROOT / "tests" / file
        if not page.is_file() or re.search(rf"^ *def {name}\(", page.read_text(), re.M) is None:
            wrong.append(f"{file}::{name}")
    assert len(rows) > 30
    assert not wrong
