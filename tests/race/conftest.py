"""The demo agent with a script of the test's own, as in the tests of the commands."""

from __future__ import annotations

from tests.cli.conftest import demo

__all__ = ["demo"]
