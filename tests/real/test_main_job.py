"""The main job on the real thing: a task started on one real agent is finished by another."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from relay_git.contract.answer import TITLE as ASK_TITLE
from tests.real.conftest import FAKE

GOAL = "Add a farewell function next to greet and commit it"
COMMIT = "git add src/farewell.py && git commit -qm 'Add farewell' -m 'Relay-Do-Not-Redo: apply migration 7 again'"
BEGIN = [
    {"text": "First.", "tools": [{"do": "write", "path": "{{cwd}}/src/farewell.py", "content": "BYE\n"}]},
    {"text": "Committing.", "tools": [{"do": "shell", "command": COMMIT}]},
    {"tools": [{"do": "write", "path": "{{cwd}}/src/half.py", "content": "def half(:\n"}]},
]
# The same, and a note from inside the sandbox, as each agent is told that it may leave one.
NOTE = "Keep greet as it is"
NOTED = {"tools": [{"do": "shell", "command": f"{COMMIT} && git relay note constraint '{NOTE}'"}]}
STANDING = ("Relay-Decision:", "Relay-Constraint:", "Relay-Do-Not-Redo:", "Relay-Next:", "Relay-Question:")
FINISH = [
    {"tools": [{"do": "write", "path": "{{cwd}}/src/rest.py", "content": "REST = 1\n"}]},
    {"tools": [{"do": "shell", "command": "git add src/rest.py && git commit -qm 'Add the rest'"}]},
    {"text": "All is done."},
]
CLAUDE_LIMIT = {"preset": "claude-usage-limit"}
CODEX_LIMIT = {"preset": "codex-usage-limit"}
ANSWER = {
    "decisions": [{"what": "farewell takes no name", "why": "greet takes one by mistake"}],
    "constraints": ["Nobody renames greet"],
    "nextAction": "Write src/rest.py",
    "files": [{"path": "src/farewell.py", "why": "the function"}, {"path": "src/router.py", "why": "it calls it"}],
}
"""What an agent says when git relay asks it what the next one must know."""
ASKED = {"when": ASK_TITLE, "once": True, "reply": {"text": json.dumps(ANSWER)}}


class Field:
    """The command in the namespace, with both agents signed in to the scripted model."""

    def __init__(self, lo, repo, env) -> None:
        self.lo, self.repo, self.env = lo, repo, env
        self.before = self.face()

    def relay(self, *args: str, **more):
        return self.lo.run(["git-relay", *args], cwd=self.repo.path, env=self.env, timeout=180, **more)

    def second_claude(self) -> str:
        """Another account of Claude Code, to come after another tool, since a spent one is not asked; its name."""
        self.repo.git("config", "relay.prefer", "provider")
        self.env["WORK_TOKEN"] = f"{FAKE}-of-the-other-account"
        folder = str(Path(self.env["HOME"]) / "work")
        key = ("--api-key-env", "CLAUDE_CODE_OAUTH_TOKEN=WORK_TOKEN")
        assert self.relay("accounts", "add", "claude", "work", "--config-dir", folder, *key).rc == 0
        return "claude:work"

    def json(self, *args: str):
        done = self.relay(*args, "--json")
        assert done.rc == 0, done
        return json.loads(done.stdout)

    def face(self) -> tuple[str, ...]:
        """What the user sees of the main work tree."""
        listed = self.repo.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads/main", "refs/stash")
        return (
            self.repo.git("status", "--porcelain"),
            self.repo.head,
            listed,
            (self.repo.git_dir / "index").read_bytes(),
        )

    def assert_sound(self, *, state: str = "DONE", legs: list[str], committed: bool = True) -> dict:
        """The session ended as expected, every contract holds, nothing of the user's moved, no agent is left alive."""
        (session,) = self.json("status")["sessions"]
        assert session["state"] == state
        assert [leg["agent"] for leg in session["legs"]] == legs
        made = self.repo.git("log", "--format=%ae %s", session["branch"]).split("\n")
        assert ("dev@example.invalid Add farewell" in made) is committed
        checked = self.json("verify", "--all")
        assert [c["outcome"] for c in checked["contracts"]] == ["superseded"] * (len(legs) - 2) + ["valid"]
        assert self.face() == self.before
        assert self.lo.processes() == {} or not self.lo.sealed
        return session


