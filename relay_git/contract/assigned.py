"""Secrets by name: literal values assigned to a name that says that they are secret.

Promise: `NAME_KEY=value`, `"password": "value"`, `token: value`, `--token value`, `<password>value</password>`,
`ENV NAME_KEY value` and `name: NAME_KEY, value: value` lose the value, in env, JSON, YAML, XML, code and command
lines; calls, variables, placeholders, types and empty strings stay, so that code remains code. A bare word without a
digit behind a lower-case name is taken for an identifier, and stays. Behind a name that only may be secret, such as
`auth` or `key`, and between the parentheses of a call, the value must look random as well.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from math import log2

from relay_git.contract.placeholder import Taken

RULE = "assignment"

_WORDS = (
    "key",
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "pw",
    "pass",
    "pwd",
    "credential",
    "credentials",
    "creds",
    "psk",
)
_MAYBE = ("auth", "session", "cookie", "sid", "pat", "salt", "dsn")  # where the value looks random
_SHORT = ("pass", "pwd", "pw")  # where the value looks random, or the name has more words
_SPELLINGS = tuple(form for word in (*_WORDS, *_MAYBE) for form in (word, word.capitalize(), word.upper()))
_NAME = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"

# What assigns: signs, white space (behind a flag or ENV), the other half of a pair, a call, the end of a tag.
_OPERATOR = re.compile(
    r"(?P<suffix>(?:[_.-]?[A-Za-z0-9]){0,24})(?:(?:\\{0,7}[\"'])?(?P<sign>"
    r"[ \t]{0,4}:[ \t]{0,4}[&*]?[A-Za-z_][\w.<>?]{0,30}[ \t]{1,4}=[ \t]{1,8}"
    r"|(?:\\?[\"'])?\]?[ \t]{0,8}(?:=>|:=|\?\?=|\|\|=|=(?![=~>])|:(?![:=])|[＝：])[ \t]{0,8}"
    r"(?:(?:[|>][-+]?|\\)[ \t]{0,4}\r?\n[ \t]{0,20})?"
    r"|(?:\\?[\"'])?\]?\)?[ \t]{0,8}(?:\|\||\?\?|\?:|or)[ \t]{1,8}(?=[\"'`])"
    r"|(?:\\?[\"'])?\s{0,4}\{\s{0,24}(?:(?:type|description|sensitive)[ \t]{0,20}=[^\n]{0,120}\n\s{0,24}){0,3}"
    r"default\s{0,20}=\s{0,4}"
    r"|,?\s{0,24}(?:-\s{1,4})?\\?[\"']?(?:[Vv]alue|default)\\?[\"']?\s{0,4}[:=]\s{0,4}"
    r"|,[ \t]{0,4}(?=[\"'])|[ \t]{1,4}\\\r?\n[ \t]{0,20}|[ \t]{1,2}(?![ \t\\])|>(?=[^<>\s]{1,400}</))"
    r"|(?P<call>\(\s{0,4}(?:[\w.]{1,40}\(|\w{1,20}=)?(?=[\"'])))"
)
_VALUES = (
    re.compile(r"(?P<open>\\{1,7}[\"'])(?P<value>(?:(?!\\{1,7}[\"'])[^\r\n]){0,2000})"),
    re.compile(
        r"(?P<open>[rbuf]{0,2}(?P<three>\"{3}|'{3})(?:\\?\r?\n[ \t]{0,20})?)"
        r"(?P<value>(?:(?!(?P=three))[^\r\n]){1,2000})"
    ),
    re.compile(r"(?P<open>[rbuf]{0,2}\"(?:\\\r?\n[ \t]{0,20})?)(?P<value>(?:[^\"\\\r\n]|\\[^\r\n]){0,2000})"),
    re.compile(r"(?P<open>[rbuf]{0,2}'(?:\\\r?\n[ \t]{0,20})?)(?P<value>(?:[^'\\\r\n]|\\[^\r\n]){0,2000})"),
    re.compile(r"(?P<open>`)(?P<value>[^`\r\n]{0,2000})"),
    # An "&" belongs to the value unless it joins parameters or commands, or is an entity.
    re.compile(
        r"(?P<open>)(?P<value>(?=(?P<run>[^\s\"'`\\,;&<>(){}|]{1,2000}))(?P=run)"  # whole, with no step back into it
        r"(?:&(?![\w.%\[\]-]{1,80}=|(?:amp|lt|gt|quot);)[^\s\"'`\\,;&<>(){}|]{1,200}){0,4})(?![^\s\"'`\\,;&<>){}|])"
    ),
)
_DOTENV = re.compile(
    r"(?P<open>)(?P<value>(?=(?P<run>[^\s\"'`\\]{1,2000}))(?P=run))(?=\\n|\s|$)"
)  # alone on its line, any sign may be in it

_MOST_VALUE = 2000
_SIGNS = re.compile(r"[^\s\"'`\\,;&<>(){}|]*")

# Which names ending in "key" are secret: those with such a word before it, and environment names.
_SECRET_KEY = re.compile(
    r"(?:api|access|secret|private|auth|encryption|signing|master|account|shared|service|subscription|deploy|app"
    r"|application|consumer|client|license|webhook|hmac|jwt|session|admin|server|functions|ssh|rsa|aes|cipher|crypt\w?|licence)[_.-]?$",
    re.IGNORECASE,
)
_HARMLESS = re.compile(
    r"(?:^|[_.-])(?:public|publishable|primary|foreign|cache|sort|partition|row|hash|index|group|map|storage|max|min|num|total|next"
    r"|page|start|stop|eos|bos|pad|by|from|of|no|is|has|with)[_.-]?$",
    re.IGNORECASE,
)
# What a name that ends so is about: a secret, and not one itself.
_ABOUT_WORDS = (
    "id ids name names url uri file path dir length len size ttl count type hash alg algorithm audience version min"
    " max limit seconds ms expiry at by field header param format regex pattern prefix suffix index digest fingerprint"
    " checksum vault ref ring store pair code board word event up down left right selector provider endpoint host"
    " service backend policy label image tag arn key keys token tokens"
)
_ABOUT = frozenset(_ABOUT_WORDS.split())
_LAST_WORD = re.compile(r"(?:[A-Z]?[a-z]+|[A-Z]+)[0-9]*$")
_PLACEHOLDER = re.compile(
    r"\[redacted:|\$[A-Za-z_({]|\$\$|%[A-Za-z_({]|\{\{?[A-Za-z_$ %]|<[^>]{0,200}>?$|\*{3}|x{3,}$|X{3,}$|\.{3}|…"
    r"|process\.env|import\.meta|os\.(?:environ|getenv)|env[.:\[]|vault:|secret://|op://|ref\+|arn:|file:|-----|[~.]{0,2}/[\w.-]+/[\w./-]*$"
    r"|https?://[^\s:@]{1,200}$|(?:projects|secrets?|kv|organizations)/[\w.-]+/|[x*!]?:\d{1,10}:\d{1,10}:|\d+(?:\.\d+){2,20}$|#[0-9a-fA-F]{3,8}$"
)
_PLACEHOLDER_BARE = re.compile(
    r"[@!&*(\[{<$%](?!.*\d)|[A-Za-z_][\w.]*\[|!\w+\b|!!|&\w+$|\*\w+$|@\w+[./]|\(|\[|&&"
    r"|/[\^\\]|(?:self|this|cls|ctx|req|request|args|opts|options|config|settings|env|process)\.[A-Za-z_]"
)
_SAMPLE = re.compile(  # what documents show in a secret's place
    r"(?i)(?:(?:your|my|insert|enter|replace|change)[-_ ]?|(?:the|some|an?|put|add|set)[-_ ])"
    r"(?:own|real|actual|new|me\b|this|it\b|here|api|(?:\w{1,20}[-_])?(?:key|token|secret|password))"
    r"|\w{0,40}(?:placeholder|changeme|dummy|redacted|example\.com)|(.)\1{5,}$|[\w/+]{1,60}EXAMPLE(?:KEY)?$|test[-_]?\w{0,40}(?:key|token|secret)$"
)
_PLAIN_WORDS = (
    "string str bytes bool boolean int integer number float any null none nil true false undefined required optional"
    " unknown object const self this token password secret credentials default changeme example placeholder redacted"
    " hidden masked void never basic bearer"
)
_NOT_SECRET = frozenset(_PLAIN_WORDS.split())
_PATH_OF_NAMES = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$")
_IDENTIFIER = re.compile(r"[A-Za-z_]+(?:[0-9]{0,3}|[0-9]{1,3}[A-Za-z_]+)$")
_IDENTIFIERS = re.compile(r"[A-Za-z_]+[0-9]{0,5}[A-Za-z_]*(?:\.[A-Za-z_]+[0-9]{0,3}[A-Za-z_]*)*$")
_WORDS_ONLY = re.compile(r"[A-Za-z_. :/-]+$")
_PATTERN = re.compile(r"\\[wdsbWDS]|\[[^\]]{1,100}\]|\(\?|\{[\w.]{1,40}\}")
_CONSTANT = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$")
_DIGIT = re.compile(r"[0-9]")
_HEX = re.compile(r"[0-9a-fA-F]+$")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")
_WORDY = re.compile(  # words with something between them, and what may be the last
    r"(?:[A-Za-z]{1,14}[0-9]{0,4}[-_./=]|v?[0-9]{1,4}[-_./]){1,20}(?:[A-Za-z]{1,14}[0-9]{0,4}|v?[0-9.]{1,8}|[0-9a-f]{7,64})$"
    r"|(?:sha\d+|md5)[-:]"
)
_ENV = re.compile(
    r"(?:^|[\n;&|]|\\n)\s*(?:ENV|ARG|setx|set\s+-\w+|(?:\w+ ){0,3}config(?:ure)?\s+set|secret\s+set|set"
    r"|[#%]\s{0,4}define)\s+(?:--\w+\s+)?\S{0,80}$"
)
_LINE = re.compile(r"(?:^|\n|\\n|\r)[+\- ]?\s{0,8}(?:export\s+)?$")


def redact_assignments(text: str, taken: Taken) -> str:
    """The text without the values of secret names; what was taken out is counted."""
    return taken.cut(RULE, text, _secrets(text))


class _Values:
    """The values in a text. Where a run of signs is too long to be one, its length is measured once and not again."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._too_long_until = 0

    def at(self, start: int, *, line: bool) -> re.Match[str] | None:
        """The value that begins there, if one does; `line` where it is alone on its line."""
        if start < self._too_long_until:
            return None
        for pattern in (_DOTENV, *_VALUES) if line else _VALUES:
            if (found := pattern.match(self._text, start)) is not None:
                return found
        run = _SIGNS.match(self._text, start)
        if run is not None:
            self._too_long_until = run.end() - _MOST_VALUE
        return None


