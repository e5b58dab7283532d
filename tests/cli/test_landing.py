"""`land` and `drop`: the work comes over whole or not at all, and nothing is deleted that no other ref reaches."""

from __future__ import annotations

import re

import pytest

from tests.cli.scene import ACCEPT, LIMIT, WORK, commit, only_session, photograph, say, states, traces, write
from tests.seal.repo import Repo


@pytest.fixture
def landed(repo, relay, demo):
    """A repository with a finished session of two commits."""
    demo.plays([say("I begin."), write("one.txt", "1\n"), commit("One"), write("two.txt", "2\n"), commit("Two")])
    assert relay("start", "count to two", "--agent", "demo", cwd=repo.path).rc == 0
    return repo


@pytest.mark.parametrize(("how", "parents", "commits"), [("--merge", 2, 3), ("--squash", 1, 1), ("--rebase", 1, 2)])
def test_landing_brings_the_files_and_the_printed_way_back_takes_them_away(
    landed, relay, how, parents, commits
) -> None:
    landed.commit("meanwhile", {"mine.txt": "mine\n"})
    before, head = photograph(landed.path), landed.head
    ran = relay("land", how, cwd=landed.path)
    assert (ran.rc, ran.stderr) == (0, "")
    assert (landed.path / "one.txt").read_text() + (landed.path / "two.txt").read_text() == "1\n2\n"
    assert (landed.path / "mine.txt").read_text() == "mine\n"
    assert len(landed.git("rev-list", f"{head}..HEAD").split()) == commits
    assert len(landed.git("log", "-1", "--format=%P").split()) == parents
    assert landed.git("status", "--porcelain") == ""
    back = re.search(r"the way back: git (.*)", ran.stdout)
    assert back is not None
    landed.git(*back[1].split())
    after = photograph(landed.path)
    assert {k: v for k, v in after.items() if k != "index"} == {k: v for k, v in before.items() if k != "index"}


def test_landing_twice_says_that_there_is_nothing_to_land(landed, relay) -> None:
    assert relay("land", cwd=landed.path).rc == 0
    head = landed.head
    ran = relay("land", cwd=landed.path)
    assert ran.rc == 0
    assert "nothing to land: main already has all of" in ran.stdout
    assert landed.head == head
    assert "git relay drop" in relay("status", cwd=landed.path).stdout


@pytest.mark.parametrize("how", ["--merge", "--squash", "--rebase"])
def test_a_conflict_is_found_before_anything_is_touched(landed, relay, how) -> None:
    landed.commit("mine", {"one.txt": "another one\n"})
    before = photograph(landed.path)
    ran = relay("land", how, cwd=landed.path)
    assert (ran.rc, ran.stdout) == (1, "")
    assert "conflicts with your branch in one.txt; nothing was changed" in ran.stderr
    assert f"hint: git merge relay/{only_session(landed.path)}" in ran.stderr
    assert photograph(landed.path) == before


@pytest.mark.parametrize(
    ("how", "hook"),
    [
        ("--merge", "commit-msg"),
        ("--merge", "pre-merge-commit"),
        ("--squash", "pre-commit"),
        ("--rebase", "prepare-commit-msg"),
    ],
)
def test_a_user_s_hook_that_rejects_the_landing_leaves_the_branch_as_it_was(landed, relay, how, hook) -> None:
    landed.write(f".git/hooks/{hook}", "#!/bin/sh\necho no landing today >&2\nexit 1\n").chmod(0o755)
    landed.write("untracked.txt", "mine\n")
    landed.git("status")
    before = photograph(landed.path)
    ran = relay("land", how, cwd=landed.path)
    assert (ran.rc, ran.stdout) == (1, "")
    assert "your branch main is as it was" in ran.stderr
    after = photograph(landed.path)
    assert {k: v for k, v in after.items() if k != "index"} == {k: v for k, v in before.items() if k != "index"}
    for leftover in ("MERGE_HEAD", "MERGE_MSG", "SQUASH_MSG", "CHERRY_PICK_HEAD", "sequencer"):
        assert not (landed.path / ".git" / leftover).exists()
    (landed.path / ".git/hooks" / hook).unlink()
    assert relay("land", how, cwd=landed.path).rc == 0


def test_uncommitted_changes_or_files_in_the_way_refuse_the_landing_and_are_kept(landed, relay) -> None:
    landed.write("one.txt", "an untracked file of mine\n")
    before = photograph(landed.path)
    ran = relay("land", cwd=landed.path)
    assert ran.rc == 2
    assert "files of yours that git does not track are in the way: one.txt" in ran.stderr
    assert photograph(landed.path) == before
    landed.write(".git/info/exclude", "one.txt\n/.relay/\n")
    assert relay("land", cwd=landed.path).rc == 2
    assert (landed.path / "one.txt").read_text() == "an untracked file of mine\n"
    (landed.path / "one.txt").unlink()
    landed.write("README.md", "changed\n")
    before = photograph(landed.path)
    ran = relay("land", cwd=landed.path)
    assert ran.rc == 2
    assert "your work tree has uncommitted changes" in ran.stderr
    assert "hint: git stash" in ran.stderr
    assert photograph(landed.path) == before


