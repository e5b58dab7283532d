"""The generated pages are made from the program, and a page that has drifted is noticed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools import docs


class Group:
    """A command as the generator sees it; what it prints is its own words."""

    def __init__(self, help_text: str, commands: dict[str, Group] | None = None, hidden: bool = False) -> None:
        self.help, self.hidden = help_text, hidden
        if commands is not None:
            self.commands = commands

    def main(self, args: list[str], prog_name: str, standalone_mode: bool) -> None:
        assert args[-1] == "-h"
        print(f"Usage: {' '.join([prog_name, *args[:-1]])}\n\n  it's a .line with \\ in it   \n.dot")


PROGRAM = Group(
    "Carries a task.\n\nMore.",
    {
        "start": Group("Start."),
        "wallet": Group("Wallet.", {"show": Group("Show.")}),
        "secret": Group("Not shown.", hidden=True),
    },
)


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(docs, "command", lambda: PROGRAM)
    monkeypatch.setattr(docs, "diagram", lambda: "stateDiagram-v2\n  RUNNING --> DONE")
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("# x\n<!-- help:begin -->\nold\n<!-- help:end -->\nrest\n")
    (tmp_path / "docs/architecture.md").write_text("a\n<!-- states:begin -->\n<!-- states:end -->\nb\n")
    return tmp_path


def test_pages_that_were_just_written_match(house: Path) -> None:
    assert docs.main([], house) == 0
    assert docs.main(["--check"], house) == 0


def test_check_writes_nothing_and_says_what_to_run(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(house.rglob("*"))
    assert docs.main(["--check"], house) == 1
    assert sorted(house.rglob("*")) == before
    assert "docs/cli.md: does not match the program. Run: make docs" in capsys.readouterr().err


def test_only_the_text_between_the_markers_changes(house: Path) -> None:
    docs.main([], house)
    page = (house / "README.md").read_text()
    assert page.startswith("# x\n<!-- help:begin -->\n```text\nUsage: git-relay\n")
    assert page.endswith("```\n<!-- help:end -->\nrest\n")
    assert "```mermaid\nstateDiagram-v2\n" in (house / "docs/architecture.md").read_text()


def test_a_page_without_markers_is_said_and_left_alone(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (house / "README.md").write_text("# no markers\n")
    assert docs.main([], house) == 1
    assert "README.md: the page needs the lines" in capsys.readouterr().err
    assert (house / "README.md").read_text() == "# no markers\n"


def test_every_visible_command_is_on_the_page_at_any_depth(house: Path) -> None:
    docs.main([], house)
    headings = [line for line in (house / "docs/cli.md").read_text().splitlines() if line.startswith("## ")]
    assert headings == ["## git relay start", "## git relay wallet", "## git relay wallet show"]


def test_the_manual_page_is_clean_roff(house: Path) -> None:
    docs.main([], house)
    page = house / "man/git-relay.1"
    if shutil.which("mandoc"):
        command = ["mandoc", "-T", "utf8", str(page)]
    elif shutil.which("groff"):
        command = ["groff", "-man", "-Tutf8", "-ww", "-P-cbou", str(page)]
    else:
        pytest.skip("neither mandoc nor groff is on this machine")
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    assert shown.stderr == ""
    assert ".dot" in shown.stdout
    assert "\\ in it" in shown.stdout
    assert "GIT RELAY WALLET SHOW" in shown.stdout


def test_the_pages_of_this_repository_match_the_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.docs", "--check"], cwd=docs.ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
