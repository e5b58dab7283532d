"""What can go wrong, in words a user can act on.

Promise: every expected failure is one of these, with a sentence that says what happened and a `hint`, the next
command to type. A room turns foreign exceptions into its own at its border; only `cli` prints them.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What the process tells its caller."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    REFUSED = 3
    BUG = 4
    INTERRUPTED = 130


class RelayError(Exception):
    """An expected failure: a sentence for the user, and the next command to type."""

    exit_code = ExitCode.FAILED

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UserError(RelayError):
    """The user asked for something that cannot be done as asked."""

    exit_code = ExitCode.USAGE


class RepoError(RelayError):
    """The repository, its disk or git itself stands in the way."""


class AgentError(RelayError):
    """An agent CLI is missing, not signed in, or did not behave."""


class SignatureRefused(RelayError):
    """A contract or the key does not verify; nothing of it was shown to an agent."""

    exit_code = ExitCode.REFUSED


class LedgerConflict(RelayError):
    """Another process moved the session's ref, or holds its lock."""


class FormatTooNew(RelayError):
    """The record was written by a newer git relay than this one."""


def printable(text: str) -> str:
    """The text without control characters, so that no file name or foreign message can drive the terminal."""
    if text.isprintable():
        return text
    return "".join(c if c == "\n" or c.isprintable() else "\ufffd" for c in text)
