"""Redaction: secrets are taken out of every free text before a contract is hashed and signed.

Promise: known key shapes, private keys, passwords in URLs, addresses and commands, bearer headers, cookies, literal
values assigned to a name that says it is secret, a password that prose names as such and that holds a digit, and
base64 of any of those become `[redacted:<rule>]` or, with a key, `[redacted:<rule>#<tag>]` (`placeholder`), counted
by rule; what merely looks random (commit ids, hashes, UUIDs, integrity values, `$TOKEN`, comparisons with "") stays,
since entropy is asked of nothing but the value of a name that may be secret. Redacting twice changes nothing more.
Ids and hashes of our own are exempt by field. It works on decoded strings, never on serialised JSON.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import cache

from relay_git.contract.assigned import redact_assignments
from relay_git.contract.canonical import JsonObject
from relay_git.contract.encoded import redact_base64
from relay_git.contract.pem import redact_private_keys
from relay_git.contract.placeholder import PLAIN, Policy, Taken
from relay_git.contract.rules import KEYS, RULES, Rule

MARK = "[changed by redaction: this text does not fit the file byte for byte]\n"

_OWN = (
    "format version contractId sessionId taskId leg createdAt sha256 outputSha256 briefSha256 initialPromptSha256"
    " baseCommit headCommit snapshotCommit snapshotTree branch path pathBase64 keyId signature id status"
)
EXEMPT = frozenset(_OWN.split())
"""Members that hold our own ids, hashes and exact paths, wherever they stand in a contract."""


def redact(text: str, policy: Policy = PLAIN) -> tuple[str, Counter[str]]:
    """The text without secrets, and how many were taken out by which rule."""
    taken = Taken(policy)
    text = redact_base64(_without(text, taken), taken, lambda decoded, layers: _holds(decoded, layers, policy))
    return text, taken.counts


def _without(text: str, taken: Taken) -> str:
    if "PRIVATE KEY" in text:
        text = redact_private_keys(text, taken)
    for rule in dict.fromkeys([rule for needle, rule in _NEEDLES if needle in text]):
        text = _apply(rule, text, taken)
    return redact_assignments(text, taken)


# One flat list: nearly every text has none of these words, and that is what the time goes into.
_NEEDLES = [(needle, rule) for rule in RULES for needle in rule.needles]


def _holds(decoded: str, layers: int, policy: Policy) -> bool:
    taken = Taken(policy)
    redact_base64(_without(decoded, taken), taken, lambda text, more: _holds(text, more, policy), layers)
    return taken.counts.total() > 0


def keys_in(text: str, policy: Policy = PLAIN) -> Counter[str]:
    """The keys and private keys in a file, by rule; a value that only its name tells of is a test's as often as not."""
    taken = Taken(policy)
    if "PRIVATE KEY" in text:
        text = redact_private_keys(text, taken)
    for rule in KEYS:
        if any(needle in text for needle in rule.needles):
            _apply(rule, text, taken)
    return taken.counts


def redact_contract(contract: JsonObject, policy: Policy = PLAIN) -> tuple[JsonObject, Counter[str]]:
    """A contract whose free texts are redacted, and the counts; changed snippets say so in their first line."""
    counts: Counter[str] = Counter()
    known: dict[str, tuple[str, Counter[str]]] = {}  # much is said twice in a contract: as a step and as a task, ...

    def clean(text: str) -> str:
        if text not in known:
            known[text] = redact(text, policy)
        found, seen = known[text]
        counts.update(seen)
        return found

    cleaned = {name: _mapped(name, value, clean) for name, value in contract.items()}
    return cleaned, counts


def _mapped(name: str, value: object, clean: Callable[[str], str]) -> object:
    if name in EXEMPT:
        return value
    if isinstance(value, str):
        found = clean(value)
        return MARK + found if name == "snippet" and found != value else found
    if isinstance(value, list):
        return [_mapped(name, item, clean) for item in value]
    if isinstance(value, dict):
        return {member: _mapped(member, item, clean) for member, item in value.items()}
    return value


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiled when it is first needed: a command that meets no secret pays for none of a hundred patterns."""
    return re.compile(pattern)


def _apply(rule: Rule, text: str, taken: Taken) -> str:
    def replace(found: re.Match[str]) -> str:
        keep = found.groupdict().get("keep") or ""
        if not keep and _in_a_word(text, found.start()):
            return found[0]
        if rule.before and not _compiled(rule.before).search(text, max(0, found.start() - 400), found.start()):
            return found[0]
        return keep + taken.place(rule.name, found[0][len(keep) :])

    return _compiled(rule.pattern).sub(replace, text)


def _in_a_word(text: str, start: int) -> bool:
    """Whether a key would begin inside of a word; the letter of a written escape such as \\n is not part of one."""
    before = text[max(0, start - 2) : start]
    return before[-1:].isalnum() and not (len(before) == 2 and before[0] == "\\" and before[1] in "nrt")
