"""How many made-up secrets are missed, kind by kind, how many look-alikes are hurt, and how fast that is."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bench.measure import Row, Table
from bench.secrets import Sample, innocents, is_prefixed, secrets
from relay_git.contract.redact import redact

MISSED, FALSE = 0.02, 0.01  # the aims for kinds without a prefix, and for look-alikes


@dataclass(frozen=True)
class Outcome:
    """What became of some samples: all and wrong ones by kind, and the wrong ones themselves."""

    total: Counter[str]
    wrong: Counter[str]
    examples: tuple[Sample, ...]

    def share(self, prefixed: bool | None = None) -> float:
        """The share of wrong ones, of all kinds or of those with or without a prefix."""
        kinds = [kind for kind in self.total if prefixed is None or is_prefixed(kind) == prefixed]
        return sum(self.wrong[kind] for kind in kinds) / sum(self.total[kind] for kind in kinds)


def judge(samples: Iterable[Sample]) -> Outcome:
    """A secret is missed where half of it is left; a look-alike is hurt where anything of it has changed."""
    found = list(samples)
    wrong = tuple(sample for sample in found if _is_wrong(sample, redact(sample.text)[0]))
    return Outcome(Counter(s.kind for s in found), Counter(s.kind for s in wrong), wrong)


def _is_wrong(sample: Sample, text: str) -> bool:
    if not sample.secret:
        return text != sample.text
    half = max(6, len(sample.secret) // 2)
    return any(piece in text for piece in (sample.secret[:half], sample.secret[-half:]))


def measure(scratch: Path, *, small: bool) -> Table:
    """The whole corpus, whatever is asked for: it takes seconds."""
    missed, hurt = judge(secrets()), judge(innocents())
    table = Table("redact", f"{missed.total.total()} made-up secrets, {hurt.total.total()} innocent look-alikes.")
    page = "\n".join(sample.text for sample in innocents()) * (2 if small else 20)
    began = time.process_time()
    redact(page)
    table.rows.append(Row(f"redact {len(page) / 1e6:.1f} MB of look-alikes", time.process_time() - began))
    table.notes += [f"{'KIND':28}{'SECRETS':>8}{'MISSED':>8}", *_lines(missed)]
    table.notes += [f"{'LOOK-ALIKES':28}{'TEXTS':>8}{'FALSE':>8}", *_lines(hurt)]
    table.notes += [
        _verdict("missed, kinds with a prefix", missed.share(True), missed.share(True) == 0, "0"),
        _verdict("missed, other kinds", missed.share(False), missed.share(False) < MISSED, "< 2 %"),
        _verdict("false", hurt.share(), hurt.share() < FALSE, "< 1 %"),
    ]
    table.notes += [f"wrong: {s.kind}, {s.carrier}: {s.text[:120]!r}" for s in (*missed.examples, *hurt.examples)]
    return table


def _lines(outcome: Outcome) -> list[str]:
    return [f"{kind:28}{outcome.total[kind]:8}{outcome.wrong[kind]:8}" for kind in outcome.total]


def _verdict(what: str, share: float, holds: bool, aim: str) -> str:
    return f"{what}: {share:.2%} (aim {aim}) {'holds' if holds else 'MISSED'}"
