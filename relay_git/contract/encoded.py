"""Secrets in base64: a run of it whose bytes are text with a secret in it is taken out as a whole.

Promise: what decodes to anything but text (images, hashes, keys that other rules know) stays; the time is linear, and
nothing is decoded more than twice, one layer inside of the other. Lines of 64 or 76 signs, as
encoders wrap them, are one run.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable

from relay_git.contract.placeholder import Taken

RULE = "base64"
_LAYERS = 2
_BREAK = r"(?:\r?\n|(?:\\r)?\\n)[ \t]{0,20}"
_WRAPPED = "|".join(rf"(?:[A-Za-z0-9+/]{{{width}}}{_BREAK})+[A-Za-z0-9+/]{{1,{width}}}" for width in (76, 64))
_RUN = re.compile(rf"(?:{_WRAPPED}|[A-Za-z0-9+/_-]{{24,}})={{0,2}}")
_HEX = re.compile(r"[0-9a-fA-F-]+$")
_TEXT = re.compile(r"[\t\n\r\x20-\x7e]+$")
_PAIR = re.compile(r"[\w.@-]{1,64}:(?=[^\s:]{0,100}[0-9\W])[^\s:]{6,200}$")  # user:password, as in Basic authorization


def redact_base64(text: str, taken: Taken, holds: Callable[[str, int], bool], layers: int = _LAYERS) -> str:
    """The text without such runs; `holds` says whether a decoded text, so many layers deep, holds a secret."""
    if layers <= 0:
        return text
    spans = (run.span() for run in _RUN.finditer(text) if _secret(run[0], holds, layers))
    return taken.cut(RULE, text, spans)


def _secret(run: str, holds: Callable[[str, int], bool], layers: int) -> bool:
    if _HEX.match(run):
        return False
    decoded = _decoded(run)
    return decoded is not None and (_PAIR.match(decoded) is not None or holds(decoded, layers - 1))


def _decoded(run: str) -> str | None:
    body = re.sub(_BREAK, "", run).rstrip("=").replace("-", "+").replace("_", "/")
    body = body[: len(body) - (len(body) % 4 == 1)]
    try:
        # A beginning that is no text tells of nearly all images and hashes at no cost.
        if _TEXT.match(base64.b64decode(body[:16]).decode("ascii")) is None:
            return None
        decoded = base64.b64decode(body + "=" * (-len(body) % 4)).decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return decoded if _TEXT.match(decoded) else None
