"""What the agent said in passing: decisions, dead ends, questions and what is left, out of its prose.

Promise: nothing is worded anew, an item is a sentence as it was said, and its source calls it a hypothesis. What was
only weighed is no decision, and a quotation is nobody's word. The words looked for are English.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from relay_git.contract.prose import Sentence, labelled, says_nothing, sentences

MOST_STATED = 200
HYPOTHESIS = "hypothesis: the agent's own words"

Words = tuple[tuple[tuple[str, ...], re.Pattern[str]], ...]
"""Patterns, each with words of which a sentence must hold one before it is looked for; with none it stands at the
beginning. Most sentences hold none, and are soon done with."""


def _words(*pairs: tuple[str, str]) -> Words:
    return tuple((tuple(words.split(",")) if words else (), re.compile(pattern, re.I)) for words, pattern in pairs)


_DECISION = re.compile(
    r"(?:key |design |my |our |final )?(?:decisions?|choices?)(?: made| taken| so far)?|decided(?: against(?: it)?)?"
    r"|chosen|settled|agreed"
)
_WE = r"\b(?:I|we)(?:['’]ve| have| had)?\s+(?:now\s+|also\s+|therefore\s+|then\s+)?"
_DECIDED = _words(
    (
        "decided,chose,opted,settled,agreed,picked,selected,resolved,landed,went,gone,favo,prefer",
        rf"{_WE}(?:decided|chosen?|opted|settled|agreed|picked(?! up)|selected|resolved\s+to|landed\s+on"
        rf"|(?:went|gone)\s+(?:with|for)|prefer|favou?r)\b"
        r"|\b(?:but|and|so|finally)\s+(?:decided|chose|opted|settled\s+on|went\s+with)\b",
    ),
    (
        "going,'ll,’ll,will,shall,won't,won’t",
        r"\b(?:I|we)(?:['’]ll|\s+will|\s+shall|['’]m|['’]re|\s+am|\s+are)\s+(?:going\s+(?:to|with)|go\s+(?:with|for)"
        r"|stick\s+(?:with|to)|stay\s+with|settle\s+(?:on|for))\b|\b(?:I|we)\s+(?:(?:will|shall)\s+not|won['’]t)\b",
    ),
    (
        "choice,pick,decision,plan,idea,agreed,chosen,preferred,final,selected",
        r"\b(?:my|our|final)\s+(?:choice|pick|decision)\s+(?:is|was|fell)\b|\b(?:plan|idea)\s+is\s+to\s+go\s+with\b"
        r"|\b(?:agreed|chosen|preferred|final|selected)\s+\w+\s+(?:is|will\s+be)\b",
    ),
    (
        "option,approach,route,variant,solution",
        r"\b(?:took|taking|picked|go(?:ing)?\s+for|went\s+for)\s+the\s+(?:\w+\s+)?(?:option|approach|route|variant"
        r"|solution)\b",
    ),
    (
        "",
        r"\W*(?:(?:(?:go|stick|stay)ing|went|let['’]s\s+(?:go|stick))\s+with|let['’]s\s+(?:use|keep|drop)"
        r"|(?:opt(?:ed|ing)|settl(?:ed"
        r"|ing))\s+(?:for|on)"
        r"|ended\s+up\s+(?:with|using|going)|chose|choosing|picking|picked(?!\s+up)|selected|decided|prefer(?:red|ring)"
        r"|(?:reject|abandon|discard|postpon|deferr?)(?:ed|ing)|deliberately|intentionally|rul(?:ed|ing)\s+out)\b",
    ),
)
# What was done counts as a decision where the sentence says why, or what it was preferred to; but for plain work.
_DID = re.compile(
    r"^\W*(?:(?:for\s+now|so|therefore|hence|instead|finally|also|then)\b[,\s]*)*(?:(?:I|we)(?:['’](?:ve|m|re)"
    r"|\s+(?:have|am|are))?\s+)?"
    r"(?!(?:(?:no|some|any|every)thing|during|fix|renam|updat|add|runn|look|read|check|test|find|notic|debugg|tr(?:y"
    r"|i)|wait|seem|need|want|see|start|finish|complet"
    r"|creat|writ|work|fail|pass|investigat|search|grep|verif|confirm|assum|believ|think|report|committ|push"
    r"|keep(?:ing)?\s+an)\w*)"
    r"(?:\w+(?:ed|ing)|kept|made|left|took|put|split|cut|set)\b|^\W*(?:instead\s+of|rather\s+than)\b.*\b(?:I|we)\b"
    r"|^\W*not\s+\w+ing\b",
    re.I,
)
_WHY = re.compile(
    r"\b(?:instead\s+of|rather\s+than|because|since|in\s+favou?r\s+of|otherwise|so\s+(?!far\b|much\b|many\b|on\b)\w+)\b"
    r"|,\s*not\b|;\s*\w|\A\W*not\b.*[:,]"
    r"|\A\W*(?:switched|moved|migrated)\s+to\b.*,\s+\w",
    re.I,
)
_WILL = re.compile(r"\b(?:I|we)(?:['’]ll|\s+will)\s+\w+", re.I)
_WEIGHED = re.compile(r"\b(?:instead\s+of|rather\s+than|because|since|so\s+that)\b|,\s*not\b", re.I)
_OPEN = re.compile(r"\b(?:if|whether|unless|before|until|could|might|would|nothing\s+is)\b", re.I)
_IF = re.compile(r"\b(?:if|when|whenever|unless|in case)\b", re.I)
_GOING_TO = re.compile(r"going\s+to\b", re.I)

_QUESTION = re.compile(
    r"(?:open |remaining |unanswered )?questions?(?: for you)?|unclear|unresolved|open(?: points?)?|tbd|undecided"
    r"|pending"
    r"|up to you|your call"
    r"|not (?:yet )?decided|(?:still )?to be (?:clarified|decided|determined|confirmed|defined)"
)
_WHAT = r"(?:whether|if|how|which|why|what|where|who|when)"
_WHO = (
    r"(?:you|us|someone|somebody|product|legal|design|ops|security"
    r"|the\s+(?:user|customer|client|team|vendor|owner|maintainers?))"
)
_UNKNOWN = _words(
    (
        "clear,sure,certain,undecided,idea,decided,known,know,question",
        r"\b(?:unclear|unsure|uncertain|undecided|no\s+idea|not\s+(?:yet\s+)?(?:sure|certain|clear|known|decided)"
        rf"|(?:do\s+not|don['’]t)\s+know|open\s+question)\s*,?\s*(?:\w+\s+){{0,3}}?(?:{_WHAT}|is)\b",
    ),
    (
        "determine,tell,find,figure,establish,say,specify,mention,define",
        r"\b(?:(?:could|can|was|am|were|are)(?:\s*not|n['’]t)|can['’]t|unable)\s+(?:able\s+)?(?:to\s+)?(?:determine"
        r"|tell|establish"
        rf"|f(?:ind|igure)\s+out)\s+{_WHAT}\b|\b(?:do|does)(?:\s+not|n['’]t)\s+(?:say|specify|mention|define"
        rf"|tell)\s+{_WHAT}\b",
    ),
    (
        "decision,input,answer,clarif,confirm,approv,feedback,guidance,advice,sign,ahead",
        r"\b(?:needs?|waiting\s+(?:for|on)|awaiting|pending|could\s+use)\s+(?:(?:your|an?|the|further|more|some|user"
        r"|customer)\s+)*"
        r"(?:decision|input|answer|clarification|confirmation|approval|feedback|guidance|advice|sign-?off|go-?ahead)\b",
    ),
    (
        "need,ask,wonder",
        r"\bneed\s+to\s+(?:know|decide|ask\s+you)\b(?!.*\blet\s+me)|\bhave\s+to\s+ask\s+you\b"
        r"|\bneed\s+an?\s+\w+\s+from\s+you\b"
        r"|\bI\s+wonder\b",
    ),
    (
        "waiting,confirm,decide,choose,clarify,say,tell",
        rf"\bwaiting\s+(?:for|on)\s+{_WHO}\b"
        rf"|\b{_WHO}\s+(?:has\s+to|have\s+to|needs?\s+to|should|must)\s+(?:confirm|decide|choose|clarify|say|tell)\b",
    ),
    ("open,undecided,unanswered", r"\b(?:is|are|remains?)\s+(?:still\s+)?(?:open|undecided|unanswered)(?=[.,;:]|$)"),
    (
        "",
        rf"\W*(?:please\s+(?:confirm|advise|clarify)|let\s+me\s+know\s+(?!if\s+you\s+(?:need|want|have|would)){_WHAT}"
        r"|blocked\s+(?:on|by))\b",
    ),
)
_ASKED = re.compile(
    r"\b(?:should|shall|may|can|could|do|does|would|which|what|who|is|are)\b.*\b(?:I|we|you|your)\b", re.I
)

_DEAD_END = re.compile(r"dead ends?|tried without success|(?:what )?(?:did not|didn['’]t|does not|doesn['’]t) work")
_NOT = r"(?:(?:is|was|do(?:es)?|did|wo|will|would)(?:\s+not|n['’]t)|can(?:not|['’]t))"
_VAIN = (
    rf"(?:{_NOT}\s+(?:work|help|fix|solve|change|build|load|compile|do(?=[.,;])|an?\s+option|viable|enough|possible)"
    rf"|fail(?:s|ed)"
    r"|(?:does|did)\s+nothing|still\s+\w+|no\s+(?:use|effect|impact|difference|luck|success)|without\s+success"
    r"|in\s+vain|unsuccessful"
    r"|to\s+no\s+avail|useless|unusable|dead\s+end|nowhere|timed\s+out|broke|breaks|made\s+\w+\s+(?:\w+\s+)?(?:worse"
    r"|slower)|ran\s+into"
    r"|(?:changes?|changed|solve[sd]|fixe[sd])\s+(?:it|nothing)|no[- ]?go\b|not\s+(?:an\s+option|viable|feasible"
    r"|the\s+(?:cause|culprit|reason))"
    r"|reverted|rolled\s+back|undid)"
)
_WORKED = r"(?!.*\b(?:works?|worked|pass(?:es|ed)?|fixed|solved|helped|green|succe\w+)\b)"
_FAILED = _words(
    (  # what was tried, and what came of it
        "tried,attempted,experimented,spent,gave",
        r"(?:\bgave\b.{1,40}\ba\s+(?:shot|try|go)\b|(?:^\W*|\b(?:I|we)\s+(?:(?:have|had|also|first|then|even)\s+)*"
        r"|['’]ve\s+(?:also\s+)?)(?:tried|attempted"
        r"|experimented|spent)\b)"
        rf".+(?:\b{_VAIN}\b|(?:[,;:]|\bbut\b){_WORKED}\s*\w)",
    ),
    (
        "approach,attempt,route,workaround,idea,hack,trick,try",
        rf"\b(?:approach|attempts?|route|workaround|idea|hack|trick|try)\b.+?\b{_VAIN}\b",
    ),
    # doing it, and that it does not help; what a test or a function does not do is none
    ("", rf"\W*(?:neither|an?\s|\w+ing\s)(?:(?!\b(?:that|which|so)\b).){{1,80}}?\b(?:{_VAIN}\b|turned\s+out)"),
    ("work,help", rf"\b{_NOT}\s+(?:work|help)\b.*(?:\b(?:because|since|due\s+to|either)\b|[,:;])"),
    ("be used,be done", rf"\b{_NOT}\s+be\s+(?:used|done)\s+here\b"),
    (
        "unusable,useless,infeasible,impossible,no use",
        r"\b(?:is|are|was)\s+(?:unusable|useless|infeasible|impossible)\b.*(?:\b(?:because|since|here)\b|[,:;])"
        r"|\b(?:is|was)\s+(?:of\s+)?no\s+use\b",
    ),
    ("dead end,no-go,nogo,cause,culprit", r"\bdead\s+end\b|\bno[- ]?go\b|\bnot\s+the\s+(?:cause|culprit)\b"),
    (  # what was taken back
        "rolled,reverted,undid,gave up,backed",
        r"\b(?:rolled\s+(?:it\s+|that\s+)?back|reverted(?!\s+to)|undid|gave\s+up\s+on|backed\s+out)\b"
        r".*(?:\b(?:because|since|broke|breaks)\b|[,;:])"
        r"|\b(?:broke|breaks|failed|slower|worse)\b.*\b(?:rolled\s+(?:it\s+)?back|reverted|undid|backed\s+out)\b",
    ),
)
_LEFT = re.compile(
    r"next(?: steps?)?|left|remaining(?: work| steps?)?|to ?dos?|left to do|still (?:to do|missing|open)|what is left"
)
_STILL = _words(
    (
        "still,remain,yet",
        r"\bstill\s+(?:missing|to\s+(?:do|be)|open|needs?|ha(?:s|ve)\s+to)\b|\bremains?\s+to\s+be\b"
        r"|\b(?:has|have|is|are)\s+(?:not\s+yet\s+been|yet\s+to\s+be|not\s+yet)\b",
    )
)


@dataclass(frozen=True, slots=True)
class Spoken:
    """What one text of the agent's states, in its order."""

    decisions: tuple[str, ...]
    dead_ends: tuple[str, ...]
    questions: tuple[str, ...]


