"""Verification: what stored bytes must survive before anybody, above all an agent, is shown a word of them.

Promise: `verify` never raises on any bytes; it returns `Verified` with the strict parse of exactly the bytes that were
signed, or `Refused` with one outcome of a closed set and a reason in words. The checks run in the order of their
numbers and the first failure decides. Reading git is the ledger's part: it says what place the bytes were found at
(`ExpectedPlace`) and answers for the snapshot (`SnapshotView`).
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol, TypeAlias

from relay_git.contract.canonical import JsonObject, Malformed, parse_stored
from relay_git.contract.sign import Key, signature_matches

FORMAT: Final = "git-relay-contract"
VERSION: Final = 1


class Outcome(StrEnum):
    """What verification can say, in the words that tables and JSON use."""

    VALID = "valid"
    SUPERSEDED = "superseded"
    TAMPERED = "tampered"
    UNSIGNED = "unsigned"
    UNKNOWN_KEY = "unknown-key"
    MALFORMED = "malformed"
    UNSUPPORTED_VERSION = "unsupported-version"
    SNAPSHOT_MISSING = "snapshot-missing"
    SNAPSHOT_MISMATCH = "snapshot-mismatch"
    MISPLACED = "misplaced"

    @property
    def accepted(self) -> bool:
        """Whether the contract's words may be used."""
        return self in (Outcome.VALID, Outcome.SUPERSEDED)


@dataclass(frozen=True, slots=True)
class ExpectedPlace:
    """Where the ledger found the bytes, and so what they must name.

    `snapshot_commit` is the one that the journal commit points at, `previous` the id and the SHA-256 of the stored
    bytes of the contract before it in the chain, `seen` the contract ids met earlier in the chain, `brief` the bytes
    stored beside the contract (empty where they are missing), `is_latest` false where a newer contract exists,
    `fault` what the ledger has found to be wrong with the place itself.
    """

    session_id: str
    leg: int
    snapshot_commit: str
    previous: tuple[str, str] | None
    seen: frozenset[str]
    brief: bytes
    is_latest: bool = True
    fault: str = ""


class SnapshotView(Protocol):
    """What verification asks of the repository; ids in hex, paths as the bytes that git stores."""

    def tree_of(self, commit: str) -> str | None:
        """The tree of a commit, or None where the commit is not there."""

    def blob_sha256(self, tree: str, path: bytes) -> str | None:
        """The SHA-256 of a file's stored bytes in lowercase hex, or None where the tree has no file at the path."""


@dataclass(frozen=True, slots=True)
class Verified:
    """A contract that may be used: `contract` is the strict parse of the signed bytes, `sha256` is over them."""

    outcome: Outcome
    contract: JsonObject
    sha256: str
    reason: str

    @property
    def contract_id(self) -> str:
        """The id in the signed bytes."""
        return str(self.contract["contractId"])


@dataclass(frozen=True, slots=True)
class Refused:
    """A contract of which nothing may be used, and why."""

    outcome: Outcome
    reason: str


Verification: TypeAlias = Verified | Refused


def verify(
    stored: bytes, key: Key | None, place: ExpectedPlace | None = None, snapshot: SnapshotView | None = None
) -> Verification:
    """Checks stored bytes against a key, and where given against their place and the snapshot that they name."""
    # 1. The bytes are the canonical spelling of one object of our format.
    try:
        contract = parse_stored(stored)
    except Malformed as error:
        return Refused(Outcome.MALFORMED, error.reason)
    refused = _check_header(contract) or _check_signature(stored, contract, key) or _check_shape(contract)
    if refused is None and place is not None:
        refused = _check_place(contract, place) or _check_chain(contract, place)
    if refused is None and snapshot is not None:
        refused = _check_snapshot(contract, snapshot)
    if refused is not None:
        return refused
    digest = hashlib.sha256(stored).hexdigest()
    if place is not None and not place.is_latest:
        return Verified(Outcome.SUPERSEDED, contract, digest, "valid, but a newer contract of the session exists")
    return Verified(Outcome.VALID, contract, digest, "signature, place and snapshot hold")


def _check_header(contract: JsonObject) -> Refused | None:
    # 2. It says that it is a contract.
    if contract.get("format") != FORMAT:
        return Refused(Outcome.MALFORMED, f"the format is not {FORMAT}")
    # 3. We know the rules of its version. Before the signature: a newer version may be signed by other rules, so that
    #    ours could only call it tampered, which would be a false word. Either way nothing of it is used.
    version = contract.get("version")
    if type(version) is not int or version < 1:
        return Refused(Outcome.MALFORMED, "the version is not a positive integer")
    if version > VERSION:
        return Refused(Outcome.UNSUPPORTED_VERSION, f"version {version} of the format, this git relay knows {VERSION}")
    return None