def _secrets(text: str) -> Iterator[tuple[int, int]]:
    values = _Values(text)
    # Finding plain words first is what makes this fast: almost no text holds one of them before an operator.
    for spelling in _SPELLINGS:
        at = text.find(spelling)
        while at >= 0:
            after = at + len(spelling)
            operator = _OPERATOR.match(text, after)
            if operator is not None:
                yield from _value_after(text, at, spelling, operator, values)
            at = text.find(spelling, after)


def _value_after(text: str, at: int, word: str, operator: re.Match[str], values: _Values) -> Iterator[tuple[int, int]]:
    before = text[max(0, at - 120) : at]
    prefix = before[len(before.rstrip(_NAME)) :]
    name, sign = prefix + word + operator["suffix"], operator["sign"]
    line = sign == "=" and _is_line(name, before[: len(before) - len(prefix)])
    value = values.at(operator.end(), line=line)
    if value is None or not could_be(value["value"], quoted=bool(value["open"])):
        return
    if operator["suffix"]:  # TOKEN_PROD, api_key_2: some words behind the name, unless they say that it is about one
        certain = _names_a_secret(prefix, word) and not _is_about_one(name) and bool(sign and sign.strip(" \t,"))
        certain = certain and looks_random(value["value"], least=16)
    elif not _names_a_secret(prefix, word):
        least = 8 if not prefix and word.lower() in _SHORT and sign and sign.strip() in ("=", ":") else 20
        key = _is_key_of_cache(text[max(0, at - 1) : at], operator)
        random = looks_random(value["value"], least) or (least == 8 and value["open"] and looks_chosen(value["value"]))
        certain = not key and _may_name_one(prefix, word) and bool(random)
    elif sign is None or sign.startswith(","):  # Two arguments, or a call: a label as often as not.
        called = sign is None or re.search(r"\(\s{0,4}[\"']$", before[: len(before) - len(prefix)])
        given = value["value"]
        certain = bool(called and value["open"]) and (bool(_UUID.match(given)) or looks_random(given, least=8))
    elif not sign.strip(" \t\r\n\\"):
        certain = _is_flag(name, before) and _is_value(value["value"])
        certain = certain or (bool(value["open"]) and _is_first(prefix, before) and looks_chosen(value["value"]))
    elif sign.strip("\\\"')] \t") in ("||", "??", "?:", "or"):  # what is there where the environment has none
        certain = looks_random(value["value"], 16)
    else:
        certain = _is_literal(name, sign, value)
    if certain:
        yield value.span("value")


