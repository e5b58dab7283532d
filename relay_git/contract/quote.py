"""Quoting: how foreign text enters Markdown without becoming part of it.

Promise: whatever the text, `inline` and `code` give one line that opens no block when it follows "- ", and every line
of `block` begins with "> " and stays inside of its fence. In prose none but the frame writes `(source:` or `(because:`.
Control, ANSI, bidi, zero-width and other invisible characters come out as visible words such as <U+202E>. The control
words of chat templates and the tags by which agents tell who speaks are broken by a backslash. What is quoted where is
`brief`'s business.
"""

from __future__ import annotations

import re
import unicodedata

# Characters that show nothing, beside the categories below: fillers, joiners, variation selectors (which can carry
# hidden text) and the blank braille cell. U+FE0F alone stays, for emoji.
_BLANK = {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, 0xFFFC}
_SELECTORS = (range(0x180B, 0x1810), range(0xFE00, 0xFE0F), range(0xE0100, 0xE01F0))
_RETURN, _EMOJI, _HIDDEN = 0x0D, 0xFE0F, "\0"
_HIDDEN_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}

_ANSI = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|\x1b(?:[\]PX^_][^\x07\x1b\n]{0,400}(?:\x07|\x1b\\)|[ -/]{1,2}[0-~]|[0-?@-Z\\^_c])"
)
_RISKY = re.compile(r"[\\`<]|!(?=\[)")
# What a model may have been taught to read as a change of speaker, whatever stands around it.
_TEMPLATE = re.compile(r"<(?=\|\w{1,40}\|>)")
_SPEAKER = re.compile(
    r"<(?=/?(?:antml:)?(?:system|user|assistant|human|developer|tool|instructions?|function_(?:calls?|results?)|invoke"
    r"|parameter|(?:start|end)_of_turn|s|INST)(?:[-_]\w{1,20})?[ >/]|</?SYS>>)",
    re.IGNORECASE,
)
_SOURCE_MARK = re.compile(r"(\([ \t]*(?:source|because)[ \t]*):", re.IGNORECASE)
_CONTRACT_LINE = re.compile(r"(contract[ \t]*):", re.IGNORECASE)
_OPENER = re.compile(r"^(?:[#>+*=~_|\[-]|\d{1,9}(?=[.)]))")
_RUN = re.compile(r"`+")


class _Visible(dict[int, str | int]):
    """A table for `str.translate` that decides about a character when it is first met."""

    def __missing__(self, code: int) -> str | int:
        self[code] = shown = _shown(code)
        return shown


def _shown(code: int) -> str | int:
    if code in (0x09, 0x0A, 0x20):
        return code
    character = chr(code)
    category = unicodedata.category(character)
    if category == "Zs":
        return " "
    if category in _HIDDEN_CATEGORIES or code in _BLANK or any(code in span for span in _SELECTORS):
        return f"<U+{code:04X}>"
    return code


class _Bare(dict[int, str | int]):
    """The same, with one mark for all that is hidden."""

    def __missing__(self, code: int) -> str | int:
        shown = code if code == _RETURN else _TABLE[code]
        self[code] = kept = _HIDDEN if code == _EMOJI or shown not in (code, " ") else shown
        return kept


_TABLE = _Visible()
_BARE = _Bare()
_PLAIN = bytes(code for code in range(0x80) if _BARE[code] == code)


def visible(text: str) -> str:
    """The text with line ends as LF, terminal sequences taken out, and every invisible character spelled out."""
    return _ANSI.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).translate(_TABLE)


def pieces(text: str) -> list[str]:
    """What of the text can be read, cut where something stood that `visible` takes out or spells out, or an emoji's
    selector; one piece, the text itself, where nothing is hidden.
    """
    if text.isascii() and not text.encode().translate(None, _PLAIN):  # nearly every text, and that quickly
        return [text]
    if all(_BARE[ord(character)] == ord(character) for character in set(text)):
        return [text]
    return _ANSI.sub(_HIDDEN, text).translate(_BARE).split(_HIDDEN)


def powerless(text: str, *, tags: bool = True) -> str:
    """The text with a backslash behind the `<` of a chat template's words and, with `tags`, of a speaker's tags."""
    text = _TEMPLATE.sub(r"<\\", text)
    return _SPEAKER.sub(r"<\\", text) if tags else text


def clip(text: str, limit: int) -> str:
    """The text, or where it is longer than `limit` characters its beginning, its end and how much is left out."""
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    return f"{text[:head]} [... {len(text) - head - tail} characters left out ...] {text[len(text) - tail :]}"


def inline(text: str, limit: int = 600) -> str:
    """Prose on one line, safe at the start of a list item."""
    line = powerless(" ".join(visible(clip(text, limit)).split()))
    line = _RISKY.sub(lambda found: "\\" + found[0], line)
    line = _SOURCE_MARK.sub(r"\1\\:", _CONTRACT_LINE.sub(r"\1\\:", line))
    opener = _OPENER.match(line)
    if opener is None:
        return line
    if opener[0].isdigit():
        return f"{opener[0]}\\{line[opener.end() :]}"
    return "\\" + line


def code(text: str, limit: int = 400) -> str:
    """A code span on one line, for what is copied exactly: commands, paths, ids."""
    line = " ".join(powerless(visible(clip(text, limit))).split())
    mark = _longer_than_runs(line, 1)
    pad = " " if not line or line[0] == "`" or line[-1] == "`" else ""
    return f"{mark}{pad}{line}{pad}{mark}"


def word(text: str) -> str:
    """An id or a name with every character that is not usual in one shown as `?`."""
    return re.sub(r"[^A-Za-z0-9._/+-]", "?", text)[:200]


def block(text: str, info: str = "text", limit: int = 8192) -> list[str]:
    """A fenced block inside a block quote: no line of it can be taken for a line of the brief."""
    body = powerless(visible(clip(text, limit)), tags=info == "text")  # in code a tag is what the file needs
    fence = _longer_than_runs(body, 3)
    return [f"> {line}" if line else ">" for line in (f"{fence}{info}", *body.split("\n"), fence)]


def _longer_than_runs(text: str, least: int) -> str:
    longest = max((len(run) for run in _RUN.findall(text)), default=0)
    return "`" * max(least, longest + 1)
