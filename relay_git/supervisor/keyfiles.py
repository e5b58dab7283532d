"""Keys in a file of whatever kind: text in any encoding, base64 of a private key, and files that are a key.

Promise: linear time; nothing is unpacked. A file that is a key is known by its first bytes, or by its name where it is
no text: a certificate has the same names, but is text.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from fnmatch import fnmatchcase

from relay_git.contract.encoded import redact_base64
from relay_git.contract.placeholder import Policy, Taken
from relay_git.contract.redact import keys_in
from relay_git.git.losses import looks_secret

_BOMS = (  # UTF-32 first: the sign of UTF-16 is the beginning of its own
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# ASCII in UTF-16 or UTF-32 of either byte order, wherever it stands, as in a program for Windows.
_SIGN = rb"[\t\n\r\x20-\x7e]"
_WIDE = re.compile(_SIGN + rb"(?:(?:\0" + _SIGN + rb"){15,}|(?:\0\0\0" + _SIGN + rb"){15,})")
# PRIVATE KEY in base64, at each of the three places where it can begin, as far as its neighbours have no part in it.
_PEM_BASE64 = ("UFJJVkFURSBL", "BSSVZBVEUgS0", "QUklWQVRFIEt")
_PUTTY = re.compile(rb"PuTTY-User-Key-File-\d+: [^\0]{1,4000}?^Private-Lines: ", re.MULTILINE)
_LENGTH = rb"(?:[\x02-\x80]|\x81.|\x82..)"
_DER = re.compile(
    rb"\x30" + _LENGTH + rb"(?:" + b"|".join((
        rb"\x02\x01[\x00\x01]\x30" + _LENGTH + rb"\x06",  # PKCS #8
        rb"\x02\x01\x00\x02" + _LENGTH,  # PKCS #1
        rb"\x02\x01\x01\x04[\x14-\x42]",  # SEC 1
        rb"\x02\x01\x03\x30" + _LENGTH + rb"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07",  # PKCS #12
    )) + rb")",
    re.DOTALL,
)  # fmt: skip
_ZIP = b"PK\3\4"  # as in a presentation, which has the ending of a key


def keys_in_file(data: bytes, path: bytes, policy: Policy) -> Counter[str]:
    """The keys in a file, by rule; what is allowed counts by the value, a file that is a key by its path."""
    found = Counter[str]()
    for text in _texts(data):
        found += keys_in(text, policy)
        if any(sign in text for sign in _PEM_BASE64) and _holds_pem(text, policy):
            found["private-key"] += 1
    if not found and _is_key(data, path) and not _is_allowed(path, policy):
        found["key-file"] += 1
    return found


def _texts(data: bytes) -> list[str]:
    """The text of a file, and what a file that is no text has of it in wide signs."""
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return [data.decode(encoding, "replace")]
    text = data.decode("utf-8", "replace")
    if b"\0" not in data:
        return [text]
    return [text, "\n".join(found[0].replace(b"\0", b"").decode() for found in _WIDE.finditer(data))]


def _holds_pem(text: str, policy: Policy) -> bool:
    taken = Taken(policy)
    redact_base64(text, taken, lambda decoded, _: bool(keys_in(decoded, policy)), 1)
    return taken.counts.total() > 0


def _is_allowed(path: bytes, policy: Policy) -> bool:
    name = path.decode("utf-8", "replace")
    return any(fnmatchcase(name, pattern) for pattern in policy.allow)


def _is_key(data: bytes, path: bytes) -> bool:
    """Whether the file is a key as a whole."""
    if _PUTTY.match(data) or _DER.match(data):
        return True
    return looks_secret(path) and not data.startswith(_ZIP) and not _is_text(data)


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode("utf-8")
    except UnicodeDecodeError:
        return data.startswith(tuple(bom for bom, _ in _BOMS))
