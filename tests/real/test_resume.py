"""An agent follows itself: its model is sent all of the earlier conversation, and then what it is told now.

Claude Code and Codex are played through the whole command, in their sandboxes; of the others what their adapters say is
run. RELAY_TEST_ALL_PAIRS=1 plays all six through the command.
"""

from __future__ import annotations

import json
import os

import pytest

from relay_git.agents import AGENTS
from relay_git.agents.agent import Askable, Identified, Launch, Permission, Place
from relay_git.contract.answer import QUESTION
from relay_git.contract.answer import TITLE as ASK_TITLE
from relay_git.contract.brief import REMINDER, TITLE
from relay_git.supervisor.own_session import bring
from tests.real.conftest import REAL, agent_program
from tests.real.test_main_job import BEGIN, COMMIT, FINISH, GOAL, Field, text_of
from tests.real.test_pairs import API, LIMITS, MORE_API
from tests.real.test_plain_agents import needs, signed_in

WHOLE = REAL if os.environ.get("RELAY_TEST_ALL_PAIRS") == "1" else ("claude", "codex")

# Who refuses a call that changes something when it is asked; the others do not offer their model such tools.
REFUSING, WRITING = ("opencode",), {"edit", "replace", "write_file", "run_shell_command"}


def marked(names):
    return [pytest.param(name, marks=pytest.mark.agents(name)) for name in names]


@pytest.mark.parametrize("name", marked(WHOLE))
def test_a_session_goes_on_in_the_agents_own_with_the_whole_conversation(
    lo, model, agent_repo, base_env, request, name
) -> None:
    begins, finishes = (
        model({API[name]: {"turns": turns}}) for turns in ([*BEGIN[:2], {**LIMITS[name], "sticky": True}], FINISH)
    )
    env = request.getfixturevalue(f"{name}_env")
    if name in MORE_API:
        agent_repo.git("config", f"relay.{name}.permission", "full")
    at = Field(lo, agent_repo, base_env | env(begins))
    assert at.relay("start", GOAL, "--agent", name).rc == 1
    at.env |= env(finishes)
    done = at.relay("resume")
    assert done.rc == 0, done
    assert "goes on in its own session" in done.stderr
    (session,) = at.json("status")["sessions"]
    assert (session["state"], [leg["agent"] for leg in session["legs"]]) == ("DONE", [name, name])
    first = finishes.requests(API[name])[0]
    told, contract = json.dumps(first["messages"], ensure_ascii=False), at.json("show")["contract"]
    # The words and calls of the run before, then the reminder; the task is not told a second time.
    for part in (GOAL, COMMIT[:40], REMINDER, contract["contractId"]):
        assert part in told, part
    assert told.index(GOAL) < told.index(COMMIT[:40]) < told.index(REMINDER)
    assert (told.count(REMINDER), text_of(first).count(TITLE)) == (1, 0)
    assert "Add the rest" in agent_repo.git("log", "--format=%s", session["branch"])
    kept, fresh = (leg["nativeId"] for leg in session["legs"])
    assert (kept == fresh) is (name == "copilot")  # all others go on in a copy


class Runs:
    """An agent that is run as its adapter says, twice."""

    def __init__(self, name, lo, repo, env) -> None:
        self.agent, self.lo, self.env = AGENTS[name], lo, env
        self.worktree, private = repo.path.parent / "w", repo.git_dir / "relay" / "spool" / "w" / "leg-1"
        private.mkdir(parents=True)
        repo.git("worktree", "add", "-q", "-b", "relay/w", str(self.worktree))
        git_dir = repo.git_dir / "worktrees" / "w"
        self.place = Place(self.worktree, git_dir, repo.git_dir, "relay/w", private)
        self.ready = self.agent.check(env, Permission.FULL)
        self.last = ""

    def run(self, words: str, after: str = "", *, ask: bool = False) -> str:
        """What it is told now, in the session that it had before or in a new one; the id of the one that it is in."""
        if ask:
            assert isinstance(self.agent, Askable), self.agent
            plan = self.agent.ask(self.place, after, words, self.ready, self.env)
        elif after:
            plan = self.agent.resume(self.place, after, words, self.ready, Permission.FULL, self.env)
        else:
            plan = self.agent.launch(self.place, words, self.ready, Permission.FULL, self.env)
        assert isinstance(plan, Launch), plan
        for name, data in plan.files.items():
            (self.place.private_dir / name).write_bytes(data)
        env = {k: v for k, v in self.env.items() if k not in plan.drop_env} | dict(plan.env)
        done = self.lo.run(plan.argv, cwd=self.worktree, env=env, stdin=plan.stdin.decode())
        assert done.rc == 0, done
        heard = [said for line in done.stdout.splitlines() for said in self.agent.hear(line.encode())]
        return plan.native_id or next(said.native_id for said in heard if isinstance(said, Identified))

    def record(self, native_id: str):
        path = self.agent.transcript(native_id, self.worktree, self.env)
        following = self.agent.follow(path, native_id, self.worktree)
        following.poll()
        return following.record(ended=True)

    def goes_on(self, played, api: str, kind: str | None = "main") -> None:
        first = self.run("the first words")
        before = self.record(first)
        second = self.last = self.run("the second words", after=first)
        told = json.dumps(played.requests(api, kind)[-1]["messages"])
        assert "the first words" in told
        assert told.index("the first words") < told.index("the second words")
        record = self.record(second)
        assert record.prompts[-1] == "the second words"
        assert record.native_id == second or self.agent.name == "aider"  # which has no ids
        if self.agent.name != "copilot":
            assert second != first
            assert self.record(first) == before

    def is_asked(self, played, api: str) -> None:
        """It remembers, may neither write nor run anything, and says the answer last in a session of its own."""
        asked = self.run(QUESTION, after=self.last, ask=True)
        request = next(r for r in played.requests(api) if ASK_TITLE in json.dumps(r["messages"]))
        assert "the first words" in json.dumps(request["messages"])
        assert self.record(asked).last_text == "{}"
        assert list(self.worktree.glob("no-*")) == []
        assert self.agent.name in REFUSING or not WRITING & set(request["tools"])


