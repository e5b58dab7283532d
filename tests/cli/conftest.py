"""The command as a real process, real git, and the demo agent with a script of the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.scene import Demo


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Demo:
    """`demo.plays(leg, …)` sets what the demo agent does in this test."""
    made = Demo(tmp_path / "steps.json", tmp_path / "demo-home")
    monkeypatch.setenv("RELAY_DEMO_STEPS", str(made.script))
    monkeypatch.setenv("RELAY_DEMO_HOME", str(made.home))
    return made
