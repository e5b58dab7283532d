"""Real TUIs at a terminal: one takes the other's place, and what the user types goes to the one that is there."""

from __future__ import annotations

import json
import os
import time
from collections.abc import ItemsView
from pathlib import Path

import pytest

from relay_git.supervisor.screen import Screen
from tests.seal.records import records
from tests.terminal.user import User

GOAL = "Add a farewell function next to greet and commit it"
READ = {"tools": [{"do": "read", "path": "{{brief}}"}]}
COMMIT = "git add src/farewell.py && git commit -qm 'Add farewell' -m 'Relay-Do-Not-Redo: apply migration 7 again'"
BEGIN = [
    READ,
    {"tools": [{"do": "write", "path": "{{cwd}}/src/farewell.py", "content": "BYE\n"}]},
    {"tools": [{"do": "shell", "command": COMMIT}]},
    {"tools": [{"do": "write", "path": "{{cwd}}/src/half.py", "content": "def half(:\n"}]},
]
FINISH = [
    READ,
    {"tools": [{"do": "write", "path": "{{cwd}}/src/rest.py", "content": "REST = 1\n"}]},
    {"tools": [{"do": "shell", "command": "git add src/rest.py && git commit -qm 'Add the rest'"}]},
    {"text": "All is done."},
    {"text": "You are welcome."},
]
SETTINGS = {
    "permissions": {"defaultMode": "acceptEdits"},
    "statusLine": {"type": "command", "command": "grep -q rate_limits && touch ~/metered; echo my own line"},
}
TITLE = {"when": "Do not answer the request", "reply": {"text": "Farewell"}}


class Seat:
    """A user at a terminal in the namespace, with both agents signed in and past their first questions."""

    def __init__(self, lo, repo, env) -> None:
        self.lo, self.repo, self.env = lo, repo, env
        self.users: list[User] = []

    def type(self, *args: str) -> User:
        user = User(self.lo.inside(["git-relay", *args]), cwd=self.repo.path, env=self.env, columns=120, rows=40)
        self.users.append(user)
        return user

    def relay(self, *args: str):
        return self.lo.run(["git-relay", *args], cwd=self.repo.path, env=self.env)

    def session(self) -> dict:
        (session,) = json.loads(self.relay("status", "--json").stdout)["sessions"]
        return session


@pytest.fixture
def seat(lo, agent_repo, agent_home, base_env, claude_env, codex_env):
    made = []

    def make(model) -> Seat:
        trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        claude = {"hasCompletedOnboarding": True, "theme": "dark", "projects": {str(agent_repo.path): trusted}}
        (agent_home / ".claude.json").write_text(json.dumps(claude))
        (agent_home / ".claude").mkdir()
        (agent_home / ".claude/settings.json").write_text(json.dumps(SETTINGS))
        env = base_env | claude_env(model) | codex_env(model, codex_model="gpt-6.2-sol")
        with Path(env["CODEX_HOME"], "config.toml").open("a") as config:
            config.write(f'[projects."{agent_repo.path}"]\ntrust_level = "trusted"\n')
        made.append(Seat(lo, agent_repo, env))
        return made[-1]

    yield make
    for seat in made:
        for user in seat.users:
            user.close()


def told(request: dict) -> str:
    return json.dumps(request["messages"], ensure_ascii=False)


def quota(history: Path) -> ItemsView[str, object]:
    """The first reading of the five hours."""
    return next(row for row in records(history) if row.get("window") == "five_hour" and "used" in row).items()


def quit_codex(user: User) -> None:
    """Ctrl-C ends a turn first, where one is still open, and then Codex."""
    while "codex resume" not in user.text() and user.process.poll() is None:
        user.type("\x03")
        user.look(2.0)
    user.ends(120)