def _is_about_one(name: str) -> bool:
    last = _LAST_WORD.search(name)
    return last is not None and last[0].rstrip("0123456789").lower() in _ABOUT


def _is_key_of_cache(before: str, operator: re.Match[str]) -> bool:
    """Whether name and value stand in one string: "session:1f2e"."""
    return before in ('"', "'", "`") and operator[0] == ":"


def _is_line(name: str, before: str) -> bool:
    return name.isupper() and _LINE.search(before) is not None


def _is_first(prefix: str, before: str) -> bool:
    """Whether the name begins its line, as in `storePassword "value"`."""
    return _LINE.search(before[: len(before) - len(prefix)]) is not None


def _is_flag(name: str, before: str) -> bool:
    """Whether white space assigns here: `--token value`, `ENV API_KEY value`."""
    return name.startswith("--") or ("_" in name and _ENV.search(before) is not None)


def _is_value(word: str) -> bool:
    return not word.startswith("-") and not _WORDS_ONLY.match(word)


def _names_a_secret(prefix: str, word: str) -> bool:
    if _HARMLESS.search(prefix) or word.lower() in _MAYBE:
        return False
    if word in ("key", "Key", "KEY"):
        return _SECRET_KEY.search(prefix) is not None or (word == "KEY" and prefix.endswith("_"))
    if word.lower() in _SHORT:  # "PASS: test_x" and PWD=/home are something else.
        return prefix.endswith(("_", "-", ".")) or prefix[-2:].lower() == "db" or word in ("Pass", "pwd", "Pwd")
    return True


