"""Hook managers as people have them, each set up with hooks that write down what they are given.

`record NAME ARGS...` appends to the file that RELAY_TEST_RECORD names: the hook, its arguments, its stdin, the git
variables that it sees. It refuses a message with "reject" in it, as a linter of messages would.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.seal.repo import Repo

HOOKS = ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "post-rewrite")
RECORD = """\
#!/bin/sh
name=$1; shift
{
    echo "$name: $*"
    case $name in post-rewrite) sed "s/[0-9a-f]\\{40\\}/OID/g; s/^/  stdin: /" ;; esac
    env | sed -n "s/^\\(GIT_[A-Z_]*\\)=.*/  sees \\1/p" | grep -v "GIT_CONFIG\\|GIT_DIR$" | sort
    echo "  at the top: $([ -e .git ] && echo yes)"
} >>"$RELAY_TEST_RECORD"
case $name in commit-msg) ! grep -q reject "$1" ;; esac
"""


@dataclass(frozen=True, slots=True)
class Manager:
    """One manager: the programs it needs, how it is set up, and how it installs itself once more.

    `in_linked` says whether its hooks run in a linked worktree without git relay, `blocked` whether our block can stand
    in what it writes, `keeps` whether it stands there still when the manager has installed itself again.
    """

    programs: tuple[str, ...]
    set_up: Callable[[Repo], None]
    again: tuple[str, ...] = ()
    in_linked: bool = True
    blocked: bool = True
    keeps: bool = False


def run(repo: Repo, *argv: str, **env: str) -> str:
    """One of the managers' commands, which must succeed."""
    full = {**os.environ, **env}
    done = subprocess.run(argv, cwd=repo.path, env=full, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (argv, done.stdout, done.stderr)
    return done.stdout


def _plain(repo: Repo) -> None:
    for name in HOOKS:
        script = f'#!/bin/sh\nsh "$(git rev-parse --show-toplevel)/record" {name} "$@"\n'
        repo.write(f".git/hooks/{name}", script).chmod(0o755)


def _python(repo: Repo) -> None:
    for name in HOOKS:
        script = f"#!/usr/bin/env python3\nimport os, sys\nos.execlp('sh', 'sh', 'record', {name!r}, *sys.argv[1:])\n"
        repo.write(f".git/hooks/{name}", script).chmod(0o755)


def _husky(repo: Repo) -> None:
    for name in HOOKS:
        repo.write(f".husky/{name}", f'sh record {name} "$@"\n')
    run(repo, "husky")


def _husky8(repo: Repo) -> None:
    run(repo, "husky8", "install")
    for name in HOOKS:
        run(repo, "husky8", "add", f".husky/{name}", f'sh record {name} "$@"')


def _lefthook(repo: Repo) -> None:
    command = "{}:\n  commands:\n    record:\n      run: sh record {} {{0}}\n      use_stdin: true\n"
    repo.write("lefthook.yml", "".join(command.format(name, name) for name in HOOKS))
    run(repo, "lefthook", "install")


def _pre_commit(repo: Repo) -> None:
    hook = "  - {{id: {0}, name: {0}, language: system, entry: sh record {0}, always_run: true, stages: [{0}]}}\n"
    hooks = "".join(hook.format(name) for name in HOOKS)
    repo.write(".pre-commit-config.yaml", f"repos:\n- repo: local\n  hooks:\n{hooks}")
    run(repo, *_PRE_COMMIT_INSTALL)


_PRE_COMMIT_INSTALL = ("pre-commit", "install", *(word for name in HOOKS for word in ("-t", name)))

MANAGERS: Mapping[str, Manager] = {
    "hooks in sh": Manager((), _plain),
    "hooks in Python": Manager((), _python, blocked=False),
    "husky": Manager(("node", "husky"), _husky, ("husky",), in_linked=False, blocked=False),
    "husky 8": Manager(("node", "husky8"), _husky8, ("husky8", "install"), in_linked=False, blocked=False),
    "lefthook": Manager(("lefthook",), _lefthook, ("lefthook", "install", "-f")),
    "lefthook by npm": Manager(("node", "lefthook"), _lefthook, ("lefthook-postinstall",), keeps=True),
    "pre-commit": Manager(("pre-commit",), _pre_commit, (*_PRE_COMMIT_INSTALL, "-f")),
}


def recorded(record: Path, repo: Repo) -> list[str]:
    """What the hooks wrote down since the last call, with the paths of this worktree taken out."""
    text = record.read_text() if record.exists() else ""
    record.unlink(missing_ok=True)
    text = text.replace(str(repo.git_dir), "GIT_DIR").replace(".git/COMMIT_EDITMSG", "GIT_DIR/COMMIT_EDITMSG")
    return re.sub(r"\.git/(?=COMMIT)", "GIT_DIR/", text).splitlines()


def inventory(repo: Repo) -> dict[str, tuple[int, bytes]]:
    """Every file in the places where the managers put hooks."""
    files = [f for top in (".git/hooks", ".husky") for f in (repo.path / top).rglob("*") if f.is_file()]
    return {str(f.relative_to(repo.path)): (f.stat().st_mode, f.read_bytes()) for f in files}