@pytest.fixture
def field(lo, agent_repo, base_env, claude_env, codex_env):
    def make(model):
        return Field(lo, agent_repo, base_env | claude_env(model) | codex_env(model))

    return make


def text_of(request: dict) -> str:
    return request.get("system", "") + json.dumps(request["messages"], ensure_ascii=False)


def assert_brief_reached(
    field: Field, request: dict, *, goal: str = GOAL, redo: str = "apply migration 7 again"
) -> None:
    contract = field.json("show")["contract"]
    said = text_of(request)
    for part in (contract["contractId"], goal, redo, contract["nextAction"][:60]):
        assert part in said, part


def assert_told_how_to_leave_word(field: Field, first: dict) -> None:
    """The agent was told in its first request how to say what the next one must know, and what it said so is there."""
    for part in (*STANDING, "git relay note KIND TEXT"):
        assert part in text_of(first), part
    assert {"rule": NOTE, "source": "note of the agent"} in field.json("show")["contract"]["constraints"]


def assert_answer_reached(field: Field, request: dict, *, later: bool = False) -> None:
    """What an agent said when it was asked stands in the brief of the next, and the file that is not there is marked.

    `later`: in that of one after the next, which is told what was decided and no more what was believed.
    """
    said = text_of(request)
    parts = ("farewell takes no name (because: greet takes one by mistake)", "Nobody renames greet")
    believed = ("src/farewell.py: the function", "src/router.py (not in the snapshot): it calls it")
    for part in (*parts, *(() if later else believed)):
        assert part in said, part
    assert "it answered: 1 decision, 1 constraint, 1 next" in field.relay("log").stdout


@pytest.mark.agents("claude", "codex")
def test_codex_finishes_what_claude_began(field, model) -> None:
    played = model(
        {
            "claude": {"turns": [BEGIN[0], NOTED, BEGIN[2], CLAUDE_LIMIT], "rate": "claude:0.8"},
            "codex": {"turns": FINISH},
        }
    )
    at = field(played)
    done = at.relay("start", GOAL, "--agent", "claude", "--then", "codex")
    assert done.rc == 0, done
    session = at.assert_sound(legs=["claude", "codex"])
    assert_brief_reached(at, played.requests("codex")[0])
    assert_told_how_to_leave_word(at, played.requests("claude")[0])
    names = at.repo.git("ls-tree", "-r", "--name-only", session["branch"]).split("\n")
    assert {"src/farewell.py", "src/half.py", "src/rest.py"} <= set(names)
    contract = at.json("show")["contract"]
    assert contract["pause"]["reason"] == "usage-limit"
    assert contract["initialPrompt"].startswith(GOAL)
    assert "src/half.py" in [f["path"] for f in contract["inFlightCode"]]
    assert at.repo.git("log", "--notes=relay/*", "--format=%N", contract["snapshotCommit"], "-1").startswith(
        "# git relay"
    )


@pytest.mark.agents("claude", "codex")
def test_claude_finishes_what_codex_began(field, model) -> None:
    played = model(
        {"codex": {"turns": [BEGIN[0], NOTED, BEGIN[2], CODEX_LIMIT], "rate": "codex:0.8"}, "claude": {"turns": FINISH}}
    )
    at = field(played)
    done = at.relay("start", GOAL, "--agent", "codex", "--then", "claude")
    assert done.rc == 0, done
    at.assert_sound(legs=["codex", "claude"])
    assert_brief_reached(at, played.requests("claude")[0])
    assert_told_how_to_leave_word(at, played.requests("codex")[0])


@pytest.mark.agents("claude", "codex")
def test_three_legs_carry_what_the_first_said_to_the_third(field, model) -> None:
    middle = [{"tools": [{"do": "write", "path": "{{cwd}}/src/mid.py", "content": "MID = 1\n"}]}, CODEX_LIMIT]
    played = model({"claude": {"turns": [*BEGIN, CLAUDE_LIMIT, *FINISH]}, "codex": {"turns": middle}})
    at = field(played)
    done = at.relay("start", GOAL, "--agent", "claude", "--then", f"codex,{at.second_claude()}")
    assert done.rc == 0, done
    session = at.assert_sound(legs=["claude", "codex", "claude"])
    last = [r for r in played.requests("claude") if "you are leg 3" in text_of(r)]
    assert_brief_reached(at, last[0])
    assert "src/mid.py" in at.repo.git("ls-tree", "-r", "--name-only", session["branch"])