def _may_name_one(prefix: str, word: str) -> bool:
    if _HARMLESS.search(prefix):
        return False
    return not prefix[-1:].isalpha() or (word[0].isupper() and not prefix[-1:].isupper())


def could_be(value: str, *, quoted: bool = False) -> bool:
    """Whether a value is one at all, and none of those that stand in a secret's place."""
    if len(value) < 6 or _PLACEHOLDER.match(value) or value.lower() in _NOT_SECRET or _CONSTANT.match(value):
        return False
    return not _SAMPLE.match(value) and (quoted or not _PLACEHOLDER_BARE.match(value))


def _is_literal(name: str, operator: str, found: re.Match[str]) -> bool:
    value = found["value"]
    environment = name.strip("-.").isupper()
    if found["open"]:  # Words in quotes are a label; but the environment has no labels.
        if ("key" in name.lower() or "cred" in name.lower()) and _WORDS_ONLY.match(value):
            return False
        if name.lower().endswith("token") and _PATTERN.search(value):  # what finds tokens
            return False
        return " " not in value or (environment and _DIGIT.search(value) is not None)
    if value.isdigit() and len(value) < 8:
        return False
    if _PATH_OF_NAMES.match(value):  # Code, but for what a file of settings or a connection string holds.
        setting = operator == "=" and (environment or name[0].isupper())
        return (setting and len(value) >= 8 and _DIGIT.search(value) is not None) or looks_random(value)
    if environment:  # FOO_TOKEN=value is an environment; in FOO_TOKEN = value a bare name may be code.
        return operator in ("=", ":", ": ") or not _IDENTIFIER.match(value)
    if _IDENTIFIER.match(value):
        setting = operator == "=" and name[0].isupper() and _DIGIT.search(value) is not None
        return "pass" in name.lower() and (setting or value[-1].isdigit())
    return _DIGIT.search(value) is not None or re.search(r"[^\w.\[\]:/-]", value) is not None


def looks_chosen(value: str) -> bool:
    """Whether a value is random, or at least what somebody chose where all kinds of signs are asked for."""
    mixed = len(value) >= 8 and not _WORDY.match(value) and not re.search(r"[\s/]", value)
    return looks_random(value, 8) or (mixed and all(re.search(signs, value) for signs in ("[a-z]", "[A-Z]", "[0-9]")))


def looks_random(value: str, least: int = 20) -> bool:
    """Whether a value is more like what a generator made than like words: no blanks, mixed, with high entropy."""
    if (
        len(value) < least
        or not _DIGIT.search(value)
        or not re.search("[A-Za-z]", value)
        or _UUID.match(value)
        or (len(value) < 32 and _IDENTIFIERS.match(value))
    ):
        return False
    if not re.fullmatch(r"[\w.~+/=@!#%^*?-]+", value) or _WORDY.match(value):
        return False
    share = [count / len(value) for count in Counter(value).values()]
    least_entropy = 2.8 if _HEX.match(value) else min(3.4, log2(len(value)) * 0.82)
    return -sum(part * log2(part) for part in share) >= least_entropy
