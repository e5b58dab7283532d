"""Reads a file of JSON lines to which another process is still writing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def records(file: Path) -> list[dict[str, Any]]:
    """The records whose line has ended, in order; none while the file is not there."""
    try:
        whole = file.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in whole]
