"""The budget of a brief: how many tokens it may take, and who gives way when that is not enough.

Promise: what is never cut is shown whole whatever the budget says; of the rest the sections of more worth come first,
each takes at most half of what is left in a first round, so that a long one starves no other, and what remains is dealt
out in a second round in the same order. Entries of a section are shown in their order, without gaps.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

DEFAULT = 4000
LEAST = 500
_PIECES = re.compile(r"[A-Za-z]{1,7}|[0-9]{1,3}| {2,}|[^\sA-Za-z0-9]|\n")


def tokens(text: str) -> int:
    """About how many tokens a model counts in a text, rather too many than too few."""
    return len(_PIECES.findall(text))


@dataclass(frozen=True, slots=True)
class Claim:
    """What one section asks for: the cost of each entry; the worth of a section, 0 for what is never cut."""

    costs: Sequence[int]
    worth: int


def share(claims: Sequence[Claim], budget: int) -> list[int]:
    """How many entries of each section are shown."""
    shown = [len(claim.costs) if claim.worth == 0 else 0 for claim in claims]
    left = budget - sum(sum(claim.costs) for claim in claims if claim.worth == 0)
    order = sorted((i for i, claim in enumerate(claims) if claim.worth), key=lambda i: claims[i].worth)
    for rounds in (2, 1):
        for i in order:
            room = left // rounds
            while shown[i] < len(claims[i].costs) and claims[i].costs[shown[i]] <= room:
                cost = claims[i].costs[shown[i]]
                shown[i], left, room = shown[i] + 1, left - cost, room - cost
    return shown
