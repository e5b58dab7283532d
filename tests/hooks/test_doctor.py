"""`doctor` says by which way commits are noticed, in the main work tree and for each session, and where none fires."""

from __future__ import annotations

import json

import pytest

from relay_git.git.hooks import CONFIGURED_HOOKS
from tests.cli.scene import LIMIT, only_session, say
from tests.seal.repo import git_version

CONFIGURED = git_version() >= CONFIGURED_HOOKS


def findings(repo, relay) -> dict[str, dict[str, str]]:
    return {f["check"]: f for f in json.loads(relay("doctor", "--json", cwd=repo.path).stdout)["findings"]}


def test_a_hook_that_another_program_has_written_is_told_of_for_the_session_alone(repo, relay, demo) -> None:
    before = findings(repo, relay)["hook"]
    assert (before["verdict"], "fires" in before["text"]) == ("ok", True)
    demo.plays([say("I begin."), LIMIT])
    assert relay("start", "x", "--agent", "demo", cwd=repo.path).rc == 1
    own = f"hook of {only_session(repo.path)}"
    assert findings(repo, relay)[own]["verdict"] == "ok"
    repo.write(".git/hooks/post-commit", "#!/bin/sh\nmanager run\n")
    told = findings(repo, relay)[own]
    assert (told["verdict"], "does not fire" in told["text"]) == (("ok", False) if CONFIGURED else ("note", True))


@pytest.mark.skipif(CONFIGURED, reason="this git runs hooks named in the environment, whatever lies in the folder")
def test_a_folder_of_hooks_that_is_not_ours_to_write_to_is_named_and_lent_to_the_session(repo, relay, demo) -> None:
    repo.write(".hooks/.gitignore", "*\n")
    repo.write(".hooks/post-commit", "#!/bin/sh\n").chmod(0o755)
    repo.git("config", "core.hooksPath", ".hooks")
    demo.plays([say("I begin."), LIMIT])
    assert relay("start", "x", "--agent", "demo", cwd=repo.path).rc == 1
    found = findings(repo, relay)
    main, own = found["hook"], found[f"hook of {only_session(repo.path)}"]
    assert "the hook does not fire" in main["text"]
    assert "outside of the git dir" in own["text"]
    assert f"your hooks of {repo.path}/.hooks run in it" in own["text"]
