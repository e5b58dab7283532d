"""What an agent, or a user, may have done to a session's own folders and refs: nothing of anybody's is lost by us."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.scene import (
    LIMIT,
    TAKE_OVER,
    commit,
    everything,
    only_session,
    photograph,
    say,
    shell,
    write,
)

BEGUN = [say("I begin."), write("made.txt", "made\n"), commit("Make it"), write("half.txt", "half\n")]


def git(place: Path, *args: str) -> str:
    return subprocess.run(["git", *args], cwd=place, capture_output=True, text=True, check=True).stdout.strip()


def at_rest(repo, relay, demo) -> str:
    """A session that waits for its user with a snapshot, and an agent that would go on."""
    demo.plays([*BEGUN, LIMIT], TAKE_OVER)
    assert relay("start", "x", "--agent", "demo", cwd=repo.path).rc == 1
    return only_session(repo.path)


def picture(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in everything(folder, leave_out=set()) if file.is_file()}


def holds_all_its_work(repo, relay, session: str) -> None:
    assert repo.git("show", f"relay/{session}:made.txt") == "made"
    assert repo.git("show", f"relay/{session}:half.txt") == "whole"
    assert relay("verify", "--all", cwd=repo.path).rc == 0


def test_a_worktree_that_became_a_link_to_a_repository_costs_that_nothing(repo, relay, demo) -> None:
    session, place = at_rest(repo, relay, demo), repo.path / ".relay/sessions"
    precious = repo.path.parent / "precious"
    git(repo.path, "clone", "-q", ".", str(precious))
    before = picture(precious)
    shutil.rmtree(place / session)
    (place / session).symlink_to(precious)
    ran = relay("resume", cwd=repo.path)
    assert ran.rc == 1
    assert "is a link, not the session's worktree" in ran.stderr
    assert f"unlink {place / session}" in ran.stderr
    assert picture(precious) == before
    (place / session).unlink()
    assert relay("resume", cwd=repo.path).rc == 0
    holds_all_its_work(repo, relay, session)


def test_an_agent_that_makes_its_worktree_a_link_to_the_users_costs_the_user_nothing(repo, relay, demo) -> None:
    before = photograph(repo.path)
    bend = shell("sh", "-c", f'd=$PWD; cd /; rm -rf "$d"; ln -s {repo.path} "$d"')
    demo.plays([*BEGUN, bend, LIMIT], TAKE_OVER)
    ran = relay("start", "x", "--agent", "demo", "--then", "demo", cwd=repo.path)
    assert ran.rc == 1
    assert "is a link, not the session's worktree" in ran.stderr
    assert photograph(repo.path) == before


def test_a_repository_that_the_agent_made_in_its_worktree_is_kept_with_its_commits(repo, relay, demo) -> None:
    again = "rm .git; git init -q -b mine .; git add -A; git commit -qm precious; echo after >after.txt"
    demo.plays([*BEGUN, shell("sh", "-c", again), LIMIT], TAKE_OVER)
    ran = relay("start", "x", "--agent", "demo", "--then", "demo", cwd=repo.path)
    assert ran.rc == 0, ran.stderr
    session = only_session(repo.path)
    kept = repo.path / ".git/relay/kept" / session / "git-1"
    assert git(repo.path, "--git-dir", str(kept), "log", "--format=%s", "mine") == "precious"
    losses = json.loads(relay("show", "--json", cwd=repo.path).stdout)["contract"]["losses"]
    assert any(str(kept) in loss for loss in losses)
    assert repo.git("show", f"relay/{session}:after.txt") == "after"


@pytest.mark.parametrize("and_the_worktree", [True, False])
def test_a_branch_that_was_removed_by_hand_comes_back_with_all_its_work(repo, relay, demo, and_the_worktree) -> None:
    session = at_rest(repo, relay, demo)
    if and_the_worktree:
        repo.git("worktree", "remove", "--force", f".relay/sessions/{session}")
    repo.git("update-ref", "-d", f"refs/heads/relay/{session}")
    ran = relay("resume", cwd=repo.path)
    assert ran.rc == 0, ran.stderr
    assert "branch was gone" in ran.stderr
    holds_all_its_work(repo, relay, session)


@pytest.mark.parametrize("what", ["$(git rev-parse --git-dir)", "$(git rev-parse --git-dir)/relay"])
def test_a_folder_of_ours_that_became_a_link_is_not_written_through(repo, relay, demo, what) -> None:
    elsewhere = repo.path.parent / "elsewhere"
    elsewhere.mkdir(mode=0o755)
    for name in ("pause", "session", "held", "HEAD", "commondir"):
        (elsewhere / name).write_text("important\n")
    before = (photograph(repo.path), picture(elsewhere), elsewhere.stat().st_mode)
    demo.plays([*BEGUN, shell("sh", "-c", f'd="{what}"; rm -rf "$d"; ln -s {elsewhere} "$d"'), LIMIT], TAKE_OVER)
    ran = relay("start", "x", "--agent", "demo", "--then", "demo", cwd=repo.path)
    assert ran.rc == 0, ran.stderr
    assert (photograph(repo.path), picture(elsewhere), elsewhere.stat().st_mode) == before
    assert repo.git("show", f"relay/{only_session(repo.path)}:made.txt") == "made"


def test_copies_that_came_back_empty_overwrite_nothing(repo, relay, demo) -> None:
    session = at_rest(repo, relay, demo)
    copies = list((repo.path / ".git/relay/spool" / session / "links").iterdir())
    assert copies
    for copy in copies:
        copy.write_bytes(b"")
    assert relay("resume", cwd=repo.path).rc == 0
    holds_all_its_work(repo, relay, session)


@pytest.mark.parametrize("file", ["index", "HEAD"])
def test_an_index_or_a_head_that_git_cannot_read_is_made_anew(repo, relay, demo, file) -> None:
    session = at_rest(repo, relay, demo)
    (repo.path / ".git/worktrees" / session / file).write_bytes(b"garbage\n")
    ran = relay("resume", cwd=repo.path)
    assert ran.rc == 0, ran.stderr
    holds_all_its_work(repo, relay, session)


def test_a_session_that_was_moved_away_behind_a_link_can_be_dropped_and_stays_there(repo, relay, demo) -> None:
    session, moved = at_rest(repo, relay, demo), repo.path.parent / "moved"
    place = repo.path / ".relay/sessions" / session
    place.rename(moved)
    place.symlink_to(moved)
    ran = relay("drop", session, "--force", cwd=repo.path)
    assert ran.rc == 0, ran.stderr
    assert not place.is_symlink()
    assert (moved / "half.txt").read_text() == "half\n"


def test_a_session_can_be_dropped_without_the_key_that_uninstall_took(repo, relay, demo) -> None:
    session = at_rest(repo, relay, demo)
    assert relay("drop", session, "--force", cwd=repo.path).rc == 0
    ran = relay("uninstall", "--key", cwd=repo.path)
    assert f"git relay drop --purge {session}" in ran.stdout
    ran = relay("drop", "--force", "--purge", session, cwd=repo.path)
    assert ran.rc == 0, ran.stderr
    assert repo.git("for-each-ref", "refs/relay", "refs/notes/relay", "refs/heads/relay") == ""


def test_an_agent_that_moves_its_worktree_finds_it_moved_back_with_all_that_it_holds(repo, relay, demo) -> None:
    away = shell("sh", "-c", "git worktree move . ../elsewhere && echo kept > ../elsewhere/there.txt")
    demo.plays([*BEGUN, away, LIMIT], TAKE_OVER)
    ran = relay("start", "x", "--agent", "demo", "--then", "demo", cwd=repo.path)
    assert ran.rc == 0, ran.stderr
    session, place = only_session(repo.path), repo.path / ".relay/sessions"
    assert f"had been moved to {place / 'elsewhere'}, and was moved back" in ran.stderr
    assert repo.git("show", f"relay/{session}:there.txt") == "kept"
    assert [p.name for p in place.iterdir()] == [session]
    holds_all_its_work(repo, relay, session)
    git(place / session, "worktree", "move", ".", str(repo.path.parent / "far"))
    (repo.path.parent / "far" / "unsaved.txt").write_text("unsaved\n")
    assert "holds uncommitted work" in relay("drop", cwd=repo.path).stderr
    assert (place / session / "unsaved.txt").read_text() == "unsaved\n"


def test_an_agent_that_deletes_all_refs_of_ours_takes_no_session_with_it(repo, relay, demo) -> None:
    ours = "refs/relay refs/notes refs/heads/relay"
    all_refs = f"git for-each-ref --format='delete %(refname)' {ours} | git update-ref --stdin"
    other = at_rest(repo, relay, demo)
    demo.plays([*BEGUN, shell("sh", "-c", all_refs), LIMIT], TAKE_OVER)
    ran = relay("start", "y", "--agent", "demo", "--then", "demo", cwd=repo.path)
    assert ran.rc == 0, ran.stderr
    assert "the session's journal was gone, its ref was deleted, and was put back" in ran.stderr
    session = only_session(repo.path)
    holds_all_its_work(repo, relay, session)
    note = f"note: the journal of {other} is gone, its ref was deleted; see: git relay doctor"
    assert note in relay("status", cwd=repo.path).stderr
    demo.plays([say("Done.")])
    assert relay("start", "z", "--agent", "demo", cwd=repo.path).rc == 0  # takes away what is debris
    found = json.loads(relay("doctor", "--json", cwd=repo.path).stdout)["findings"]
    (hint,) = (f["hint"] for f in found if f["check"] == other and "git still has it" in f["text"])
    git(repo.path, *hint.split()[1:])
    ran = relay("resume", other, cwd=repo.path)
    assert ran.rc in (0, 1), ran.stderr
    assert git(repo.path, "show", f"relay/{other}:half.txt") in ("half", "whole")
    assert relay("status", cwd=repo.path).stderr == ""
