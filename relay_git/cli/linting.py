"""`lint`: how well a contract hands its task over, rule by rule."""

from __future__ import annotations

from relay_git.cli.contracts import verified
from relay_git.cli.render import print_json, print_table
from relay_git.contract.lint import BAR, lint
from relay_git.errors import ExitCode


def check(word: str | None, *, as_json: bool) -> int:
    """Print the score of a verified contract and what it is made of."""
    verdict = verified(word)
    found = lint(verdict.contract)
    rows = [{"rule": f.rule, "weight": f.weight, "met": round(f.met * 100), "why": f.why} for f in found.findings]
    if as_json:
        print_json({"contractId": verdict.contract_id, "score": found.score, "bar": BAR, "findings": rows})
    else:
        print_table(
            ("RULE", "WEIGHT", "MET", "WHY"), [(r["rule"], r["weight"], f"{r['met']} %", r["why"]) for r in rows]
        )
        print(f"\n{verdict.contract_id}: {found.score} of 100{'' if found.score >= BAR else ', thin'}")
    return ExitCode.DONE
