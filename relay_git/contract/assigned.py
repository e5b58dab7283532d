"""Secrets by name: literal values assigned to a name that says that they are secret.

Promise: `NAME_KEY=value`, `"password": "value"`, `token: value` and `--token value` lose the value, in env, JSON, YAML,
code and command lines; calls, variables, placeholders, types and empty strings stay, so that code remains code.
A bare word without a digit behind a lower-case name is taken for an identifier, and stays.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

RULE = "assignment"

_WORDS = ("key", "token", "secret", "password", "passwd", "passphrase", "pass", "pwd", "credential", "credentials")
_SPELLINGS = tuple(form for word in _WORDS for form in (word, word.capitalize(), word.upper()))
_NAME = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"

_OPERATOR = re.compile(r"(?:\\?[\"'])?([ \t]{0,8}(?:=>|:=|=(?![=~>])|:(?![:=]))[ \t]{0,8}|[ \t]{1,2}(?![ \t]))")
_VALUES = (
    re.compile(r"(?P<open>\\[\"'])(?P<value>(?:(?!\\[\"'])[^\r\n]){0,2000})"),
    re.compile(r"(?P<open>\")(?P<value>(?:[^\"\\\r\n]|\\[^\r\n]){0,2000})"),
    re.compile(r"(?P<open>')(?P<value>(?:[^'\\\r\n]|\\[^\r\n]){0,2000})"),
    re.compile(r"(?P<open>`)(?P<value>[^`\r\n]{0,2000})"),
    re.compile(r"(?P<open>)(?P<value>[^\s\"'`\\,;&<>(){}|]{1,2000})(?!\()"),
)

# Which names ending in "key" are secret: those with such a word before it, and environment names.
_SECRET_KEY = re.compile(
    r"(?:api|access|secret|private|auth|encryption|signing|master|account|shared|service|subscription|deploy)[_.-]?$",
    re.IGNORECASE,
)
_HARMLESS = re.compile(
    r"(?:^|[_.-])(?:public|primary|foreign|cache|sort|partition|row|hash|index|group|map|storage|max|min|num|total|next"
    r"|page|start|stop|eos|bos|pad)_?$",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(
    r"\[redacted:|\$|%|\{|<|\*{3}|x{3,}$|X{3,}$|\.{3}|…|@|process\.env|import\.meta|os\.(?:environ|getenv)|env[.:\[]"
    r"|vault:|secret://|op://|ref\+|arn:|file:|\(|\[|!|&|-----|[~.]{0,2}/[\w.-]+/[\w./-]*$"
)
_PLAIN_WORDS = (
    "string str bytes bool boolean int integer number float any null none nil true false undefined required optional"
    " unknown object const self this token password secret credentials default changeme example placeholder redacted"
    " hidden masked void never basic bearer"
)
_NOT_SECRET = frozenset(_PLAIN_WORDS.split())
_PATH_OF_NAMES = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$")
_IDENTIFIER = re.compile(r"[A-Za-z_]+[0-9]{0,2}$")
_CONSTANT = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$")
_DIGIT = re.compile(r"[0-9]")


def redact_assignments(text: str, counts: Counter[str]) -> str:
    """The text without the values of secret names; what was taken out is added to the counts."""
    kept: list[str] = []
    done = 0
    for start, end in sorted(set(_secrets(text))):
        if start >= done:
            counts[RULE] += 1
            kept += [text[done:start], f"[redacted:{RULE}]"]
            done = end
    return "".join([*kept, text[done:]])


def _secrets(text: str) -> Iterator[tuple[int, int]]:
    # Finding plain words first is what makes this fast: almost no text holds one of them before an operator.
    for spelling in _SPELLINGS:
        at = text.find(spelling)
        while at >= 0:
            after = at + len(spelling)
            operator = _OPERATOR.match(text, after)
            if operator is not None:
                yield from _value_after(text, at, spelling, operator)
            at = text.find(spelling, after)


def _value_after(text: str, at: int, word: str, operator: re.Match[str]) -> Iterator[tuple[int, int]]:
    before = text[max(0, at - 80) : at]
    prefix = before[len(before.rstrip(_NAME)) :]
    value = next(filter(None, (pattern.match(text, operator.end()) for pattern in _VALUES)), None)
    if value is not None and _names_a_secret(prefix, word) and _is_literal(prefix + word, operator[1], value):
        yield value.span("value")


def _names_a_secret(prefix: str, word: str) -> bool:
    if _HARMLESS.search(prefix):
        return False
    if word in ("key", "Key", "KEY"):
        return _SECRET_KEY.search(prefix) is not None or (word == "KEY" and prefix.endswith("_"))
    if word.lower() in ("pass", "pwd"):  # "PASS: test_x" and PWD=/home are something else.
        return prefix.endswith("_") or (word.lower() == "pwd" and not word.isupper())
    return True


def _is_literal(name: str, operator: str, found: re.Match[str]) -> bool:
    value, quoted = found["value"], bool(found["open"])
    if len(value) < 6 or _PLACEHOLDER.match(value) or value.lower() in _NOT_SECRET or _CONSTANT.match(value):
        return False
    if not operator.strip():  # White space assigns only behind a flag: --token value.
        return name.startswith("--") and not value.startswith("-")
    environment = name.strip("-.").isupper()
    if quoted:  # Words in quotes are a label; but the environment has no labels.
        return " " not in value or (environment and _DIGIT.search(value) is not None)
    if value.isdigit() and len(value) < 8:
        return False
    if _PATH_OF_NAMES.match(value) and not (len(value) >= 20 and _DIGIT.search(value)):
        return False
    if environment:  # FOO_TOKEN=value is an environment; in FOO_TOKEN = value a bare name may be code.
        return operator in ("=", ":", ": ") or not _IDENTIFIER.match(value)
    if _IDENTIFIER.match(value):
        return "pass" in name.lower() and value[-1].isdigit()
    return _DIGIT.search(value) is not None or re.search(r"[^\w.\[\]:/-]", value) is not None
