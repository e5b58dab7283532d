"""The command line: every command, in the order of the help."""

from __future__ import annotations

from relay_git.cli import session_commands

# isort: split
from relay_git.cli import machine_commands

# isort: split
from relay_git.cli import contract_commands
from relay_git.cli.options import app

__all__ = ["COMMANDS", "app"]

COMMANDS = (session_commands, machine_commands, contract_commands)
