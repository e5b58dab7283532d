"""What stands in a secret's place, and who decides that it is none.

Promise: `[redacted:<rule>#<tag>]`, where the tag is the beginning of a keyed hash of the secret: equal secrets have
equal tags in one repository, and without its key a tag tells nothing, not even to who guesses the secret. Without a
key the tag is left out. What the user's own patterns allow is not taken out.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

BEGIN = "[redacted:"
_DOMAIN = b"git-relay redaction v1\x00"
_TAG = 8
_MOST_ALLOWED = 4096


@dataclass(frozen=True, slots=True)
class Policy:
    """How a repository redacts: the secret that makes the tags, and patterns of what is harmless.

    A pattern is compared with the whole of what would be taken out; `*` and `?` stand for other characters.
    """

    secret: bytes = field(default=b"", repr=False)
    allow: tuple[str, ...] = ()


PLAIN = Policy()


class Taken:
    """What was taken out of a text so far."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.counts: Counter[str] = Counter()

    def place(self, rule: str, secret: str) -> str:
        """What is to stand where the secret stood: a placeholder, counted, or the text itself where it is allowed."""
        if len(secret) <= _MOST_ALLOWED and any(fnmatchcase(secret, pattern) for pattern in self._policy.allow):
            return secret
        self.counts[rule] += 1
        return f"{BEGIN}{rule}{self._tag(secret)}]"

    def cut(self, rule: str, text: str, spans: Iterable[tuple[int, int]]) -> str:
        """The text with what lies at these places, which may overlap, replaced."""
        kept: list[str] = []
        done = 0
        for start, end in sorted(set(spans)):
            if start >= done:
                kept += [text[done:start], self.place(rule, text[start:end])]
                done = end
        return "".join([*kept, text[done:]])

    def _tag(self, secret: str) -> str:
        if not self._policy.secret:
            return ""
        key = hmac.digest(self._policy.secret, _DOMAIN, hashlib.sha256)
        return "#" + hmac.digest(key, secret.encode("utf-8", "surrogatepass"), hashlib.sha256).hex()[:_TAG]