@pytest.mark.agents("claude", "codex")
def test_at_claudes_limit_codex_takes_its_place_with_the_brief_and_hears_the_user(seat, model, agent_home) -> None:
    # Not before the status line has told of the quota, and git relay has had the time to look.
    limit = {"preset": "claude-usage-limit", "sticky": True, "until": str(agent_home / "metered"), "delay": 3}
    played = model(
        {"claude": {"turns": [*BEGIN, limit], "rate": "claude:0.8"}, "codex": {"turns": FINISH, "routes": [TITLE]}}
    )
    at = seat(played)
    user = at.type("start", "-i", GOAL, "--agent", "claude", "--then", "codex")
    user.sees("my own line", seconds=120)
    user.sees("claude is at its limit until", seconds=120)
    user.until(lambda: "All is done." in str(played.requests("codex")[-1:]), seconds=120)
    user.type("thank you")
    while "thank you" not in told(played.requests("codex")[-1]):
        user.look(1.0)  # an Enter that comes with the words is taken for a part of a paste
        user.type("\r")
    quit_codex(user)
    assert user.modes() == user.modes_before

    session = at.session()
    assert session["state"] == "STOPPED"
    assert "the user left codex" in user.text()
    assert [leg["agent"] for leg in session["legs"]] == ["claude", "codex"]
    assert at.relay("verify", "--all").rc == 0
    (history,) = Path(os.environ["XDG_STATE_HOME"]).rglob("quota/claude.jsonl")
    assert {"window": "five_hour", "used": 0.8, "source": "Claude Code's status line"}.items() <= quota(history)
    made = at.repo.git("log", "--format=%s", session["branch"])
    assert "Add farewell" in made
    assert "Add the rest" in made
    assert "half.py" in at.repo.git("ls-tree", "-r", "--name-only", session["branch"])
    first = json.loads(at.relay("show", "--json").stdout)["contract"]
    read = told(played.requests("codex")[-1])
    assert "apply migration 7 again" in read, "Codex has read the brief"
    assert GOAL in read
    assert "apply migration 7 again" in json.dumps(first["doNotRedo"])
    assert GOAL in told(played.requests("claude")[-1]), "Claude Code's own Read has read the task"
    assert at.lo.processes() == {} or not at.lo.sealed


@pytest.mark.agents("claude")
def test_a_claude_at_the_users_own_terminal_that_is_adopted_and_stopped_gives_the_terminal_back(
    seat, model, scratch
) -> None:
    write = {"tools": [{"do": "write", "path": "{{cwd}}/a.py", "content": "a = 1\n"}]}
    played = model({"claude": {"turns": [write, {"text": "Never said.", "until": str(scratch / "never")}]}})
    at = seat(played)
    at.repo.git("config", "relay.termGrace", "1")
    (scratch / "inputrc").write_text("set enable-bracketed-paste off\n")
    env = at.env | {"PS1": "PROMPT> ", "INPUTRC": str(scratch / "inputrc")}
    user = User(at.lo.inside(["bash", "--norc", "--noprofile", "-i"]), cwd=at.repo.path, env=env, columns=120, rows=40)
    at.users.append(user)
    user.sees("PROMPT>")
    before = user.modes()
    user.type("claude --permission-mode acceptEdits 'write a.py'\r")
    played.wait_for(2, "claude")
    (found,) = json.loads(at.relay("detect", "--here", "--json").stdout)["sessions"]
    done = at.relay("adopt", found["sessionId"], "--stop", "--to", "demo")
    assert done.rc == 0, done
    # The shell has seen it held and ended, has its own modes again, and what the TUI had switched on is off.
    user.type("echo it is $((40 + 2))\r")
    user.sees("it is 42")
    user.until(lambda: user.modes() == before)  # which the shell sets again once it asks for the next line
    screen = Screen()
    screen.feed(bytes(user.look()))
    assert screen.off() in (b"", b"\x1b[0m")
    # Nothing of its session is lost: the transcript is there, the file in its tree, and both in what was handed over.
    assert (at.repo.path / "a.py").read_text() == "a = 1\n"
    read = json.loads(at.relay("read", found["path"], "--json").stdout)
    assert read["filesTouched"] == ["a.py"]
    session = at.session()
    assert (session["state"], [leg["agent"] for leg in session["legs"]]) == ("DONE", ["claude", "demo"])
    assert at.repo.git("show", f"{session['branch']}:a.py") == "a = 1"


@pytest.mark.agents("claude", "codex")
@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_a_tui_that_the_user_begins_knows_how_to_leave_word_for_the_next_agent(seat, model, agent) -> None:
    played = model({agent: {"turns": [{"text": "Hello to you."}], "routes": [TITLE] if agent == "codex" else []}})
    at = seat(played)
    user = at.type("start", "-i", "--agent", agent)
    user.sees("Claude" if agent == "claude" else "OpenAI", seconds=60)
    deadline, rounds = time.monotonic() + 110, 0
    while "hello" not in str(played.requests(agent)):
        assert time.monotonic() < deadline, user.text()[-3000:]
        if rounds % 15 == 0:  # what is typed before it listens may be lost
            user.look(2.0)
            user.type("hello")
        user.look(1.5)  # an Enter that comes with the words is taken for a part of a paste
        user.type("\r")
        rounds += 1
    sent = next(str(r) for r in played.requests(agent) if "hello" in str(r))
    assert "You work on the branch relay/" in sent
    assert "Relay-Do-Not-Redo" in sent
