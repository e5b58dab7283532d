"""Data on stdout: a table for people, JSON with the same content for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from relay_git.errors import printable


def print_json(value: object) -> None:
    """One JSON document, indented, UTF-8."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def print_table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Aligned columns, two blanks apart; the last column is not padded, so that long reasons wrap by themselves."""
    cells = [[printable(str(c)).replace("\n", " ") for c in row] for row in [head, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    for row in cells:
        padded = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)]
        print("  ".join([*padded, row[-1]]).rstrip())
