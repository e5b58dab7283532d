"""How an item that is stated is matched with one that is true, and what counts as invented.

The rule: both are compared as words alone, without case, marks and white space. They match where they are the same,
or where the true one, a key phrase, stands whole in the stated one and that is no heap of other things (at most three
times as long and eighty signs more). A command matches by its beginning and its exit code, a file by path and status,
a step of the plan also by its status. Each stated item counts for one true one at most, and the other way round.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from relay_git.contract.canonical import JsonObject

FIELDS = (
    "goal",
    "plan",
    "remaining",
    "doNotRedo",
    "constraints",
    "files",
    "checks",
    "decisions",
    "openQuestions",
    "nextAction",
)
_MARKS = {"x": "completed", ">": "in_progress", ".": "pending", "-": "cancelled"}
_STATUS = {"A": "added", "M": "modified", "D": "deleted"}
_NO_WORD = re.compile(r"[^\w/$<>=&|.-]+")


def words(text: str) -> str:
    """The text as it is compared."""
    return " ".join(word.strip(".-") for word in _NO_WORD.sub(" ", text.casefold()).split() if word.strip(".-"))


def holds(stated: str, true: str) -> bool:
    """Whether the statement says this and little else."""
    one, other = words(stated), words(true)
    return one == other or (other in one and len(one) <= 3 * len(other) + 80)


@dataclass(frozen=True)
class Item:
    """Something that is stated in a field: its text, what must be equal beside it, and where it says it is from."""

    text: str
    exact: str = ""
    source: str = ""


def stated(contract: JsonObject) -> dict[str, list[Item]]:
    """What a contract states, field by field."""
    by_rule = contract["nextActionSource"].startswith("rule: ")  # it then says itself that nothing was left as next
    asked = [item for item in contract["evidence"] if item["kind"] == "prompt"]
    return {
        "goal": [Item(contract["taskGoal"], source="task"), *(Item(e["excerpt"], source=e["source"]) for e in asked)],
        "plan": [Item(i["text"], i["status"], i["source"]) for i in contract["plan"] if i["status"] != "cancelled"],
        "remaining": [Item(i["text"], source=i["source"]) for i in contract["tasksRemaining"]],
        "doNotRedo": [Item(i["text"], source=i["source"]) for i in contract["doNotRedo"]],
        "constraints": [Item(i["rule"], source=i["source"]) for i in contract["constraints"]],
        "files": [Item(i["path"], i["status"], "git") for i in contract["fileManifest"]],
        "checks": [Item(i["command"], str(i["exitCode"]), "command") for i in contract["checks"]],
        "decisions": [
            Item(f"{i['summary']} because {i['rationale']}" if i["rationale"] else i["summary"], source=i["source"])
            for i in contract["decisions"]
        ],
        "openQuestions": [Item(i["text"], source=i["source"]) for i in contract["summary"]["openQuestions"]],
        "nextAction": [] if by_rule else [Item(contract["nextAction"], source=contract["nextActionSource"])],
    }


def true(name: str, line: str) -> Item:
    """A line of the truth."""
    mark, _, rest = line.partition(" ")
    if name == "plan":
        return Item(rest, _MARKS[mark])
    if name == "files":
        return Item(rest, _STATUS[mark])
    return Item(rest, mark) if name == "checks" else Item(line)


def matches(name: str, said: Item, fact: Item) -> bool:
    """Whether a stated item says this true one."""
    if said.exact != fact.exact:
        return False
    if name == "files":
        return said.text == fact.text
    return words(said.text).startswith(words(fact.text)) if name == "checks" else holds(said.text, fact.text)


@dataclass
class Tally:
    """Counts of one field over some sessions: true items and found ones, stated items and right ones."""

    true: int = 0
    found: int = 0
    stated: int = 0
    right: int = 0
    missed: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)

    @property
    def recall(self) -> float:
        return self.found / self.true if self.true else 1.0

    @property
    def precision(self) -> float:
        return self.right / self.stated if self.stated else 1.0

    def add(self, name: str, items: list[Item], facts: list[Item], where: str) -> None:
        """Count one session's field."""
        free, pairs = list(items), 0
        for fact in facts:
            hit = next((item for item in sorted(free, key=lambda i: len(i.text)) if matches(name, item, fact)), None)
            if hit is None:
                self.missed.append(f"{where}: {fact.exact} {fact.text}")
            else:
                free.remove(hit)
                pairs += 1
        self.true, self.found = self.true + len(facts), self.found + pairs
        self.stated, self.right = self.stated + len(items), self.right + pairs
        self.extra += [f"{where}: {item.exact} {item.text[:160]} [{item.source}]" for item in free]


_OWN_WORDS = (
    "committed as ",
    "already run with success: ",
    "look at what this interrupted call left, and finish it: ",
    "answer what the user said last: ",
)


def invented(
    items: dict[str, list[Item]], never: dict[str, list[str]], sources: str, listed: Callable[[str, Item], bool]
) -> Iterable[str]:
    """Items that the session does not hold: words that stand in no source of it, or what its truth says never to say.

    `listed` says whether an item is in the truth; `sources` is all that agent, human and git left, as words.
    """
    for name, found in items.items():
        for item in found:
            planted = any(words(phrase) in words(item.text) for phrase in never.get(name, ()))
            if (planted and not listed(name, item)) or not _stands_in(item.text, sources):
                yield f"{name}: {item.text[:200]} [{item.source}]"


def _stands_in(text: str, sources: str) -> bool:
    told = text.casefold()
    for own in _OWN_WORDS:
        told = told.removeprefix(own)
    told = re.sub(r"^[0-9a-f]{12}: ", "", told)
    return all(words(piece) in sources for piece in told.split(" because "))
