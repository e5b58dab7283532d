"""Commits that no hook sees, and history that an agent rewrites: safe points are found, and every contract stays."""

from __future__ import annotations

import json
import sys

import pytest

from tests.cli.scene import ACCEPT, LIMIT, commit, only_session, say, shell, write
from tests.hooks.scene import ASK_NOW, REBASE_UNTIL_PAUSED, hand_over

PLUMBING = 'git add two && git update-ref HEAD "$(git commit-tree -p HEAD -m Two "$(git write-tree)")"'
LIBGIT2 = """\
import pygit2
repo = pygit2.Repository(".")
repo.index.add("two"); repo.index.write()
who = pygit2.Signature("Tool", "tool@example.invalid")
repo.create_commit("HEAD", who, who, "Two", repo.index.write_tree(), [repo.head.target])
"""
UNSEEN = {
    "plumbing": [shell("sh", "-c", PLUMBING)],
    "hooks switched off": [shell("sh", "-c", "git add two && git -c core.hooksPath=/dev/null commit -qm Two")],
    "no-verify": [shell("sh", "-c", "git add two && git commit -q --no-verify -m Two")],
    "libgit2": [shell(sys.executable, "-c", LIBGIT2)],
    "another branch": [shell("git", "switch", "-qc", "other"), shell("sh", "-c", PLUMBING)],
    "detached": [shell("git", "switch", "-q", "--detach"), shell("sh", "-c", PLUMBING)],
}


@pytest.mark.parametrize("how", UNSEEN)
def test_a_commit_that_runs_no_hook_is_a_safe_point_all_the_same(repo, relay, demo, how) -> None:
    done = hand_over(
        repo, relay, demo, [write("one", "1\n"), commit("One"), *ASK_NOW, write("two", "2\n"), *UNSEEN[how]]
    )
    assert done.contract["pause"]["safePoint"] == "commit"
    assert repo.git("log", "-1", "--format=%s", done.contract["snapshotCommit"]) == "Two"
    assert repo.git("show", f"{done.contract['snapshotCommit']}:two") == "2"


@pytest.mark.parametrize("hooks", ["as they are", "none"])
def test_a_rebase_is_one_safe_point_at_its_end(repo, relay, demo, hooks) -> None:
    if hooks == "none":
        repo.git("config", "core.hooksPath", "/dev/null")
    work = [write("one", "1\n"), commit("One"), write("two", "2\n"), commit("Two")]
    done = hand_over(repo, relay, demo, [*work, REBASE_UNTIL_PAUSED])
    assert done.contract["pause"]["safePoint"] == "commit"
    assert not any("half-done" in loss for loss in done.contract["losses"])
    assert repo.git("log", "--format=%s", f"main..{done.contract['snapshotCommit']}") == "Two\nOne"
    assert repo.git("show", f"{done.contract['snapshotCommit']}:two") == "2"
    assert done.contract["branch"] == f"relay/{only_session(repo.path)}"


REWRITES = {
    "amend": "git commit -q --amend -m Other",
    "rebase onto main": "git rebase -q --onto main HEAD~1",
    "squash": "git reset -q --soft HEAD~2 && git commit -qm Both",
    "autosquash": "echo x >>a && git add a && git commit -q --fixup HEAD~1 && "
    "GIT_SEQUENCE_EDITOR=true git rebase -q -i --autosquash HEAD~3",
    "cherry-pick": "was=$(git branch --show-current) && git switch -qC side main && git cherry-pick $was~1 $was && "
    "git branch -qf $was && git switch -q $was",
    "reset": "git reset -q --hard main",
    "branch renamed": "git branch -m renamed",
    "branch deleted": 'was=$(git branch --show-current) && git switch -q --detach && git branch -qD "$was"',
    "no-verify": "echo c >c && git add c && git commit -q --no-verify -m C",
    "filtered": "git filter-branch -f --msg-filter 'sed s/A/Z/' main..HEAD >/dev/null 2>&1",
}


@pytest.mark.parametrize("how", REWRITES)
def test_history_that_an_agent_rewrites_leaves_every_contract_findable_and_verifiable(repo, relay, demo, how) -> None:
    first = [
        say("I begin."),
        write("a", "a\n"),
        commit("A"),
        write("b", "b\n"),
        commit("B"),
        write("half", "h\n"),
        LIMIT,
    ]
    undo = shell("sh", "-c", "git reset -q --soft HEAD~1 && git rm -qf half")  # the snapshot of ours is rewritten too
    second = [ACCEPT, undo, shell("sh", "-exc", f"{REWRITES[how]} && touch rewritten"), write("after", "1\n"), LIMIT]
    demo.plays(first, second)
    ran = relay("start", "x", "--agent", "demo", "--then", "demo", cwd=repo.path)
    assert ran.rc == 1, ran
    repo.git("reflog", "expire", "--expire=now", "--all")
    repo.git("gc", "-q", "--prune=now")
    session = only_session(repo.path)
    verified = relay("verify", "--all", "--json", cwd=repo.path)
    found = json.loads(verified.stdout)["contracts"]
    assert (verified.rc, [c["outcome"] for c in found]) == (0, ["superseded", "valid"])
    for contract in found:
        shown = relay("show", contract["contractId"], "--json", cwd=repo.path)
        assert shown.rc == 0, shown
        of = json.loads(shown.stdout)["contract"]
        note = repo.git("log", "-1", "--format=%N", f"--notes=relay/{session}", of["snapshotCommit"])
        assert contract["contractId"] in note
    assert repo.git("show", f"{of['snapshotCommit']}:after") == "1"
    assert repo.git("show", f"{of['snapshotCommit']}:rewritten") == ""  # else the rewriting itself has failed
    story = relay("log", session, cwd=repo.path).stdout
    assert all(contract["contractId"] in story for contract in found)
