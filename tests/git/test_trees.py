"""Trees as people have them: what git itself would have stored is what the snapshot stores, and the rest is named."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.cli.owner import without_privileges
from tests.git.conftest import Session, open_session
from tests.seal.environment import ROOT
from tests.seal.repo import Repo

NESTED = ("init", "-q"), ("commit", "-q", "--allow-empty", "-m", "inner")


def as_git_stores(session: Session) -> str:
    """The tree that stock git makes of the worktree by `git add -A`, through a copy of its index."""
    index = session.marks / "oracle-index"
    shutil.copy2(session.repo.worktree_git_dir(session.id) / "index", index)
    env = {**os.environ, "GIT_INDEX_FILE": str(index)}
    done = [
        subprocess.run(["git", *a], cwd=session.at.path, env=env, capture_output=True, text=True, check=False)
        for a in (["add", "-A"], ["write-tree"])
    ]
    assert done[0].returncode == 0, done[0].stderr
    return done[1].stdout.strip()


def same(session: Session) -> tuple[str, ...]:
    """The losses of a snapshot that stores what git stores; a second one changes nothing."""
    want = as_git_stores(session)
    taken = session.snapshot()
    assert taken.tree == want
    assert session.snapshot().commit == taken.commit
    return taken.losses


def nested(folder: Path) -> Repo:
    folder.mkdir(parents=True)
    made = Repo(folder)
    for args in NESTED:
        made.git(*args)
    return made


def names(session: Session) -> list[str]:
    return session.at.git("ls-tree", "-r", "--name-only", "-z", "HEAD").split("\0")[:-1]


def test_links_of_every_kind_are_stored_as_links(session, tmp_path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.txt").write_text("outside\n")
    at = session.at.path
    for name, target in (
        ("dangling", "no/where"),
        ("out", str(tmp_path / "outside")),
        ("dir", "src"),
        ("self", "self"),
    ):
        (at / name).symlink_to(target)
    shutil.move(at / "src", at / "moved")
    (at / "src").symlink_to("moved")
    assert same(session) == ()
    assert "120000" in session.at.git("ls-tree", "HEAD", "out")
    assert not [n for n in names(session) if "secret" in n]


def test_executable_bits_and_file_mode_switched_off(session) -> None:
    session.at.write("tool", "#!/bin/sh\n").chmod(0o755)
    (session.at.path / "README.md").chmod(0o755)
    assert same(session) == ()
    session.main.git("config", "core.fileMode", "false")
    (session.at.path / "README.md").chmod(0o644)
    session.at.write("tool2", "#!/bin/sh\n").chmod(0o755)
    assert same(session) == ()
    assert session.at.git("ls-tree", "HEAD", "README.md").startswith("100755")


def test_names_that_are_hard_to_say(session) -> None:
    for name in ("a b", "line\nfeed", "tab\t", 'quo"te', "-dash", ":(top)x", "*", "back\\slash", "é", "e\u0301"):
        session.at.write(name, name)
    Path(os.fsdecode(os.fsencode(session.at.path) + b"/not-utf8-\xff")).write_bytes(b"x")
    assert same(session) == ()


def test_names_that_differ_in_case_alone(session) -> None:
    for name in ("Case.txt", "case.txt", "CASE/x", "case/x"):
        session.at.write(name, name)
    assert same(session) == ()


def test_names_that_differ_in_case_alone_where_git_is_told_that_they_are_one(session) -> None:
    session.main.git("config", "core.ignoreCase", "true")
    session.at.write("SRC/new.txt", "x\n")
    session.at.write("readme.md", "a clash\n")
    session.at.write("good.txt", "x\n")
    want = as_git_stores(session)
    taken = session.snapshot()
    assert taken.tree == want
    assert "good.txt" in names(session)


def test_a_path_longer_than_the_system_takes_is_named_and_all_the_rest_is_taken(session) -> None:
    session.at.write("/".join(["d" * 200] * 15) + "/deep.txt", "deep\n")
    assert same(session) == ()
    here = os.open(session.at.path, os.O_RDONLY)
    for _ in range(25):  # 25 * 200 is more than PATH_MAX
        os.mkdir("n" * 200, dir_fd=here)
        below = os.open("n" * 200, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("too-deep.txt", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=here))
    os.close(here)
    session.at.write("beside.txt", "x\n")
    taken = session.snapshot()
    assert "beside.txt" in names(session)
    assert any("nnnn" in loss for loss in taken.losses)


def test_pipes_sockets_and_files_that_nobody_may_read(session) -> None:
    os.mkfifo(session.at.path / "pipe")
    folder = os.open(session.at.path, os.O_RDONLY)  # the path of a socket may have 107 bytes
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(f"/proc/self/fd/{folder}/sock")
    os.close(folder)
    session.at.write("good.txt", "x\n")
    assert same(session) == ()
    assert "good.txt" in names(session)


def test_files_that_appear_and_vanish_meanwhile_cost_nothing_else(session) -> None:
    for number in range(200):
        session.at.write(f"stay/{number}.txt", f"{number}\n")
    stop = threading.Event()

    def churn() -> None:
        while not stop.is_set():
            for number in range(50):
                session.at.write(f"churn/{number}.tmp", os.urandom(20_000))
            shutil.rmtree(session.at.path / "churn")

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(5):
            taken = session.snapshot()
            assert {f"stay/{n}.txt" for n in range(200)} <= set(names(session))
            assert not [loss for loss in taken.losses if "stay" in loss]
    finally:
        stop.set()
        thread.join()


def test_a_huge_file_stays_in_the_worktree_and_is_named_with_its_size(session) -> None:
    with (session.at.path / "core.dump").open("wb") as file:
        file.truncate(2 << 30)
    session.at.write("good.txt", "x\n")
    taken = session.snapshot()
    assert "good.txt" in names(session)
    assert "core.dump" not in names(session)
    assert [
        loss for loss in taken.losses if "core.dump" in loss and "2 GiB" in loss and "relay.snapshot.maxFile" in loss
    ]
    assert (session.at.path / "core.dump").stat().st_size == 2 << 30
    os.truncate(session.at.path / "README.md", 2 << 30)
    taken = session.snapshot()
    assert "README.md" in names(session)
    assert any("README.md" in loss and "as it was" in loss for loss in taken.losses)


def test_secrets_that_nothing_ignores_are_left_out_and_named_and_what_only_looks_like_one_is_taken(session) -> None:
    secret = [".env", ".env.local", "conf/prod.env", "tls/server.pem", "id_rsa", "x.P12", "k/id_ed25519", ".netrc"]
    plain = [
        ".env.example",
        ".env.local.sample",
        "id_rsa.pub",
        "id_generator.py",
        ".envrc",
        "environment.ts",
        "pem.txt",
    ]
    for name in (*secret, *plain):
        session.at.write(name, "x\n")
    session.at.write("staged.pem", "on purpose\n")
    session.at.git("add", "staged.pem")
    taken = session.snapshot()
    assert {*plain, "staged.pem"} <= set(names(session))
    assert not {*secret} & set(names(session))
    for name in secret:
        assert any(loss.startswith(f"{name} looks like a secret") for loss in taken.losses)
        assert (session.at.path / name).exists()
    assert len(taken.losses) == len(secret)


def test_a_nested_repository_that_a_scaffolder_made(session) -> None:
    nested(session.at.path / "app")
    session.at.write("app/main.py", "x\n")
    losses = same(session)
    assert [loss for loss in losses if loss.startswith("app is a repository of its own")]
    Repo(session.at.path / "app").commit("more")
    same(session)
    assert session.at.git("rev-parse", "HEAD:app") == Repo(session.at.path / "app").head
    shutil.rmtree(session.at.path / "app/.git")
    same(session)
    shutil.rmtree(session.at.path / "app")
    same(session)
    assert "app" not in names(session)


def test_no_git_runs_by_the_configuration_of_a_repository_within(session, tmp_path) -> None:
    inner = nested(session.at.path / "evil")
    session.snapshot()
    inner.write(".gitattributes", "* filter=evil\n")
    inner.write("bait", "1\n")
    inner.commit("bait")
    for key in ("filter.evil.clean", "filter.evil.process", "core.fsmonitor", "diff.external"):
        inner.git("config", key, f"touch {tmp_path}/owned; cat")
    inner.write("bait", "2\n")
    session.snapshot()
    assert session.at.git("rev-parse", "HEAD:evil") == inner.head
    assert not (tmp_path / "owned").exists()
    session.at.git("status")
    assert (tmp_path / "owned").exists()  # else the bait is no bait


@pytest.mark.parametrize("cone", ["--cone", "--no-cone"])
def test_a_sparse_checkout_keeps_what_it_does_not_show(repo, cone) -> None:
    repo.commit("more", {"in/a.txt": "a\n", "out/b.txt": "b\n", "out/deep/c.txt": "c\n"})
    repo.git("sparse-checkout", "set", cone, "in" if cone == "--cone" else "/in/")
    session = open_session(repo)
    assert not (session.at.path / "out").exists()
    session.at.write("in/new.txt", "x\n")
    (session.at.path / "in/a.txt").unlink()
    assert same(session) == ()
    assert "out/b.txt" in names(session)
    session.at.write("out/b.txt", "an edit out of sight\n")
    session.at.write("out/new.txt", "new out of sight\n")
    said = " ".join(session.snapshot().losses)
    assert "out/new.txt" in said or "out/new.txt" in names(session)
    assert ("(it lies outside of what the sparse checkout shows)" in said) == ("out/new.txt" in said)
    assert "hint:" not in said
    assert "out/b.txt" in said or session.at.git("show", "HEAD:out/b.txt") == "an edit out of sight"
    assert (session.at.path / "out/b.txt").read_text() == "an edit out of sight\n"


def test_line_endings_by_setting_and_by_attribute(session) -> None:
    session.main.git("config", "core.autocrlf", "true")
    session.at.write(
        ".gitattributes", "*.sh eol=lf\n*.bat eol=crlf\n*.bin -text\n*.u16 working-tree-encoding=UTF-16LE\n"
    )
    for name in ("a.txt", "b.sh", "c.bat", "d.bin"):
        session.at.write(name, b"one\r\ntwo\n")
    session.at.write("e.u16", "é\r\n".encode("utf-16-le"))
    assert same(session) == ()


def test_filters_that_work_that_are_slow_and_that_fail(session) -> None:
    for name, clean in (("rot", "tr a-z n-za-m"), ("slow", "sleep 1; cat"), ("soft", "false")):
        session.main.git("config", f"filter.{name}.clean", clean)
    session.at.write(".gitattributes", "*.rot filter=rot\n*.slow filter=slow\n*.soft filter=soft\n")
    for name in ("a.rot", "b.slow", "c.soft"):
        session.at.write(name, "abc\n")
    assert same(session) == ()
    assert session.at.git("show", "HEAD:a.rot") == "nop"
    session.main.git("config", "filter.hard.clean", "false")
    session.main.git("config", "filter.hard.required", "true")
    session.at.write(".gitattributes", "*.hard filter=hard\n")
    session.at.write("d.hard", "abc\n")
    taken = session.snapshot()
    assert "d.hard" not in names(session)
    assert any("d.hard" in loss for loss in taken.losses)


def test_large_files_that_git_lfs_keeps_are_stored_as_its_pointers(session, monkeypatch) -> None:
    if session.at.try_git("lfs", "version").returncode != 0:
        pytest.skip("git-lfs is not installed")
    session.at.git("lfs", "install", "--local")
    session.at.git("lfs", "track", "*.bin")
    session.at.write("big.bin", os.urandom(300_000))
    want = as_git_stores(session)
    taken = session.snapshot(max_file=100_000)
    assert (taken.tree, taken.losses) == (want, ())
    assert session.at.git("show", "HEAD:big.bin").startswith("version https://git-lfs")


LOCKED = """
import sys
from pathlib import Path
from tests.cli.owner import without_privileges
from tests.git.conftest import open_session
from tests.seal.repo import Repo

session = open_session(Repo(Path(sys.argv[1])))
for n in range(250):
    session.at.write(f"closed-{n}", "x").chmod(0)
session.at.write("shut/x", "x").parent.chmod(0)
session.at.write("good.txt", "x")
taken = session.snapshot()
(session.at.path / "shut").chmod(0o700)
print(session.store.find(taken.tree, b"good.txt") is not None, len(taken.losses), "shut" in " ".join(taken.losses))
"""


def test_files_and_folders_that_nobody_may_read_are_named(repo) -> None:
    argv = without_privileges([sys.executable, "-c", LOCKED, str(repo.path)])
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "True 201 True\n", done.stderr


def test_more_files_that_cannot_be_read_than_anybody_would_list(session, tmp_path) -> None:
    session.main.git("config", "filter.hard.clean", "exit 1")
    session.main.git("config", "filter.hard.required", "true")
    session.at.write(".gitattributes", "*.hard filter=hard\n")
    session.at.write("good.txt", "x\n")
    for number in range(210):
        session.at.write(f"{number}.hard", "x\n")
    taken = session.snapshot()
    assert "good.txt" in names(session)
    assert len(taken.losses) == 201
    assert taken.losses[-1].endswith("10 more")