def _check_signature(stored: bytes, contract: JsonObject, key: Key | None) -> Refused | None:
    # 4. Somebody signed it.
    if not contract.get("signature"):
        return Refused(Outcome.UNSIGNED, "there is no signature")
    # 5. It names our key.
    named = contract.get("keyId")
    if key is None:
        return Refused(Outcome.UNKNOWN_KEY, "this repository has no key to verify with")
    if named != key.key_id:
        return Refused(Outcome.UNKNOWN_KEY, f"signed with another key than this repository's {key.key_id}")
    # 6. Our key made this signature over these bytes.
    if not signature_matches(stored, contract, key):
        return Refused(Outcome.TAMPERED, "the signature does not fit the bytes")
    return None


_SHAPE = {
    "contractId": str,
    "sessionId": str,
    "leg": int,
    "snapshotCommit": str,
    "snapshotTree": str,
    "briefSha256": str,
    "fileManifest": list,
}


def _check_shape(contract: JsonObject) -> Refused | None:
    # 7. What the next checks read is there and of the right type, whoever signed it.
    for name, kind in _SHAPE.items():
        if type(contract.get(name)) is not kind:
            return Refused(Outcome.MALFORMED, f"{name} is missing or of the wrong type")
    if not isinstance(contract.get("previous"), (dict, type(None))):
        return Refused(Outcome.MALFORMED, "previous is of the wrong type")
    return None


def _check_place(contract: JsonObject, place: ExpectedPlace) -> Refused | None:
    # 8. It lies where it says that it belongs: else true words are being replayed somewhere else.
    if place.fault:
        return Refused(Outcome.MISPLACED, place.fault)
    if contract["sessionId"] != place.session_id:
        return Refused(Outcome.MISPLACED, "it was signed for another session")
    if contract["leg"] != place.leg:
        return Refused(Outcome.MISPLACED, f"it was signed for leg {contract['leg']}, and lies at leg {place.leg}")
    if contract["snapshotCommit"] != place.snapshot_commit:
        return Refused(Outcome.MISPLACED, "it was signed for another snapshot than the one it lies at")
    return None


def _check_chain(contract: JsonObject, place: ExpectedPlace) -> Refused | None:
    # 9. It is met once, and follows the contract that it names.
    if contract["contractId"] in place.seen:
        return Refused(Outcome.MISPLACED, "the same contract was met earlier in the chain")
    previous = contract.get("previous")
    named = (previous.get("contractId"), previous.get("sha256")) if previous is not None else None
    if named != place.previous:
        return Refused(Outcome.MISPLACED, "it does not follow the contract that lies before it")
    # 10. The brief beside it is the one that it vouches for.
    if hashlib.sha256(place.brief).hexdigest() != contract["briefSha256"]:
        return Refused(Outcome.TAMPERED, "the brief stored with it is not the one that was signed")
    return None


def _check_snapshot(contract: JsonObject, snapshot: SnapshotView) -> Refused | None:
    # 11. The snapshot is in the repository.
    commit, tree = contract["snapshotCommit"], contract["snapshotTree"]
    found = snapshot.tree_of(commit)
    if found is None:
        return Refused(Outcome.SNAPSHOT_MISSING, f"the snapshot {commit[:12]} is not in this repository")
    # 12. It is the tree that was signed, and every file in the manifest has the bytes that were signed.
    if found != tree:
        return Refused(Outcome.SNAPSHOT_MISMATCH, f"the snapshot {commit[:12]} has another tree than was signed")
    for entry in contract["fileManifest"]:
        reason = _entry_mismatch(entry, tree, snapshot)
        if reason:
            return Refused(Outcome.SNAPSHOT_MISMATCH, reason)
    return None


def _entry_mismatch(entry: object, tree: str, snapshot: SnapshotView) -> str:
    if not isinstance(entry, dict):
        return "an entry of the file manifest is not an object"
    if entry.get("pathRedacted") is True:
        return ""  # A name that holds a secret is not told; the tree above vouches for its bytes.
    path = _exact_path(entry)
    if path is None:
        return "an entry of the file manifest has no readable path"
    signed = entry.get("sha256")
    if signed is None and entry.get("status") != "deleted":
        return ""  # A submodule: it has no bytes here, and the tree above vouches for its commit.
    if snapshot.blob_sha256(tree, path) == signed:
        return ""
    return f"{entry.get('path')!r} is not as it was signed"


def _exact_path(entry: JsonObject) -> bytes | None:
    encoded = entry.get("pathBase64")
    try:
        if encoded is not None:
            return base64.b64decode(str(encoded), validate=True)
        return str(entry["path"]).encode()
    except (KeyError, ValueError):
        return None
