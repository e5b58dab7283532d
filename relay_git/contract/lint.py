"""Lint: how well a contract hands a task over, as a score of 100 and the reasons for what is missing.

Promise: a rule asks one thing that the next agent needs, weighs as much as its absence costs, and is left out where it
does not apply; the score is the share of the weight that is met. It is about what a contract holds, never about
whether that is true: for that it has sources, hashes and a signature.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from relay_git.contract.budget import tokens
from relay_git.contract.canonical import JsonObject
from relay_git.contract.proof import shows_nothing

BAR = 60
"""Below this a contract says of itself what is thin."""

_EMPTY_WORDS = (
    "a again all also and any as at baz be bar can carry continue could do done down everything finish fix foo"
    " for from go going help hey i implementation improve in is issue it job keep left let make me more my next"
    " now of off ok on one or our out please point proceed project remaining rest resume some something step"
    " stuff task tbd that the then there these thing things this to todo try up us we where wip with work"
    " working you your"
)
_EMPTY = frozenset(_EMPTY_WORDS.split())
"""Words that name nothing: what to do, and to what, is in the others."""
_WORD = re.compile(r"[^\W_][\w./:#-]*")
_STEPS = re.compile(r"(?im)^[^\w\n]*(?:next steps?|to-?do|remaining|still (?:to do|open|missing)|open points?)\b")


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule: how much it weighs, how far it is met (0 to 1), and why not wholly."""

    rule: str
    weight: int
    met: float
    why: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The score and what it is made of."""

    score: int
    findings: tuple[Finding, ...]

    @property
    def thin(self) -> list[str]:
        """What is missing, the weightiest first."""
        missing = [finding for finding in self.findings if finding.met < 1]
        ordered = sorted(missing, key=lambda finding: finding.weight * (finding.met - 1))
        return [f"{finding.rule}: {finding.why}" for finding in ordered]


def lint(contract: JsonObject) -> Verdict:
    """The verdict on a contract that is built or verified."""
    findings = []
    for rule, weight, ask in _RULES:
        answer = ask(contract)
        if answer is not None:
            met, why = answer
            findings.append(Finding(rule, weight, max(0.0, min(1.0, met)), "" if met >= 1 else why))
    total = sum(finding.weight for finding in findings)
    return Verdict(int(100 * sum(f.weight * f.met for f in findings) / total), tuple(findings))


Answer = tuple[float, str] | None


def _names(text: str, least: int = 2) -> bool:
    """Whether a text names so many things; where words are not parted, as in Chinese, every two signs are one."""
    found = {word.lower().rstrip(".:") for word in _WORD.findall(text)} - _EMPTY
    return sum(max(1, len(word) // 2) if ord(word[0]) > 0x2E80 else len(word) > 1 for word in found) >= least


def _goal(contract: JsonObject) -> Answer:
    return float(_names(contract["taskGoal"])), "the goal names nothing that can be checked"


def _next_action(contract: JsonObject) -> Answer:
    action, source = contract["nextAction"], contract["nextActionSource"]
    if not _names(action, 1):
        return 0, "the next action names nothing that can be done"
    if source.startswith("rule: "):
        return 0.3, "nobody said what comes next: a rule filled it in"
    return 1, ""


def _plan(contract: JsonObject) -> Answer:
    steps = contract["plan"] or contract["tasksRemaining"]
    if not steps:
        return 0, "there is no plan, so nobody can tell what is left"
    vague = [item["text"] for item in steps if not _names(item["text"], 1)]
    return 1 - len(vague) / len(steps), f"{len(vague)} of {len(steps)} steps name nothing that can be done"


def _prohibitions(contract: JsonObject) -> Answer:
    if any(_names(item["rule"], 1) for item in contract["constraints"]):
        return 1, ""
    said = [item for item in contract["doNotRedo"] if item["source"] not in ("git", "git relay")]
    return (1, "") if said else (0, "neither a rule to keep nor anything that must not be done again")


def _decisions(contract: JsonObject) -> Answer:
    found = contract["decisions"]
    if not found:
        return None
    reasons = sum(bool(item["rationale"]) for item in found)
    return reasons / len(found), f"{len(found) - reasons} of {len(found)} decisions have no reason"


def _proof(contract: JsonObject) -> Answer:
    ran = [check["exitCode"] for check in contract["checks"] if not shows_nothing(check["command"])]
    if 0 in ran or (contract["acceptance"] and not ran):
        return 1, ""
    if ran:
        return 0.5, "of the commands that show something none succeeded"
    return 0, "no command shows that anything works"


def _sources(contract: JsonObject) -> Answer:
    sources = [contract["nextActionSource"], *(item.get("source", "") for item in _items(contract))]
    named = sum(bool(source.strip()) for source in sources)
    return named / len(sources), f"{len(sources) - named} statements do not say where they come from"


def _evidence(contract: JsonObject) -> Answer:
    ids = [item["id"] for item in contract["evidence"]]
    if not ids:
        return 0, "there is no evidence to check anything by"
    long = sum(len(item["text"]) > 600 for item in contract["summary"]["facts"])
    if len(set(ids)) < len(ids) or long:
        return 0.5, "facts and evidence are not kept apart"
    return 1, ""


def _smuggled(contract: JsonObject) -> Answer:
    said = [item["text"] for item in contract["summary"]["hypotheses"]]
    if not said:
        return None
    hidden = any(_STEPS.search(text) for text in said) and not contract["tasksRemaining"]
    return float(not hidden), "what is left stands only in the agent's last message"


def _whole(contract: JsonObject) -> Answer:
    unread = [loss for loss in contract["losses"] if "could not be read" in loss or "was not found" in loss]
    return float(not unread), "; ".join(unread[:2])


def _ids(contract: JsonObject) -> Answer:
    wanted = ("contractId", "sessionId", "taskId", "baseCommit", "snapshotCommit", "snapshotTree")
    missing = [name for name in wanted if not contract.get(name)]
    if contract["leg"] > 1 and not contract["previous"]:
        missing.append("previous")
    return float(not missing), f"missing: {', '.join(missing)}"


def _size(contract: JsonObject) -> Answer:
    budget = (contract.get("budget") or {}).get("tokens")
    if not budget:
        return None
    never = [contract["taskGoal"], contract["nextAction"], *(i["text"] for i in contract["doNotRedo"])]
    need = sum(tokens(text) for text in (*never, *(i["rule"] for i in contract["constraints"])))
    return budget / max(budget, need), f"what is never cut takes about {need} of {budget} tokens"


def _items(contract: JsonObject) -> Iterator[JsonObject]:
    for name in ("plan", "tasksRemaining", "doNotRedo", "decisions", "constraints", "evidence"):
        yield from contract[name]
    for items in contract["summary"].values():
        yield from items


_RULES: tuple[tuple[str, int, Callable[[JsonObject], Answer]], ...] = (
    ("goal", 15, _goal),
    ("next action", 20, _next_action),
    ("plan", 15, _plan),
    ("prohibitions", 10, _prohibitions),
    ("proof", 10, _proof),
    ("sources", 10, _sources),
    ("evidence", 5, _evidence),
    ("reasons", 5, _decisions),
    ("nothing hidden in messages", 5, _smuggled),
    ("whole record", 10, _whole),
    ("ids", 5, _ids),
    ("size", 5, _size),
)
