"""What was said in passing: rules of the human in prompts; decisions, dead ends and questions of the agent in prose.

Promise: nothing is worded anew, an item is a sentence as it was said. What an agent says is a hypothesis, and its
source calls it one. A question is no rule, what was only weighed is no decision, and a quotation is nobody's word.
The words looked for are English; of another language nothing is found here, and its prompts are handed over whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from relay_git.contract.prose import Sentence, labelled, sentences

MOST_RULES = 30
MOST_STATED = 40
HYPOTHESIS = "hypothesis: the agent's own words"

_RULE = re.compile(
    # what must not be
    r"\b(?:do not|don['’]?t|never|cannot|can['’]t|(?:may|must|shall|should|is|are) not|without|avoid|refrain"
    r"|forbid(?:den)?|prohibited|banned|taboo|off[- ]limits|hands off|stay away|under no|in no case|neither"
    r"|(?:isn|aren|mustn|shouldn)['’]t"
    r"|(?:nothing|nobody|no one|none)\b.{0,40}?\b(?:may|must|shall|should|gets?|is|are))\b"
    r"|\bleave\b.{1,80}\b(?:alone|as (?:it|they)|untouched|unchanged)\b|(?:^|[:;,]\s*)no\s+"
    r"(?!need\b|problem|worries|idea\b|one\b|wonder)\w|^\W*skip\b"
    # what must be
    r"|\b(?:must|shall|should|always|only|exclusively|ha(?:ve|s) to|needs? to be|(?:is|are) to be|required|mandatory"
    r"|(?:make|be) sure|ensure|remember to|keep|stick to|stays?|preserve|prefer)\b"
    r"|^\W*(?:(?:and|please|just)\s+)*(?:use|go (?:for|with))\b"
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
    rf"|let['’]?s?|can|could|would|{'|'.join(_WORK.split())})\b",
    re.I,
)
_COMPLAINT = re.compile(
    r"\b(?:complain\w*|too much|slow|broken|wrong|confusing|flaky|buggy|missing|fail(?:s|ing|ed)?|crash\w*|ugly|stuck"
    r"|odd|strange|weird|nice|great|perfect|ready|works?|green|takes?)\b",
    re.I,
)
MOST_OF_ONE = 20  # a prompt of more sentences is a text to work on: of those only what commands or forbids is a rule
_REFUSAL = re.compile(
    r"\W*(?:no[,.!:;]|no way|nope|stop\b|wrong\b|not (?:like|that|so)\b|that(?:['’]s| is) (?:wrong|not)|undo)", re.I
)

_DECISION = re.compile(r"(?:key |design |my |our )?decisions?(?: made| taken| so far)?")
_WE = r"\b(?:I|we)(?:['’]ve| have| had)?\s+(?:now\s+|also\s+|therefore\s+|then\s+)?"
_DECIDED = re.compile(
    rf"{_WE}(?:decided|chose|chosen|opted|settled|agreed|picked|selected|went\s+(?:with|for))\b"
    r"|\b(?:my|our)\s+(?:choice|pick|decision)\s+(?:is|was|fell)\b"
    r"|\b(?:I|we)(?:['’]ll|\s+will|\s+shall|['’]m|['’]re|\s+am|\s+are)\s+(?:going\s+(?:to|with)|go\s+(?:with|for)"
    r"|stick\s+(?:with|to)|stay\s+with|settle\s+(?:on|for))\b",
    re.I,
)
_WILL = re.compile(r"\b(?:I|we)(?:['’]ll|\s+will)\s+\w+", re.I)
_WEIGHED = re.compile(r"\b(?:instead\s+of|rather\s+than|because|since|so\s+that)\b|,\s*not\b", re.I)
_OPEN = re.compile(r"\b(?:if|whether|unless|before|until|could|might|would|nothing\s+is)\b", re.I)
_GOING_TO = re.compile(r"going\s+to\b", re.I)

_QUESTION = re.compile(r"(?:open |remaining |unanswered )?questions?(?: for you)?|unclear|to be clarified|open points?")
_UNKNOWN = re.compile(
    r"\b(?:unclear|unsure|not\s+(?:yet\s+)?(?:sure|certain|clear|known)|(?:do\s+not|don['’]t)\s+know|open\s+question)"
    r"\s*,?\s*(?:yet\s+)?(?:whether|if|how|which|why|what|where|who|when|is)\b",
    re.I,
)
_ASKED = re.compile(
    r"\b(?:should|shall|may|can|could|do|does|would|which|what|who|is|are)\b.*\b(?:I|we|you|your)\b", re.I
)

_DEAD_END = re.compile(r"dead ends?|tried without success|(?:what )?(?:did not|didn['’]t|does not|doesn['’]t) work")
_FAILED = re.compile(
    r"\b(?:tried|attempted)\b.+\b(?:(?:do(?:es)?|did)(?:\s+not|n['’]t)\s+(?:work|help|fix)|fail(?:s|ed)|can(?:not|['’]t)|no\s+use)\b"
    r"|\bdead\s+end\b",
    re.I,
)
_LEFT = re.compile(
    r"next(?: steps?)?|remaining(?: work| steps?)?|to ?dos?|left to do|still (?:to do|missing|open)|what is left"
)
_STILL = re.compile(
    r"\bstill\s+(?:missing|to\s+(?:do|be)|open|needs?|ha(?:s|ve)\s+to)\b|\bremains?\s+to\s+be\b"
    r"|\b(?:has|have|is|are)\s+(?:not\s+yet\s+been|yet\s+to\s+be|not\s+yet)\b",
    re.I,
)
# A piece of each pattern for what an agent says: most of a long transcript has none of them, and is not cut up.
_PIECES = """decid decision choice chose opted settle agreed pick selected went going stick stay 'll ’ll will shall
question clear sure certain know clarified point dead tried attempted work"""


def rules(prompts: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The sentences of prompts that say how it is to be, with their sources; those that command or forbid come first.

    What the human states binds as well as what he forbids ("Dates are written as ISO 8601"), so that a sentence is a
    rule unless it asks, complains, praises or wants work done. A prompt that begins with a refusal corrects the agent:
    all of it is a rule, but for its questions.
    """
    clear, stated = list[tuple[str, str]](), list[tuple[str, str]]()
    for prompt, source in prompts:
        refusal = _REFUSAL.match(prompt) is not None
        said = [one for one in sentences(prompt) if not _asks(one) and len(one.own.split()) > 1]
        clear += [(one.text, source) for one in said if refusal or _RULE.search(one.own)]
        stated += [(one.text, source) for one in said if len(said) <= MOST_OF_ONE and _states(one)]
    return list(dict.fromkeys([*clear, *stated]))[:MOST_RULES]


