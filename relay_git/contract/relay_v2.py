"""The contract of the Go tool named Relay, versions 1 and 2: read, verified with its key, and written so that it
verifies there.

Promise: what is hashed is what that tool hashes: its known members in its order, compact, with the characters of HTML
escaped, `signature` left out. Members that it does not know are ignored, as there; names that occur twice, also in
another case, are refused, since it would take the last. Nothing of a contract is used before it has verified.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from typing import Any

from relay_git.contract.bounds import whole
from relay_git.contract.canonical import JsonObject, Malformed

LEAST_KEY = 32
_MOST = 8 << 20
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)")
_NO_TIME = "0001-01-01T00:00:00Z"
_HTML = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}

# What a member holds: text, number or time; a list of texts or of objects with members of their own. With "?" it is
# left out where it is empty; else it is always there.
_OBJECTS = {
    "inFlightCode": {"path": "text", "snippet": "text?"},
    "fileManifest": {"path": "text", "sha256": "text", "modified": "truth"},
    "decisions": {"summary": "text", "rationale": "text?"},
    "constraints": {"rule": "text", "source": "text?"},
}
_MEMBERS = {
    "contractId": "text",
    "sessionId": "text",
    "taskId": "text",
    "createdAt": "time",
    "version": "number",
    "taskGoal": "text",
    "nextAction": "text",
    "doNotRedo": "texts",
    "initialPrompt": "text?",
    "plan": "texts?",
    "tasksRemaining": "texts?",
    "skillsLoaded": "texts?",
    "skillsInUse": "texts?",
    "skillsToUse": "texts?",
    "inFlightCode": "objects?",
    "acceptanceAssertions": "texts",
    "fileManifest": "objects",
    "decisions": "objects",
    "constraints": "objects",
    "baseCommitSha": "text",
    "snapshotCommitSha": "text",
}


def parse(data: bytes) -> JsonObject:
    """The known members of a contract in their order, and `signature`; raises Malformed."""
    if len(data) > _MOST:
        raise Malformed(f"{len(data)} bytes, the limit is {_MOST}")
    try:
        found = json.loads(data.decode("utf-8", "replace"), object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise Malformed(f"not JSON: {error.msg} at character {error.pos}") from None
    except RecursionError:
        raise Malformed("nested too deep") from None
    if not isinstance(found, dict) or "contractId" not in found:
        raise Malformed("not a contract of Relay: it has no contractId")
    contract = _ordered(found, _MEMBERS)
    return contract | {"signature": _value("text", found.get("signature"), "signature")}


def canonical(contract: JsonObject) -> bytes:
    """The bytes that the signature is over."""
    return _dumped({name: value for name, value in contract.items() if name != "signature"})


def signature(contract: JsonObject, key: bytes) -> str:
    """The signature that this key makes."""
    return hmac.digest(key, canonical(contract), hashlib.sha256).hex()


def verifies(contract: JsonObject, key: bytes) -> bool:
    """Whether a parsed contract bears this key's signature."""
    claimed = str(contract["signature"]).encode()
    said = canonical(contract)
    # Bytes that were no UTF-8 when it was signed were escaped then, and are a plain U+FFFD since.
    ways = (said, said.replace("\ufffd".encode(), b"\\ufffd"))
    return any(hmac.compare_digest(hmac.digest(key, way, hashlib.sha256).hex().encode(), claimed) for way in ways)


def written(contract: JsonObject) -> str:
    """The file as that tool lays it out."""
    return _escaped(json.dumps(contract, ensure_ascii=False, indent=2))


def exported(ours: JsonObject, key: bytes) -> JsonObject:
    """A verified contract of ours as one of that tool, signed with its key."""
    found = {
        "contractId": ours["contractId"],
        "sessionId": ours["sessionId"],
        "taskId": ours["taskId"],
        "createdAt": ours["createdAt"],
        "version": 2,
        "taskGoal": ours["taskGoal"],
        "nextAction": ours["nextAction"],
        "doNotRedo": _texts(ours["doNotRedo"]),
        "initialPrompt": ours["initialPrompt"],
        "plan": _texts(ours["plan"]),
        "tasksRemaining": _texts(ours["tasksRemaining"]),
        "skillsInUse": list(ours["skills"]),
        "inFlightCode": [{"path": i["path"], "snippet": i["snippet"]} for i in ours["inFlightCode"]],
        "acceptanceAssertions": [item["command"] for item in ours["acceptance"]],
        "fileManifest": [
            {"path": i["path"], "sha256": i["sha256"] or "", "modified": True} for i in ours["fileManifest"]
        ],
        "decisions": [{"summary": i["summary"], "rationale": i["rationale"]} for i in ours["decisions"]],
        "constraints": [{"rule": i["rule"], "source": i["source"]} for i in ours["constraints"]],
        "baseCommitSha": ours["baseCommit"],
        "snapshotCommitSha": ours["snapshotCommit"],
    }
    contract = _ordered(found, _MEMBERS)
    return contract | {"signature": signature(contract, key)}


