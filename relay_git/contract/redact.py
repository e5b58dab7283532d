"""Redaction: secrets are taken out of every free text before a contract is hashed and signed.

Promise: known key shapes, private keys, passwords in URLs, addresses and curl's options, bearer headers, literal values
assigned to a name that says it is secret, and a password that prose names as such and that holds a digit become
`[redacted:<rule>]`, counted by rule; what merely looks random (commit ids, hashes, UUIDs, integrity values, `$TOKEN`,
comparisons with "") stays, since no rule guesses by entropy. Redacting twice changes nothing more. Ids and hashes of
our own are exempt by field. It works on decoded strings, never on serialised JSON.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from relay_git.contract.assigned import redact_assignments
from relay_git.contract.canonical import JsonObject
from relay_git.contract.pem import redact_private_keys

MARK = "[changed by redaction: this text does not fit the file byte for byte]\n"

_OWN = (
    "format version contractId sessionId taskId leg createdAt sha256 outputSha256 briefSha256 initialPromptSha256"
    " baseCommit headCommit snapshotCommit snapshotTree branch path pathBase64 keyId signature id status"
)
EXEMPT = frozenset(_OWN.split())
"""Members that hold our own ids, hashes and exact paths, wherever they stand in a contract."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """One family: cheap words of which one must occur, and what is replaced then (group `keep` is kept).

    With `before`, only where that is found a little earlier in the same command.
    """

    name: str
    needles: tuple[str, ...]
    pattern: re.Pattern[str]
    before: re.Pattern[str] | None = None


def redact(text: str) -> tuple[str, Counter[str]]:
    """The text without secrets, and how many were taken out by which rule."""
    counts: Counter[str] = Counter()
    if "PRIVATE KEY" in text:
        text = redact_private_keys(text, counts)
    for rule in _RULES:
        if any(needle in text for needle in rule.needles):
            text = _apply(rule, text, counts)
    return redact_assignments(text, counts), counts


def redact_contract(contract: JsonObject) -> tuple[JsonObject, Counter[str]]:
    """A contract whose free texts are redacted, and the counts; changed snippets say so in their first line."""
    counts: Counter[str] = Counter()

    def clean(text: str) -> str:
        found, seen = redact(text)
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


def _apply(rule: _Rule, text: str, counts: Counter[str]) -> str:
    def replace(found: re.Match[str]) -> str:
        keep = found.groupdict().get("keep") or ""
        if not keep and _in_a_word(text, found.start()):
            return found[0]
        if rule.before is not None and not rule.before.search(text, max(0, found.start() - 400), found.start()):
            return found[0]
        counts[rule.name] += 1
        return f"{keep}[redacted:{rule.name}]"

    return rule.pattern.sub(replace, text)


def _in_a_word(text: str, start: int) -> bool:
    """Whether a key would begin inside of a word; the letter of a written escape such as \\n is not part of one."""
    before = text[max(0, start - 2) : start]
    return before[-1:].isalnum() and not (len(before) == 2 and before[0] == "\\" and before[1] in "nrt")


_DIGIT = r"(?=[A-Za-z_-]{0,200}[0-9])"


# Not a secret, whatever stands before it: what is filled in later, what is taken out already.
_FILLED_IN = r"(?!\[redacted:|\$|%|\{|<|\*{2}|\.{3}|[xX]{3})"
# Words with a digit that prose says of a password: how it is stored, how long it is.
_SAID_OF_IT = (
    r"(?!(?:sha|md|base|argon|pbkdf|utf|bcrypt|scrypt|aes|hmac|oauth|rfc|ascii|v)[-_]?\d|rot13|ed25519"
    r"|[\d,-]+-?(?:char|byte|bit|digit|letter|word|symbol|day|hour|min|sec|month|time|[dhms]\b))"
)
_NO_USER = (  # what stands before "name@host" without being a user with a password
    r"(?!(?i:mailto|e?-?mail|acct|sips?|xmpp|from|to|cc|bcc|author|by|contact|owner|ssh|s?ftp|git|npm|pkg|github|redacted):)"
)


def _rule(name: str, needles: str, pattern: str, before: str = "") -> _Rule:
    return _Rule(name, tuple(needles.split("|")), re.compile(pattern), re.compile(before) if before else None)


_RULES = (
    _rule("anthropic-key", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{8,}"),
    _rule("openrouter-key", "sk-or-", r"sk-or-[A-Za-z0-9_-]{16,}"),
    _rule("openai-key", "sk-", r"sk-(?:proj|svcacct|admin|None|service)-[A-Za-z0-9_-]{12,}"),
    _rule("sk-key", "sk-", rf"sk-(?<![_-]sk-){_DIGIT}(?:[A-Za-z0-9]{{20,}}|[A-Za-z0-9_-]{{40,}})"),
    _rule("groq-key", "gsk_", r"gsk_[A-Za-z0-9]{20,}"),
    _rule("xai-key", "xai-", r"xai-[A-Za-z0-9]{20,}"),
    _rule("huggingface-token", "hf_", r"hf_[A-Za-z0-9]{20,}"),
    _rule(
        "github-token",
        "ghp_|gho_|ghs_|ghu_|ghr_|github_pat_",
        r"g(?:h[pousr]_[A-Za-z0-9]{20,}|ithub_pat_[A-Za-z0-9_]{20,})",
    ),
    _rule("gitlab-token", "gl", r"gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat|ffct)-[A-Za-z0-9_.-]{16,}"),
    _rule("aws-key-id", "AKIA|ASIA", r"A(?:KIA|SIA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _rule("google-key", "AIza|GOCSPX-|ya29.", r"(?:AIza|GOCSPX-|ya29\.)[A-Za-z0-9_-]{24,}"),
    _rule("stripe-key", "k_live_|k_test_|whsec_", r"(?:[srp]k_(?:live|test)_|whsec_)[A-Za-z0-9]{10,}"),
    _rule("slack-token", "xox|xapp-", r"(?:xox[abceprs](?:\.xox[bp])?-|xapp-)[A-Za-z0-9-]{10,}"),
    _rule("slack-webhook", "hooks.slack.com", r"(?P<keep>hooks\.slack\.com/services/)[A-Za-z0-9/_]{16,}"),
    _rule("npm-token", "npm_", r"npm_[A-Za-z0-9]{30,}"),
    _rule(
        "pypi-token",
        "pypi-",
        r"pypi-(?:Ag|(?=[a-z0-9_-]{0,200}[A-Z])(?=[A-Za-z_-]{0,200}[0-9]))[A-Za-z0-9_-]{30,}",
    ),
    _rule("sendgrid-key", "SG.", r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    _rule("age-key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{40,}"),
    # The look-ahead takes the first part whole, so that no step back into it costs time. A possessive repeat would say
    # so more plainly, but Python before 3.11.5 gets those wrong.
    _rule("jwt", "eyJ", r"eyJ(?=([A-Za-z0-9_-]{8,4096}))\1\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"),
    _rule(
        "url-password",
        "://",
        r"(?P<keep>://[^\s/:@\"'`<>\\]{0,200}:)"
        r"(?!\[redacted:|\$|%[({s]|\{|<|\*+@|process\.env)[^\s/\"'`<>\\]{1,400}(?=@[A-Za-z0-9\[{$])",
    ),
    _rule(
        "host-password",
        "@",
        rf"(?<![\w/:@.\[-])(?P<keep>{_NO_USER}[A-Za-z0-9_][A-Za-z0-9._-]{{0,63}}:){_FILLED_IN}"
        r"[^\s/:@\"'`<>\\\[\](){},;|]{5,200}"
        r"(?=@(?:localhost|\d{1,3}(?:\.\d{1,3}){3}|(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24})(?::\d{2,5}\b|/[\w?]))",
    ),
    _rule(
        "user-option",
        "curl|wget|http|xh",
        r"(?P<keep>(?<![^\s\"'\\,])(?:-[a-zA-Z]{0,6}[uU]|--user|--proxy-user)(?:[\"'\\,\s=]{0,6})[^\s:\"'`$\\,=<>]{1,100}:)"
        rf"{_FILLED_IN}[^\s\"'`\\]{{1,400}}",
        before=r"\b(?:curl|wget|https?|xh)(?:\.exe)?\b(?!:)(?:[^\n;|&]|\\\n|&(?!&))*\Z",
    ),
    _rule(
        "password-in-words",
        "assword|asswd|assphrase|ASSWORD",
        r"(?P<keep>\b(?i:(?:password|passwd|passphrase)\s(?:is|was|to)(?:\s(?:now|just|set\sto))?"
        r"|(?:with|using|and|use|try|enter)\s(?:the\s)?(?:password|passwd|passphrase))\s{1,2}\\?[\"'`]?)"
        rf"{_FILLED_IN}(?i:{_SAID_OF_IT})(?=[^\s\"'`<>\\]{{0,100}}[A-Za-z])(?=[^\s\"'`<>\\]{{0,100}}[0-9])"
        r"(?![^\s\"'`]{0,100}[(/])[^\s\"'`<>\\]{6,100}?(?=[.,;:!?)\]]{0,3}(?:[\s\"'`<>\\]|$))",
    ),
    _rule(
        "bearer",
        "earer|BEARER",
        r"(?P<keep>\b(?:[Bb]earer|BEARER)(?:\s+|%20))(?=[A-Za-z._~+/=-]*[0-9])[A-Za-z0-9._~+/=-]{12,}",
    ),
    _rule(
        "authorization",
        "uthorization|UTHORIZATION",
        r"(?P<keep>(?:[Aa]uthorization|AUTHORIZATION)\\?[\"']?\s{0,4}[:=]\s{0,4}\\?[\"']?"
        r"(?:(?:[Bb]asic|[Bb]earer|[Tt]oken|[Dd]igest|[Aa]pi[Kk]ey)\s+))(?!\[redacted:)[A-Za-z0-9._~+/=-]{8,}",
    ),
)
