"""Agents that git relay did not start, on the real thing: found with what they do, and lifted in mid-task."""

from __future__ import annotations

import json
import os
import signal

import pytest

from tests.cli.scene import photograph, wait_for
from tests.real.test_main_job import BEGIN, FINISH, GOAL
from tests.seal.repo import Repo

COMMANDS = {
    "claude": ["claude", "-p", "--dangerously-skip-permissions"],
    "codex": ["codex", "exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-"],
    "opencode": ["opencode", "run", GOAL],
}
API = {"claude": "claude", "codex": "codex", "opencode": "chat"}


class Place:
    """Agents as users start them, each in a repository of its own, and `git relay` beside them."""

    def __init__(self, lo, scratch, env) -> None:
        self.lo, self.scratch, self.env = lo, scratch, env

    def repo(self, name: str) -> Repo:
        folder = self.scratch / name
        folder.mkdir()
        made = Repo(folder)
        made.git("init", "-q", "--template=")
        made.commit("initial commit", {"README.md": "# demo\n", "src/greet.py": 'def greet(name):\n    return "hi"\n'})
        return made

    def begin(self, agent: str, repo: Repo, task: str, more: dict[str, str]):
        argv = [task if word is GOAL else word for word in COMMANDS[agent]]
        return self.lo.start(argv, cwd=repo.path, env=self.env | more, stdin="" if task in argv else task)

    def relay(self, *args: str, cwd, more: dict[str, str] | None = None):
        return self.lo.run(["git-relay", *args], cwd=cwd, env=self.env | (more or {}), timeout=300)

    def detected(self) -> list[dict]:
        """What is found in the folders of this test, by somebody who has none of the agents' variables."""
        done = self.relay("detect", "--json", cwd=self.scratch)
        assert done.rc == 0, done
        rows = json.loads(done.stdout)["sessions"]
        return [row for row in rows if row["record"]["cwd"].startswith(str(self.scratch))]


@pytest.fixture
def place(lo, scratch, base_env) -> Place:
    return Place(lo, scratch, base_env)


@pytest.fixture
def envs(claude_env, codex_env, opencode_env):
    return {"claude": claude_env, "codex": codex_env, "opencode": opencode_env}


def in_mid_task(go) -> list[dict]:
    """Something written, and then a command that runs as long as the test needs it."""
    return [BEGIN[0], {"tools": [{"do": "shell", "command": f"while ! [ -e '{go}' ]; do sleep 0.1; done"}]}, *FINISH]


def in_thought(go) -> list[dict]:
    """Something written, and then a model that says nothing as long as the test needs it."""
    return [BEGIN[0], {**FINISH[0], "until": str(go)}, *FINISH[1:]]


@pytest.mark.agents("claude", "codex", "opencode")
def test_each_of_four_agents_is_found_with_its_session_its_state_and_its_folder(place, model, scratch, envs) -> None:
    go, begun = scratch / "go", {}
    for name, agent in (("one", "claude"), ("two", "claude"), ("three", "codex"), ("four", "opencode")):
        # Codex waits ten seconds for a command, and then lets its model go on.
        turns = in_thought(go) if agent == "codex" else in_mid_task(go)
        played = model({API[agent]: {"turns": turns}})
        more = envs[agent](played)
        if agent == "claude":
            more["CLAUDE_CONFIG_DIR"] = str(scratch / f"config-{name}")
        begun[name] = (agent, place.begin(agent, place.repo(name), f"the task of {name}", more))
        played.wait_for(2, API[agent])

    def all_at_work() -> dict[str, dict] | None:
        rows = {row["record"]["cwd"].rpartition("/")[2]: row for row in place.detected() if row["pid"]}
        at_work = [row for row in rows.values() if row["state"] == "working" and row["record"]["filesTouched"]]
        return rows if len(at_work) == len(begun) else None

    rows = wait_for(all_at_work)
    assert {name: row["agent"] for name, row in rows.items()} == {name: agent for name, (agent, _) in begun.items()}
    for name, row in rows.items():
        assert bool(row["record"]["pendingToolCalls"]) is (name != "three")
        assert row["record"]["userPrompts"] == [f"the task of {name}"]
        assert row["record"]["filesTouched"] == ["src/farewell.py"]
        assert row["pid"] in place.lo.processes() or not place.lo.sealed
        assert row["sessionId"]
        assert row["sessionId"] in row["path"] or row["agent"] == "opencode"
    assert rows["one"]["matchedBy"] == rows["two"]["matchedBy"] == "its live registry"
    assert rows["three"]["matchedBy"] in ("its writer lock", "its open transcript")
    assert len({row["sessionId"] for row in rows.values()}) == len(begun)
    go.touch()
    for _, process in begun.values():
        assert place.lo.finish(process).rc == 0

    def all_ended() -> bool:
        """Of those whose folder is the tool's own: whoever has set another for himself is asked there only."""
        states = {row["sessionId"]: row["state"] for row in place.detected()}
        return [states[rows[name]["sessionId"]] for name in ("three", "four")] == ["ended", "ended"]

    assert wait_for(all_ended)


