"""`export` and `import`: contracts as other tools write and read them, never believed before they are verified."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Any, assert_never

from relay_git.cli import context
from relay_git.cli.contracts import verified
from relay_git.cli.render import print_json
from relay_git.contract import dsse, relay_v2
from relay_git.contract.brief import brief, foreign_brief
from relay_git.contract.canonical import JsonObject, Malformed, canonical
from relay_git.contract.sign import KEY_BYTES, Key
from relay_git.contract.verify import Refused, verify
from relay_git.errors import ExitCode, SignatureRefused, UserError, printable
from relay_git.ledger.key import load

_MOST = 8 << 20


class Format(StrEnum):
    """How a contract is written for others."""

    JSON = "json"
    MD = "md"
    DSSE = "dsse"
    RELAY_V2 = "relay-v2"


def form_named(name: str) -> Format:
    """The format that a user names; raises UserError."""
    try:
        return Format(name)
    except ValueError as error:
        raise UserError(f"there is no format {printable(name)!r}", hint=f"--format {', '.join(Format)}") from error


def export(word: str | None, form: Format, key_file: Path | None) -> int:
    """Print a contract, after verifying it; nothing but its bytes is written, so that a file holds what is signed."""
    if key_file is not None and form in (Format.JSON, Format.MD):
        raise UserError(f"{form} holds the contract as it is signed: no key is used", hint=f"--format {form}")
    contract = verified(word).contract
    match form:
        case Format.JSON:
            text = canonical(contract).decode()
        case Format.MD:
            text = brief(contract)
        case Format.DSSE:
            text = json.dumps(dsse.sealed(contract, _own_key(key_file)), indent=2) + "\n"
        case Format.RELAY_V2:
            text = relay_v2.written(relay_v2.exported(contract, _foreign_keys(key_file)[0]))
        case _:
            assert_never(form)
    sys.stdout.buffer.write(text.encode())
    return ExitCode.DONE


def import_(file: Path, key_file: Path | None, *, as_json: bool) -> int:
    """Print a contract that a file holds, as a brief or JSON, if it verifies with the key."""
    data = sys.stdin.buffer.read(_MOST + 1) if str(file) == "-" else _read(file)
    found = _glance(data)
    try:
        if found.get("format") == "git-relay-contract":
            kind, contract = Format.JSON, _ours(data, key_file)
        elif "payloadType" in found:
            kind, contract = Format.DSSE, _enveloped(found, key_file)
        else:
            kind, contract = Format.RELAY_V2, _theirs(data, key_file)
    except Malformed as error:
        raise SignatureRefused(
            f"{_named(file)} is not a contract: {error.reason}", hint="git relay export -h"
        ) from error
    if as_json:
        print_json({"format": str(kind), "outcome": "valid", "contract": contract})
    else:
        sys.stdout.write(foreign_brief(contract))
    return ExitCode.DONE


def _ours(stored: bytes, key_file: Path | None) -> JsonObject:
    verdict = verify(stored, _own_key(key_file))
    if isinstance(verdict, Refused):
        raise SignatureRefused(
            f"the contract does not verify: {verdict.outcome} ({verdict.reason})", hint="git relay import --key-file K"
        )
    return verdict.contract


def _enveloped(envelope: JsonObject, key_file: Path | None) -> JsonObject:
    stored = dsse.opened(envelope, _own_key(key_file))
    if stored is None:
        raise SignatureRefused("no signature of the envelope is this key's", hint="git relay import --key-file K")
    return _ours(stored, key_file)


def _theirs(data: bytes, key_file: Path | None) -> JsonObject:
    contract = relay_v2.parse(data)
    if not any(relay_v2.verifies(contract, key) for key in _foreign_keys(key_file)):
        raise SignatureRefused(
            "the contract does not verify: the signature is not this key's", hint="--key-file .relay/.signing-key"
        )
    return relay_v2.imported(contract)


def _own_key(key_file: Path | None) -> Key:
    if key_file is None:
        return load(context.open_repo()[0])
    data = _read(key_file)
    try:
        return Key(data if len(data) == KEY_BYTES else bytes.fromhex(data.decode("ascii").strip()))
    except (ValueError, Malformed) as error:
        raise UserError(f"{_named(key_file)} is no key of git relay", hint=".git/relay/key has one") from error


def _foreign_keys(key_file: Path | None) -> tuple[bytes, ...]:
    """The whole content of the file, as the other tool takes it; without a file this repository's key.

    A key file of git relay holds its key in hex: what is signed by the one is verified by the other, too.
    """
    if key_file is None:
        own = load(context.open_repo()[0]).secret
        return own, own.hex().encode() + b"\n"
    data = _read(key_file)
    if len(data) < relay_v2.LEAST_KEY:
        raise UserError(
            f"a key of Relay has at least {relay_v2.LEAST_KEY} bytes", hint="--key-file .relay/.signing-key"
        )
    try:
        return data, Key(bytes.fromhex(data.decode("ascii").strip())).secret
    except (ValueError, Malformed):
        return (data,)


def _glance(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _read(file: Path) -> bytes:
    try:
        with file.open("rb") as source:
            data = source.read(_MOST + 1)
    except OSError as error:
        raise UserError(f"{_named(file)} cannot be read: {error.strerror}", hint=f"ls -l {_named(file)}") from error
    if len(data) > _MOST:
        raise UserError(f"{_named(file)} is larger than {_MOST >> 20} MiB", hint="a contract has at most 256 KiB")
    return data


def _named(file: Path) -> str:
    return printable(str(file))