def imported(theirs: JsonObject) -> JsonObject:
    """A verified contract of that tool in the members that our brief shows; every item says where it came from."""
    source = "the contract of Relay"
    left = set(theirs.get("tasksRemaining", ()))
    plan = theirs.get("plan") or theirs.get("tasksRemaining", [])
    return {
        **{name: theirs[name] for name in ("contractId", "sessionId", "taskId", "createdAt", "taskGoal", "nextAction")},
        "initialPrompt": theirs.get("initialPrompt", ""),
        "nextActionSource": source,
        "from": {"agent": "an agent under Relay", "account": "", "model": ""},
        "doNotRedo": [{"text": text, "source": source} for text in theirs["doNotRedo"] or ()],
        "plan": [
            {"text": text, "status": "pending" if text in left else "completed", "source": source} for text in plan
        ],
        "tasksRemaining": [{"text": text, "source": source} for text in theirs.get("tasksRemaining", ())],
        "decisions": [
            {"summary": i["summary"], "rationale": i.get("rationale", ""), "source": source}
            for i in theirs["decisions"] or ()
        ],
        "constraints": [{"rule": i["rule"], "source": i.get("source") or source} for i in theirs["constraints"] or ()],
        "summary": {
            "facts": [],
            "hypotheses": [{"text": text, "source": source} for text in theirs["acceptanceAssertions"] or ()],
            "openQuestions": [],
        },
        "fileManifest": [
            {"path": i["path"], "status": "modified", "sha256": i["sha256"] or None}
            for i in theirs["fileManifest"] or ()
        ],
        "inFlightCode": [
            {"path": i["path"], "snippet": i.get("snippet", ""), "truncated": False}
            for i in theirs.get("inFlightCode", ())
        ],
        "skills": theirs.get("skillsInUse", []),
        "baseCommit": theirs["baseCommitSha"],
        "snapshotCommit": theirs["snapshotCommitSha"],
    }


def _texts(items: list[JsonObject]) -> list[str]:
    return [item["text"] for item in items]


def _once(pairs: list[tuple[str, Any]]) -> JsonObject:
    if len({name.lower() for name, _ in pairs}) != len(pairs):
        raise Malformed("a name occurs twice in one object")
    return dict(pairs)


def _ordered(found: JsonObject, members: dict[str, str]) -> JsonObject:
    ordered: JsonObject = {}
    for name, kind in members.items():
        value = _value(kind.rstrip("?"), found.get(name), name)
        if value or not kind.endswith("?"):
            ordered[name] = value
    return ordered


def _value(kind: str, value: Any, name: str) -> Any:  # noqa: ANN401 - what JSON holds
    if kind == "text" and isinstance(value, str | None):
        return whole(value or "")
    if kind == "time" and isinstance(value, str | None):
        return _go_time(value)
    if kind == "number" and (value is None or type(value) is int):
        return value or 0
    if kind == "truth" and isinstance(value, bool | None):
        return bool(value)
    if kind == "texts" and _is_list(value, str):
        return None if value is None else [whole(text) for text in value]
    if kind == "objects" and _is_list(value, dict):
        return None if value is None else [_ordered(item, _OBJECTS[name]) for item in value]
    raise Malformed(f"{name} is not what it has to be")


def _is_list(value: object, of: type) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(item, of) for item in value))


def _go_time(text: str | None) -> str:
    """A moment as Go prints it: no zeros at the end of the fraction, Z for UTC."""
    found = _TIME.fullmatch(text or _NO_TIME)
    if found is None:
        raise Malformed("createdAt is no RFC 3339 time")
    fraction = (found[2] or "").rstrip("0")
    zone = "Z" if found[3] in ("+00:00", "-00:00") else found[3]
    return f"{found[1]}{'.' if fraction else ''}{fraction}{zone}"


def _dumped(value: JsonObject) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _escaped(text).encode()


def _escaped(text: str) -> str:
    # Outside of strings JSON has none of these.
    for character, escape in _HTML.items():
        text = text.replace(character, escape)
    return text