def test_two_ways_of_landing_at_once_are_a_usage_error(landed, relay) -> None:
    ran = relay("land", "--merge", "--squash", cwd=landed.path)
    assert (ran.rc, ran.stdout) == (2, "")
    assert "give one of --merge, --squash and --rebase" in ran.stderr


def test_drop_refuses_work_that_is_on_no_other_branch_until_it_is_landed(landed, relay) -> None:
    session = only_session(landed.path)
    refs = landed.git("for-each-ref")
    ran = relay("drop", cwd=landed.path)
    assert (ran.rc, ran.stdout) == (2, "")
    assert "is on no other branch yet" in ran.stderr
    assert f"hint: git relay land {session}, or: git relay drop --force {session}" in ran.stderr
    assert landed.git("for-each-ref") == refs
    assert relay("land", cwd=landed.path).rc == 0
    ran = relay("drop", cwd=landed.path)
    assert ran.rc == 0
    assert f"removed worktree {landed.path}/.relay/sessions/{session}" in ran.stdout
    assert f"kept the history: git relay log {session}" in ran.stdout
    assert not (landed.path / ".relay").exists()
    assert [t for t in traces(landed.path) if "refs/relay/sessions" not in t and "refs/notes" not in t] == []
    assert relay("log", cwd=landed.path).stdout.rstrip().split("\n")[-1].split()[3] == "dropped"
    assert "no session here" in relay("status", cwd=landed.path).stdout
    assert session in relay("status", "--all", cwd=landed.path).stdout
    for again in (["drop"], ["handoff", "--to", "demo"]):
        ran = relay(*again, cwd=landed.path)
        assert ran.rc == 2
        assert "dropped" in ran.stderr


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("uncommitted.txt", "holds uncommitted work"),
        ("build/out.bin", "holds ignored files that no commit has (build/)"),
    ],
)
def test_drop_refuses_files_that_no_commit_has_and_force_takes_all_and_prints_the_ids(
    landed, relay, name, said
) -> None:
    landed.write(".git/info/exclude", "build/\n/.relay/\n")
    session = only_session(landed.path)
    assert relay("land", cwd=landed.path).rc == 0
    file = landed.path / ".relay/sessions" / session / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("precious\n")
    ran = relay("drop", cwd=landed.path)
    assert ran.rc == 2
    assert said in ran.stderr
    assert file.read_text() == "precious\n"
    tips = [landed.git("rev-parse", r) for r in (f"relay/{session}", f"refs/relay/sessions/{session}")]
    ran = relay("drop", "--force", cwd=landed.path)
    assert ran.rc == 0
    assert all(f"(was {tip})" in ran.stdout for tip in tips)
    assert traces(landed.path) == []
    assert landed.git("for-each-ref", "--format=%(refname)") == "refs/heads/main"


def test_a_session_at_work_can_be_neither_landed_nor_dropped_nor_uninstalled(repo, relay, demo) -> None:
    demo.plays(WORK, [ACCEPT])
    assert relay("start", "x", "--agent", "demo", cwd=repo.path).rc == 0
    demo.plays([say("a"), LIMIT])
    from relay_git.git.repo import discover
    from relay_git.ledger import journal

    session = only_session(repo.path)
    with journal.writer(discover(repo.path, {}), session):
        for command in (["land"], ["drop", "--force"]):
            ran = relay(*command, cwd=repo.path)
            assert (ran.rc, ran.stdout) == (1, "")
            assert f"another git relay is running the session {session}" in ran.stderr
        ran = relay("uninstall", cwd=repo.path)
        assert ran.rc == 2
        assert f"the session {session} is running" in ran.stderr


@pytest.fixture
def linked(landed, tmp_path):
    """A linked worktree of the user's at another commit than the main one, with a session to land in it."""
    place = Repo(tmp_path / "linked")
    landed.git("worktree", "add", "-q", "-b", "feature", str(place.path))
    place.commit("on the feature", {"feature.txt": "feature\n"})
    landed.commit("on main", {"main.txt": "main\n", "one.txt": "tracked on main only\n"})
    return place


