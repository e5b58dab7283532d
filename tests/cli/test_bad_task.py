"""Tasks and agents that cannot be taken, and odd ones that can."""

from __future__ import annotations

import subprocess

import pytest

from tests.cli.scene import LIMIT, TAKE_OVER, WORK, only_session, photograph, say, traces


@pytest.mark.parametrize(
    ("args", "stdin", "rc", "said", "hint"),
    [
        ([""], b"", 2, "the task is empty", 'git relay start "your task'),
        ([" \n\t "], b"", 2, "the task is empty", 'git relay start "your task'),
        (["\x1b[31m\x1b[0m"], b"", 2, "the task is empty", 'git relay start "your task'),
        (["-"], b"", 2, "the task is empty", 'git relay start "your task'),
        (["-"], b"a\0b", 2, "holds a NUL byte", 'git relay start "your task'),
        (["-"], b"caf\xe9", 2, "not UTF-8", "iconv"),
        (["-"], b"x" * (2 << 20), 2, "the limit is 1048576", "file of the repository"),
        ([], b"", 2, "give the task once", 'git relay start "your task'),
        (["words", "--file", "README.md"], b"", 2, "give the task once", 'git relay start "your task'),
        (["--file", "no-such-file"], b"", 2, "no-such-file cannot be read: No such file", "ls -l no-such-file"),
        (["--file", "src"], b"", 2, "src cannot be read: Is a directory", "ls -l src"),
        (["- my task"], b"", 2, "No such option", "comes after --"),
        (["task", "--base", "no-such-rev"], b"", 2, "no-such-rev names no commit", "git log"),
        (["task", "--base", "--all"], b"", 2, "--all names no commit", "git log"),
        (["task", "--base", "HEAD~0^{tree}"], b"", 2, "names no commit", "git log"),
    ],
)
def test_a_task_that_cannot_be_taken_is_refused_with_one_sentence_and_a_hint(
    repo, relay, demo, args, stdin, rc, said, hint
) -> None:
    before = photograph(repo.path)
    ran = relay("start", "--agent", "demo", *args, cwd=repo.path, stdin=stdin)
    assert (ran.rc, ran.stdout) == (rc, "")
    sentence, advice = ran.stderr.splitlines()[-2:]  # notes may come before
    assert sentence.startswith("git relay: ")
    assert said in sentence
    assert advice.startswith("hint: ")
    assert hint in advice
    assert photograph(repo.path) == before
    assert traces(repo.path) == []


@pytest.mark.parametrize(
    ("args", "rc", "said", "hint"),
    [
        (["--agent", "cluade"], 2, "there is no agent named 'cluade'", "did you mean claude?"),
        (["--agent", "zzz"], 2, "there is no agent named 'zzz'", "claude, codex, opencode"),
        (["--agent", "demo", "--then", "codx"], 2, "there is no agent named 'codx'", "did you mean codex?"),
        (["--agent", "cursor"], 2, "Cursor cannot be started from here", "claude, codex, opencode"),
        (["--agent", ""], 2, "there is no agent named ''", "claude, codex, opencode"),
        (["--agent", "claude"], 1, "claude", "install"),
        (["--agent", "codex"], 1, "codex", "install"),
        ([], 1, "no agent can be started here", "git relay doctor"),
    ],
)
def test_an_agent_that_cannot_be_started_is_refused_before_anything_is_made(repo, relay, args, rc, said, hint) -> None:
    before = photograph(repo.path)
    ran = relay("start", "a task", *args, cwd=repo.path)
    assert (ran.rc, ran.stdout) == (rc, "")
    sentence, advice = ran.stderr.splitlines()[-2:]  # notes may come before
    assert said in sentence
    assert hint in advice
    assert photograph(repo.path) == before
    assert traces(repo.path) == []
    assert not (repo.path / ".git" / "relay").exists()


