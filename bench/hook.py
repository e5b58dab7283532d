"""What the hook adds to a commit, in a session's worktree and in another one, alone and beside hook managers."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from bench.measure import Row, Table, in_turns, run
from bench.place import repository
from relay_git.git import hooks, worktree
from relay_git.git.hooks import CONFIGURED_HOOKS, HookPlan, Route
from relay_git.git.repo import Repo
from relay_git.git.run import version
from relay_git.session import SessionId

SESSION = SessionId("bench-0001")
AIMS = {"inside": 0.006, "outside": 0.002}
_COMMIT = ("git", "commit", "--quiet", "--allow-empty", "-m", "empty")


def measure(scratch: Path, *, small: bool) -> Table:
    """A plain `git commit --allow-empty` with the hook against one without, by each route that this git has."""
    table = Table(
        "hook",
        "git commit --allow-empty as a process, median of interleaved runs, in a repository where the hook is\n"
        "installed. Peer: the same commit in an equal repository without it; a manager's hook runs `true`.",
    )
    rounds = 20 if small else 200
    _measure(table, str(Route.BLOCK), scratch / "block", rounds, plan=_block)
    if version() >= CONFIGURED_HOOKS:
        _measure(table, str(Route.CONFIGURED), scratch / "configured", rounds)
    else:
        table.notes.append(
            f"not measured: the configured route, which git has since {'.'.join(map(str, CONFIGURED_HOOKS))}"
        )
    for name, set_up in (("husky", _husky), ("lefthook", _lefthook)):
        if shutil.which(name):
            _measure(table, f"beside {name}", scratch / name, rounds // 2, set_up=set_up)
        else:
            table.notes.append(f"not measured: beside {name}, which is not on PATH (tests/hooks/install.sh gets it)")
    return table


def _plan(repo: Repo) -> HookPlan:
    """What a session does with this git and these hooks."""
    return hooks.plan(repo, repo.session_dir(SESSION))


def _block(repo: Repo) -> HookPlan:
    """The block, whatever this git can do."""
    return HookPlan(Route.BLOCK, repo.common_dir / "hooks" / hooks.EVENT)


def _measure(
    table: Table,
    name: str,
    scratch: Path,
    rounds: int,
    *,
    plan: Callable[[Repo], HookPlan] = _plan,
    set_up: Callable[[Path], None] = lambda place: None,
) -> None:
    with_hook, without = _repository(scratch / "with", set_up), _repository(scratch / "without", set_up)
    chosen = hooks.install(plan(with_hook))
    # What is in the agent's environment alone is measured outside as well, as if an agent strayed there.
    env = {**os.environ, **hooks.environment(chosen, "git-relay")}
    alone = dict(os.environ)
    if chosen.borrowed is not None:  # else the peer's git, in a linked worktree, would not find the manager's hooks
        folder = without.common_dir.parent / chosen.borrowed.folder.relative_to(with_hook.common_dir.parent)
        alone |= {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.hooksPath", "GIT_CONFIG_VALUE_0": str(folder)}
    for where in ("inside", "outside"):
        here, there = _worktree(with_hook, where), _worktree(without, where)
        times = in_turns(
            rounds,
            hook=lambda here=here: run(*_COMMIT, cwd=here, env=env),
            alone=lambda there=there, where=where: run(
                *_COMMIT, cwd=there, env=alone if where == "inside" else dict(os.environ)
            ),
        )
        added, aim = times["hook"] - times["alone"], AIMS[where]
        row = Row(f"{name}, {where}", times["hook"], times["alone"], "without", f"+{aim * 1000:.0f} ms", added <= aim)
        table.rows.append(row)


def _husky(place: Path) -> None:
    (place / ".husky").mkdir()
    (place / ".husky" / hooks.EVENT).write_text("true\n")
    run("husky", cwd=place)


def _lefthook(place: Path) -> None:
    (place / "lefthook.yml").write_text(f"{hooks.EVENT}:\n  commands:\n    nothing:\n      run: 'true'\n")
    run("lefthook", "install", cwd=place)
    run("git", "add", "lefthook.yml", cwd=place)
    run(*_COMMIT, cwd=place)


def _repository(place: Path, set_up: Callable[[Path], None]) -> Repo:
    repo, _ = repository(place, 100)
    set_up(place)
    base = repo.resolve("HEAD")
    assert base is not None
    worktree.add(repo, SESSION, base)
    run("git", "worktree", "add", "--quiet", "--detach", str(place.with_name(place.name + "-other")), cwd=place)
    return repo


def _worktree(repo: Repo, where: str) -> Path:
    assert repo.home is not None
    return repo.session_dir(SESSION) if where == "inside" else repo.home.with_name(repo.home.name + "-other")
