"""What the post-commit hook adds to a commit, in a session's worktree and in another one."""

from __future__ import annotations

import os
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
        "installed. Peer: the same commit in an equal repository without it.",
    )
    _measure_route(table, scratch / "block", Route.BLOCK, 20 if small else 200)
    if version() >= CONFIGURED_HOOKS:
        _measure_route(table, scratch / "configured", Route.CONFIGURED, 20 if small else 200)
    else:
        table.notes.append(
            f"not measured: the configured route, which git has since {'.'.join(map(str, CONFIGURED_HOOKS))}"
        )
    return table


def _measure_route(table: Table, scratch: Path, route: Route, rounds: int) -> None:
    with_hook, without = _repository(scratch / "with"), _repository(scratch / "without")
    file = with_hook.common_dir / "hooks" / "post-commit" if route is Route.BLOCK else hooks.script()
    chosen = HookPlan(route, file)
    hooks.install(chosen)
    # The configured hook is in the agent's environment alone; outside it is measured as if an agent strayed there.
    env = {**os.environ, **hooks.environment(chosen, "git-relay")}
    plain = dict(os.environ)
    for where in ("inside", "outside"):
        here, there = _worktree(with_hook, where), _worktree(without, where)
        times = in_turns(
            rounds,
            hook=lambda here=here: run(*_COMMIT, cwd=here, env=env),
            plain=lambda there=there: run(*_COMMIT, cwd=there, env=plain),
        )
        added, aim = times["hook"] - times["plain"], AIMS[where]
        row = Row(f"{route}, {where}", times["hook"], times["plain"], "plain", f"+{aim * 1000:.0f} ms", added <= aim)
        table.rows.append(row)


def _repository(place: Path) -> Repo:
    repo, _ = repository(place, 100)
    base = repo.resolve("HEAD")
    assert base is not None
    worktree.add(repo, SESSION, base)
    run("git", "worktree", "add", "--quiet", "--detach", str(place.with_name(place.name + "-other")), cwd=place)
    return repo


def _worktree(repo: Repo, where: str) -> Path:
    assert repo.home is not None
    return repo.session_dir(SESSION) if where == "inside" else repo.home.with_name(repo.home.name + "-other")
