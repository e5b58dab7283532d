"""The house is in order: what is declared in one place is true in the others."""

from __future__ import annotations

import re
import subprocess
import tomllib

import pytest

from tests.seal.environment import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RUN = PROJECT["dependencies"]
DEV = RUN + PROJECT["optional-dependencies"]["dev"]
KEYRING = PROJECT["optional-dependencies"]["keyring"]


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[<>=~!;\[ ]", line)[0].lower().replace("_", "-") for line in requirements}


@pytest.mark.parametrize(("lock", "wanted"), [("run", RUN), ("dev", DEV)])
def test_every_dependency_is_locked_with_its_hashes(lock: str, wanted: list[str]) -> None:
    text = (ROOT / f"locks/{lock}.txt").read_text()
    entries = re.split(r"\n(?=[a-z])", text)
    assert all("--hash=sha256:" in entry for entry in entries)
    missing = names([*wanted, "hatchling", "editables"]) - names(entries)
    assert not missing, f"not in locks/{lock}.txt: {missing}; run: make lock"


def test_both_locks_name_the_same_versions() -> None:
    run, dev = ((ROOT / f"locks/{name}.txt").read_text() for name in ("run", "dev"))
    pins = re.compile(r"^[a-z][^ ]+==[^ ]+", re.M)
    assert set(pins.findall(run)) <= set(pins.findall(dev))


def test_every_dependency_says_why_it_is_there() -> None:
    page = (ROOT / "docs/dependencies.md").read_text()
    listed = set(re.findall(r"^\| `([^`]+)` \|", page, re.M))
    assert listed == names(DEV + KEYRING) | {"hatchling"}


def test_no_file_names_a_host_of_a_package_registry() -> None:
    hosts = ["pypi" + ".org", "pythonhosted" + ".org", "registry.npmjs" + ".org", "deb.debian" + ".org"]
    command = ["git", "grep", "-lIF", *(word for host in hosts for word in ("-e", host))]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.stdout == ""
