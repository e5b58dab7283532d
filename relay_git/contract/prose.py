"""Prose cut into sentences, and what stands in them under a label such as "Decision:".

Promise: a sentence is judged by its own words alone: what it quotes, and blocks of code or of quotation, can neither
begin one nor give it a meaning. Texts are of any size and content; what comes out is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MOST_READ = 65_536
MOST_SENTENCE = 600
_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.M | re.S)
_BLOCKS = re.compile(r"^(?:[ \t]*>.*| {4,}\S.*|\t+\S.*)$", re.M)
_QUOTES = re.compile(r"\"[^\"\n]{1,500}\"|“[^”\n]{1,500}”|„[^“”\n]{1,500}[“”]|«[^»\n]{1,500}»|`[^`\n]{1,500}`")
_ENDS = re.compile(r"[.!?](?<!\be\.g\.)(?<!\bi\.e\.)(?<!\betc\.)[)*_]*(?=\s|$)")  # the mark first: it is soon found
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_AROUND = " \t*_#"


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence: its text, the same with all that it quotes blanked out, and the label that it stands under."""

    text: str
    own: str
    label: str = ""


def sentences(text: str) -> Iterator[Sentence]:
    """The sentences of a text; items of a list stand under the label of the line before the list."""
    text = text[-MOST_READ:]
    own = _QUOTES.sub(_blank, _BLOCKS.sub(_blank, _FENCE.sub(_blank, text)))
    label, start = "", 0
    for line in own.split("\n"):
        bullet = _BULLET.match(line)
        if line.strip() and not bullet:
            label = ""
        begin = start + (bullet.end() if bullet else 0)
        for sentence in _cut(text, own, begin, start + len(line)):
            yield Sentence(sentence.text, sentence.own, label)
        bare = line.strip(_AROUND)
        if not bullet and (bare.endswith(":") or line.lstrip().startswith("#")):
            label = bare.rstrip(":").strip(_AROUND).casefold()[:60]
        start += len(line) + 1


def _cut(text: str, own: str, start: int, end: int) -> Iterator[Sentence]:
    while start < end:
        found = _ENDS.search(own, start, end)
        stop = found.end() if found else end
        said = text[start:stop].strip(_AROUND)
        if said and own[start:stop].strip() and len(said) <= MOST_SENTENCE:
            yield Sentence(said, own[start:stop].strip(_AROUND))
        start = stop


def labelled(sentence: Sentence, label: re.Pattern[str]) -> str:
    """What a sentence says under such a label, be it its own ("Decision: ...") or that of its list; empty if nothing.

    `label` matches the words of the label alone, in any case.
    """
    if sentence.label and label.fullmatch(sentence.label):
        return sentence.text
    head, colon, rest = sentence.text.partition(":")
    if colon and rest.strip() and label.fullmatch(head.strip(_AROUND).casefold()):
        return rest.strip(_AROUND)
    return ""


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])
