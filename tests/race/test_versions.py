"""Two relays of different versions: the older one says so and changes nothing, and an upgrade is harmless."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from relay_git.contract.canonical import canonical
from relay_git.contract.sign import sign
from relay_git.errors import FormatTooNew
from relay_git.git.repo import discover
from relay_git.git.store import BLOB_MODE, RefUpdate, TreeEntry, open_store
from relay_git.ledger import journal
from relay_git.ledger.key import load
from tests.cli.scene import ACCEPT, LIMIT, only_session, say, states, wait_for, write
from tests.seal.environment import ROOT

NEWER = "written by a newer git relay"
UPGRADE = "hint: pip install --upgrade git-relay"


LEGS = ([say("I begin."), write("made.txt", "made\n"), LIMIT], [ACCEPT, say("It is done.")])


def as_newer(repo, session: str, *, state: dict[str, object] | None = None, contract: dict[str, object] | None = None):
    """Put an entry on top of the journal as a newer git relay could have written it."""
    found = discover(repo.path, os.environ)
    store = open_store(found.common_dir)
    tip = journal.tip(store, session)
    entries = {e.name: e for e in store.tree(tip.commit.tree)}
    for name, changes in ((b"state.json", state), (b"contract.json", contract)):
        if changes is not None:
            body = json.loads(store.blob(entries[name].oid)) | changes
            data = canonical(body) if name == b"state.json" else sign(body, load(found))
            entries[name] = TreeEntry(name, BLOB_MODE, store.write_blob(data))
    commit = store.write_commit(store.write_tree(entries.values()), [tip.oid, *tip.commit.parents[1:]], "Newer", 1)
    store.move([RefUpdate(journal.ref_of(session), commit, tip.oid)], "test")


def everything_of(repo, session: str) -> list[str]:
    places = [repo.path / ".relay", repo.git_dir / "relay" / "spool" / session, repo.git_dir / "worktrees" / session]
    files = [f for place in places for f in sorted(place.rglob("*")) if f.is_file()]
    return [repo.git("for-each-ref"), *(f"{f} {f.read_bytes()!r}" for f in files)]


@pytest.mark.parametrize("part", ["journal", "contract"])
def test_an_older_relay_leaves_a_newer_session_alone_and_says_what_to_do(repo, relay, demo, part) -> None:
    demo.plays(*LEGS)
    assert relay("start", "x", "--agent", "demo", cwd=repo.path).rc == 1
    session = only_session(repo.path)
    future = {"version": 2, "freshMember": [1]}
    as_newer(repo, session, **({"state": future} if part == "journal" else {"contract": future}))
    before = everything_of(repo, session)
    for words in (
        ("handoff", session, "--to", "demo"),
        ("resume", session),
        ("land", session),
        ("drop", session),
        ("drop", session, "--force", "--purge"),
    ):
        ran = relay(*words, cwd=repo.path)
        assert (ran.rc, NEWER in ran.stderr, UPGRADE in ran.stderr) == (1, True, True), (words, ran)
        assert everything_of(repo, session) == before, words
    verified = relay("verify", "--all", cwd=repo.path)
    assert (verified.rc, "unsupported-version" in verified.stdout) == (3, True)
    if part == "journal":
        assert "NEWER" in relay("status", cwd=repo.path).stdout


def test_a_word_that_was_added_since_is_newer_and_a_wrong_one_is_damage() -> None:
    body = {"format": journal.FORMAT, "version": journal.VERSION}
    for member, word in (("state", "HIBERNATING"), ("event", "dreamt-of")):
        with pytest.raises(FormatTooNew, match=word):
            journal.parse(canonical(body | {member: word}))
    for wrong in ("", "two words", "x" * 41, 7):
        with pytest.raises(journal.RepoError, match="damaged") as refused:
            journal.parse(canonical(body | {"state": wrong}))
        assert not isinstance(refused.value, FormatTooNew)


def test_a_newer_session_is_not_in_the_way_of_the_others(repo, relay, demo) -> None:
    demo.plays(*LEGS)
    assert relay("start", "first", "--agent", "demo", cwd=repo.path).rc == 1
    newer = only_session(repo.path)
    as_newer(repo, newer, state={"version": 2})
    before = repo.git("rev-parse", f"refs/relay/sessions/{newer}", f"relay/{newer}")
    assert relay("start", "second", "--agent", "demo", "--then", "demo", cwd=repo.path).rc == 0
    (mine,) = (r for r in json.loads(relay("status", "--json", cwd=repo.path).stdout)["sessions"] if r["id"] != newer)
    assert mine["state"] == "DONE"
    assert relay("land", mine["id"], cwd=repo.path).rc == 0
    assert relay("drop", mine["id"], cwd=repo.path).rc == 0
    assert repo.git("rev-parse", f"refs/relay/sessions/{newer}", f"relay/{newer}") == before


def test_members_that_an_older_relay_did_not_know_yet_have_their_defaults(repo, relay, demo) -> None:
    demo.plays(*LEGS)
    assert relay("start", "x", "--agent", "demo", cwd=repo.path).rc == 1
    session = only_session(repo.path)
    found = discover(repo.path, os.environ)
    store = open_store(found.common_dir)
    tip = journal.tip(store, session)
    first = ("sessionId", "state", "event", "at", "leg", "agent", "title", "baseCommit", "branch", "format", "version")
    needed = (*first, "contractId", "snapshot", "candidates", "pauseReason")
    body = {k: v for k, v in states(repo.path, session)[-1].items() if k in needed}
    entries = {e.name: e for e in store.tree(tip.commit.tree)}
    entries[b"state.json"] = TreeEntry(b"state.json", BLOB_MODE, store.write_blob(canonical(body)))
    commit = store.write_commit(store.write_tree(entries.values()), [tip.oid], "Older", 1)
    store.move([RefUpdate(journal.ref_of(session), commit, tip.oid)], "test")
    ran = relay("handoff", session, "--to", "demo", cwd=repo.path)
    assert ran.rc == 0, ran.stderr
    assert relay("verify", "--all", cwd=repo.path).rc == 0


POISON = "import os\nif os.getpid() == {pid}: raise ImportError('taken from the new version: ' + __name__)\n"


def test_an_upgrade_under_a_running_supervisor_mixes_no_two_versions(repo, demo, tmp_path) -> None:
    package = tmp_path / "installed" / "relay_git"
    shutil.copytree(ROOT / "relay_git", package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "hooks", package / "hooks", dirs_exist_ok=True)
    go = tmp_path / "go"
    wait = {"do": "shell", "argv": ["sh", "-c", f"until [ -e '{go}' ]; do sleep 0.05; done"]}
    demo.plays([say("I begin."), write("made.txt", "made\n"), wait, LIMIT], [ACCEPT, say("It is done.")])
    env = {**os.environ, "PYTHONPATH": str(package.parent)}
    argv = [sys.executable, "-m", "relay_git", "start", "x", "--agent", "demo", "--then", "demo"]
    with (tmp_path / "said").open("wb") as said:
        supervisor = subprocess.Popen(argv, cwd=repo.path, env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    try:
        made = repo.path / ".relay/sessions"
        wait_for(lambda: list(made.glob("*/made.txt")))
        session = only_session(repo.path)
        wait_for(lambda: "shell sh -c" in (tmp_path / "said").read_text())
        for file in package.rglob("*.py"):
            text = file.read_text()
            future = "from __future__ import annotations\n"
            poison = POISON.format(pid=supervisor.pid)
            file.write_text(text.replace(future, future + poison, 1) if future in text else poison + text)
        go.touch()
        assert supervisor.wait(60) == 0, (tmp_path / "said").read_text()
    finally:
        supervisor.kill()
        supervisor.wait()
    assert states(repo.path, session)[-1]["state"] == "DONE"
