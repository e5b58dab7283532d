"""Secrets that something hidden cuts up, or that rendering would put together: no form of a contract shows them."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from relay_git.contract import dsse, relay_v2
from relay_git.contract.brief import brief, foreign_brief, reminder
from relay_git.contract.build import build
from relay_git.contract.canonical import JsonObject, canonical
from relay_git.contract.model import Contract
from relay_git.contract.page import page
from relay_git.contract.placeholder import Policy
from relay_git.contract.redact import redact, redact_contract
from relay_git.contract.sign import seal
from relay_git.contract.verify import Outcome, Refused, verify
from relay_git.git.work import FileChange, FileStatus, Hunk
from tests.contract.samples import KEY, PAUSE, RECORD, WORK, Snapshots, identity, place
from tests.contract.test_hostile import full

RANDOM = "Wq7Rk2Lm9Xw4Tn6Vb8Yc3Hd5Jf1Gp0Sa"
KEY_LIKE = "sk-" + "ant-api03-" + RANDOM
GITHUB = "gh" + "p_" + RANDOM + "Zq7R"
CUTS = (
    *("\x1b[0m", "\x1b[01;31m\x1b[K", "\x1b(B\x1b[m", "\x1b]0;title\x07", "\x1b7", "\x9b1m", "\0", "\x07", "\x7f"),
    *("\u200b", "\u202e", "\u2066", "\ufeff", "\xad", "\ufe0f", "\u034f", "\u2028", "\U000e0041", "\u200d\u200c"),
)
SHAPES = (
    (KEY_LIKE, KEY_LIKE),
    (f"token {GITHUB}", GITHUB),
    (f"API_KEY={RANDOM}", RANDOM),
    (f'{{"password": "{RANDOM}"}}', RANDOM),
    (f"postgres://app:{RANDOM}@db.internal/x", RANDOM),
    (f"Authorization: Bearer {RANDOM}", RANDOM),
    (f"the password is {RANDOM}", RANDOM),
)
SPELLED = re.compile(r"<U\+[0-9A-F]{4,6}>|\\(?=<U\+)|[\0-\x08\x0b-\x1f\x7f-\x9f\ufe0f]")


def forms(contract: JsonObject) -> list[str]:
    """All that anybody is shown of it."""
    theirs = relay_v2.exported(contract, b"k" * 32)
    envelope = dsse.sealed(contract, KEY)
    payload = json.dumps(json.loads(base64.b64decode(envelope["payload"])), ensure_ascii=False)
    texts = [brief(contract), foreign_brief(contract), reminder(contract), page(contract)]
    return [*texts, canonical(contract).decode(), payload, relay_v2.written(theirs)]


def halves(secret: str) -> tuple[str, str]:
    return secret[: len(secret) // 2], secret[len(secret) // 2 :]


@st.composite
def cut_up(draw: st.DrawFn) -> tuple[str, str]:
    """A secret in its shape with something hidden in it, or before it, between other words."""
    text, secret = draw(st.sampled_from(SHAPES))
    for at in sorted(draw(st.sets(st.integers(0, len(text)), min_size=1, max_size=4)), reverse=True):
        text = text[:at] + draw(st.sampled_from(CUTS)) + text[at:]
    words = st.lists(st.sampled_from(("plain", "words", "\n", "`", "\t", "- ", "<b>", *CUTS)), max_size=4).map(" ".join)
    return f"{draw(words)} {text} {draw(words)}", secret


@settings(max_examples=60, deadline=None)
@given(cut_up())
@example((f"foo\x1b[1msk-\x1b[0m{KEY_LIKE[3:]}", KEY_LIKE))
@example((f"API_KEY\x1b[0m=\x1b[33m{RANDOM}\x1b[0m", RANDOM))
def test_no_form_of_a_contract_shows_a_secret_that_something_hidden_cuts_up(found: tuple[str, str]) -> None:
    said, secret = found
    contract, _ = redact_contract(full(said) | {"branch": said}, Policy(b"k" * 32))
    for form in forms(contract):
        read = SPELLED.sub("", form)
        for half in halves(secret):
            assert half not in read
    assert redact(brief(contract)) == (brief(contract), {})


def test_what_only_holds_colours_stays_as_it_is() -> None:
    said = "\x1b[32mall\x1b[0m 12 tests\u200b passed\n\n  in 3 s"
    assert redact(said) == (said, {})
    assert redact_contract({"nextAction": said})[0] == {"nextAction": said}


def test_a_value_that_comes_to_stand_behind_its_name_on_one_line_is_taken_out() -> None:
    made = redact_contract({"nextAction": f"log in, password:\n\n  {RANDOM}", "taskGoal": "a\n\n  b"})[0]
    assert made == {"nextAction": "log in, password: [redacted:assignment]", "taskGoal": "a\n\n  b"}


def test_a_secret_that_is_cut_up_is_the_same_as_one_that_is_whole() -> None:
    policy = Policy(b"k" * 32)
    whole, parts = (redact(text, policy)[0] for text in (KEY_LIKE, f"{KEY_LIKE[:9]}\u200b{KEY_LIKE[9:]}"))
    assert whole == parts


@pytest.mark.parametrize("before", [b"", b"caf\xe9", b"ab\xe9"])
def test_a_file_or_branch_whose_name_is_a_secret_is_not_named_and_the_contract_still_verifies(before: bytes) -> None:
    name = before + GITHUB.encode()
    changed = FileChange(b"keys/" + name, FileStatus.ADDED, "2" * 64)
    work = replace(
        WORK,
        branch=f"fix/{GITHUB}",
        files=(*WORK.files, changed),
        hunks=(Hunk(changed.path, f"+++ b/keys/{GITHUB}\n+x\n", truncated=False),),
    )
    contract = build(identity(), PAUSE, RECORD, work)
    for form in forms(contract):
        assert GITHUB not in form
        assert base64.b64encode(name).decode()[4:-6] not in form
    sealed = seal(contract, KEY)
    Contract.model_validate_json(sealed.stored)
    found = verify(sealed.stored, KEY, place(sealed), Snapshots())
    assert not isinstance(found, Refused), found
    assert found.outcome is Outcome.VALID
