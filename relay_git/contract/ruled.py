"""What the human's prompts say of how it is to be: rules, prohibitions and corrections, in the words of the human.

Promise: nothing is worded anew, a rule is a piece of its prompt. A question is none, nor is what the human quotes or
has pasted. Rules are known in the languages of `tongues`; a prompt in another is kept whole, paragraph by paragraph.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

from relay_git.contract.pasted import blanked
from relay_git.contract.prose import Sentence, sentences
from relay_git.contract.tongues import ENGLISH, UNKNOWN, forbids_or_commands, tongue_of

MOST_RULES = 2000  # more than any contract holds: what does not fit is counted there

_RULE = re.compile(
    # what must not be
    r"\b(?:do not|don['’]?t|never|cannot|can['’]t|(?:may|must|shall|should|is|are) not|without|avoid|refrain"
    r"|forbid(?:s|den)?|prohibit(?:s|ed)|banned|taboo|no[- ]?go|not allowed|let['’]?s not|load[- ]bearing|vendored"
    r"|frozen|off[- ]limits|hands off|stay away|under no|in no case|neither"
    r"|(?:isn|aren|mustn|shouldn)['’]t"
    r"|(?:nothing|nobody|no one|none)\b.{0,40}?\b(?:may|must|shall|should|gets?|is|are))\b"
    r"|\bleave (?:it|them|that|this)(?: be)?(?=\W*$|[,;])|^\W*not again\b|\bleave\b.{1,80}\b(?:alone|as (?:it|they)"
    r"|untouched|unchanged)\b|(?:^|[:;,]\s*)no\s+"
    r"(?!need\b|problem|worries|idea\b|one\b|wonder)\w|^\W*skip\b"
    # what must be
    r"|\b(?:must|shall|should|always|only|exclusively|ha(?:ve|s) to|needs? to be|(?:is|are) to be|required|mandatory"
    r"|(?:make|be) sure|ensure|remember to|keep|stick to|stays?|preserve|prefer)\b"
    r"|^\W*(?:(?:and|please|pls|plz|just)\s+)*(?:use|go (?:for|with)|hold (?:off|the)|tell me first)\b"
    r"|^\W*(?:(?:and|please|pls|plz|also)\s+)*(?:ask|run|lint|format|check|rebase|squash)\b.{1,60}\b(?:before|after"
    r"|whenever|every time)\b"
    # how much, in what order, and what rather than what
    r"|\b(?:at (?:most|least)|no (?:more|less|fewer|later) than|up to \d|exactly|max(?:imum)?|min(?:imum)?)\b"
    r"|\b(?:first|last)\W*$|\b(?:instead of|rather than)\b|,\s*not\b",
    re.I,
)
# What a sentence of the human begins with that asks for work, and not for how it is to be.
_WORK = """add analyse analyze archive audit begin bring build bump call calculate carry check clean collect compare
complete compute configure connect continue convert count create cut debug delete deploy describe design
document draft drop enable explain export expose extend find finish fix format generate get give go halve handle
help hook implement import improve increase index install integrate introduce investigate limit link lint list
load look make map measure mend merge migrate move open optimise optimize plan port prepare print profile
propose publish put read reduce refactor release remove rename replace report restore return review rewrite roll
run save see send set ship show sketch sort speed split start store submit suggest summarise summarize support
switch take tell test tidy track translate try turn update upgrade validate verify wire wrap write"""
_REQUEST = re.compile(
    r"(?:(?:and|also|now|then|so|next|ok(?:ay)?|good|nice|great|thanks?|thank you|hmm?|well|please|just|first|again"
    r"|the same)\b[\s,.!:;]*)*(?:that|this|there|these|i(?:['’]d| would)? (?:want|need|like|think)|we (?:want|need)"
    rf"|let['’]?s?|can|could|would|the (?:first|second|third|next|last|other|same)|{'|'.join(_WORK.split())})\b",
    re.I,
)
_COMPLAINT = re.compile(
    r"\b(?:complain\w*|too much|slow|broken|wrong|confusing|flaky|buggy|missing|fail(?:s|ing|ed)?|crash\w*|ugly|stuck"
    r"|odd|strange|weird|nice|great|perfect|ready|works?|green|takes?|took|yesterday)\b",
    re.I,
)
MOST_OF_ONE = 20  # a prompt of more sentences is a text to work on: of those only what commands or forbids is a rule
_REFUSAL = re.compile(
    r"\W*(?:no[,.!:;]|no way|nope|nah|nein|stop\b|wrong\b|not (?:like|that|so)\b|that(?:['’]s| is) (?:wrong|not)|undo)",
    re.I,
)
_ALONE = re.compile(r"\W*(?:no|nope|nah|nein|stop|wrong|undo|thanks?|please|sorry|and|ok(?:ay)?|again|hm+)\W*", re.I)
# What people say that has the words of a rule and is none.
_CHATTER = re.compile(
    r"\W*(?:(?:ok(?:ay)?|oh|well|haha?|lol|yeah|yep|yes|hm+|sorry|nice|cool|great)\b[\s,.!]*)*(?:(?:only"
    r"|just) (?:kidding|joking|saying|"
    r"wondering|checking|asking|curious|got|saw|noticed)\b|never ?mind\b|never a dull|can['’]?t (?:wait|believe)"
    r"|don['’]?t worry|you only live"
    r"|(?:I(?:['’]ve| have) )?no (?:rush|hurry|worries|problem|idea|clue|wonder|doubt)\b|not bad\b"
    r"|I(?:['’]ve|['’]d| have| had)? (?:never|can(?:no|['’])?t|could(?:n['’]?t| not)|do(?:n['’]?t| not)"
    r"|did(?:n['’]?t| not)"
    r"|have(?:n['’]?t| not)|only|just|always|must have|should have) (?:saw|see|seen|know|knew|known|think|thought"
    r"|underst\w+|remember"
    r"|recall|care|mind|find|found|believe|tell|reproduce|get|got|heard?|met|tried|try|noticed?|wonder\w*|guess\w*"
    r"|hope\w*|feel|felt"
    r"|look\w*|read|forg\w+|come|came|learn\w*|work\w*|lik\w+|lov\w+)\b)",
    re.I,
)
_SMALL_TALK = re.compile(
    r"\W*(?:thanks?|thank you|thx|ty|cheers|sorry|congrat\w*|well done|good (?:job|work|morning|night)|lol|ha\b|haha\w*"
    r"|lgtm|sounds? good"
    r"|looks? (?:good|great|fine|ok)|(?:\w+, )?(?:love|like) (?:it|that|this)|you(?:['’]re| are) (?:the best|great"
    r"|awesome|amazing|right|welcome|an?\b|so\b)"
    r"|I(?:['’]m| am| was|['’]ll be| will be) \w+|(?:was|been|brb|back) \w+"
    r"|my (?:laptop|mac\w*|pc|computer|battery|phone|internet|wi-?fi|connection|boss|kids?|dog|cat|head|bad|fault)\b)",
    re.I,
)
# A question that is an order: "..., ok?", "could you not ...?".
_TAG = re.compile(
    r"[\s,]+(?:ok(?:ay)?|alright|please|pls|plz|deal|got it|understood|thanks?|thx|ja|vale|va bene)\s*\?+\W*$", re.I
)
_KEEPS = r"not|never|avoid|stop|keep|leave|only|always|stick|refrain|make sure|ensure|hold off"
_POLITE = re.compile(
    r"\W*(?:(?:and|also|hey|so|please|pls|plz|oh|then)\b[\s,]*)*(?:can|could|would|will)\s+(?:(?:you|u)\s+"
    rf"(?:(?:please|pls|plz|maybe|perhaps|just|also|kindly)\s+)*(?:use|mind (?:not|us|keep|leav|stick)\w*|{_KEEPS})"
    rf"|we\s+(?:(?:please|maybe|perhaps|just|also)\s+)*(?:skip|{_KEEPS}))\b",
    re.I,
)
_INTERROGATIVE = re.compile(
    r"\W*(?:what|why|who|how|when|where|which|is|are|(?:do|did|does) (?:you|we|i|they|the|any)|should|shall|may"
    r"|must)\b",
    re.I,
)
_EXCEPTION = re.compile(
    r"\W*(?:(?:the )?(?:only )?except(?:ion|ing)?\b|unless\b|apart from|other than|but not\b|save for|außer\b"
    r"|ausgenommen|es sei denn"
    r"|excepto|salvo|sauf|à moins|tranne|exceto|behalve)",
    re.I,
)
_FORBIDS = re.compile(
    r"\b(?:not|never|no|don['’]?t(?:['’]?s)?|avoid|without|forbidden|prohibited|off[- ]limits|nicht|nie|kein\w*"
    r"|nunca|jamais|mai)\b",
    re.I,
)
_RULES_LABEL = re.compile(
    r"(?:\w+ )?(?:rules?|constraints?|conventions?|guidelines|restrictions?|ground rules|dos|do['’]?s|always|must"
    r"|musts|regeln|vorgaben"
    r"|reglas|règles|contraintes|regole|regras|regels)",
)
_PARAGRAPH = re.compile(r"\S(?:[^\n]|\n(?!\s*(?:\n|\Z)))*")


def rules(prompts: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """What prompts say of how it is to be, with their sources; what commands or forbids comes first.

    What the human states binds as well as what he forbids ("Dates are written as ISO 8601"), so that a sentence is a
    rule unless it asks, complains, praises or wants work done. A prompt that begins with a refusal corrects the agent:
    all of it is a rule, but for its questions. An exception stays with its rule, and a list with what forbids it.
    """
    clear, stated = list[tuple[str, str]](), list[tuple[str, str]]()
    for prompt, source in prompts:
        for text, commands in _rules_of(prompt):
            (clear if commands else stated).append((text, source))
    return list(dict.fromkeys([*clear, *stated]))[:MOST_RULES]


@lru_cache(maxsize=1024)  # a later contract of the same leg has the same prompts
def _rules_of(prompt: str) -> tuple[tuple[str, bool], ...]:
    return tuple((prompt[begin:end], commands) for begin, end, commands in _ruled(prompt, *_own(prompt)))


@lru_cache(maxsize=1024)
def _own(prompt: str) -> tuple[str, str]:
    """The human's own words in it, and their language."""
    own = blanked(prompt)
    return own, tongue_of(own)


