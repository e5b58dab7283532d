"""Redaction: secrets are taken out of every free text before a contract is hashed and signed.

Promise: known key shapes, private keys, passwords in URLs, addresses and commands, bearer headers, cookies, literal
values assigned to a name that says it is secret, cells of tables below such a name, a password that prose names as
such and that holds a digit, and base64 of any of those become `[redacted:<rule>]` or, with a key,
`[redacted:<rule>#<tag>]` (`placeholder`), counted by rule; what merely looks random (commit ids, hashes, UUIDs,
integrity values, `$TOKEN`, comparisons with "") stays, since entropy is asked of nothing but the value of a name that
may be secret. Redacting twice changes nothing more. Ids and hashes of our own are exempt by field. It works on decoded
strings, never on serialised JSON.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections import Counter
from functools import cache

from relay_git.contract.assigned import redact_assignments
from relay_git.contract.canonical import JsonObject
from relay_git.contract.encoded import redact_base64
from relay_git.contract.pem import redact_private_keys
from relay_git.contract.placeholder import PLAIN, Policy, Taken
from relay_git.contract.quote import pieces
from relay_git.contract.rules import IN_FILES, KEYS, RULES, Rule
from relay_git.contract.tabled import redact_tables

MARK = "[changed by redaction: this text does not fit the file byte for byte]\n"

_OWN = (
    "format version contractId sessionId taskId leg createdAt sha256 outputSha256 briefSha256 initialPromptSha256"
    " baseCommit headCommit snapshotCommit snapshotTree branch path pathBase64 keyId signature id status"
)
EXEMPT = frozenset(_OWN.split())
"""Members that hold our own ids, hashes and exact names, wherever they stand in a contract: nothing is cut off them."""
_SAMPLE = "EXAMPLE"  # what the ids in Amazon's documents end with
_IN_LINES = ("taskGoal", "initialPrompt", "outputContract", "snippet")


def redact(text: str, policy: Policy = PLAIN) -> tuple[str, Counter[str]]:
    """The text without secrets, and how many were taken out by which rule.

    A secret that something hidden cuts up, as colours do, is one all the same: then all that is hidden goes with it.
    """
    read = _as_read(text)
    if read is not text and (found := _redacted(read, policy))[1]:
        return found
    return _redacted(text, policy)


def _redacted(text: str, policy: Policy) -> tuple[str, Counter[str]]:
    taken = Taken(policy)
    text = redact_base64(_without(text, taken), taken, lambda decoded, layers: _holds(decoded, layers, policy))
    return text, taken.counts


def _as_read(text: str) -> str:
    """The text without what is hidden; itself where nothing is. A key does not come to lie in the word before it."""
    cut = pieces(text)
    if len(cut) == 1:
        return cut[0]
    whole, at, kept = "".join(cut), 0, list[str]()
    for piece in cut:
        if whole[at - 1 : at].isalnum() and whole.startswith(_PREFIXES, at):
            kept.append(" ")
        kept.append(piece)
        at += len(piece)
    return "".join(kept)


def _without(text: str, taken: Taken) -> str:
    if "PRIVATE KEY" in text:
        text = redact_private_keys(text, taken)
    for rule in dict.fromkeys([rule for needle, rule in _NEEDLES if needle in text]):
        text = _apply(rule, text, taken)
    return redact_tables(redact_assignments(text, taken), taken)


# One flat list: nearly every text has none of these words, and that is what the time goes into.
_NEEDLES = [(needle, rule) for rule in RULES for needle in rule.needles]
_PREFIXES = tuple(needle for rule in KEYS for needle in rule.needles)


def _holds(decoded: str, layers: int, policy: Policy) -> bool:
    taken = Taken(policy)
    redact_base64(_without(decoded, taken), taken, lambda text, more: _holds(text, more, policy), layers)
    return taken.counts.total() > 0


def keys_in(text: str, policy: Policy = PLAIN) -> Counter[str]:
    """The keys and private keys in a file, by rule; a value that only its name tells of is a test's as often as not."""
    taken = Taken(policy)
    if "\0" not in text:  # in what is no text, nothing is hidden, and to look for it would take long
        text = _as_read(text)
    if "PRIVATE KEY" in text:
        text = redact_private_keys(text, taken)
    for rule in IN_FILES:
        if any(needle in text for needle in rule.needles):
            text = _apply(rule, text, taken)
    return taken.counts