@pytest.mark.agents("claude", "codex")
def test_a_claude_that_runs_in_mid_task_is_adopted_by_codex_and_left_as_it_is(place, model, scratch, envs) -> None:
    go, repo = scratch / "go", place.repo("repo")
    begins, finishes = model({"claude": {"turns": in_mid_task(go)}}), model({"codex": {"turns": FINISH}})
    claude = place.begin("claude", repo, GOAL, envs["claude"](begins))
    begins.wait_for(2, "claude")
    (found,) = wait_for(lambda: [row for row in place.detected() if row["record"]["pendingToolCalls"]])
    before = photograph(repo.path)
    done = place.relay("adopt", str(found["pid"]), "--to", "codex", cwd=scratch, more=envs["codex"](finishes))
    assert done.rc == 0, done
    assert photograph(repo.path) == before
    assert claude.poll() is None
    told = json.dumps(finishes.requests("codex")[0]["messages"])
    (ref,) = repo.git("for-each-ref", "--format=%(refname)", "refs/relay/sessions/").split("\n")
    branch = ref.removeprefix("refs/relay/sessions/")
    contract = json.loads(repo.git("show", f"{ref}:contract.json"))
    assert contract["contractId"] in told
    assert GOAL in told
    assert "while ! [ -e" in told  # the call that was open is what comes next
    assert contract["pause"]["reason"] == "adopted"
    assert (contract["from"]["agent"], contract["inFlightCode"][0]["path"]) == ("claude", "src/farewell.py")
    names = repo.git("ls-tree", "-r", "--name-only", f"relay/{branch}").split("\n")
    assert {"src/farewell.py", "src/rest.py"} <= set(names)
    go.touch()
    assert place.lo.finish(claude).rc == 0


@pytest.mark.agents("codex", "opencode")
def test_a_codex_that_has_crashed_is_adopted_by_opencode(place, model, scratch, envs) -> None:
    repo = place.repo("repo")
    begins, finishes = model({"codex": {"turns": in_mid_task(scratch / "go")}}), model({"chat": {"turns": FINISH}})
    codex = place.begin("codex", repo, GOAL, envs["codex"](begins))
    begins.wait_for(2, "codex")
    wait_for(lambda: [row for row in place.detected() if row["record"]["pendingToolCalls"]])
    os.killpg(codex.pid, signal.SIGKILL)
    place.lo.finish(codex)
    (found,) = wait_for(lambda: [row for row in place.detected() if row["state"] == "crashed in mid-turn"])
    repo.git("config", "relay.opencode.permission", "full")
    done = place.relay(
        "adopt", found["sessionId"][:13], "--to", "opencode", cwd=scratch, more=envs["opencode"](finishes)
    )
    assert done.rc == 0, done
    told = json.dumps(finishes.requests("chat")[0]["messages"])
    (ref,) = repo.git("for-each-ref", "--format=%(refname)", "refs/relay/sessions/").split("\n")
    contract = json.loads(repo.git("show", f"{ref}:contract.json"))
    assert contract["contractId"] in told
    assert GOAL in told
    assert contract["pause"]["safePoint"] == "interrupted"
    assert [loss for loss in contract["losses"] if "crashed in mid-turn" in loss]
