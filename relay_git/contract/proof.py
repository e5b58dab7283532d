"""What the end of a command shows: nothing where it only looked, printed or prepared, else how the work fares."""

from __future__ import annotations

import re

_LOOKS = re.compile(
    r"(?:\w+=\S*\s+|sudo\s+|time\s+)*(?:(?:cd|ls|ll|cat|bat|head|tail|less|more|nl|grep|egrep|rg|ag|find|fd|wc|sort|uniq|cut|tr|tee"
    r"|pwd|echo|printf|which|type|true|false|:|sleep|date|env|printenv|export|set|tree|stat|file|du|df|ps|id|whoami|uname|jq"
    r"|awk|mkdir|touch|cp|mv|rm|chmod|test|\[|exit|basename|dirname|realpath|git-relay)(?![\w./-])|sed\s+-n\b"
    r"|git(?:\s+-\S+(?:\s+\S+)?)?\s+(?:status|diff|log|show|blame|branch|rev-parse|ls-files|grep|add|commit|stash|checkout|switch|relay)\b)"
)
PIECES = re.compile(r"&&|\|\||[;|\n]")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")


def shows_nothing(command: str) -> bool:
    """Whether a command line only looks around, moves files or keeps them: its success says nothing of the work."""
    pieces = [piece.strip() for piece in PIECES.split(_QUOTED.sub("''", command[:4096])) if piece.strip()]
    return all(_LOOKS.match(piece) for piece in pieces)
