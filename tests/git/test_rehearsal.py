"""The dry run of the hook: it tells a hook that fires from one that does not, and runs nothing of the user's."""

from __future__ import annotations

import os
import tempfile

import pytest

from relay_git.git import hooks
from relay_git.git.hooks import HookPlan, Route
from relay_git.git.rehearsal import rehearse
from tests.seal.repo import git_version

CONFIGURED = git_version() >= hooks.CONFIGURED_HOOKS


def test_a_hook_that_fires_leaves_no_trace_and_runs_nothing_of_the_user_s(session, home, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    shared = home / "shared"
    for place in (session.main.git_dir / "hooks", shared):
        place.mkdir(exist_ok=True)
        for name in ("pre-commit", "post-commit"):
            (place / name).write_text(f"#!/bin/sh\necho ran >>{tmp_path}/ran\nexit 1\n")
            (place / name).chmod(0o755)
    session.main.git("config", "--global", "commit.gpgSign", "true")
    plan = hooks.install(hooks.plan(session.repo, session.at.path))
    session.main.git("config", "--global", "core.hooksPath", str(shared))
    assert rehearse(plan) == ""
    assert not (tmp_path / "ran").exists()
    assert list((tmp_path / "scratch").iterdir()) == []
    assert not (session.marks / "safepoints").exists()


@pytest.mark.skipif(CONFIGURED, reason="this git runs hooks named in the environment, no block is needed")
@pytest.mark.parametrize("breaks", ["#!/nowhere/bin/bash\n", "#!/bin/sh -n\n"])
def test_a_hook_whose_interpreter_does_not_run_it_is_found_out(session, breaks) -> None:
    plan = hooks.install(hooks.plan(session.repo, session.at.path))
    assert plan.file is not None
    assert rehearse(plan) == ""
    plan.file.write_text(breaks + plan.file.read_text().partition("\n")[2])
    assert "in a dry run git did not run it" in rehearse(plan)


def test_a_script_that_is_gone_is_found_out(session, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(hooks, "script", lambda: tmp_path / "moved away")
    plan = hooks.plan(session.repo, session.at.path)
    assert "in a dry run git did not run it" in rehearse(plan)


def test_a_plan_without_a_hook_says_why_and_a_disk_that_refuses_is_named(session, monkeypatch, tmp_path) -> None:
    assert rehearse(HookPlan(Route.WATCH, None, "it is not a shell script")) == "it is not a shell script"
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    assert rehearse(hooks.plan(session.repo, session.at.path)).startswith("the dry run could not be made")
    assert os.listdir(tmp_path) == ["repo"]  # noqa: PTH208 - names only
