"""One damaged journal: the commands say so, and go on with the other sessions."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from relay_git.errors import ExitCode
from relay_git.git.store import RefUpdate
from relay_git.ledger import journal
from tests.git.conftest import open_session
from tests.ledger.conftest import Written, write_session

BAD = "bad-0002"


def _garbage(bad: Written, git_dir) -> None:
    (git_dir / journal.ref_of(bad.session.id)).write_text("what is this\n")


def _empty(bad: Written, git_dir) -> None:
    (git_dir / journal.ref_of(bad.session.id)).write_bytes(b"")


def _dangling(bad: Written, git_dir) -> None:
    (git_dir / journal.ref_of(bad.session.id)).write_text("ref: refs/heads/not-there\n")


def _no_object(bad: Written, git_dir) -> None:
    (git_dir / journal.ref_of(bad.session.id)).write_text("1" * 40 + "\n")


def _no_state(bad: Written, git_dir) -> None:
    store, ref = bad.session.store, journal.ref_of(bad.session.id)
    store.move([RefUpdate(ref, bad.session.base, store.ref(ref))], "damage")


def _hole(bad: Written, git_dir) -> None:
    gone = bad.brought[0].oid
    # It may lie in the repository, and with the store that wrote it and is still open.
    for objects in (git_dir / "objects", *git_dir.glob("relay/fresh/*")):
        (objects / gone[:2] / gone[2:]).unlink(missing_ok=True)


DAMAGE: dict[str, Callable] = {
    "garbage in the ref": _garbage,
    "an empty ref": _empty,
    "a ref to nothing": _dangling,
    "a missing object": _no_object,
    "a commit without a state": _no_state,
    "a hole in the chain": _hole,
}


@pytest.fixture(params=DAMAGE)
def good(repo, request) -> Written:
    """A whole session with two contracts, beside one whose journal is damaged."""
    good = write_session(open_session(repo), "one\n", "two\n")
    DAMAGE[request.param](write_session(open_session(repo, BAD), "x\n", "y\n"), repo.path / ".git")
    return good


def test_the_others_are_verified_shown_and_listed_and_the_damaged_one_is_named(repo, relay, good) -> None:
    ran = relay("verify", "--all", "--json", cwd=repo.path)
    assert ran.rc == ExitCode.REFUSED, ran.stderr
    rows = [(r["sessionId"], r["outcome"]) for r in json.loads(ran.stdout)["contracts"]]
    assert rows == [(BAD, "malformed"), (good.session.id, "superseded"), (good.session.id, "valid")]
    assert relay("verify", BAD, cwd=repo.path).rc == ExitCode.REFUSED
    assert relay("verify", good.session.id, cwd=repo.path).rc == 0

    shown = relay("verify", f"c-{good.session.id}-2", cwd=repo.path)
    assert (shown.rc, shown.stdout.count("valid")) == (0, 1)
    shown = relay("show", f"c-{good.session.id}-1", "--json", cwd=repo.path)
    assert shown.rc == ExitCode.DONE, shown.stderr
    assert json.loads(shown.stdout)["outcome"] == "superseded"
    assert relay("show", BAD, cwd=repo.path).rc == ExitCode.FAILED

    listed = relay("status", "--json", cwd=repo.path)
    assert listed.rc == 0, listed.stderr
    bad, fine = json.loads(listed.stdout)["sessions"]
    assert (bad["id"], bad["state"], fine["id"], fine["state"]) == (BAD, "DAMAGED", good.session.id, "RUNNING")
    assert bad["reason"]
    assert bad.keys() == fine.keys()
    table = relay("status", cwd=repo.path)
    assert (table.rc, "DAMAGED" in table.stdout) == (0, True)


def test_a_session_is_found_without_reading_the_damaged_one(good) -> None:
    store = good.session.store
    assert journal.find(store, good.session.id) == good.session.id
    assert journal.find(store, "bad") == BAD