def unread(prompts: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The paragraphs of prompts in a language of which nothing is known, with their sources: any may be a rule."""
    found = list[tuple[str, str]]()
    for prompt, source in prompts:
        own, tongue = _own(prompt)
        if tongue == UNKNOWN:
            spans = (part.span() for part in _PARAGRAPH.finditer(own))
            found += [
                (prompt[begin:end].strip(), f"{source}, whole: its language is not known") for begin, end in spans
            ]
    return found[:MOST_RULES]


def _ruled(prompt: str, own: str, tongue: str) -> list[tuple[int, int, bool]]:
    """Where the rules of a prompt stand, and whether each commands or forbids."""
    refusal = _REFUSAL.match(prompt) is not None
    found, heads, forbids = list[tuple[int, int, bool]](), "", False
    said = list(sentences(prompt, own))
    for one, following in pairwise([*said, Sentence("", "")]):
        listed = heads != "" and one.label == heads
        heads, forbids = (heads, forbids) if listed else ("", False)
        if found and (
            (listed and forbids) or (_EXCEPTION.match(one.own) and _is_next(prompt, found[-1][1], one.begin))
        ):
            found[-1] = (found[-1][0], one.end, True)
            continue
        commands = listed or _commands(one, tongue, refusal=refusal)
        if not listed and following.label and following.label != one.label:  # the line above a list
            forbids = _FORBIDS.search(one.own) is not None
            heads = following.label if commands or forbids or _RULES_LABEL.fullmatch(following.label) else ""
            commands = commands or forbids
        if commands or (tongue == ENGLISH and len(said) <= MOST_OF_ONE and _states(one)):
            found.append((one.begin, one.end, commands))
    return found


def _is_next(prompt: str, end: int, begin: int) -> bool:
    """Whether nothing stands between but white space and the mark of a list."""
    return not prompt[end:begin].strip(" \t\n-*+•.)0123456789")


def _commands(one: Sentence, tongue: str, *, refusal: bool) -> bool:
    if one.own.rstrip(" )*_").endswith("?"):
        asks = _INTERROGATIVE.match(one.own) is not None
        one_is = _POLITE.match(one.own) or (_TAG.search(one.own) and not asks and _is_rule(one.own, tongue))
        return one_is is not None and bool(one_is)
    if len(one.own.split()) < 2 and tongue != UNKNOWN:
        return refusal and not _ALONE.fullmatch(one.own)
    return refusal or _is_rule(one.own, tongue)


def _is_rule(own: str, tongue: str) -> bool:
    if _CHATTER.match(own):
        return False
    return _RULE.search(own) is not None or forbids_or_commands(own, tongue)


def _states(one: Sentence) -> bool:
    own = one.own
    if own != one.text[: len(own)] or own.endswith((":", "?")) or len(own.split()) < 3:
        return False  # it quotes, or leads to what is quoted, or says too little
    return not any(known.match(own) for known in (_REQUEST, _CHATTER, _SMALL_TALK)) and not _COMPLAINT.search(own)