@pytest.mark.parametrize("name", marked(name for name in REAL if name not in WHOLE))
def test_it_goes_on_with_the_whole_conversation_and_is_asked_without_leave_to_write(
    lo, model, agent_repo, base_env, request, name
) -> None:
    tries = [
        {"do": "write", "path": "{{cwd}}/no-file", "content": "no\n"},
        {"do": "shell", "command": "touch no-command"},
    ]
    replies = [{"tools": [one]} for one in tries if name in REFUSING] + [{"text": "{}"}]
    routes = [{"when": ASK_TITLE, "once": True, "reply": reply} for reply in replies]
    turns = [{"text": "First answer."}, {"text": "Second answer."}]
    played = model({API[name]: {"turns": turns, "routes": routes, "after": {"text": "{}"}}})
    env = base_env | request.getfixturevalue(f"{name}_env")(played)
    runs = Runs(name, lo, agent_repo, env)
    runs.goes_on(played, API[name])
    if name != "copilot":  # which makes no copy
        runs.is_asked(played, API[name])


@pytest.mark.agents("gemini")
def test_gemini_goes_on_in_a_copy_so_that_its_next_start_deletes_nothing_that_is_needed(
    lo, model, agent_repo, base_env, gemini_env
) -> None:
    played = model({"gemini": {"turns": [{"text": f"{number} answer."} for number in ("First", "Second", "Third")]}})
    at = Runs("gemini", lo, agent_repo, base_env | gemini_env(played))
    first = at.run("the first words")
    # A session that is resumed in a later minute gets a second file, for which Gemini's next start deletes both.
    file = at.agent.transcript(first, at.worktree, at.env)
    file.rename(file.with_name(f"session-2026-01-02T03-04-{first[:8]}.jsonl"))
    before = at.record(first)
    second = at.run("the second words", after=first)
    third = at.run("the third words", after=second)  # it deletes the second, of which it has all
    assert at.record(first) == before
    assert at.record(third).prompts == ("the first words", "the second words", "the third words")
    told = json.dumps(played.requests("gemini")[-1]["messages"])
    assert told.index("First answer.") < told.index("Second answer.") < told.index("the third words")


@needs("aider")
def test_aider_goes_on_with_a_copy_of_its_history(lo, model, agent_repo, base_env, agent_home) -> None:
    played = model({"chat": {"turns": [], "routes": [{"when": "words", "reply": {"text": "An answer."}}]}})
    program = agent_program("aider")
    assert program is not None
    env = base_env | signed_in("aider", played.url, agent_home) | {"PATH": f"{program.parent}:{base_env['PATH']}"}
    Runs("aider", lo, agent_repo, env).goes_on(played, "chat", None)


@pytest.mark.parametrize("name", marked(("claude", "codex")))
def test_another_account_goes_on_in_a_session_that_was_brought_to_its_home(
    lo, model, agent_repo, base_env, request, scratch, name
) -> None:
    played = model({API[name]: {"turns": [{"text": "First answer."}, {"text": "Second answer."}]}})
    signed_in = request.getfixturevalue(f"{name}_env")
    if name == "codex":
        one, other = (base_env | signed_in(played, home=scratch / home) for home in ("one", "other"))
    else:
        one, other = (base_env | signed_in(played) | {"CLAUDE_CONFIG_DIR": str(scratch / h)} for h in ("one", "other"))
    at = Runs(name, lo, agent_repo, one)
    first = at.run("the first words")
    bring(at.agent.kept(first, at.worktree, one), at.agent.home(other))
    at.env = other
    second = at.run("the second words", after=first)
    told = json.dumps(played.requests(API[name])[-1]["messages"])
    assert told.index("the first words") < told.index("First answer.") < told.index("the second words")
    assert at.agent.transcript(second, at.worktree, one) is None
