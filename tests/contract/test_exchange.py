"""Contracts as other tools write and read them: byte for byte, and never believed with another key."""

from __future__ import annotations

import base64
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from relay_git.contract import dsse, relay_v2
from relay_git.contract.brief import foreign_brief
from relay_git.contract.canonical import Malformed, canonical
from relay_git.contract.model import Contract
from relay_git.contract.verify import Verified, verify
from tests.contract.samples import KEY, OTHER_KEY, sealed, verified
from tools import schema

THEIR_KEY = b"interop-vector-key-0123456789abc"
VECTOR = (
    r'{"contractId":"c-0a1b2c3d-1760000000123","sessionId":"0a1b2c3d4e5f6071","taskId":"t-0a1b2c3d-1760000000001",'
    r'"createdAt":"2026-03-04T05:06:07.08Z","version":2,"taskGoal":"make a\u003cb \u0026\u0026 c\u003ed work in café",'
    r'"nextAction":"line1\nline2\tend","doNotRedo":null,"tasksRemaining":["one"],"acceptanceAssertions":[],'
    r'"fileManifest":[{"path":"src/a.py","sha256":"","modified":true}],"decisions":[{"summary":"keep it"}],'
    r'"constraints":null,"baseCommitSha":"","snapshotCommitSha":"nogit-0a1b2c3d-20260304-050607"}'
).encode()
MAC = "5f8461a71cda256597dc87b229be32d3e75f367aaba03a149695ea8a1c8b0b6e"
SIGNED = json.loads(VECTOR) | {"signature": MAC}


def laid_out(**changes: object) -> bytes:
    """The vector's contract as a file, in another layout than the canonical one."""
    return json.dumps(SIGNED | changes, indent=2, sort_keys=True).encode()


def test_a_contract_of_relay_is_hashed_as_that_tool_does_and_verifies_with_its_key() -> None:
    contract = relay_v2.parse(laid_out())
    assert relay_v2.canonical(contract) == VECTOR
    assert hashlib.sha256(VECTOR).hexdigest() == "d08665329f373fd90bcab8cc69e2fa20f03b67065a522a196951bea932fcb48d"
    assert relay_v2.verifies(contract, THEIR_KEY)
    assert not relay_v2.verifies(contract, THEIR_KEY + b"\n")


@pytest.mark.parametrize(
    "changes",
    [
        {"taskGoal": "x"},
        {"doNotRedo": []},
        {"acceptanceAssertions": None},
        {"version": 1},
        {"plan": ["x"]},
        {"createdAt": "2026-03-04T05:06:07.081Z"},
        {"signature": MAC[:-1] + "f"},
        {"signature": ""},
    ],
)
def test_a_changed_contract_of_relay_does_not_verify(changes: dict[str, object]) -> None:
    assert not relay_v2.verifies(relay_v2.parse(laid_out(**changes)), THEIR_KEY)


def test_what_means_the_same_there_verifies() -> None:
    same = {"createdAt": "2026-03-04T05:06:07.080+00:00", "plan": [], "initialPrompt": None, "unknown": {"a": 1}}
    assert relay_v2.verifies(relay_v2.parse(laid_out(**same)), THEIR_KEY)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b"[" * 100_000,
        VECTOR.replace(b'"version":2', b'"version":2,"version":3'),
        VECTOR.replace(b'"version":2', b'"version":2,"Version":3'),
        VECTOR.replace(b'"version":2', b'"version":2.5'),
        VECTOR.replace(b'"version":2', b'"version":true'),
        VECTOR.replace(b'["one"]', b"[1]"),
        VECTOR.replace(b'"modified":true', b'"modified":"yes"'),
        VECTOR.replace(b"T05:06", b" 05:06"),
    ],
)
def test_what_is_no_contract_of_relay_is_refused(data: bytes) -> None:
    with pytest.raises(Malformed):
        relay_v2.parse(data)


def test_ours_is_written_so_that_it_verifies_there_and_reads_back() -> None:
    ours = verified(sealed()).contract
    text = relay_v2.written(relay_v2.exported(ours, THEIR_KEY))
    assert list(json.loads(text))[-1] == "signature"
    contract = relay_v2.parse(text.encode())
    assert relay_v2.verifies(contract, THEIR_KEY)
    back = relay_v2.imported(contract)
    for name in ("taskGoal", "nextAction", "snapshotCommit"):
        assert back[name] == ours[name]
    for name in ("doNotRedo", "tasksRemaining"):
        assert [item["text"] for item in back[name]] == [item["text"] for item in ours[name]]
    shown = foreign_brief(back)
    assert "Never touch billing/" in shown
    assert "git relay accept" not in shown


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])), st.text(max_size=20))
def test_any_text_comes_through_and_stays_signed(goal: str, other: str) -> None:
    contract = relay_v2.parse(json.dumps(SIGNED | {"taskGoal": goal}).encode())
    contract["signature"] = relay_v2.signature(contract, THEIR_KEY)
    again = relay_v2.parse(relay_v2.written(contract).encode())
    assert again["taskGoal"] == goal
    assert relay_v2.verifies(again, THEIR_KEY)
    assert relay_v2.verifies(again | {"taskGoal": other}, THEIR_KEY) == (other == goal)


def test_an_envelope_gives_back_the_stored_bytes_and_only_with_its_key() -> None:
    made = sealed()
    envelope = dsse.sealed(verified(made).contract, KEY)
    statement = json.loads(base64.b64decode(envelope["payload"]))
    assert statement["_type"].endswith("/Statement/v1")
    assert statement["subject"][0]["digest"] == {"gitCommit": "c" * 40}
    assert dsse.opened(envelope, KEY) == made.stored
    assert isinstance(verify(made.stored, KEY), Verified)
    assert dsse.opened(envelope, OTHER_KEY) is None
    assert dsse.opened(envelope | {"signatures": []}, KEY) is None
    forged = canonical(statement | {"predicate": {"taskGoal": "x"}})
    assert dsse.opened(envelope | {"payload": base64.b64encode(forged).decode()}, KEY) is None
    with pytest.raises(Malformed):
        dsse.opened(envelope | {"payloadType": "text/plain"}, KEY)


def test_the_published_schema_is_the_model() -> None:
    assert schema.FILE.read_text(encoding="utf-8") == schema.schema(), "python -m tools.schema"
    published = json.loads(schema.schema())
    assert set(verified(sealed()).contract) == set(published["properties"])
    assert set(published["properties"]) - set(published["required"]) == {"budget"}


def test_the_schema_takes_no_contract_that_is_not_signed_or_not_whole() -> None:
    contract = verified(sealed()).contract
    Contract.model_validate(contract)
    for name in set(contract) - {"budget"}:
        with pytest.raises(ValidationError, match=name):
            Contract.model_validate({member: contract[member] for member in contract if member != name})
    for name, value in {"signature": "", "keyId": "x", "briefSha256": "0" * 63, "version": 2, "format": "x"}.items():
        with pytest.raises(ValidationError, match=name):
            Contract.model_validate(contract | {name: value})
