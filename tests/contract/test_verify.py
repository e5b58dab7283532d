"""No byte of a stored contract can change, move or be replayed without being refused, each with its word."""

from __future__ import annotations

import hashlib
import hmac
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay_git.contract.build import build
from relay_git.contract.canonical import Malformed, canonical
from relay_git.contract.sign import Key, seal, sign
from relay_git.contract.verify import Outcome, Refused, Verified, verify
from tests.contract.samples import (
    KEY,
    OTHER_KEY,
    PAUSE,
    RECORD,
    SNAPSHOT,
    TREE,
    WORK,
    Snapshots,
    identity,
    link,
    place,
    sealed,
    unsigned,
    verified,
)

SEALED = sealed()
STORED = SEALED.stored


def outcome(stored: bytes, **where: object) -> Outcome:
    return verify(stored, KEY, **where).outcome  # type: ignore[arg-type]


def edited(**changes: object) -> bytes:
    """The stored contract with members changed and the old signature kept."""
    return canonical(json.loads(STORED) | changes)


def resigned(**changes: object) -> bytes:
    """A contract with members changed and signed again with our key."""
    return sign(json.loads(STORED) | changes, KEY)


def test_the_signature_is_hmac_sha256_over_the_sorted_compact_json_without_it() -> None:
    contract = json.loads(STORED)
    claimed = contract.pop("signature")
    signed = json.dumps(contract, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    assert claimed == hmac.new(KEY.secret, signed, hashlib.sha256).hexdigest()
    assert contract["keyId"] == hashlib.sha256(b"git-relay key id v1\x00" + KEY.secret).hexdigest()[:16]
    assert contract["briefSha256"] == hashlib.sha256(SEALED.brief.encode()).hexdigest()


def test_golden_signature() -> None:
    signed = b'{"a":"\xc3\xa9","keyId":"' + KEY.key_id.encode() + b'","z":1}'
    expected = hmac.digest(bytes(range(32)), signed, "sha256").hex()
    assert json.loads(sign({"z": 1, "a": "é"}, KEY))["signature"] == expected
    assert expected == "49b7e2545b2c285e665a75c87bd5b01a1deadf17911bac87a830e7a443959862"


def test_a_sealed_contract_is_valid_in_its_place() -> None:
    found = verify(STORED, KEY, place(SEALED), Snapshots())
    assert isinstance(found, Verified)
    assert found.outcome is Outcome.VALID
    assert found.contract == json.loads(STORED)
    assert found.sha256 == SEALED.sha256 == hashlib.sha256(STORED).hexdigest()
    assert found.contract_id == SEALED.contract_id


def test_an_older_contract_is_superseded_but_may_be_used() -> None:
    found = verify(STORED, KEY, place(SEALED, is_latest=False))
    assert isinstance(found, Verified)
    assert found.outcome is Outcome.SUPERSEDED


def test_every_single_byte_change_is_refused() -> None:
    for position, byte in enumerate(STORED):
        for value in {byte ^ 1, byte ^ 0x20, byte ^ 0x80, 0x30}:
            if value != byte:
                changed = STORED[:position] + bytes([value]) + STORED[position + 1 :]
                assert isinstance(verify(changed, KEY), Refused), (position, value)


def test_every_deletion_and_every_duplication_of_a_byte_is_refused() -> None:
    for position in range(len(STORED)):
        assert isinstance(verify(STORED[:position] + STORED[position + 1 :], KEY), Refused), position
        assert isinstance(verify(STORED[: position + 1] + STORED[position:], KEY), Refused), position


def test_every_cut_and_every_added_byte_is_refused() -> None:
    for position in range(len(STORED)):
        assert isinstance(verify(STORED[:position], KEY), Refused), position
    for value in range(256):
        assert isinstance(verify(STORED + bytes([value]), KEY), Refused), value


@given(st.binary(max_size=200))
def test_no_bytes_make_it_raise(data: bytes) -> None:
    assert isinstance(verify(data, KEY, place(SEALED), Snapshots()), Refused)


@given(
    st.dictionaries(st.sampled_from(sorted(json.loads(STORED))), st.none() | st.integers(0, 9) | st.text(max_size=9))
)
def test_no_signed_shape_makes_it_raise(changes: dict[str, object]) -> None:
    verify(resigned(**changes), KEY, place(SEALED), Snapshots())
    verify(edited(**changes), KEY, place(SEALED), Snapshots())


def test_white_space_and_key_order_and_duplicate_keys_are_malformed() -> None:
    contract = json.loads(STORED)
    assert outcome(STORED + b"\n") is Outcome.MALFORMED
    assert outcome(json.dumps(contract, sort_keys=True, ensure_ascii=False).encode()) is Outcome.MALFORMED
    backwards = dict(sorted(contract.items(), reverse=True))
    compact = json.dumps(backwards, separators=(",", ":"), ensure_ascii=False).encode()
    assert outcome(compact) is Outcome.MALFORMED
    assert outcome(STORED.replace(b'"leg":1', b'"leg":1,"leg":1')) is Outcome.MALFORMED
    assert outcome(STORED.replace(b'"leg":1', b'"leg":2,"leg":1')) is Outcome.MALFORMED


def test_bytes_that_are_signed_but_not_canonical_are_malformed() -> None:
    contract = json.loads(STORED)
    contract.pop("signature")
    spaced = json.dumps(contract, sort_keys=True, ensure_ascii=False).encode()
    mac = hmac.digest(KEY.secret, spaced, "sha256").hex()
    assert outcome(spaced[:-1] + f', "signature": "{mac}"}}'.encode()) is Outcome.MALFORMED


def test_depth_and_size_bombs_are_malformed() -> None:
    assert outcome(b'{"a":' * 50_000) is Outcome.MALFORMED
    assert outcome(b"[" * 200_000) is Outcome.MALFORMED
    assert outcome(b'{"a":"' + b"x" * 300_000 + b'"}') is Outcome.MALFORMED


def test_a_changed_word_is_tampered() -> None:
    assert outcome(edited(taskGoal="something else")) is Outcome.TAMPERED
    assert outcome(edited(signature="0" * 64)) is Outcome.TAMPERED
    assert outcome(edited(signature=json.loads(STORED)["signature"].upper())) is Outcome.TAMPERED
    assert outcome(edited(signature=["x"])) is Outcome.TAMPERED


@pytest.mark.parametrize("missing", [None, "", [], 0])
def test_an_empty_signature_is_unsigned(missing: object) -> None:
    assert outcome(edited(signature=missing)) is Outcome.UNSIGNED


def test_no_signature_is_unsigned() -> None:
    assert outcome(canonical(unsigned())) is Outcome.UNSIGNED
    contract = json.loads(STORED)
    del contract["signature"]
    assert outcome(canonical(contract)) is Outcome.UNSIGNED


def test_another_key_is_unknown_and_its_name_cannot_be_borrowed() -> None:
    foreign = sign(json.loads(STORED), OTHER_KEY)
    assert outcome(foreign) is Outcome.UNKNOWN_KEY
    assert verify(STORED, None).outcome is Outcome.UNKNOWN_KEY
    assert outcome(canonical(json.loads(foreign) | {"keyId": KEY.key_id})) is Outcome.TAMPERED


def test_versions_and_formats_that_we_do_not_know() -> None:
    assert outcome(resigned(version=2)) is Outcome.UNSUPPORTED_VERSION
    assert outcome(edited(version=2, signature="")) is Outcome.UNSUPPORTED_VERSION
    for odd in (0, -1, "1", True, None):
        assert outcome(resigned(version=odd)) is Outcome.MALFORMED
    assert outcome(resigned(format="other")) is Outcome.MALFORMED
    assert outcome(b"{}") is Outcome.MALFORMED


def test_an_unknown_member_is_kept_and_covered_by_the_signature() -> None:
    stored = resigned(futureMember={"signature": "x", "n": [1]})
    found = verify(stored, KEY)
    assert isinstance(found, Verified)
    assert found.contract["futureMember"] == {"signature": "x", "n": [1]}
    assert outcome(stored.replace(b'"n":[1]', b'"n":[2]')) is Outcome.TAMPERED
    assert outcome(edited(futureMember=1)) is Outcome.TAMPERED


def test_a_member_named_signature_deeper_down_does_not_shift_what_is_signed() -> None:
    mine = json.loads(STORED)["signature"]
    for nested in ({"signature": mine}, {"signature": mine, "z": 1}, [{"signature": mine, "z": 1}] * 2):
        assert outcome(edited(aaa=nested)) is Outcome.TAMPERED
        assert outcome(resigned(aaa=nested)) is Outcome.VALID
        assert outcome(resigned(zzz=nested)) is Outcome.VALID


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"session_id": "other-1"}, Outcome.MISPLACED),
        ({"leg": 2}, Outcome.MISPLACED),
        ({"snapshot_commit": "e" * 40}, Outcome.MISPLACED),
        ({"previous": ("c-0", "0" * 64)}, Outcome.MISPLACED),
        ({"seen": frozenset({SEALED.contract_id})}, Outcome.MISPLACED),
        ({"brief": SEALED.brief.encode() + b" "}, Outcome.TAMPERED),
        ({"brief": b""}, Outcome.TAMPERED),
    ],
)
def test_true_bytes_at_another_place_are_refused(changes: dict[str, object], expected: Outcome) -> None:
    assert outcome(STORED, place=place(SEALED, **changes)) is expected