def spoken(texts: Iterable[str]) -> list[Sentence]:
    """The sentences of what the agent said, oldest first; of texts in which nothing of interest can stand, none."""
    return [sentence for text in texts if _is_worth_it(text) for sentence in sentences(text)]


def _is_worth_it(text: str) -> bool:
    plain = text.casefold()
    return any(piece in plain for piece in _PIECES.split())


def decisions(said: Iterable[Sentence]) -> list[str]:
    """What the agent says to have decided, the newest first."""
    return _newest(map(_decided, said))


def dead_ends(said: Iterable[Sentence]) -> list[str]:
    """What the agent says to have tried in vain, the newest first."""
    return _newest(labelled(one, _DEAD_END) or (one.text if _FAILED.search(one.own) else "") for one in said)


def questions(said: Iterable[Sentence], last: str) -> list[str]:
    """What the agent says not to know, the newest first, behind what its last words ask, where it ended with those."""
    found = _newest(labelled(one, _QUESTION) or (one.text if _UNKNOWN.search(one.own) else "") for one in said)
    asked = (one.text for one in sentences(last) if _asks(one) and _ASKED.search(one.own))
    return list(dict.fromkeys([*(text for text in asked if not any(text in other for other in found)), *found]))


def left(text: str) -> list[str]:
    """What the agent's last words name as left to do, in their order."""
    said = (labelled(one, _LEFT) or (one.text if _STILL.search(one.own) else "") for one in sentences(text))
    return [found for found in said if found][:MOST_STATED]


def _states(sentence: Sentence) -> bool:
    own = sentence.own
    if own != sentence.text or own.endswith(":") or len(own.split()) < 3:
        return False  # it quotes, or leads to what is quoted, or says too little
    return not (_REQUEST.match(own) or _COMPLAINT.search(own))


def _asks(sentence: Sentence) -> bool:
    return sentence.own.rstrip(" )*_").endswith("?")


def _decided(sentence: Sentence) -> str:
    if under := labelled(sentence, _DECISION):
        return under
    found = _DECIDED.search(sentence.own)
    # "I'll write the tests" is an announcement; with a reason or what it is preferred to, it was a choice.
    announced = found is None or _GOING_TO.search(found[0])
    if announced:
        found = found or _WILL.search(sentence.own)
        if not (found and _WEIGHED.search(sentence.own, found.end())):
            return ""
    assert found is not None  # noqa: S101
    return "" if _asks(sentence) or _OPEN.search(sentence.own, 0, found.start()) else sentence.text


def _newest(found: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(reversed([text for text in found if text])))[:MOST_STATED]
