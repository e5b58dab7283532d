"""The signature: HMAC-SHA256 with the project's key over the canonical bytes.

Promise: equal contracts and equal keys give equal bytes, and the bytes of a key never show in a repr. What is signed
is the canonical form of the contract without its member `signature`; `keyId` is inside. Where the key lives and who
makes its bytes is not decided here.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field

from relay_git.contract.canonical import MAX_BYTES, JsonObject, Malformed, canonical

KEY_BYTES = 32
_HEX = re.compile(r"[0-9a-f]{64}")
_KEY_ID_DOMAIN = b"git-relay key id v1\x00"


@dataclass(frozen=True, slots=True)
class Key:
    """A project's secret, 32 random bytes that its maker provides; `key_id` names it without telling it."""

    secret: bytes = field(repr=False)
    key_id: str = field(init=False)

    def __post_init__(self) -> None:
        """Refuses a secret of another length, since a short key would sign and protect nothing."""
        if len(self.secret) != KEY_BYTES:
            raise Malformed(f"a key has {KEY_BYTES} bytes, this one has {len(self.secret)}")
        digest = hashlib.sha256(_KEY_ID_DOMAIN + self.secret).hexdigest()
        object.__setattr__(self, "key_id", digest[:16])


@dataclass(frozen=True, slots=True)
class Sealed:
    """A contract ready for the ledger: the bytes to store, the brief that they vouch for, and the id of the two."""

    contract_id: str
    stored: bytes
    brief: str
    sha256: str


def sign(unsigned: JsonObject, key: Key) -> bytes:
    """The canonical bytes to store, with `keyId` and `signature` set; raises `Malformed` above 256 KiB."""
    contract = {name: value for name, value in unsigned.items() if name != "signature"}
    contract["keyId"] = key.key_id
    contract["signature"] = _mac(canonical(contract), key)
    stored = canonical(contract)
    if len(stored) > MAX_BYTES:
        raise Malformed(f"the contract has {len(stored)} bytes, the limit is {MAX_BYTES}")
    return stored


def seal(unsigned: JsonObject, key: Key) -> Sealed:
    """Renders the brief, binds it by `briefSha256`, and signs: the one way from a built contract to the ledger."""
    from relay_git.contract.brief import brief

    text = brief(unsigned)
    bound = unsigned | {"briefSha256": hashlib.sha256(text.encode()).hexdigest()}
    stored = sign(bound, key)
    return Sealed(str(unsigned["contractId"]), stored, text, hashlib.sha256(stored).hexdigest())


def signature_matches(stored: bytes, contract: JsonObject, key: Key) -> bool:
    """Whether the signature in canonical bytes, which `contract` was parsed from, is the one that this key makes."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.hmac import HMAC

    claimed = contract.get("signature")
    if not isinstance(claimed, str) or _HEX.fullmatch(claimed) is None:
        return False
    mac = HMAC(key.secret, SHA256())
    mac.update(_signed_bytes(stored, contract, claimed))
    try:
        mac.verify(bytes.fromhex(claimed))
    except InvalidSignature:
        return False
    return True


def _signed_bytes(stored: bytes, contract: JsonObject, claimed: str) -> bytes:
    """The canonical bytes without `signature`."""
    # Cutting the member out of canonical bytes gives what encoding the rest would, at a tenth of the cost. No string
    # can look like it, since its quotes would be escaped; a member deeper down can, and then the rest is encoded.
    before, found, after = stored.partition(b'"signature":"%s",' % claimed.encode())
    if found and b'"signature":' not in before and b'"signature":' not in after:
        return before + after
    return canonical({name: value for name, value in contract.items() if name != "signature"})


def _mac(data: bytes, key: Key) -> str:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.hmac import HMAC

    mac = HMAC(key.secret, SHA256())
    mac.update(data)
    return mac.finalize().hex()