def test_a_successor_that_is_missing_is_passed_over_with_the_reason_at_the_handoff(repo, relay, demo) -> None:
    demo.plays([say("I begin."), LIMIT], TAKE_OVER)
    ran = relay("start", "a task", "--agent", "demo", "--then", "claude,demo", cwd=repo.path)
    assert ran.rc == 0
    assert "claude is passed over: " in ran.stderr
    assert "is done after 2 legs" in ran.stderr


def test_with_no_agent_left_the_session_waits_and_the_next_command_is_printed(repo, relay, demo) -> None:
    demo.plays([say("I begin."), LIMIT])
    ran = relay("start", "a task", "--agent", "demo", "--then", "claude", cwd=repo.path)
    session = only_session(repo.path)
    assert ran.rc == 1
    assert f"go on:   git relay handoff {session} --to AGENT" in ran.stderr
    assert '"state": "NEEDS_HUMAN"' in relay("status", "--json", cwd=repo.path).stdout
    assert relay("verify", "--all", cwd=repo.path).rc == 0


@pytest.mark.parametrize("how", ["--", "stdin", "file"])
def test_a_task_that_begins_with_a_dash_is_taken_where_it_cannot_be_an_option(repo, relay, demo, tmp_path, how) -> None:
    demo.plays(WORK)
    task = "- do this first"
    (tmp_path / "task.md").write_text(task)
    ways = {"--": ["--", task], "stdin": ["-"], "file": ["--file", tmp_path / "task.md"]}
    ran = relay("start", "--agent", "demo", *ways[how], cwd=repo.path, stdin=task)
    assert ran.rc == 0
    assert demo.prompts()[0].startswith(task)


def test_a_task_of_200_kb_comes_through_a_handoff(repo, relay, demo) -> None:
    task = "Rename the orders table.\n" + "word " * 40_000 + "\nThe last line counts too."
    demo.plays([say("I begin."), LIMIT], TAKE_OVER)
    before = photograph(repo.path)
    ran = relay("start", "-", "--agent", "demo", "--then", "demo", cwd=repo.path, stdin=task)
    assert ran.rc == 0
    first, second = demo.prompts()
    assert first.startswith(task)
    assert "Rename the orders table." in second
    assert "The last line counts too." in second
    assert relay("verify", "--all", cwd=repo.path).rc == 0
    assert photograph(repo.path) == before


def test_terminal_sequences_of_pasted_output_are_taken_out_of_the_task(repo, relay, demo) -> None:
    demo.plays(WORK)
    ran = relay(
        "start", "-", "--agent", "demo", cwd=repo.path, stdin="fix \x1b[31mthis\x1b[0m \x07now\x1b]0;evil\x07\r\n"
    )
    assert ran.rc == 0
    assert demo.prompts()[0].startswith("fix this now\n")
    assert "\x1b" not in ran.stderr + relay("status", cwd=repo.path).stdout


def test_a_task_as_an_argument_that_is_not_utf_8_is_refused(repo, relay) -> None:
    before = photograph(repo.path)
    argv = [b"git-relay", b"start", b"caf\xe9", b"--agent", b"demo"]
    done = subprocess.run(argv, cwd=repo.path, capture_output=True, check=False)
    assert done.returncode == 2
    assert b"not UTF-8" in done.stderr
    assert photograph(repo.path) == before
    assert traces(repo.path) == []


def test_a_word_that_fits_two_sessions_is_refused_and_both_are_named(repo, relay, demo) -> None:
    demo.plays(WORK)
    for task in ("fix the orders", "fix the refunds"):
        assert relay("start", task, "--agent", "demo", cwd=repo.path).rc == 0
    for command in ("handoff", "log", "land"):
        ran = relay(command, "fix", cwd=repo.path)
        assert (ran.rc, ran.stdout) == (2, "")
        assert "can mean 2 sessions (fix-orders-" in ran.stderr
        assert "fix-refunds-" in ran.stderr
        assert "hint: name one" in ran.stderr
    assert relay("log", "orders", cwd=repo.path).rc == 0
    assert relay("log", "nothing-like-it", cwd=repo.path).rc == 2
