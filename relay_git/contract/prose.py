"""Prose cut into sentences, and what stands in them under a label such as "Decision:".

Promise: a sentence is judged by its own words alone: what it quotes, and blocks of code or of quotation, can neither
begin one nor give it a meaning. Texts are of any size and content; what comes out is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MOST_READ = 65_536
MOST_SENTENCE = 4096  # of a longer one the beginning
_JUDGED = 2000  # so much of a sentence is looked at
_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.M | re.S)
_QUOTES = re.compile(r"\"[^\"\n]{1,500}\"|“[^”\n]{1,500}”|„[^“”\n]{1,500}[“”]|«[^»\n]{1,500}»|`[^`\n]{1,500}`")
_ENDS = re.compile(
    r"[.!?。！？](?<!\be\.g\.)(?<!\bi\.e\.)(?<!\betc\.)[)*_]*(?=\s|$)"
)  # the mark first: it is soon found
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_INDENTED = re.compile(r" {4}| {0,3}\t")
_WRAPS = re.compile(r"\s*[a-zà-ÿ]")
_FULL = 50  # a line of so many characters may have been broken to fit
_AROUND = " \t*_#"
_HEADING = re.compile(r"#{1,6}\s+")
_MARKED = re.compile(r"(\*{1,3})(?=[^\s*.])")
_TAIL = re.compile(r"(?<=[.!?:])[*_]{1,3}\Z")
_NOTHING = re.compile(
    r"\W*(?:(?:none|n/?a|nothing|nil|not applicable|(?:see|as|same as) above|kein\w{0,2}|nichts|ningun[oa]|nada"
    r"|aucune?|rien)\b"
    r"|no (?:(?:open|further|more|other|known|new|remaining|unanswered) )*"
    r"(?:questions?|decisions?|dead ends?|(?:next )?steps?|constraints?|rules?|to ?dos?|issues?|blockers?|items?"
    r"|work|tasks?)\b)"
    r"(?:\W+(?:so far|yet|else|more|further|new|left|open|remain\w*|outstanding|pending|at (?:this|the) (?:time"
    r"|moment|point)"
    r"|at present|right now|for now|currently|known|that I know of|needed|necessary|to (?:do|report|add|ask)"
    r"|identified|found"
    r"|(?:was|were|has been|have been)|made|taken|from my side|on my side))*\W*",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence: its text, the same with all that it quotes blanked out, the label that it stands under, and where
    it begins and ends in the text that it is of.
    """

    text: str
    own: str
    label: str = ""
    begin: int = 0
    end: int = 0


def sentences(text: str, own: str = "") -> Iterator[Sentence]:
    """The sentences of a text; items of a list stand under the label of the line before the list.

    `own` is the text with blanks for what is nobody's word, where more than quotations is.
    """
    cut = max(0, len(text) - MOST_READ)
    own = _QUOTES.sub(_blank, _without_blocks(_FENCE.sub(_blank, (own or text)[cut:])))
    label, start = "", cut
    for line in _lines(own):
        bullet = _BULLET.match(line)
        if line.strip() and not bullet:
            label = ""
        begin = start + (bullet.end() if bullet else 0)
        for first, last in _cut(line, begin - start):
            said = _within(text, start + first, start + last)
            if text[slice(*said)] and own[said[0] - cut : said[1] - cut].strip():
                words = own[said[0] - cut : min(said[1] - cut, said[0] - cut + _JUDGED)].strip(" \t\n")
                yield Sentence(text[slice(*said)], words, label, *said)
        bare = line.strip(_AROUND)
        if not bullet and (bare.endswith(":") or line.lstrip().startswith("#")):
            label = bare.rstrip(":").strip(_AROUND).casefold()[:60]
        start += len(line) + 1


def _lines(own: str) -> Iterator[str]:
    """The lines, with one that was broken to fit a width joined to what it goes on in."""
    held = ""
    for line in own.split("\n"):
        if held and _WRAPS.match(line) and not _BULLET.match(line):
            held = f"{held}\n{line}"
        else:
            if held:
                yield held
            held = line
        if len(line) < _FULL or line.rstrip().endswith((".", "!", "?", ":", ";")):
            yield held
            held = ""
    if held:
        yield held


def _cut(line: str, start: int) -> Iterator[tuple[int, int]]:
    while start < len(line):
        found = _ENDS.search(line, start)
        stop = found.end() if found else len(line)
        yield start, stop
        start = stop


def _within(text: str, begin: int, end: int) -> tuple[int, int]:
    """Where the words begin and end, without marks of emphasis or of a heading around; `__tests__` keeps its own."""
    begin, end = _stripped(text, begin, end)
    if text.startswith(("#", "*"), begin, end) or text.endswith(("*", "_"), begin, end):
        begin, end = _stripped(text, *_unmarked(text, begin, end))
    return begin, min(end, begin + MOST_SENTENCE)


def _unmarked(text: str, begin: int, end: int) -> tuple[int, int]:
    if heading := _HEADING.match(text, begin, end):
        begin = heading.end()
    if marked := _MARKED.match(text, begin, end):
        return marked.end(), end - (len(marked[1]) if text.endswith(marked[1], marked.end(), end) else 0)
    if tail := _TAIL.search(text, max(begin, end - 4), end):
        return begin + (len(tail[0]) if text.startswith(tail[0], begin, end) else 0), tail.start()
    return begin, end


def _stripped(text: str, begin: int, end: int) -> tuple[int, int]:
    said = text[begin:end]
    begin += len(said) - len(said.lstrip())
    return begin, begin + len(said.strip())


def _without_blocks(text: str) -> str:
    """Quoted lines and blocks of code blanked; what is indented within a list belongs to the list."""
    kept, listed, opens = list[str](), False, True
    for line in text.split("\n"):
        starts = line.lstrip()[:1]
        code = bool(starts) and opens and not listed and _INDENTED.match(line) is not None
        if (starts in "-*+•" or starts.isdigit()) and not code and _BULLET.match(line):
            listed = True
        elif starts == line[:1]:
            listed = listed and not starts
        opens = code or not starts
        kept.append(" " * len(line) if code or starts == ">" else line)
    return "\n".join(kept)


def labelled(sentence: Sentence, label: re.Pattern[str]) -> str:
    """What a sentence says under such a label, be it its own ("Decision: ...") or that of its list; empty if nothing.

    `label` matches the words of the label alone, in any case. "None" says that there is nothing.
    """
    said = ""
    if sentence.label and label.fullmatch(sentence.label):
        said = sentence.text
    else:
        head, colon, rest = sentence.text.partition(":")
        if colon and rest.strip() and label.fullmatch(head.strip(_AROUND).casefold()):
            said = rest.strip(_AROUND)
    return "" if says_nothing(said) else said


def says_nothing(text: str) -> bool:
    """Whether a text says that there is nothing to say."""
    return _NOTHING.fullmatch(text) is not None


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])
