"""Each of the six agents hands over to each other one, and the receiver's model is told what the contract says.

Six of the thirty pairs are played, a ring of those that no other test plays; RELAY_TEST_ALL_PAIRS=1 plays all.
"""

from __future__ import annotations

import json
import os
from itertools import pairwise, permutations
from pathlib import Path

import pytest

from tests.real.conftest import REAL
from tests.real.test_main_job import BEGIN, CLAUDE_LIMIT, CODEX_LIMIT, FINISH, GOAL, Field, text_of
from tests.real.test_more_agents import API as MORE_API
from tests.real.test_more_agents import LIMITS as MORE_LIMITS

API = {"claude": "claude", "codex": "codex", **MORE_API}
LIMITS = {"claude": CLAUDE_LIMIT, "codex": CODEX_LIMIT, **{name: limit for name, (limit, _) in MORE_LIMITS.items()}}
RING = ("claude", "gemini", "codex", "copilot", "qwen", "opencode", "claude")
PAIRS = permutations(REAL, 2) if os.environ.get("RELAY_TEST_ALL_PAIRS") == "1" else pairwise(RING)


def long(name: str, size: int) -> str:
    """A text of one line, as long as its place in a contract allows, with what programs on the way stumble over."""
    awkward = "\"two\" 'one' `tick` \\ \\n $HOME %s <system>no</system> ## none {} * _a_ ünïcödé 日本 🚀"
    return f"{name} begins: {awkward} {'and so on ' * (size // 10)}{name} ends"


TASK = "\n".join([GOAL, "", long("The goal", 3000), "", "    # indented, and no heading", long("Its end", 3000)])
REDO, RULE, NEXT = long("The migration", 600), long("The rule", 600), long("The next step", 1500)
MESSAGE = f"Add farewell\n\nRelay-Do-Not-Redo: {REDO}\nRelay-Constraint: {RULE}\nRelay-Next: {NEXT}\n"
NEVER_CUT = {"Do not redo": REDO, "Goal": TASK, "Next action": NEXT, "Constraints": RULE}
BEGINS = [
    {"text": "First.", "tools": [*BEGIN[0]["tools"], {"do": "write", "path": "{{cwd}}/message", "content": MESSAGE}]},
    {"tools": [{"do": "shell", "command": "git add src && git commit -qF message && rm message"}]},
]


def assert_whole(at: Field, session: str, request: dict) -> None:
    """What a brief never cuts is whole in the contract, and each line of it in what the receiver's model was sent."""
    contract = at.json("show")["contract"]
    assert (contract["taskGoal"], contract["nextAction"]) == (TASK, NEXT)
    assert REDO in [item["text"] for item in contract["doNotRedo"]]
    assert RULE in [item["rule"] for item in contract["constraints"]]
    brief, said = at.repo.git("show", f"refs/relay/sessions/{session}:contract.md"), text_of(request)
    for title, text in NEVER_CUT.items():
        section = brief.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
        assert text[-20:] in section, section
        missing = [line for line in section.split("\n") if json.dumps(line, ensure_ascii=False)[1:-1] not in said]
        assert missing == [], title


# What tools read as a word of their user's, in the repository and at home: a handoff writes in none of them.
TOLD = {
    name: f"# {name}: answer in English\n"
    for name in ("AGENTS.md", "CLAUDE.md", "GEMINI.md", "QWEN.md", ".cursorrules", ".github/copilot-instructions.md")
}
AT_HOME = (
    *(".claude/CLAUDE.md", ".codex/AGENTS.md", ".gemini/GEMINI.md", ".qwen/QWEN.md", ".config/opencode/AGENTS.md"),
    *(".copilot/copilot-instructions.md", ".claude/settings.json"),
)


def files_of(home: Path) -> dict[Path, bytes]:
    """What is there of a user's configuration before any tool was started."""
    for name in AT_HOME:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("{}\n" if name.endswith(".json") else f"{name}: be brief\n")
    return {file: file.read_bytes() for file in home.rglob("*") if file.is_file()}


@pytest.mark.parametrize(
    ("first", "second"), [pytest.param(a, b, marks=pytest.mark.agents(a, b), id=f"{a}-{b}") for a, b in PAIRS]
)
def test_one_hands_over_to_the_other(lo, model, agent_repo, agent_home, base_env, request, first, second) -> None:
    agent_repo.commit("Say how to work", TOLD)
    begins = model({API[first]: {"turns": [*BEGINS, {**LIMITS[first], "sticky": True}]}})
    finishes = model({API[second]: {"turns": FINISH}})
    env = dict(base_env)
    for name, played in ((first, begins), (second, finishes)):
        env |= request.getfixturevalue(f"{name}_env")(played)
        if name in MORE_API:
            agent_repo.git("config", f"relay.{name}.permission", "full")
    own = files_of(agent_home)
    at = Field(lo, agent_repo, env)
    done = lo.run(
        ["git-relay", "start", TASK, "--agent", first, "--then", second], cwd=agent_repo.path, env=env, timeout=300
    )
    assert done.rc == 0, done
    session = at.assert_sound(legs=[first, second])
    assert_whole(at, session["id"], finishes.requests(API[second])[0])
    names = agent_repo.git("ls-tree", "-r", "--name-only", session["branch"]).split("\n")
    assert {"src/farewell.py", "src/rest.py"} <= set(names)
    # What the user tells the tools is as it was: in the session, in the work tree and at home.
    worktree = agent_repo.path / ".relay" / "sessions" / session["id"]
    assert {name: (worktree / name).read_text() for name in TOLD} == TOLD
    assert agent_repo.git("diff", "--name-only", "main", session["branch"], "--", *TOLD) == ""
    assert {file: file.read_bytes() for file in own} == own
