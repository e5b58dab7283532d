"""Two commands on one session at the same moment: one does its work, the other is told, and nothing is damaged."""

from __future__ import annotations

import itertools
import subprocess

import pytest

from tests.cli.scene import ACCEPT, LIMIT, commit, only_session, photograph, processes_of, say, wait_for, write

COMMANDS = {
    "handoff": ("handoff", "{session}", "--to", "demo"),
    "resume": ("resume", "{session}"),
    "land": ("land", "{session}"),
    "drop": ("drop", "{session}", "--force"),
}
PAIRS = list(itertools.combinations_with_replacement(COMMANDS, 2))
WORK = [say("I begin."), write("made.txt", "made\n"), commit("Make it"), LIMIT]


def at_once(repo, *commands: tuple[str, ...]) -> list[tuple[int, str]]:
    """Start them at the same moment: each waits for the same file; what came of each."""
    go = repo.path.parent / "go"
    wait = 'until [ -e "$0" ]; do :; done; exec git-relay "$@"'
    begun = [
        subprocess.Popen(
            ["sh", "-c", wait, str(go), *words],
            cwd=repo.path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for words in commands
    ]
    go.touch()
    ended = [(process.communicate(timeout=90)[1], process.returncode) for process in begun]
    go.unlink()
    return [(code, text) for text, code in ended]


@pytest.mark.parametrize("pair", PAIRS, ids=[" and ".join(pair) for pair in PAIRS])
def test_two_commands_at_once_leave_a_whole_session_and_each_says_what_came_of_it(repo, relay, demo, pair) -> None:
    demo.plays(WORK, [ACCEPT, say("I go on."), write("more.txt", "more\n"), commit("More"), say("It is done.")])
    assert relay("start", "x", "--agent", "demo", cwd=repo.path).rc == 1
    session = only_session(repo.path)
    before = photograph(repo.path)
    ended = at_once(repo, *(tuple(w.format(session=session) for w in COMMANDS[name]) for name in pair))
    for code, said in ended:
        assert code in (0, 1, 2), ended  # 2: the other was done already, and this made no sense any more
        assert code == 0 or "hint: " in said, ended
        assert "Traceback" not in said
        assert "bug" not in said
    assert 0 in [code for code, _ in ended], ended
    assert processes_of(session) == []
    assert relay("verify", "--all", cwd=repo.path).rc == 0
    repo.git("fsck", "--strict")
    after = photograph(repo.path)
    if "land" not in pair:
        assert after == before
    assert after["status"] == ""
    reflog = repo.git("log", "-g", "--format=%gs", "main", "--").split("\n")
    assert sum("merge" in line for line in reflog) <= 1


def test_of_two_starts_at_once_each_has_a_session_of_its_own(repo, relay, demo) -> None:
    demo.plays([say("I begin."), write("made.txt", "made\n"), commit("Make it"), say("It is made.")])
    before = photograph(repo.path)
    ended = at_once(repo, *[("start", "the same task", "--agent", "demo")] * 2)
    assert [code for code, _ in ended] == [0, 0], ended
    assert len(repo.git("for-each-ref", "refs/relay/sessions/").split("\n")) == 2
    assert photograph(repo.path) == before


def test_what_is_asked_of_a_session_while_it_runs_is_refused_or_reaches_its_supervisor(repo, relay, demo) -> None:
    wait = {"do": "shell", "argv": ["sh", "-c", f"until [ -e '{repo.path.parent}/done' ]; do sleep 0.05; done"]}
    demo.plays([say("I begin."), write("made.txt", "made\n"), commit("Make it"), wait, say("It is made.")])
    argv = ["git-relay", "start", "x", "--agent", "demo"]
    with subprocess.Popen(argv, cwd=repo.path, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as supervisor:
        wait_for(lambda: list((repo.path / ".relay/sessions").glob("*/made.txt")))
        session = only_session(repo.path)
        try:
            for name in ("resume", "land", "drop"):
                ran = relay(*(w.format(session=session) for w in COMMANDS[name]), cwd=repo.path)
                assert ran.rc == 1, (name, ran)
                assert "hint: " in ran.stderr
        finally:
            (repo.path.parent / "done").touch()
        assert supervisor.wait(60) == 0
    assert relay("land", session, cwd=repo.path).rc == 0
    assert repo.git("show", "main:made.txt") == "made"
    assert [p.name for p in (repo.path / ".relay/sessions").iterdir()] == [session]
