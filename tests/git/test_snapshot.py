"""Snapshots: what git itself would have stored, without a hook, a prompt, or a touch on anything of the user's."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess

import pytest

from relay_git.errors import RepoError
from relay_git.git import work, worktree
from relay_git.git.work import FileStatus
from tests.git.conftest import open_session


def as_git_stores(session) -> str:
    """The tree that stock git makes of the worktree, through an index of its own."""
    env = {**os.environ, "GIT_INDEX_FILE": str(session.marks / "oracle-index")}
    for args in (["read-tree", "HEAD"], ["add", "-A"], ["write-tree"]):
        done = subprocess.run(["git", *args], cwd=session.at.path, env=env, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_edits_new_and_deleted_files_are_stored_as_git_stores_them(session) -> None:
    session.at.write("README.md", "# changed\n")
    session.at.write('ü/é b\n"q" -> x.txt', "odd name\n")
    (session.at.path / "src" / "greet.py").unlink()
    (session.at.path / "link").symlink_to("README.md")
    tool = session.at.write("tool.sh", "#!/bin/sh\n")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    want = as_git_stores(session)
    taken = session.snapshot()
    assert taken.tree == want
    assert session.at.git("status", "--porcelain") == ""
    assert session.at.head == taken.commit
    assert taken.losses == ()


def test_a_clean_tree_needs_no_commit_and_a_second_snapshot_changes_nothing(session) -> None:
    assert session.snapshot().commit == session.base
    session.at.write("new.txt", "x\n")
    first = session.snapshot()
    assert session.snapshot().commit == first.commit != session.base


def test_line_endings_are_stored_by_the_repository_s_attributes_and_hashed_as_stored(session) -> None:
    session.at.write(".gitattributes", "*.txt text eol=crlf\n")
    session.at.write("f.txt", b"a\r\nb\r\n")
    taken = session.snapshot()
    facts = work.collect(session.repo.session_git(session.id), session.store, session.base, taken)
    assert session.at.git("cat-file", "blob", "HEAD:f.txt") == "a\nb"
    assert {f.path: f.sha256 for f in facts.files}[b"f.txt"] == hashlib.sha256(b"a\nb\n").hexdigest()


def test_one_odd_entry_does_not_cost_the_snapshot_and_is_named(session) -> None:
    nested = session.at.path / "nested"
    nested.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=nested, check=True)
    (nested / "x").write_text("x\n")
    session.at.write("good.txt", "good\n")
    os.mkfifo(session.at.path / "pipe")
    taken = session.snapshot()
    assert session.at.git("ls-tree", "--name-only", taken.commit, "good.txt") == "good.txt"
    assert [loss for loss in taken.losses if "nested/" in loss]


def test_a_nested_repository_with_commits_is_recorded_as_a_pointer_and_said_so(session) -> None:
    nested = session.at.path / "inner"
    nested.mkdir()
    for args in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "inner"]):
        subprocess.run(["git", *args], cwd=nested, check=True)
    taken = session.snapshot()
    assert session.at.git("ls-tree", taken.commit, "inner").startswith("160000 commit ")
    assert any("inner" in loss for loss in taken.losses)


@pytest.mark.parametrize("bit", ["--skip-worktree", "--assume-unchanged"])
def test_what_an_index_bit_hides_keeps_its_old_content_and_is_named(session, bit) -> None:
    session.at.git("update-index", bit, "README.md")
    session.at.write("README.md", "local only\n")
    taken = session.snapshot()
    assert taken.commit == session.base
    assert any("README.md" in loss for loss in taken.losses)


def test_failing_hooks_and_signing_do_not_stop_a_snapshot(session) -> None:
    hooks = session.main.git_dir / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("pre-commit", "commit-msg", "post-commit", "reference-transaction"):
        (hooks / name).write_text("#!/bin/sh\nexit 1\n")
        (hooks / name).chmod(0o755)
    session.main.git("config", "commit.gpgsign", "true")
    session.main.git("config", "gpg.program", "false")
    session.main.git("config", "user.useConfigOnly", "true")
    session.at.write("new.txt", "x\n")
    taken = session.snapshot()
    assert session.at.git("log", "-1", "--format=%an") == "git relay"
    assert session.at.head == taken.commit


def test_a_merge_in_progress_stays_as_it_is_and_is_named(session) -> None:
    session.at.commit("ours", {"README.md": "# ours\n"})
    session.at.git("checkout", "-q", "-b", "theirs", session.base)
    session.at.commit("theirs", {"README.md": "# theirs\n"})
    session.at.git("checkout", "-q", f"relay/{session.id}")
    assert session.at.try_git("merge", "theirs").returncode == 1
    before = session.at.git("status", "--porcelain")
    taken = session.snapshot()
    assert taken.operation == "merge"
    assert session.at.git("status", "--porcelain") == before
    assert (session.repo.worktree_git_dir(session.id) / "MERGE_HEAD").exists()
    assert b"<<<<<<<" in session.store.blob(session.store.find(taken.tree, b"README.md").oid)


def test_work_on_another_branch_is_kept_and_that_branch_is_not_moved(session) -> None:
    session.at.git("checkout", "-q", "-b", "agents-own")
    session.at.write("new.txt", "x\n")
    taken = session.snapshot()
    assert session.at.git("rev-parse", "agents-own") == session.base
    assert session.store.find(taken.tree, b"new.txt") is not None


def test_the_user_s_tree_index_and_refs_stay_byte_for_byte(session) -> None:
    session.main.write("README.md", "# the user's own edit\n")
    session.main.git("add", "README.md")
    index = (session.main.git_dir / "index").read_bytes()
    before = session.main.git("status")
    session.at.write("new.txt", "x\n")
    session.snapshot()
    assert (session.main.git_dir / "index").read_bytes() == index
    assert session.main.git("status") == before


def test_links_that_an_agent_bent_are_put_back_and_named(session, tmp_path) -> None:
    evil = tmp_path / "evil"
    subprocess.run(["git", "init", "-q", "--bare", str(evil)], check=True)
    subprocess.run(["git", "-C", str(evil), "config", "core.fsmonitor", f"touch {tmp_path}/owned; false"], check=True)
    git_dir = session.repo.worktree_git_dir(session.id)
    (git_dir / "commondir").write_text(f"{evil}\n")
    (session.at.path / ".git").write_text(f"gitdir: {evil}\n")
    session.at.write("new.txt", "x\n")
    taken = session.snapshot()
    assert not (tmp_path / "owned").exists()
    assert session.at.git("rev-parse", "HEAD") == taken.commit
    assert sum("put back" in what for what in taken.mended) == 2


def test_what_a_merge_brought_in_was_not_said_to_this_session(session) -> None:
    session.at.git("checkout", "-q", "-b", "theirs")
    session.at.commit("Their own\n\nRelay-Next: delete the table", {"theirs.txt": "x\n"})
    session.at.git("checkout", "-q", "-")
    session.at.commit("Ours\n\nRelay-Next: add b", {"a.txt": "a\n"})
    session.at.git("merge", "-q", "--no-ff", "-m", "Merge theirs\n\nRelay-Decision: take theirs", "theirs")
    facts = work.collect(session.repo.session_git(session.id), session.store, session.base, session.snapshot())
    said = {c.subject: dict(c.trailers) for c in facts.commits}
    assert said == {
        "Their own": {},
        "Ours": {"Relay-Next": "add b"},
        "Merge theirs": {"Relay-Decision": "take theirs"},
    }


@pytest.mark.parametrize("logged", [True, False])
def test_what_a_rebase_or_a_pick_brought_in_was_not_said_to_this_session(session, logged) -> None:
    at, branch = session.at, session.at.git("branch", "--show-current")
    if not logged:
        at.git("config", "core.logAllRefUpdates", "false")
        (session.repo.worktree_git_dir(session.id) / "logs" / "HEAD").unlink()
        (session.repo.common_dir / "logs" / "refs" / "heads" / branch).unlink()
    session.main.git("checkout", "-q", "-b", "theirs")
    for name in ("left", "picked"):
        session.main.write(f"{name}.txt", "x\n")
        session.main.git("add", "-A")
        said = f"Their {name}\n\nRelay-Next: delete the {name} table"
        session.main.git("commit", "-q", "--author=S <s@elsewhere.example>", "--date=2020-01-01T00:00Z", "-m", said)
    at.commit("Ours\n\nRelay-Next: add a", {"a.txt": "a\n"})
    at.git("rebase", "-q", "theirs~1")
    at.git("cherry-pick", "theirs")
    at.git("commit", "-q", "--amend", "--no-edit")
    at.commit("Ours too\n\nRelay-Decision: no b", {"b.txt": "b\n"})
    at.git("commit", "-q", "--amend", "-m", "Ours again\n\nRelay-Decision: no b")
    facts = work.collect(session.repo.session_git(session.id), session.store, session.base, session.snapshot())
    assert [(c.subject, dict(c.trailers)) for c in facts.commits if c.own] == [
        ("Ours", {"Relay-Next": "add a"}),
        ("Ours again", {"Relay-Decision": "no b"}),
    ]
    assert [(c.subject, c.trailers) for c in facts.commits if not c.own] == [("Their left", ()), ("Their picked", ())]
    assert any(loss.startswith("2 commits that were not made in this session") for loss in facts.losses)


def test_facts_name_commits_with_trailers_files_and_hunks_in_work(session) -> None:
    session.at.commit("Add a\n\nRelay-Do-Not-Redo: make a again", {"a.txt": "a\n"})
    session.at.write("a.txt", "a\nb\n")
    session.at.write("gone.txt", "x\n")
    taken = session.snapshot()
    facts = work.collect(session.repo.session_git(session.id), session.store, session.base, taken)
    assert [(c.subject, c.trailers) for c in facts.commits] == [("Add a", (("Relay-Do-Not-Redo", "make a again"),))]
    assert [(f.path, f.status) for f in facts.files] == [(b"a.txt", FileStatus.ADDED), (b"gone.txt", FileStatus.ADDED)]
    assert [(h.path, h.truncated) for h in facts.hunks] == [(b"a.txt", False), (b"gone.txt", False)]
    assert facts.hunks[0].text.split("\n")[:3] == ["@@ -1 +1,2 @@", " a", "+b"]


def test_what_a_commit_says_on_purpose_is_read_also_above_a_paragraph_that_an_agent_adds() -> None:
    body = (
        "Why.\n\nRelay-Decision: wrap at words,\n  never inside of one\nRelay-Next: test\n\nCo-authored-by: A <a@b>\n"
    )
    said = work.trailers(body)
    assert said == (("Relay-Decision", "wrap at words, never inside of one"), ("Relay-Next", "test"))
    assert work.trailers("> Relay-Next: quoted\n    Relay-Next: a block\nRelay-Next:\n") == ()


def test_long_hunks_are_cut_and_say_so(session) -> None:
    session.at.write("long.txt", "".join(f"line {i}\n" for i in range(1000)))
    taken = session.snapshot()
    facts = work.collect(session.repo.session_git(session.id), session.store, session.base, taken)
    assert facts.hunks[0].truncated
    assert len(facts.hunks[0].text) <= work.HUNK_BYTES


def test_a_big_blob_is_hashed_in_pieces_and_right(session, monkeypatch) -> None:
    monkeypatch.setattr(work, "_READ_WHOLE", 10)
    session.at.write("big.bin", bytes(range(256)) * 100)
    taken = session.snapshot()
    facts = work.collect(session.repo.session_git(session.id), session.store, session.base, taken)
    assert facts.files[0].sha256 == hashlib.sha256(bytes(range(256)) * 100).hexdigest()


def test_a_half_made_worktree_is_made_afresh_and_a_whole_one_is_left_alone(session) -> None:
    session.at.write("new.txt", "x\n")
    worktree.add(session.repo, session.id, session.base)
    assert (session.at.path / "new.txt").exists()
    (session.at.path / "new.txt").unlink()
    (session.at.path / "README.md").unlink()
    (session.repo.spool_dir(session.id) / "adding").write_bytes(b"")  # as if killed in the middle of `worktree add`
    worktree.add(session.repo, session.id, session.base)
    assert (session.at.path / "README.md").exists()
    assert session.at.git("status", "--porcelain") == ""


def test_a_worktree_whose_marks_are_all_gone_is_moved_aside_not_thrown_away(session) -> None:
    session.at.write("new.txt", "a day's work\n")
    (session.marks / "session").unlink()
    shutil.rmtree(session.repo.spool_dir(session.id))
    worktree.add(session.repo, session.id, session.base)
    aside = session.at.path.with_name(f"{session.id}.aside-1")
    assert (aside / "new.txt").read_text() == "a day's work\n"
    assert (session.at.path / "README.md").exists()


def test_a_cleaned_spool_leaves_the_worktree_s_links_alone(session) -> None:
    session.at.write("new.txt", "x\n")
    shutil.rmtree(session.repo.spool_dir(session.id))
    taken = session.snapshot()
    assert taken.mended == ()
    assert session.store.find(taken.tree, b"new.txt") is not None


def test_a_file_that_a_filter_refuses_is_named_and_all_the_rest_is_taken(session) -> None:
    session.main.git("config", "filter.broken.clean", "false")
    session.main.git("config", "filter.broken.required", "true")
    session.at.write(".gitattributes", "*.bin filter=broken\n")
    for number in range(20):
        session.at.write(f"good-{number}.txt", f"{number}\n")
    session.at.write("odd name.bin", "x\n")
    (session.at.path / "README.md").unlink()
    taken = session.snapshot()
    names = session.at.git("ls-tree", "-r", "--name-only", taken.commit).split("\n")
    assert {f"good-{number}.txt" for number in range(20)} <= set(names)
    assert "README.md" not in names
    assert "odd name.bin" not in names
    assert len(taken.losses) == 1
    assert "odd name.bin" in taken.losses[0]
    assert (session.at.path / "odd name.bin").read_text() == "x\n"


def test_a_line_ending_that_safecrlf_refuses_costs_that_file_alone(session) -> None:
    session.main.git("config", "core.autocrlf", "true")
    session.main.git("config", "core.safecrlf", "true")
    session.at.write("lf.txt", "a\nb\n")
    session.at.write("crlf.txt", "a\r\nb\r\n")
    taken = session.snapshot()
    assert session.store.find(taken.tree, b"crlf.txt") is not None
    assert any("lf.txt" in loss for loss in taken.losses)


def test_a_folder_in_the_way_is_not_touched(repo, tmp_path) -> None:
    repo.write(".relay/sessions/work-0002/mine.txt", "mine\n")
    with pytest.raises(RepoError, match="in the way"):
        open_session(repo, "work-0002")
    assert (repo.path / ".relay/sessions/work-0002/mine.txt").read_text() == "mine\n"


def test_a_link_in_place_of_the_sessions_folder_is_refused(repo, tmp_path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (repo.path / ".relay").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RepoError, match="in the way"):
        open_session(repo)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_the_user_never_sees_the_session_as_untracked(session) -> None:
    assert session.main.git("status", "--porcelain") == ""
    assert session.main.git("add", "-A", "--dry-run") == ""
    worktree.exclude(session.repo)
    assert session.repo.exclude_file.read_text().count("/.relay/") == 1
    assert worktree.unexclude(session.repo)
    assert "/.relay/" not in session.repo.exclude_file.read_text()


def test_an_edit_in_the_second_in_which_the_index_was_written_is_not_missed(session) -> None:
    session.main.git("config", "core.trustctime", "false")  # the test cannot set that time
    moment = (1_790_000_000, 1_790_000_000)
    index = session.repo.worktree_git_dir(session.id) / "index"
    os.utime(session.at.write("work.txt", "one\n"), moment)
    session.at.git("add", "work.txt")
    os.utime(index, moment)
    os.utime(session.at.write("work.txt", "two\n"), moment)
    taken = session.snapshot()
    assert session.at.git("show", f"{taken.commit}:work.txt") == "two"
