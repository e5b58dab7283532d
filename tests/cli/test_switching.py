"""A session moves from one account of a tool to another: its own folder, its own key, and the conversation."""

from __future__ import annotations

import json

import pytest

from relay_git.contract.brief import REMINDER, TITLE
from tests.cli.scene import ACCEPT, LIMIT, TAKE_OVER, WORK, shell

SECRET = "sk-test-MADE-UP-not-a-key"
WHO = shell("sh", "-c", 'echo "$RELAY_DEMO_KEY $WORK_KEY" > who.txt')


@pytest.fixture
def work(relay, tmp_path, monkeypatch):
    """The folder of a second account of the demo agent."""
    monkeypatch.setenv("WORK_KEY", SECRET)
    folder = tmp_path / "work"
    words = ("accounts", "add", "demo", "work", "--config-dir", str(folder), "--api-key-env", "WORK_KEY")
    assert relay(*words, cwd=tmp_path).rc == 0
    return folder


def prompts(folder, session: str) -> list[str]:
    file = folder / "sessions" / f"{session}.jsonl"
    return [r["text"] for r in map(json.loads, file.read_text().splitlines()) if r["type"] == "prompt"]


def status(repo, relay):
    return json.loads(relay("status", "--json", cwd=repo.path).stdout)["sessions"][0]


def test_the_other_account_gets_the_brief_in_its_own_folder_with_its_own_key(repo, relay, demo, work) -> None:
    demo.plays([*WORK, LIMIT], [ACCEPT, WHO, *TAKE_OVER])
    done = relay("start", "the task", "--agent", "demo", "--then", "demo:work", cwd=repo.path)
    assert done.rc == 0, done
    session = status(repo, relay)
    assert [(leg["agent"], leg["account"]) for leg in session["legs"]] == [("demo", ""), ("demo", "work")]
    (told,) = prompts(work, session["legs"][1]["nativeId"])
    assert told.startswith(TITLE)
    contract = json.loads(relay("show", "--json", cwd=repo.path).stdout)["contract"]
    assert [(contract[end]["agent"], contract[end]["account"]) for end in ("from", "to")] == [
        ("demo", ""),
        ("demo", "work"),
    ]
    # The key came by the variable of the tool, and stands in nothing that is kept.
    assert repo.git("show", f"{session['branch']}:who.txt").strip() == SECRET
    log = relay("log", cwd=repo.path).stdout
    assert "next: demo:work" in log
    kept = [p.read_bytes() for p in repo.path.joinpath(".git", "relay").rglob("*") if p.is_file()]
    assert not any(SECRET.encode() in data for data in kept)
    assert SECRET not in log + done.stdout + done.stderr


def test_the_other_account_goes_on_with_the_whole_conversation(repo, relay, demo, work, monkeypatch) -> None:
    monkeypatch.setenv("RELAY_DEMO_RESUMES", "1")
    demo.plays([*WORK, LIMIT], TAKE_OVER)
    done = relay("start", "the task", "--agent", "demo", "--then", "demo:work", cwd=repo.path)
    assert done.rc == 0, done
    assert "goes on in its own session, in the account demo:work" in done.stderr
    brought, fresh = sorted((work / "sessions").glob("*.jsonl"), key=lambda file: len(file.read_bytes()))
    (kept,) = (demo.home / "sessions").glob("*.jsonl")
    assert (brought.name, brought.read_bytes()) == (kept.name, kept.read_bytes())
    told = [r["text"] for r in map(json.loads, fresh.read_text().splitlines()) if r["type"] == "prompt"]
    assert (told[0].startswith("the task"), told[1].startswith(REMINDER)) == (True, True)
    assert [leg["account"] for leg in status(repo, relay)["legs"]] == ["", "work"]


def test_a_session_begins_and_is_resumed_in_the_account_that_was_named(repo, relay, demo, work) -> None:
    demo.plays([*WORK, LIMIT], TAKE_OVER)
    assert relay("start", "the task", "--agent", "demo:work", cwd=repo.path).rc == 1
    assert len(list((work / "sessions").glob("*.jsonl"))) == 1
    assert relay("resume", cwd=repo.path).rc == 0
    assert [leg["account"] for leg in status(repo, relay)["legs"]] == ["work", "work"]
    assert not (demo.home / "sessions").exists()


def test_an_account_that_is_not_there_or_not_ready_is_told_in_words(repo, relay, demo, work, monkeypatch) -> None:
    demo.plays([*WORK, LIMIT], TAKE_OVER)
    for words in (["--agent", "demo:nobody"], ["--agent", "demo", "--then", "demo:nobody"], ["--agent", "demo:No One"]):
        refused = relay("start", "the task", *words, cwd=repo.path)
        assert (refused.rc, "hint: " in refused.stderr) == (2, True), refused
    monkeypatch.delenv("WORK_KEY")
    rested = relay("start", "the task", "--agent", "demo", "--then", "demo:work", cwd=repo.path)
    assert rested.rc == 1
    assert "demo:work is passed over: WORK_KEY, which holds the key of demo:work, is not set" in rested.stderr
    relay("accounts", "remove", "demo:work", cwd=repo.path)
    assert "there is no account demo:work" in relay("handoff", "--to", "demo:work", cwd=repo.path).stderr
