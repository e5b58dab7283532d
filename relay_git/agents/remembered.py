"""What a reader has met before, as far back as memory allows."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

MOST = 20_000

V = TypeVar("V")


class Remembered(OrderedDict[str, V]):
    """The newest keys of a stream with a value each."""

    def put(self, key: str, value: V) -> None:
        """Remember a key; the oldest goes when there are too many."""
        self[key] = value
        if len(self) > MOST:
            self.popitem(last=False)
