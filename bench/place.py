"""Where measurements happen: a home and repositories of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from bench.measure import run
from relay_git.git.repo import Repo, discover
from relay_git.git.store import Store, open_store

GITCONFIG = """\
[user]
\tname = Bench
\temail = bench@example.invalid
[init]
\tdefaultBranch = main
[gc]
\tauto = 0
[maintenance]
\tauto = false
"""


def seal(scratch: Path) -> None:
    """Let this process and its children see nothing of the user's own: home, configuration, variables."""
    kept = {k: os.environ[k] for k in ("PATH", "TMPDIR", "LD_LIBRARY_PATH") if k in os.environ}
    home = scratch / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(GITCONFIG)
    os.environ.clear()
    os.environ.update(kept | {"HOME": str(home), "LANG": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1", "GIT_EDITOR": "false"})
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"


def relay() -> Path:
    """The installed command."""
    found = shutil.which("git-relay")
    if found is None:
        raise SystemExit("git-relay is not installed beside this Python: make bench does it")
    return Path(found)


def repository(place: Path, files: int = 3) -> tuple[Repo, Store]:
    """A repository with so many small files, a hundred a folder, in one commit."""
    place.mkdir(parents=True)
    run("git", "init", "--quiet", "--template=", cwd=place)
    feed = subprocess.Popen(["git", "fast-import", "--quiet"], cwd=place, stdin=subprocess.PIPE)
    assert feed.stdin is not None
    feed.stdin.write(
        b"commit refs/heads/main\ncommitter Bench <bench@example.invalid> 1790000000 +0000\ndata 5\nfirst\n"
    )
    for i in range(files):
        text = f"# file {i}\nvalue = {i * i}\n" + "line of code\n" * 20
        feed.stdin.write(f"M 100644 inline src/d{i // 100:04}/f{i % 100:02}.py\ndata {len(text)}\n{text}\n".encode())
    feed.stdin.close()
    if feed.wait() != 0:
        raise SystemExit("git fast-import failed")
    run("git", "reset", "--hard", "--quiet", "main", cwd=place)
    repo = discover(place, os.environ)
    return repo, open_store(repo.common_dir)
