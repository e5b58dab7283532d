"""Contracts that somebody changed: every command says so, and no agent is ever shown a word of them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from relay_git.contract.canonical import strict_parse
from relay_git.contract.lifecycle import Event
from relay_git.contract.sign import Key, seal, sign
from relay_git.errors import ExitCode, SignatureRefused
from relay_git.git.repo import discover
from relay_git.git.store import open_store
from relay_git.ledger import key
from relay_git.supervisor.carry import carry
from relay_git.supervisor.meter import Meter
from relay_git.supervisor.run import Stop, Surroundings, take_up
from relay_git.supervisor.settings import Settings
from tests.cli.forge import Journal, open_journal
from tests.cli.scene import LIMIT, TAKE_OVER, only_session, say, states, write

EVIL = "EVILWORDS"
_FIRST = [{"do": "plan", "items": [{"text": "Write the refund", "status": "in_progress"}]}, say("I begin."), LIMIT]


@pytest.fixture
def at_rest(repo, relay, demo):
    """A session with two contracts that waits for a person, and its journal."""
    demo.plays(_FIRST, [say("I go on."), write("two.txt", "2\n"), LIMIT], TAKE_OVER)
    assert relay("start", "add a refund flow", "--agent", "demo", "--then", "demo", cwd=repo.path).rc == 1
    return open_journal(repo.path, only_session(repo.path))


def evil(stored: bytes) -> bytes:
    """The contract with other words in it, the signature as it was."""
    assert b"Write the refund" in stored
    return stored.replace(b"Write the refund", EVIL.encode())


def _other_key(stored: bytes) -> bytes:
    return sign(strict_parse(evil(stored)), Key(b"x" * 32))


def _unsigned(stored: bytes) -> bytes:
    body = strict_parse(evil(stored))
    body["signature"] = ""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _reordered(stored: bytes) -> bytes:
    body = dict(reversed(list(strict_parse(stored).items())))
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


def _newer(stored: bytes) -> bytes:
    return stored.replace(b'"version":1', b'"version":2')


CHANGES: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "a changed word": ("tampered", evil),
    "another key": ("unknown-key", _other_key),
    "no signature": ("unsigned", _unsigned),
    "another order": ("malformed", _reordered),
    "white space": ("malformed", lambda stored: stored.replace(b'","', b'", "', 1)),
    "a line end": ("malformed", lambda stored: stored + b"\n"),
    "a duplicate key": ("malformed", lambda stored: b'{"aaa":"' + EVIL.encode() + b'","aaa":1,' + stored[1:]),
    "a newer version": ("unsupported-version", _newer),
    "nothing at all": ("malformed", lambda stored: b""),
}


def expect_refused(relay, repo, outcome: str) -> None:
    """`verify` says the word with status 3, `show` shows nothing."""
    data = relay("verify", "--all", "--json", cwd=repo.path)
    assert data.rc == ExitCode.REFUSED
    body = json.loads(data.stdout)
    assert body["refused"] >= 1
    assert outcome in [row["outcome"] for row in body["contracts"]]
    assert "valid" not in [row["outcome"] for row in body["contracts"]]
    shown = relay("show", cwd=repo.path)
    assert (shown.rc, shown.stdout) == (ExitCode.REFUSED, "")
    assert f"is not shown, it does not verify: {outcome}" in shown.stderr
    assert EVIL not in shown.stderr


def test_a_changed_contract_is_refused_with_the_right_word_for_each_change(repo, relay, at_rest) -> None:
    stored = at_rest.contracts()[-1]
    for outcome, change in CHANGES.values():
        at_rest.forge({"contract.json": change(stored)})
        expect_refused(relay, repo, outcome)
        at_rest.restore()
    assert relay("verify", "--all", cwd=repo.path).rc == 0


def test_a_changed_contract_is_refused_in_the_table_as_json_and_to_who_would_accept_it(repo, relay, at_rest) -> None:
    stored = at_rest.contracts()[-1]
    at_rest.forge({"contract.json": evil(stored)})
    table = relay("verify", "--all", cwd=repo.path)
    assert table.rc == ExitCode.REFUSED
    assert "  tampered  " in table.stdout
    for command in (["show", "--json"], ["accept", strict_parse(stored)["contractId"]]):
        ran = relay(*command, cwd=repo.path)
        assert (ran.rc, ran.stdout) == (ExitCode.REFUSED, "")
        assert EVIL not in ran.stderr


def test_a_changed_deleted_or_doubled_byte_anywhere_is_refused(repo, relay, at_rest) -> None:
    stored = at_rest.contracts()[-1]
    places = range(0, len(stored), max(1, len(stored) // 40))
    changed = {}
    for i in places:
        other = bytes([stored[i] ^ 1])
        for kind, data in (
            ("changed", stored[:i] + other + stored[i + 1 :]),
            ("deleted", stored[:i] + stored[i + 1 :]),
            ("doubled", stored[:i] + stored[i : i + 1] + stored[i:]),
        ):
            if data != stored:
                changed[f"forged-{kind}-{i}"] = data
    for name, data in changed.items():
        at_rest.forge({"contract.json": data}, to=name)
    ran = relay("verify", "--all", "--json", cwd=repo.path)
    assert ran.rc == ExitCode.REFUSED
    rows = json.loads(ran.stdout)["contracts"]
    newest = {row["sessionId"]: row["outcome"] for row in rows}
    assert newest.pop(at_rest.session) == "valid"
    assert newest.keys() == changed.keys()
    # The signature is looked at before the place: so it is the bytes that are found out, not the session's name.
    assert set(newest.values()) <= {"tampered", "malformed", "unknown-key", "unsupported-version", "unsigned"}


def test_an_older_contract_or_another_session_s_in_the_newest_one_s_place_is_misplaced(
    repo, relay, demo, at_rest
) -> None:
    brief = [at_rest.store.blob(r.brief) for r in _brought(at_rest)]
    at_rest.forge({"contract.json": at_rest.contracts()[0], "contract.md": brief[0]})
    expect_refused(relay, repo, "misplaced")
    at_rest.restore()
    assert relay("verify", "--all", cwd=repo.path).rc == 0
    demo.plays(_FIRST)
    assert relay("start", "another task", "--agent", "demo", cwd=repo.path).rc == 1
    (other,) = (s for s in _names(repo) if s != at_rest.session)
    foreign = open_journal(repo.path, other)
    at_rest.forge({"contract.json": foreign.contracts()[0], "contract.md": foreign.store.blob(foreign.built.brief)})
    ran = relay("verify", at_rest.session, "--json", cwd=repo.path)
    assert ran.rc == ExitCode.REFUSED
    assert [row["outcome"] for row in json.loads(ran.stdout)["contracts"]][-1] == "misplaced"
    shown = relay("show", at_rest.session, cwd=repo.path)
    assert (shown.rc, shown.stdout) == (ExitCode.REFUSED, "")


def test_an_edited_note_and_an_edited_brief_are_tampered(repo, relay, at_rest) -> None:
    snapshot = at_rest.built.snapshot
    repo.git("notes", f"--ref=relay/{at_rest.session}", "append", "-m", EVIL, str(snapshot))
    ran = relay("verify", "--all", cwd=repo.path)
    assert ran.rc == ExitCode.REFUSED
    assert "tampered" in ran.stdout
    assert EVIL not in relay("show", cwd=repo.path).stdout
    at_rest.forge({"contract.md": f"# {EVIL}\n".encode()})
    expect_refused(relay, repo, "tampered")


def test_a_snapshot_whose_object_is_gone_is_said_to_be_missing(repo, relay, at_rest) -> None:
    snapshot = str(at_rest.built.snapshot)
    (repo.path / ".git/objects" / snapshot[:2] / snapshot[2:]).unlink()
    ran = relay("verify", "--all", "--json", cwd=repo.path)
    assert ran.rc == ExitCode.REFUSED
    assert json.loads(ran.stdout)["contracts"][-1]["outcome"] == "snapshot-missing"
    shown = relay("show", cwd=repo.path)
    assert (shown.rc, shown.stdout) == (ExitCode.REFUSED, "")
    assert "snapshot-missing" in shown.stderr


@pytest.mark.parametrize("how", ["a changed word", "another key", "a duplicate key"])
def test_words_of_a_changed_contract_never_reach_the_next_agent(repo, relay, demo, at_rest, how) -> None:
    brief = f"# git relay brief\n\n{EVIL}\n".encode()
    at_rest.forge({"contract.json": CHANGES[how][1](at_rest.contracts()[-1]), "contract.md": brief})
    repo.git("notes", f"--ref=relay/{at_rest.session}", "add", "-f", "-m", EVIL, str(at_rest.built.snapshot))
    ran = relay("handoff", "--to", "demo", cwd=repo.path)
    assert ran.rc == 0, ran.stderr
    last = demo.prompts()[-1]
    assert "add a refund flow" in last
    assert EVIL not in "".join(demo.prompts()) + ran.stderr + ran.stdout
    for file in (repo.path / ".git/relay").rglob("prompt"):
        assert EVIL not in file.read_text()
    rows = json.loads(relay("verify", "--json", cwd=repo.path).stdout)["contracts"]
    assert rows[-1]["outcome"] == "valid"
    assert rows[-2]["outcome"] == CHANGES[how][0]


class Attacker:
    """A teller that strikes when it hears that the contract is built and the next agent chosen."""

    def __init__(self, strike: Callable[[], None]) -> None:
        self.strike = strike
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)
        if "handing over to demo" in text:
            self.strike()

    def live(self, text: str) -> None:
        self.said.append(text)


@pytest.mark.parametrize("how", ["a changed word", "another key", "a brief of its own"])
def test_a_contract_that_is_changed_between_building_and_dispatch_starts_no_agent(
    repo, relay, demo, at_rest, how
) -> None:
    found = discover(repo.path, os.environ)
    store = open_store(found.common_dir)

    def strike() -> None:
        now: Journal = open_journal(repo.path, at_rest.session)
        files = {"contract.md": EVIL.encode()} if how == "a brief of its own" else {}
        if how in CHANGES:
            files["contract.json"] = CHANGES[how][1](now.contracts()[-1])
        now.forge(files)

    attacker = Attacker(strike)
    around = Surroundings(
        found, store, key.load(found), Settings(), dict(os.environ), lambda: datetime.now(UTC), attacker,
        Stop(), Meter(None, lambda: datetime.now(UTC), attacker.say),
    )  # fmt: skip
    run = take_up(around, at_rest.session)
    run.prefer = "demo"
    run.record(Event.HANDOFF_ASKED, pause_reason="handoff", reason="asked", safe_point="ended", passed_over=())
    before = demo.prompts()
    with pytest.raises(SignatureRefused) as refusal:
        carry(run)
    assert refusal.value.exit_code == ExitCode.REFUSED
    assert EVIL not in str(refusal.value)
    assert demo.prompts() == before
    assert states(repo.path, at_rest.session)[-1]["state"] == "FAILED"
    shown = relay("status", cwd=repo.path)
    assert "FAILED" in shown.stdout
    assert f"git relay verify {at_rest.session}" in shown.stdout


def test_who_holds_the_key_can_sign_anything_and_that_is_the_limit_of_a_signature(repo, relay, at_rest) -> None:
    """Not a wish: docs/security.md says it, and this keeps the page true."""
    body = strict_parse(evil(at_rest.contracts()[-1]))
    sealed = seal(body, key.load(discover(repo.path, os.environ)))
    at_rest.forge({"contract.json": sealed.stored, "contract.md": sealed.brief.encode()})
    rows = json.loads(relay("verify", "--json", cwd=repo.path).stdout)["contracts"]
    assert rows[-1]["reason"] == "the note on its snapshot is not the brief that was signed"


def _brought(at: Journal):
    from relay_git.ledger import journal

    chain = reversed(list(journal.chain(at.store, at.session)))
    return [r for r in chain if r.entry.event is Event.CONTRACT_BUILT]


def _names(repo) -> list[str]:
    refs = repo.git("for-each-ref", "--format=%(refname)", "refs/relay/sessions/").split("\n")
    return [r.removeprefix("refs/relay/sessions/") for r in refs]
