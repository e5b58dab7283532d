"""The languages in which a rule of the human's is known: how each is told, and what forbids or commands in it.

Promise: a small table, one entry a language. It tells a rule from what is none as well as a few words can; what is in
none of these languages is said to be so, and is then for others to read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

ENGLISH, UNKNOWN = "en", ""
_ENGLISH = """the a an to of and or in on is it for that this with be are was as at by from not but you we i my your
our do
does did have has can will would could should may must all no yes please what why how when where which who if then so
just also use add fix make run keep now ok okay don't dont never only always write test tests code file files go next
thanks thank great stop let's lets i'll it's that's there here up out more like without before after into one two new
need needs want get put set show check look change first last still back good nice and again pls plz update remove"""


@dataclass(frozen=True, slots=True)
class _Tongue:
    words: frozenset[str]
    rule: re.Pattern[str]


def _tongue(words: str, rule: str) -> _Tongue:
    return _Tongue(frozenset(words.split()), re.compile(rf"(?<!\w)(?:{rule})(?!\w)", re.I))


_TONGUES = {
    "de": _tongue(
        """der die das und oder ist nicht ein eine einen einem den dem des mit für auf von zu im am bitte kein keine
        keinen wir ich du es sie auch noch nichts aber wenn dann so nur wie was warum bei aus nach mal hier jetzt
        soll sind
        wird
        danke gut schon statt immer nie niemals alle sieht lass mach""",
        r"nichts?|nie|niemals|kein\w{0,2}|ohne|verboten|tabu|darf\w*|dürfen|sollen?|sollst|muss|müssen|immer|nur|stets"
        r"|statt"
        r"|ausschließlich|lass\w*|bleib\w*|behalt\w*|finger weg|vermeide\w*|niemand|höchstens|mindestens"
        r"|achte\w* darauf",
    ),
    "es": _tongue(
        """el la los las un una de del y o que es no en con por para al lo se su favor como más pero si ya muy esto este
        esta hay todo todos nunca siempre sin jamás prohibido gracias porque qué cuando usa tocar""",
        r"no|nunca|jamás|sin|prohibid[oa]s?|ningun[oa]?|ningún|evita\w*|debe\w*|tiene[ns]? que|siempre|solo|sólo"
        r"|únicamente"
        r"|en (?:vez|lugar) de|mantén\w*|mantener|deja\w*|nadie|nada de|como máximo|al menos",
    ),
    "fr": _tongue(
        """le la les un une des du de et ou est pas ne en dans avec pour sur au aux que qui ce cette il je tu nous
        vous on
        s'il plaît te mais si plus merci jamais toujours sans aucun aucune tout tous ça bien fait beaucoup""",
        r"(?:ne|n['’]\w+)\b.{0,60}?\b(?:pas|jamais|plus|rien|aucune?)|pas (?:de|d['’]\w+)|jamais|sans|aucune?"
        r"|interdit\w*"
        r"|évite\w*|do(?:is|it|ivent|ivez)|il faut|toujours|seulement|uniquement|au lieu d[eu]|gard(?:e|ez|er)"
        r"|laiss(?:e|ez|er)"
        r"|personne|au plus|au moins|touche pas",
    ),
    "it": _tongue(
        """il lo la gli le un una di del della e o che non è in con per su al alla si questo questa ma se più come
        sono mai
        sempre senza grazie tutto tutti nello nella usa""",
        r"non|mai|senza|vietat[oaie]|nessun[oa]?|evita\w*|dev(?:e|i|ono)|bisogna|sempre|solo|soltanto|invece di"
        r"|mantieni"
        r"|lascia\w*|al massimo|almeno",
    ),
    "pt": _tongue(
        """o a os as um uma de do da dos das e ou que é não em no na com por para se seu sua mas como mais isto este
        esta
        nunca sempre sem obrigado todo todos favor quando você""",
        r"não|nunca|jamais|sem|proibid[oa]s?|nenhum[a]?|evite\w*|deve\w*|tem que|sempre|só|somente|apenas|em vez de"
        r"|mantenha"
        r"|deixe|ninguém|no máximo|pelo menos",
    ),
    "nl": _tongue(
        """de het een en of is niet in op van voor met te aan dat die dit we ik je jij maar als dan ook nog bij uit
        naar geen
        alleen altijd nooit zonder graag bedankt alsjeblieft""",
        r"niet|nooit|geen|zonder|verboden|vermijd|moet\w*|mag|mogen|altijd|alleen|enkel|in plaats van|blijf\w*"
        r"|laat\b.{1,60}\bstaan"
        r"|niemand|hoogstens|minstens",
    ),
    ENGLISH: _Tongue(frozenset(_ENGLISH.split()), re.compile(r"(?!)")),
}
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_FEW = 4  # fewer words than that say nothing about their language


def tongue_of(text: str) -> str:
    """The language of a text, by its small words; `UNKNOWN` where none of the table's fits."""
    words = [word.casefold().replace("’", "'") for word in _WORD.findall(text[:4000])]
    counts = {name: sum(word in tongue.words for word in words) for name, tongue in _TONGUES.items()}
    best = max(counts, key=lambda name: (counts[name], name == ENGLISH))
    if counts[best] and (best == ENGLISH or counts[best] * 4 >= len(words)):  # one word is found in many languages
        return best
    foreign = sum(not word.isascii() for word in words) * 2 > len(words)
    return UNKNOWN if foreign or len(words) >= _FEW else ENGLISH


def forbids_or_commands(text: str, tongue: str) -> bool:
    """Whether a sentence in such a language, English aside, says how it is to be."""
    return tongue in _TONGUES and _TONGUES[tongue].rule.search(text) is not None
