"""The main job on aider, Cline and Continue, which have no sandbox and are big: where they are not installed, it skips.

bash tests/real/install.sh PREFIX cline continue aider
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.real.conftest import FAKE, agent_program
from tests.real.test_main_job import GOAL, Field, text_of

PROGRAMS = {"aider": "aider", "cline": "cline", "continue": "cn"}
COMMIT = "git add src/farewell.py && git commit -qm 'Add farewell' -m 'Relay-Do-Not-Redo: apply migration 7 again'"
CLINE = [
    {"text": "First.", "tools": [{"name": "editor", "args": {"path": "src/farewell.py", "new_text": "BYE = 1\n"}}]},
    {"text": "Committing.", "tools": [{"name": "run_commands", "args": {"commands": [COMMIT]}}]},
]
READ = {"tools": [{"name": "read_files", "args": {"files": [{"path": "{{brief}}"}]}}]}
CONTINUE = [
    {"text": "First.", "tools": [{"name": "Write", "args": {"filepath": "src/farewell.py", "content": "BYE = 1\n"}}]},
    {"text": "Committing.", "tools": [{"name": "Bash", "args": {"command": COMMIT}}]},
]
EDIT = "I add it.\n\nsrc/rest.py\n```python\n<<<<<<< SEARCH\n=======\nREST = 1\n>>>>>>> REPLACE\n```\n"
# Aider offers no tools, so that the script knows its requests by what they say.
AIDER = [{"when": "diff --git", "reply": {"text": "Add the rest"}}, {"when": "farewell", "reply": {"text": EDIT}}]
QUOTA = {"preset": "openai-quota", "sticky": True}


def needs(*names: str) -> pytest.MarkDecorator:
    missing = [PROGRAMS[name] for name in names if agent_program(PROGRAMS[name]) is None]
    return pytest.mark.skipif(bool(missing), reason=f"no {' and no '.join(missing)}: see tests/real/install.sh")


def signed_in(name: str, url: str, home: Path) -> dict[str, str]:
    """What makes the tool ask this model: variables, and the files of a login."""
    match name:
        case "aider":
            return {
                "OPENAI_API_BASE": f"{url}/v1",
                "OPENAI_API_KEY": FAKE,
                "AIDER_MODEL": "openai/scripted-model",
                "AIDER_EDIT_FORMAT": "diff",
                "AIDER_ANALYTICS": "false",
                "PYTHONWARNINGS": "ignore",  # it is a Python program, and not held to what ours is
            }
        case "cline":
            provider = {
                "provider": "openai-compatible",
                "apiKey": FAKE,
                "model": "scripted-model",
                "baseUrl": f"{url}/v1",
            }
            saved = {"settings": provider, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}
            told = {"version": 1, "lastUsedProvider": "openai-compatible", "providers": {"openai-compatible": saved}}
            write(home / ".cline/data/settings/providers.json", json.dumps(told))
            return {"CLINE_TELEMETRY_DISABLED": "1"}
        case _:
            model = f"  - name: Scripted\n    provider: openai\n    model: scripted-model\n    apiBase: {url}/v1\n"
            more = f"    apiKey: {FAKE}\n    roles: [chat, edit, apply]\n    capabilities: [tool_use]\n"
            head = "name: scripted\nversion: 1.0.0\nschema: v1\nmodels:\n"
            write(home / ".continue/config.yaml", head + model + more)
            return {"CONTINUE_TELEMETRY_ENABLED": "0"}


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(text)


@pytest.fixture
def start(lo, agent_repo, agent_home, base_env, model):
    """`start({agent: play}, *options)`: run the task on the first of these agents, each with a model of its own."""

    def run(plays):
        env, models = dict(base_env), {}
        for name, play in plays.items():
            models[name] = model({"chat": play})
            env |= signed_in(name, models[name].url, agent_home)
            agent_repo.git("config", f"relay.{name}.permission", "full")
        programs = [str(path.parent) for name in plays if (path := agent_program(PROGRAMS[name]))]
        env["PATH"] = ":".join([*programs, env["PATH"]])
        at = Field(lo, agent_repo, env)
        first, *then = plays
        words = ["git-relay", "start", GOAL, "--agent", first, *(["--then", ",".join(then)] if then else [])]
        done = lo.run(words, cwd=agent_repo.path, env=env, timeout=900)
        assert done.rc == 0, done
        return at, models

    return run


def names(at: Field, session: dict) -> set[str]:
    return set(at.repo.git("ls-tree", "-r", "--name-only", session["branch"]).split("\n"))


@needs("aider", "cline")
def test_cline_does_what_aider_was_refused(start) -> None:
    refused = {"turns": [], "routes": [{"when": "farewell", "reply": QUOTA}]}
    at, models = start({"aider": refused, "cline": {"turns": [READ, *CLINE, {"text": "All is done."}]}})
    session = at.assert_sound(legs=["aider", "cline"])
    assert names(at, session) == {"README.md", "src/greet.py", "src/farewell.py"}
    contract = at.json("show")["contract"]
    assert contract["pause"]["reason"] == "billing-limit"
    first, second, *_ = models["cline"].requests("chat")
    assert "Your task is in the file" in text_of(first)
    assert contract["contractId"] not in text_of(first)
    for part in (contract["contractId"], GOAL):
        assert part in text_of(second)


@needs("aider", "cline")
def test_aider_finishes_what_cline_began(start) -> None:
    begins = {"turns": [*CLINE, QUOTA]}
    at, models = start({"cline": begins, "aider": {"turns": [], "routes": AIDER}})
    session = at.assert_sound(legs=["cline", "aider"])
    assert {"src/farewell.py", "src/rest.py"} <= names(at, session)
    contract = at.json("show")["contract"]
    assert contract["pause"]["reason"] == "billing-limit"
    said = text_of(models["aider"].requests("chat", None)[0])
    for part in (contract["contractId"], GOAL, "apply migration 7 again"):
        assert part in said


@needs("continue")
def test_continue_does_the_task_alone(start) -> None:
    at, models = start({"continue": {"turns": [*CONTINUE, {"text": "All is done."}]}})
    (session,) = at.json("status")["sessions"]
    assert (session["state"], [leg["agent"] for leg in session["legs"]]) == ("DONE", ["continue"])
    assert "src/farewell.py" in names(at, session)
    assert at.face() == at.before
    assert GOAL in text_of(models["continue"].requests("chat")[0])
    record = at.json("read", session["legs"][0]["nativeId"])
    assert record["filesTouched"] == ["src/farewell.py"]
    assert record["userPrompts"][0].startswith(GOAL)