def test_the_second_leg_must_follow_the_first() -> None:
    first = verified(SEALED)
    second = seal(build(identity(2), PAUSE, RECORD, WORK, link(SEALED)), KEY)
    at = place(second, leg=2, previous=(first.contract_id, first.sha256), seen=frozenset({first.contract_id}))
    assert outcome(second.stored, place=at) is Outcome.VALID
    for wrong in (None, (first.contract_id, "0" * 64), ("c-0", first.sha256)):
        moved = place(second, leg=2, previous=wrong)
        assert outcome(second.stored, place=moved) is Outcome.MISPLACED
    assert outcome(STORED, place=at) is Outcome.MISPLACED


def test_the_snapshot_must_be_there_and_be_the_one_that_was_signed() -> None:
    blobs = Snapshots().blobs
    assert outcome(STORED, snapshot=Snapshots()) is Outcome.VALID
    assert outcome(STORED, snapshot=Snapshots(trees={})) is Outcome.SNAPSHOT_MISSING
    assert outcome(STORED, snapshot=Snapshots(trees={SNAPSHOT: "e" * 40})) is Outcome.SNAPSHOT_MISMATCH
    for path in blobs:
        gone = {other: blob for other, blob in blobs.items() if other != path}
        assert outcome(STORED, snapshot=Snapshots(blobs=gone)) is Outcome.SNAPSHOT_MISMATCH
        assert outcome(STORED, snapshot=Snapshots(blobs=blobs | {path: "f" * 64})) is Outcome.SNAPSHOT_MISMATCH
    back_again = Snapshots(blobs=blobs | {b"old.py": "f" * 64})
    assert outcome(STORED, snapshot=back_again) is Outcome.SNAPSHOT_MISMATCH
    assert TREE in STORED.decode()


def test_every_refusal_says_why() -> None:
    for stored in (b"", edited(version=3), edited(signature=""), edited(leg=9), sign(json.loads(STORED), OTHER_KEY)):
        found = verify(stored, KEY)
        assert isinstance(found, Refused)
        assert len(found.reason) > 10
        assert not found.outcome.accepted


def test_a_key_shows_no_bytes_and_has_one_length() -> None:
    assert repr(KEY) == f"Key(key_id='{KEY.key_id}')"
    assert KEY.secret.hex() not in str(KEY)
    for length in (0, 16, 31, 33):
        with pytest.raises(Malformed):
            Key(bytes(length))


def test_what_is_too_large_is_not_signed() -> None:
    with pytest.raises(Malformed, match="limit"):
        sign({"a": "x" * 300_000}, KEY)