def redact_contract(contract: JsonObject, policy: Policy = PLAIN) -> tuple[JsonObject, Counter[str]]:
    """A contract whose free texts are redacted, and the counts; changed snippets say so in their first line.

    A path or branch that holds a secret is shown redacted, and its exact bytes are left to git.
    """
    cleaner = _Cleaner(policy)
    cleaned = {name: cleaner.member(name, value) for name, value in contract.items()}
    branch = contract.get("branch")
    if isinstance(branch, str) and branch != f"relay/{contract.get('sessionId')}":
        cleaned["branch"] = cleaner.text(branch)
    return cleaned, cleaner.counts


class _Cleaner:
    """Redacts what is in a contract, and counts."""

    def __init__(self, policy: Policy) -> None:
        self.counts: Counter[str] = Counter()
        self._policy = policy
        # Much is said twice in a contract: as a step and as a task, ...
        self._known: dict[tuple[str, bool], tuple[str, Counter[str]]] = {}

    def text(self, text: str, *, lines: bool = False) -> str:
        """One text; with `lines` it is shown in its lines, else on one."""
        if (text, lines) not in self._known:
            self._known[text, lines] = _on_one_line(*redact(text, self._policy), self._policy, lines=lines)
        found, seen = self._known[text, lines]
        self.counts.update(seen)
        return found

    def member(self, name: str, value: object) -> object:
        """A member of whatever kind."""
        if name in EXEMPT:
            return value
        if isinstance(value, str):
            found = self.text(value, lines=name in _IN_LINES)
            return MARK + found if name == "snippet" and found != value else found
        if isinstance(value, list):
            return [self.member(name, item) for item in value]
        if isinstance(value, dict):
            return self._without_path({member: self.member(member, item) for member, item in value.items()})
        return value

    def _without_path(self, owner: JsonObject) -> JsonObject:
        """The same, with what is to stand for a path that holds a secret."""
        path, exact = owner.get("path"), owner.get("pathBase64")
        if not isinstance(path, str):
            return owner
        names = [path, b64decode(exact).decode("utf-8", "replace")] if isinstance(exact, str) else [path]
        shown = next((told for told in map(self.text, names[::-1]) if told not in names), None)
        if shown is None:
            return owner
        return {name: owner[name] for name in owner if name != "pathBase64"} | {"path": shown, "pathRedacted": True}


def _on_one_line(text: str, counts: Counter[str], policy: Policy, *, lines: bool) -> tuple[str, Counter[str]]:
    """What was redacted, where it is shown on one line: there a value may come to stand behind its name."""
    line = text if lines else " ".join("".join(pieces(text)).split())
    if line == text:
        return text, counts
    found, more = redact(line, policy)
    return (found, counts + more) if more else (text, counts)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiled when it is first needed: a command that meets no secret pays for none of a hundred patterns."""
    return re.compile(pattern)


def _apply(rule: Rule, text: str, taken: Taken) -> str:
    def replace(found: re.Match[str]) -> str:
        keep = found.groupdict().get("keep") or ""
        if not keep and (_in_a_word(text, found.start()) or found[0].endswith(_SAMPLE)):
            return found[0]
        if rule.before and not _compiled(rule.before).search(text, max(0, found.start() - 400), found.start()):
            return found[0]
        return keep + taken.place(rule.name, found[0][len(keep) :])

    return _compiled(rule.pattern).sub(replace, text)


def _in_a_word(text: str, start: int) -> bool:
    """Whether a key would begin inside of a word; the letter of a written escape such as \\n is not part of one."""
    before = text[max(0, start - 2) : start]
    return before[-1:].isalnum() and not (len(before) == 2 and before[0] == "\\" and before[1] in "nrt")
