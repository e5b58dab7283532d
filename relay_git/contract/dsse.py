"""A contract as a signed statement that other tools can read: DSSE around an in-toto statement.

Promise: the envelope's signature is HMAC-SHA256 with the repository's key over DSSE's pre-authentication encoding of
the payload; the payload is the statement, whose predicate is the contract exactly as it was signed, so that opening
gives back the stored bytes. Both signatures are checked before anything of it is used.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json

from relay_git.contract.canonical import JsonObject, Malformed, canonical
from relay_git.contract.sign import Key

PAYLOAD = "application/vnd.in-toto+json"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:git-relay:contract:v1"
_MOST = 1 << 20


def sealed(contract: JsonObject, key: Key) -> JsonObject:
    """The envelope of a verified contract."""
    subject = {"name": f"refs/heads/relay/{contract['sessionId']}", "digest": {"gitCommit": contract["snapshotCommit"]}}
    statement = {"_type": STATEMENT, "subject": [subject], "predicateType": PREDICATE, "predicate": contract}
    payload = canonical(statement)
    return {
        "payloadType": PAYLOAD,
        "payload": base64.b64encode(payload).decode(),
        "signatures": [{"keyid": key.key_id, "sig": base64.b64encode(_mac(payload, key)).decode()}],
    }


def opened(envelope: JsonObject, key: Key) -> bytes | None:
    """The stored bytes of the contract inside, still to be verified; None where no signature is this key's."""
    payload = _payload(envelope)
    expected = base64.b64encode(_mac(payload, key)).decode()
    signatures = envelope.get("signatures")
    claims = [s.get("sig") for s in signatures if isinstance(s, dict)] if isinstance(signatures, list) else []
    if not any(isinstance(claim, str) and hmac.compare_digest(claim.encode(), expected.encode()) for claim in claims):
        return None
    try:
        statement = json.loads(payload)
    except (ValueError, RecursionError):
        raise Malformed("the payload is not JSON") from None
    if not isinstance(statement, dict) or statement.get("predicateType") != PREDICATE:
        raise Malformed("the statement is not about a contract of git relay")
    return canonical(statement.get("predicate"))


def _payload(envelope: JsonObject) -> bytes:
    payload = envelope.get("payload")
    if envelope.get("payloadType") != PAYLOAD or not isinstance(payload, str) or len(payload) > _MOST:
        raise Malformed("not an envelope with an in-toto statement")
    try:
        return base64.b64decode(payload, validate=True)
    except (binascii.Error, ValueError):
        raise Malformed("the payload is not base64") from None


def _mac(payload: bytes, key: Key) -> bytes:
    kind = PAYLOAD.encode()
    encoded = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
    return hmac.digest(key.secret, encoded, hashlib.sha256)
