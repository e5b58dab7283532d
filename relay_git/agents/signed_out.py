"""Whether the words with which a run failed say that the service does not take the login any more.

Promise: pure, and asked only of what a tool says of its own failure; no words of a model come here. A login is refused
by its token or key (401, expired, revoked, cannot be renewed), and not where it may not do one thing (403).
"""

from __future__ import annotations

import re

_PROOF = r"(?:\b(?:access|refresh|oauth|auth\w*|api|bearer|session|id)[ _-]?(?:token|session|key|credentials?)\b)"
_WORDS = re.compile(
    r"\b(?:status|error|code|http)\b\W{0,4}(?:code\W{0,4}|status\W{0,4})?401\b|\b401\b\W{0,3}unauthori[sz]ed"
    r"|\bauthentication[ _]?(?:error|failed|required)|failed to authenticate|\bProviderAuthError\b|\bunauthenticated\b"
    r"|please run /login|\b(?:log|sign) ?in again|\bnot (?:logged|signed) in\b|\bbad credentials\b|\binvalid_grant\b"
    rf"|{_PROOF}\W{{0,3}}[\w ]{{0,40}}\b(?:expired|revoked|invalid(?:ated)?|not valid|refreshed|renewed|already used)"
    rf"|\b(?:invalid|incorrect|expired|revoked|missing)[ _](?:x-)?{_PROOF}"
    r"|\b(?:token|api_?key)_(?:expired|invalid|revoked)",
    re.I,
)


def login_refused(said: str) -> bool:
    """Whether a tool's last words tell that its login is refused."""
    return _WORDS.search(said[:4_096]) is not None