def spoken(texts: Iterable[str]) -> list[Spoken]:
    """What each text that the agent said states, oldest first."""
    return list(map(_states, texts))


@lru_cache(maxsize=4096)  # a later contract of the same leg hears most of it again
def _states(text: str) -> Spoken:
    said = list(sentences(text))
    return Spoken(
        tuple(filter(None, map(_decided, said))),
        tuple(filter(None, (_of(one, _DEAD_END, _FAILED) for one in said))),
        tuple(filter(None, (_of(one, _QUESTION, _UNKNOWN) for one in said))),
    )


def decisions(said: Iterable[Spoken]) -> list[str]:
    """What the agent says to have decided, the newest first."""
    return _newest(text for one in said for text in one.decisions)


def dead_ends(said: Iterable[Spoken]) -> list[str]:
    """What the agent says to have tried in vain, the newest first."""
    return _newest(text for one in said for text in one.dead_ends)


def questions(said: Iterable[Spoken], last: str) -> list[str]:
    """What the agent says not to know, the newest first, behind what its last words ask, where it ended with those."""
    found = _newest(text for one in said for text in one.questions)
    asked = (one.text for one in sentences(last) if _asks(one) and _ASKED.search(one.own))
    return list(dict.fromkeys([*(text for text in asked if not any(text in other for other in found)), *found]))