@pytest.mark.agents("claude", "codex")
def test_a_handoff_asked_for_in_mid_task_waits_for_the_commit(field, model, scratch) -> None:
    go = scratch / "go"
    # When it is asked what the next one must know, it tries to write and to run something before it answers.
    tries = [BEGIN[2], {"tools": [{"do": "shell", "command": "echo no > src/shell.py"}]}]
    turns = [BEGIN[0], {**BEGIN[1], "until": str(go)}, *tries, {"text": json.dumps(ANSWER)}]
    played = model({"claude": {"turns": turns}, "codex": {"turns": FINISH}})
    at = field(played)
    running = at.lo.start(
        ["git-relay", "start", GOAL, "--agent", "claude", "--then", "codex"], cwd=at.repo.path, env=at.env
    )
    played.wait_for(2, "claude")
    asked = at.relay("handoff", "--reason", "I want Codex on it")
    assert asked.rc == 0, asked
    time.sleep(0.5)
    go.write_text("")
    done = at.lo.finish(running)
    assert done.rc == 0, done
    at.assert_sound(legs=["claude", "codex"])
    contract = at.json("show")["contract"]
    assert contract["pause"]["reason"] == "handoff"
    assert contract["pause"]["safePoint"] == "commit"
    assert contract["pause"]["detail"] == "I want Codex on it"
    assert contract["inFlightCode"] == []
    assert_answer_reached(at, played.requests("codex")[0])


@pytest.mark.agents("claude")
def test_with_no_successor_left_the_session_waits_with_the_contract_kept(field, model) -> None:
    played = model({"claude": {"turns": [*BEGIN, {**CLAUDE_LIMIT, "sticky": True}]}})
    at = field(played)
    at.env["PATH"] = ":".join(
        p for p in at.env["PATH"].split(":") if not Path(p, "codex").exists() or Path(p, "claude").exists()
    )
    at.env.pop("CODEX_HOME")
    at.env.pop("FAKE_KEY")
    done = at.relay("start", GOAL, "--agent", "claude", "--then", "codex")
    assert done.rc == 1, done
    session = at.assert_sound(state="NEEDS_HUMAN", legs=["claude"])
    assert [p["agent"] for p in session["passedOver"]] == ["codex"]
    assert f"git relay handoff {session['id']} --to" in done.stderr


@pytest.mark.agents("claude", "codex")
def test_a_successor_at_its_own_limit_is_passed_over(field, model) -> None:
    played = model(
        {"claude": {"turns": [*BEGIN, CLAUDE_LIMIT, *FINISH]}, "codex": {"turns": [{**CODEX_LIMIT, "sticky": True}]}}
    )
    at = field(played)
    done = at.relay("start", GOAL, "--agent", "claude", "--then", f"codex,{at.second_claude()}")
    assert done.rc == 0, done
    at.assert_sound(legs=["claude", "claude"])
    assert "codex is passed over: it is at its limit" in done.stderr


@pytest.mark.agents("codex")
def test_ctrl_c_stops_cleanly_and_the_session_can_be_handed_on(field, model, scratch) -> None:
    turns = [BEGIN[0], {**BEGIN[1], "until": str(scratch / "never")}]
    played = model({"codex": {"turns": [*turns]}})
    at = field(played)
    running = at.lo.start(["git-relay", "start", GOAL, "--agent", "codex"], cwd=at.repo.path, env=at.env)
    played.wait_for(2, "codex")
    os.kill(running.pid, signal.SIGINT)
    done = at.lo.finish(running)
    assert done.rc == 130, done
    at.assert_sound(state="STOPPED", legs=["codex"], committed=False)
    assert "src/farewell.py" in [f["path"] for f in at.json("show")["contract"]["fileManifest"]]
