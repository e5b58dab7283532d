"""Many sessions in one repository at the same moment, and git's own housekeeping at any moment."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from relay_git.git.hooks import CONFIGURED_HOOKS
from relay_git.git.repo import discover
from relay_git.git.store import BLOB_MODE, ZERO, Oid, RefUpdate, TreeEntry, open_store
from relay_git.ledger import journal, notes
from tests.cli.scene import ACCEPT, LIMIT, commit, everything, only_session, photograph, processes_of, say, write
from tests.seal.environment import ROOT
from tests.seal.repo import git_version

FIRST = [say("I begin."), write("made.txt", "made\n"), commit("Make it"), write("half.txt", "half\n"), LIMIT]
SECOND = [ACCEPT, say("I go on."), write("half.txt", "whole\n"), commit("Finish it"), say("It is done.")]


def start_all(repo, number: int) -> list[str]:
    """So many sessions of one task at the same moment, each to its end; what each said."""
    argv = ["git-relay", "start", "the same task", "--agent", "demo", "--then", "demo"]
    logs = [repo.path.parent / f"said-{i}" for i in range(number)]
    begun = []
    for log in logs:
        with log.open("wb") as out:
            begun.append(subprocess.Popen(argv, cwd=repo.path, stdin=subprocess.DEVNULL, stdout=out, stderr=out))
    codes = [process.wait(600) for process in begun]
    said = [log.read_text() for log in logs]
    assert codes == [0] * number, [text[-600:] for code, text in zip(codes, said, strict=True) if code]
    return said


def hold_all_to_their_promises(repo, relay, number: int) -> None:
    sessions = repo.git("for-each-ref", "--format=%(refname:lstrip=3)", "refs/relay/sessions/").split("\n")
    assert len(sessions) == len(set(sessions)) == number
    shown = json.loads(relay("status", "--json", cwd=repo.path).stdout)["sessions"]
    assert {(s["state"], s["leg"], s["running"]) for s in shown} == {("DONE", 2, False)}
    verified = json.loads(relay("verify", "--all", "--json", cwd=repo.path).stdout)
    assert ([c["outcome"] for c in verified["contracts"]], verified["refused"]) == (["valid"] * number, 0)
    for session in sessions:
        log = repo.git("log", "--format=%s", f"main..relay/{session}").split("\n")
        assert (log.count("Make it"), log.count("Finish it")) == (1, 1)
        assert repo.git("show", f"relay/{session}:half.txt") == "whole"
        assert processes_of(session) == []
    locks = [f for f in everything(repo.git_dir, leave_out=set()) if f.name.endswith(".lock")]
    assert [f for f in locks if f.parent != repo.git_dir / "relay" / "locks"] == []
    assert "missing" not in repo.git("fsck", "--connectivity-only")


def test_many_sessions_started_at_the_same_moment_all_reach_their_end(repo, relay, demo) -> None:
    demo.plays(FIRST, SECOND)
    before = photograph(repo.path)
    start_all(repo, 10)  # `python -m bench crowd` does it with fifty
    hold_all_to_their_promises(repo, relay, 10)
    assert photograph(repo.path) == before


HOUSEKEEPING = (
    ("gc", "--quiet", "--prune=now"),
    ("pack-refs", "--all"),
    ("worktree", "prune", "--expire=now"),
    ("fetch", "--quiet", "--prune", "origin"),
    ("repack", "-adq"),
    ("maintenance", "run", "--quiet"),
    ("prune", "--expire=now"),
)


@contextmanager
def housekeeping(repo) -> Iterator[list[str]]:
    """All of it in a loop beside the block; which commands ended well."""
    over, well = threading.Event(), list[str]()

    def loop() -> None:
        while not over.is_set():
            for words in HOUSEKEEPING:
                well.extend([words[0]] if repo.try_git(*words).returncode == 0 else [])

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield well
    finally:
        over.set()
        thread.join()


def test_housekeeping_at_any_moment_takes_nothing_that_a_session_needs(repo, make_repo, relay, demo) -> None:
    origin = make_repo("origin", bare=True)
    repo.git("remote", "add", "origin", str(origin.path))
    repo.git("push", "--quiet", "origin", "main")
    # What people set to fetch all: without care a prune takes every ref of ours that the remote lacks.
    repo.git("config", "--add", "remote.origin.fetch", "+refs/notes/*:refs/notes/origin/*")
    demo.plays([step for step in FIRST if step["do"] != "commit"], [ACCEPT, write("half.txt", "whole\n"), say("Done.")])
    with housekeeping(repo) as well:
        start_all(repo, 3)
    assert {words[0] for words in HOUSEKEEPING} - set(well) <= {"maintenance"}
    assert relay("verify", "--all", cwd=repo.path).rc == 0
    assert "missing" not in repo.git("fsck", "--connectivity-only")
    for ref in repo.git("for-each-ref", "--format=%(refname)", "refs/heads/relay/").split("\n"):
        assert repo.git("show", f"{ref}:half.txt") == "whole"


def test_sixteen_processes_that_write_contracts_notes_and_safe_points_keep_every_one(repo, relay) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.race.sixteen", repo.path], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    verified = json.loads(relay("verify", "--all", "--json", cwd=repo.path).stdout)
    outcomes = [c["outcome"] for c in verified["contracts"]]
    assert (outcomes.count("superseded"), outcomes.count("valid"), len(outcomes)) == (16, 16, 32)
    for session in (f"work-{number:04x}" for number in range(16)):
        assert repo.git("rev-list", "--count", "--first-parent", f"refs/relay/sessions/{session}") == "9"
        assert len(repo.git("notes", f"--ref=relay/{session}", "list").split("\n")) == 2
        assert repo.git("show", f"relay/{session}:work.txt") == "two"
        marks = repo.git_dir / "worktrees" / session / "relay" / "safepoints"
        if git_version() < CONFIGURED_HOOKS:  # there the hook is named in an agent's environment
            assert len(marks.read_text().split("\n")) == 3
    repo.git("fsck", "--strict")


def test_sixteen_writers_of_entries_notes_and_branches_keep_every_one(repo) -> None:
    found = discover(repo.path, {})

    def add(number: int) -> None:
        store = open_store(found.common_dir)
        session, tip, branch = f"work-{number:04x}", ZERO, ZERO
        for step in range(12):
            tree = store.write_tree([TreeEntry(b"state.json", BLOB_MODE, store.write_blob(b"%d" % step))])
            fresh = store.write_commit(tree, [] if tip == ZERO else [tip], f"step {step}", 1_790_000_000)
            store.move([RefUpdate(journal.ref_of(session), fresh, tip)], "test")
            store.move([RefUpdate(f"refs/heads/relay/{session}", fresh, branch)], "test")
            notes.write(store, session, Oid(fresh), b"brief %d" % step, 1_790_000_000)
            tip = branch = fresh

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(add, range(16)))
    for number in range(16):
        session = f"work-{number:04x}"
        for ref in (journal.ref_of(session), f"refs/heads/relay/{session}"):
            assert repo.git("log", "--format=%s", ref).split("\n") == [f"step {n}" for n in reversed(range(12))]
        assert len(repo.git("notes", f"--ref=relay/{session}", "list").split("\n")) == 12
    repo.git("fsck", "--strict")


def test_a_new_session_asks_for_the_lock_of_none_that_is_there(repo, relay, demo) -> None:
    demo.plays(FIRST)
    assert relay("start", "one", "--agent", "demo", cwd=repo.path).rc == 1
    lock = repo.git_dir / "relay/locks" / f"{only_session(repo.path)}.lock"
    lock.unlink()  # who asked for it would make it again, and wait a second where somebody has it
    assert relay("start", "two", "--agent", "demo", cwd=repo.path).rc == 1
    assert not lock.exists()
    assert relay("handoff", lock.stem, "--to", "demo", cwd=repo.path).rc == 1
    assert lock.exists()