def left(text: str) -> list[str]:
    """What the agent's last words name as left to do, in their order."""
    said = (_of(one, _LEFT, _STILL) for one in sentences(text))
    return [found for found in said if found][:MOST_STATED]


def _of(one: Sentence, label: re.Pattern[str], words: Words) -> str:
    """What stands under the label, or the sentence itself where it has the words and is not about what might be."""
    if said := labelled(one, label):
        return said
    found = _search(one.own, words)
    if found is None or says_nothing(one.text.partition(":")[2] or "-") or _IF.search(one.own, 0, found.start()):
        return ""
    return one.text


def _asks(sentence: Sentence) -> bool:
    return sentence.own.rstrip(" )*_").endswith("?")


def _decided(sentence: Sentence) -> str:
    if under := labelled(sentence, _DECISION):
        return under
    own = sentence.own
    found = _search(own, _DECIDED)
    # "I'll write the tests" is an announcement; with a reason or what it is preferred to, it was a choice.
    if found is None or _GOING_TO.search(found[0]):
        found = found or _WILL.search(own)
        if found is None or not _WEIGHED.search(own, found.end()):
            found = _DID.match(own)
            found = found if found and _WHY.search(own) and not _search(own, _FAILED) else None
    return "" if found is None or _asks(sentence) or _OPEN.search(own, 0, found.start()) else sentence.text


def _search(own: str, words: Words) -> re.Match[str] | None:
    plain = own.casefold()
    for pieces, pattern in words:
        if not pieces:
            found = pattern.match(own)
        else:
            found = pattern.search(own) if any(piece in plain for piece in pieces) else None
        if found is not None:
            return found
    return None


def _newest(found: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(reversed(list(found))))[:MOST_STATED]