@pytest.mark.parametrize("how", ["--merge", "--squash", "--rebase"])
def test_in_a_linked_worktree_the_work_lands_on_its_branch_and_the_way_back_leads_there(
    landed, linked, relay, how
) -> None:
    head, main = linked.head, landed.head
    ran = relay("land", how, cwd=linked.path)
    assert (ran.rc, ran.stderr) == (0, "")
    assert f"on feature: {head[:12]} -> {linked.head[:12]}" in ran.stdout
    assert linked.head != head
    assert (linked.path / "feature.txt").exists()
    assert (linked.path / "two.txt").read_text() == "2\n"
    reason = states(landed.path, only_session(landed.path))[-1]["reason"]
    assert reason == f"{how[2:]} on feature: {head[:12]} to {linked.head[:12]}"
    back = re.search(r"the way back: git (.*)", ran.stdout)
    linked.git(*back[1].split())
    assert (linked.head, landed.head) == (head, main)
    assert linked.git("symbolic-ref", "--short", "HEAD") == "feature"
    assert linked.git("status", "--porcelain") == ""


@pytest.mark.parametrize("how", ["--merge", "--squash", "--rebase"])
@pytest.mark.parametrize("why", ["hook", "conflict", "in the way"])
def test_a_landing_that_fails_in_a_linked_worktree_leaves_every_branch_as_it_was(
    landed, linked, relay, how, why
) -> None:
    if why == "hook":
        for hook in ("pre-merge-commit", "pre-commit", "prepare-commit-msg"):
            landed.write(f".git/hooks/{hook}", "#!/bin/sh\nexit 1\n").chmod(0o755)
    elif why == "conflict":
        linked.write("two.txt", "mine\n")
        linked.git("add", "-A")
        linked.git("commit", "-q", "-m", "mine")
    else:
        linked.write("one.txt", "untracked and precious\n")
    refs, status = linked.git("for-each-ref"), linked.git("status", "--porcelain")
    head = linked.head
    ran = relay("land", how, cwd=linked.path)
    assert ran.rc in (1, 2)
    assert linked.git("for-each-ref") == refs
    assert linked.git("status", "--porcelain") == status
    assert linked.head == head
    assert linked.git("symbolic-ref", "--short", "HEAD") == "feature"
    said = {
        "hook": "your branch feature is as it was",
        "conflict": "in two.txt; nothing was changed",
        "in the way": "in the way: one.txt",
    }
    assert said[why] in ran.stderr


def test_a_rebase_that_conflicts_halfway_goes_back_to_where_the_linked_worktree_stood(
    repo, tmp_path, relay, demo
) -> None:
    steps = [
        write("a.txt", "1\n"),
        commit("A"),
        write("README.md", "theirs\n"),
        commit("B"),
        write("README.md", "mine\n"),
    ]
    demo.plays([say("I begin."), *steps, commit("C")])
    assert relay("start", "x", "--agent", "demo", cwd=repo.path).rc == 0
    place = Repo(tmp_path / "linked")
    repo.git("worktree", "add", "-q", "-b", "feature", str(place.path))
    head = place.commit("the same end", {"README.md": "mine\n"})
    ran = relay("land", "--rebase", cwd=place.path)
    assert ran.rc == 1
    assert "your branch feature is as it was" in ran.stderr
    assert (place.head, place.git("status", "--porcelain")) == (head, "")
    assert relay("land", cwd=place.path).rc == 0


def test_a_hook_that_moves_head_itself_is_told_and_nothing_is_reset(landed, relay) -> None:
    move = "git update-ref refs/heads/main $(git commit-tree -p HEAD -m theirs HEAD^{tree}); exit 1"
    landed.write(".git/hooks/pre-merge-commit", f"#!/bin/sh\n{move}\n").chmod(0o755)
    head = landed.head
    ran = relay("land", cwd=landed.path)
    assert ran.rc == 1
    assert landed.git("log", "-1", "--format=%s %P") == f"theirs {head}"
    assert f"HEAD has moved to {landed.head} meanwhile, and was left there" in ran.stderr
    assert head in ran.stderr


def test_a_session_from_a_linked_worktree_starts_from_what_stands_there(landed, linked, relay, demo) -> None:
    demo.plays([say("I begin.")])
    head, main = linked.head, landed.head
    older = linked.git("rev-parse", "HEAD~1")
    for number, (words, base) in enumerate(
        [([], head), (["--base", "@"], head), (["--base", "HEAD~1"], older), (["--base", "main"], main)]
    ):
        assert relay("start", f"number {number}", "--agent", "demo", *words, cwd=linked.path).rc == 0
        (name,) = landed.git("for-each-ref", "--format=%(refname:short)", f"refs/heads/relay/number-{number}-*").split()
        assert landed.git("rev-parse", name) == base
    linked.write("feature.txt", "carried\n")
    assert relay("start", "carry it", "--agent", "demo", "--carry", cwd=linked.path).rc == 0
    (name,) = landed.git("for-each-ref", "--format=%(refname:short)", "refs/heads/relay/carry-*").split()
    assert landed.git("rev-parse", f"{name}~1") == head
    assert landed.git("show", f"{name}:feature.txt") == "carried"
    assert linked.git("status", "--porcelain") == " M feature.txt"
    assert landed.head == main
