"""`land` and `drop`: the work comes over whole or not at all, and nothing is deleted that no other ref reaches."""

from __future__ import annotations

import re
import shutil

import pytest

from relay_git.contract.lifecycle import RESTS, Event, State
from relay_git.ledger import journal
from relay_git.ledger.journal import Entry
from relay_git.ledger.key import ensure
from tests.cli.scene import ACCEPT, LIMIT, WORK, commit, only_session, photograph, say, shell, states, traces, write
from tests.git.conftest import open_session
from tests.ledger.conftest import AT
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
def test_drop_refuses_files_that_no_commit_has_force_gives_them_up_and_purge_takes_the_journal(
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
    assert (ran.rc, ran.stderr) == (0, "")
    assert f"(was {tips[0]})" in ran.stdout
    assert f"kept the history: git relay log {session}" in ran.stdout
    assert not (landed.path / ".relay").exists()
    tips[1] = landed.git("rev-parse", f"refs/relay/sessions/{session}")
    assert relay("drop", "--force", cwd=landed.path).rc == 2
    ran = relay("drop", "--purge", cwd=landed.path)
    assert (ran.rc, ran.stderr) == (0, "")
    assert f"(was {tips[1]})" in ran.stdout
    assert "removed worktree" not in ran.stdout
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
            assert f"git relay stop {session}" in ran.stderr
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


@pytest.mark.parametrize("how", ["--squash", "--rebase"])
def test_what_was_landed_as_other_commits_can_be_dropped_and_the_journal_keeps_the_originals(
    landed, relay, how
) -> None:
    session = only_session(landed.path)
    work = landed.git("rev-parse", f"relay/{session}")
    landed.commit("meanwhile", {"mine.txt": "mine\n"})
    assert relay("land", how, cwd=landed.path).rc == 0
    assert relay("drop", "--purge", cwd=landed.path).rc == 2
    ran = relay("drop", cwd=landed.path)
    assert (ran.rc, ran.stderr) == (0, "")
    forget(landed)
    assert landed.git("cat-file", "-t", work) == "commit"
    ran = relay("drop", "--purge", cwd=landed.path)
    assert ran.rc == 2
    assert f"holds the commit {work[:12]}, which is on no branch yet" in ran.stderr
    assert relay("drop", "--force", "--purge", cwd=landed.path).rc == 0
    assert traces(landed.path) == []


def test_a_landing_that_was_taken_back_or_outgrown_does_not_count_as_landed(landed, relay) -> None:
    session = only_session(landed.path)
    assert relay("land", "--squash", cwd=landed.path).rc == 0
    landed.git("reset", "--keep", "HEAD~1")
    assert "is on no other branch yet" in relay("drop", cwd=landed.path).stderr
    assert relay("land", "--squash", cwd=landed.path).rc == 0
    Repo(landed.path / ".relay/sessions" / session).commit("one more", {"three.txt": "3\n"})
    assert "is on no other branch yet" in relay("drop", cwd=landed.path).stderr
    assert relay("land", "--rebase", cwd=landed.path).rc == 0
    assert relay("drop", cwd=landed.path).rc == 0


def sessions(repo: Repo) -> list[str]:
    return repo.git("for-each-ref", "--format=%(refname:lstrip=3)", "refs/relay/sessions/").split()


def forget(repo: Repo) -> None:
    """Let git take all that no ref reaches."""
    repo.git("reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all")
    repo.git("gc", "-q", "--prune=now")


AWAY = [
    pytest.param(["checkout", "-q", "--detach"], True, "a detached HEAD", id="detached"),
    pytest.param(["checkout", "-q", "--detach"], False, "a detached HEAD", id="detached-uncommitted"),
    pytest.param(["checkout", "-q", "-b", "aside"], True, "branch aside", id="branch"),
    pytest.param(["checkout", "-q", "-b", "aside"], False, "branch aside", id="branch-uncommitted"),
]


@pytest.mark.parametrize(("away", "committed", "where"), AWAY)
def test_work_on_a_detached_head_or_another_branch_is_told_kept_and_brought_over(
    repo, relay, demo, away, committed, where
) -> None:
    last = [commit("Off")] if committed else []
    demo.plays([say("a"), write("on.txt", "on\n"), commit("On"), shell("git", *away), write("off.txt", "off\n"), *last])
    ran = relay("start", "x", "--agent", "demo", cwd=repo.path)
    assert ran.rc == 0
    session = only_session(repo.path)
    end = states(repo.path, session)[-1]
    snapshot = end["snapshot"]
    assert f"its work stands on {where} at {snapshot[:12]}, not on relay/{session}" in ran.stderr
    assert f"see it:  git log -p {repo.head[:12]}..{snapshot}\n" in ran.stderr
    assert f"take it: git branch -f relay/{session} {snapshot} && git relay land {session}\n" in ran.stderr
    assert f"its work stands on {where}" in relay("status", cwd=repo.path).stdout
    assert repo.git("show", f"{snapshot}:off.txt") == "off"
    assert repo.git("rev-parse", f"refs/relay/sessions/{session}^2") == snapshot
    refs = repo.git("for-each-ref")
    ran = relay("land", cwd=repo.path)
    assert ran.rc == 1
    assert f"the work of {session} stands on {where} at {snapshot[:12]}, not on relay/{session}" in ran.stderr
    if not (committed and "branch" in where):  # there a branch of the agent's own keeps it
        assert relay("drop", cwd=repo.path).rc == 2
    assert repo.git("for-each-ref") == refs
    hint = re.search(r"^hint: (.*)$", ran.stderr, re.M)[1]
    assert hint == f"git branch -f relay/{session} {snapshot} && git relay land {session}"
    repo.git("branch", "-f", f"relay/{session}", snapshot)
    ran = relay("land", cwd=repo.path)
    assert (ran.rc, ran.stderr) == (0, "")
    assert (repo.path / "off.txt").read_text() == "off\n"
    ran = relay("drop", cwd=repo.path)
    assert (ran.rc, ran.stderr) == (0, "")
    forget(repo)
    assert repo.git("cat-file", "-t", snapshot) == "commit"


def test_switching_back_after_the_end_does_not_hide_what_was_left_on_a_detached_head(repo, relay, demo) -> None:
    away = shell("git", "checkout", "-q", "--detach")
    demo.plays([say("a"), write("on.txt", "on\n"), commit("On"), away, write("off.txt", "off\n"), commit("Off")])
    assert relay("start", "x", "--agent", "demo", cwd=repo.path).rc == 0
    session = only_session(repo.path)
    snapshot = states(repo.path, session)[-1]["snapshot"]
    place = Repo(repo.path / ".relay/sessions" / session)
    place.git("switch", "-q", f"relay/{session}")
    place.commit("beside it", {"beside.txt": "b\n"})
    ran = relay("land", cwd=repo.path)
    assert ran.rc == 1
    assert f"hint: git merge {snapshot} && git relay land {session}" in ran.stderr
    repo.git("merge", "-q", snapshot)
    assert relay("land", cwd=repo.path).rc == 0
    assert {"on.txt", "off.txt", "beside.txt"} <= {p.name for p in repo.path.iterdir()}
    assert relay("drop", cwd=repo.path).rc == 0


def test_a_forced_drop_keeps_every_commit_in_the_journal(repo, relay, demo) -> None:
    away = shell("git", "checkout", "-q", "--detach", "HEAD~1")
    demo.plays([say("a"), write("on.txt", "on\n"), commit("On"), away, write("off.txt", "off\n"), commit("Off")])
    assert relay("start", "x", "--agent", "demo", cwd=repo.path).rc == 0
    session = only_session(repo.path)
    ends = [repo.git("rev-parse", f"relay/{session}"), states(repo.path, session)[-1]["snapshot"]]
    assert relay("drop", "--force", cwd=repo.path).rc == 0
    assert repo.git("for-each-ref", "refs/heads/relay/") == ""
    forget(repo)
    assert [repo.git("cat-file", "-t", end) for end in ends] == ["commit", "commit"]


@pytest.mark.parametrize("harm", ["no folder", "no git dir", "no HEAD", "no worktree at all"])
def test_a_session_whose_worktree_is_gone_or_broken_says_so_and_can_be_dropped(landed, relay, harm) -> None:
    session = only_session(landed.path)
    place, git_dir = landed.path / ".relay/sessions" / session, landed.path / ".git/worktrees" / session
    if harm in ("no folder", "no worktree at all"):
        shutil.rmtree(place)
    if harm in ("no git dir", "no worktree at all"):
        shutil.rmtree(git_dir)
    if harm == "no HEAD":
        (git_dir / "HEAD").write_text("rubbish\n")
    ran = relay("land", cwd=landed.path)
    if place.exists():
        assert ran.rc == 1
        assert f"git cannot read the worktree of {session}" in ran.stderr
        assert f"hint: git merge relay/{session} takes what is committed" in ran.stderr
        assert "Traceback" not in ran.stderr
        assert f"git cannot read the worktree of {session}" in relay("drop", cwd=landed.path).stderr
        assert relay("drop", "--force", cwd=landed.path).rc == 0
    else:
        assert (ran.rc, ran.stderr) == (0, "")
        assert (landed.path / "two.txt").exists()
        assert relay("drop", cwd=landed.path).rc == 0
    assert not (landed.path / ".relay").exists()
    assert not git_dir.exists()


@pytest.mark.parametrize("state", [s for s in State if s not in RESTS])
def test_a_session_that_no_supervisor_holds_can_be_dropped_by_force_in_any_state(repo, relay, state) -> None:
    session = open_session(repo)
    session.at.write("left.txt", "left\n")
    entry = Entry(session.id, state, Event.LAUNCHED, AT, 1, "demo", "a task", session.base, f"relay/{session.id}")
    ensure(session.repo, session.store)
    journal.append(session.store, None, entry)
    ran = relay("drop", cwd=repo.path)
    assert ran.rc == 2
    assert f"hint: git relay drop --force {session.id}" in ran.stderr
    ran = relay("drop", "--force", cwd=repo.path)
    assert (ran.rc, ran.stderr) == (0, "")
    assert not (repo.path / ".relay").exists()
    assert "no session here" in relay("status", cwd=repo.path).stdout
    assert relay("drop", "--purge", cwd=repo.path).rc == 0
    assert traces(repo.path) == []


@pytest.mark.parametrize("harm", ["another commit", "rubbish"])
def test_a_session_with_a_damaged_journal_goes_by_force_and_purge(landed, relay, harm) -> None:
    session = only_session(landed.path)
    if harm == "rubbish":
        landed.write(f".git/refs/relay/sessions/{session}", "rubbish\n")
    else:
        landed.git("update-ref", f"refs/relay/sessions/{session}", "main")
    ran = relay("drop", "--force", session, cwd=landed.path)
    assert ran.rc == 1
    assert f"git relay drop --force --purge {session}" in ran.stderr
    assert relay("drop", "--force", "--purge", session, cwd=landed.path).rc == 0
    assert traces(landed.path) == []


def test_hints_name_the_main_work_tree_where_the_git_dir_lies_apart(landed, tmp_path, relay) -> None:
    session, apart = only_session(landed.path), tmp_path / "apart.git"
    place = landed.path / ".relay/sessions" / session
    landed.git("init", "-q", f"--separate-git-dir={apart}")
    ran = relay("land", cwd=place)
    assert ran.rc == 2
    assert f"hint: cd {landed.path}\n" in ran.stderr
    assert f"hint: cd {landed.path}\n" in relay("drop", "--force", cwd=place).stderr
    assert relay("status", cwd=place).stdout == relay("status", cwd=landed.path).stdout
    assert relay("land", cwd=landed.path).rc == 0
    assert relay("drop", cwd=landed.path).rc == 0


def cut_off(landed, relay) -> str:
    """A landing whose git and git relay are killed when the tree has the work and HEAD has not; the session."""
    kill = "kill -9 $(sed -n 's/^PPid:[[:space:]]*//p' /proc/$PPID/status) $PPID"
    hook = landed.write(".git/hooks/pre-merge-commit", f"#!/bin/sh\n{kill}\n")
    hook.chmod(0o755)
    assert relay("land", cwd=landed.path).rc == -9
    hook.unlink()
    return only_session(landed.path)


def test_a_landing_that_was_cut_off_is_told_by_every_command_and_taken_back_by_the_next(landed, relay) -> None:
    head, session = landed.head, cut_off(landed, relay)
    (landed.path / "two.txt").write_text("")  # as far as git had come in writing it
    (landed.path / ".git/index.lock").touch()
    note = f"note: {session} is landed by half, or nobody wrote down that it is; to go on: git relay land {session}"
    assert note in relay("status", cwd=landed.path).stderr
    assert "is landed by half" in relay("doctor", cwd=landed.path).stdout
    ran = relay("land", cwd=landed.path)
    assert (ran.rc, ran.stderr.split("\n")[1]) == (0, f"an earlier landing of {session} was cut off: it was taken back")
    assert (landed.path / "two.txt").read_text() == "2\n"
    assert (landed.git("rev-parse", "HEAD^1"), landed.git("status", "--porcelain")) == (head, "")
    assert relay("status", cwd=landed.path).stderr == ""


def test_what_the_user_has_written_since_a_landing_was_cut_off_is_not_touched(landed, relay) -> None:
    session = cut_off(landed, relay)
    landed.write("two.txt", "2, and a thought of mine\n")
    before = photograph(landed.path)
    ran = relay("land", cwd=landed.path)
    assert ran.rc == 1
    assert "two.txt holds something else by now; nothing was touched" in ran.stderr
    assert f"then: git relay land {session}" in ran.stderr
    assert photograph(landed.path) == before
    (landed.path / "two.txt").unlink()
    landed.write("README.md", "an edit of mine elsewhere\n")
    assert "your work tree has uncommitted changes" in relay("land", cwd=landed.path).stderr
    assert landed.git("status", "--porcelain") == " M README.md"


def test_half_of_a_landing_stops_that_of_another_session_and_leads_to_the_place_where_it_lies(
    landed, relay, demo, tmp_path
) -> None:
    session = cut_off(landed, relay)
    assert relay("start", "another", "--agent", "demo", cwd=landed.path).rc == 0
    (other,) = (s for s in sessions(landed) if s != session)
    ran = relay("land", other, cwd=landed.path)
    assert (ran.rc, f"hint: git relay land {session}\n" in ran.stderr) == (2, True)
    linked = Repo(tmp_path / "linked")
    landed.git("worktree", "add", "-q", "-b", "feature", str(linked.path))
    assert f"hint: cd {landed.path} && git relay land {session}" in relay("land", session, cwd=linked.path).stderr


def test_a_landing_taken_back_by_hand_is_forgotten_and_a_commit_made_since_is_kept(landed, relay) -> None:
    cut_off(landed, relay)
    landed.git("reset", "--quiet", "--hard")
    head = landed.commit("mine since", {"mine.txt": "mine\n"})
    ran = relay("land", cwd=landed.path)
    assert ran.rc == 0
    assert landed.git("rev-parse", "HEAD^1") == head


def test_a_tree_that_another_git_has_locked_is_named_before_anything_is_touched(landed, relay) -> None:
    (landed.path / ".git/index.lock").touch()
    ran = relay("land", cwd=landed.path)
    assert ran.rc == 1
    assert f"it is locked by {landed.path}/.git/index.lock" in ran.stderr
    (landed.path / ".git/index.lock").unlink()
    assert landed.git("status", "--porcelain") == ""


def test_rebasing_a_second_time_brings_nothing_twice(landed, relay) -> None:
    landed.commit("meanwhile", {"mine.txt": "mine\n"})
    assert relay("land", "--rebase", cwd=landed.path).rc == 0
    head = landed.head
    ran = relay("land", "--rebase", cwd=landed.path)
    assert (ran.rc, landed.head) == (0, head)
    assert "nothing to land: main already has all of" in ran.stdout


def test_landing_says_again_what_the_snapshot_does_not_hold(landed, relay) -> None:
    secret = landed.path / ".relay/sessions" / only_session(landed.path) / "server.pem"
    secret.write_text("secret\n")
    ran = relay("land", cwd=landed.path)
    assert ran.rc == 0
    assert "note: server.pem looks like a secret and is not ignored: left out" in ran.stderr
    assert (secret.exists(), (landed.path / "server.pem").exists()) == (True, False)


def test_squashing_what_the_branch_has_already_says_so_and_the_session_can_be_dropped(landed, relay) -> None:
    landed.git("merge", "-q", "--squash", f"relay/{only_session(landed.path)}")
    head = landed.commit("squashed by hand")
    assert relay("drop", cwd=landed.path).rc == 2
    ran = relay("land", "--squash", cwd=landed.path)
    assert (ran.rc, ran.stderr, landed.head) == (0, "", head)
    assert "nothing to land: main already has all of" in ran.stdout
    assert relay("drop", cwd=landed.path).rc == 0


def test_the_next_agent_is_told_that_head_is_detached(repo, relay, demo) -> None:
    demo.plays(
        [say("a"), shell("git", "checkout", "-q", "--detach"), write("off.txt", "off\n"), LIMIT], [ACCEPT, say("b")]
    )
    assert relay("start", "x", "--agent", "demo", "--then", "demo", cwd=repo.path).rc == 0
    told = demo.prompts()[1]
    assert "- HEAD is detached in this worktree, which holds the snapshot." in told
    assert "on branch ` `" not in told
    assert relay("verify", "--all", cwd=repo.path).rc == 0
