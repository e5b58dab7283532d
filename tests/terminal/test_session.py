"""A session at the terminal: one agent's TUI after another, and the user in charge of each."""

from __future__ import annotations

import os
import re
import signal

from tests.cli.scene import ACCEPT, LIMIT, TAKE_OVER, TO_THE_LIMIT, processes_of, say, traces, write

DEMO = ("--agent", "demo", "--then", "demo")
CRASH = {"do": "crash", "code": 70}
BETWEEN = re.compile(rb"\x1b\[\?1049l(.*?)\x1b\[\?1049h", re.S)


def test_at_the_limit_the_next_tui_takes_the_place_with_the_brief_and_one_line_is_told(session) -> None:
    session.demo.plays(TO_THE_LIMIT, TAKE_OVER)
    user = session.type("start", "-i", "do the job", *DEMO)
    shown = user.sees("It is done.")
    user.type("a\x03b")
    user.sees(r"'a\x03b'", since=shown)
    user.type("\x04")
    assert user.ends() == 0
    assert user.modes() == user.modes_before
    (between,) = BETWEEN.findall(user.seen)
    assert re.fullmatch(rb"demo is at its limit until [\w: ]+; demo takes over\r\n", between)
    assert session.received() == [b"", b"a\x03b\x04"], "the user's keys and nothing else"
    first, second = session.demo.prompts()
    assert "do the job" in first
    assert "# git relay brief" in second
    assert [s["state"] for s in session.states()].count("RESUMING") == 1
    assert session.elsewhere("verify", "--all").rc == 0


def test_a_tui_that_the_user_leaves_is_stopped_and_not_called_done(session) -> None:
    session.demo.plays([say("I begin."), write("half.txt", "half\n")], TAKE_OVER)
    user = session.type("start", "-i", "do the job", *DEMO)
    user.sees("demo: ready")
    user.type("\x04")
    assert user.ends() == 0
    assert session.state()["state"] == "STOPPED"
    assert "half.txt" in [f["path"] for f in session.contract()["inFlightCode"]]
    assert f"git relay resume -i {session.name}" in user.text()

    again = session.type("resume", "-i")
    again.sees("It is done.")
    again.type("\x04")
    assert again.ends() == 0
    assert session.received() == [b"\x04", b"\x04"]
    assert session.elsewhere("land").rc == 0
    assert (session.repo.path / "half.txt").read_text() == "whole\n"


def test_without_a_task_the_user_tells_it_to_the_first_tui(session) -> None:
    session.demo.plays(TO_THE_LIMIT, TAKE_OVER)
    user = session.type("start", "-i", *DEMO)
    user.sees("size: 100x30")
    user.type("build me a boat\r")
    user.sees("It is done.")
    user.type("\x04")
    assert user.ends() == 0
    assert session.contract()["initialPrompt"] == "build me a boat"
    assert "build me a boat" in session.demo.prompts()[1]


def test_with_nobody_to_follow_a_tui_at_its_limit_is_left_to_the_user(session) -> None:
    session.demo.plays([say("I begin."), LIMIT], TAKE_OVER)
    user = session.type("start", "-i", "do the job", "--agent", "demo")
    shown = user.sees("pretend usage limit")
    user.type("go on\r")
    user.sees("demo: ready", since=shown)
    assert session.state()["state"] == "RUNNING"
    assert session.elsewhere("handoff", "--to", "demo", "--reason", "I want another").rc == 0
    user.sees("demo: I want another; demo takes over")
    user.sees("It is done.")
    user.type("\x04")
    assert user.ends() == 0
    assert session.received() == [b"go on\r", b"\x04"]


def test_a_tui_that_crashes_gives_way_and_leaves_no_mode_behind(session) -> None:
    session.demo.plays([say("I begin."), CRASH], TAKE_OVER)
    user = session.type("start", "-i", "do the job", *DEMO)
    user.sees("It is done.")
    (between,) = BETWEEN.findall(user.seen)
    assert between.startswith(b"demo: it ended with status 70")
    before = user.seen[: user.seen.index(between)]
    assert before.endswith(b"\x1b[<u\x1b[?1004l\x1b[?2004l\x1b[?1006l\x1b[?1000l\x1b[?25h\x1b[?1049l")
    user.type("\x04")
    assert user.ends() == 0


def test_a_tui_that_is_left_before_it_took_over_is_not_followed_by_another(session) -> None:
    session.demo.plays(TO_THE_LIMIT, [], TAKE_OVER)
    user = session.type("start", "-i", "do the job", "--agent", "demo", "--then", "demo,demo")
    user.sees("demo: ready", since=user.sees("takes over"))
    user.type("\x04")
    user.ends()
    assert session.state()["state"] == "STOPPED"
    assert len(session.demo.prompts()) == 2


def test_a_window_that_is_closed_stops_the_session_with_its_contract(session) -> None:
    session.demo.plays([say("I begin."), write("half.txt", "half\n")])
    user = session.type("start", "-i", "do the job", *DEMO)
    user.sees("demo: ready")
    user.leave()
    user.process.wait(60)
    assert session.state()["state"] == "STOPPED"
    assert "half.txt" in [f["path"] for f in session.contract()["inFlightCode"]]
    assert processes_of(session.name) == []


def test_a_supervisor_that_is_told_to_end_gives_the_terminal_back_first(session) -> None:
    session.demo.plays([say("I begin.")])
    user = session.type("start", "-i", "do the job", *DEMO)
    user.sees("demo: ready")
    os.kill(user.process.pid, signal.SIGTERM)
    assert user.ends() == 130
    assert user.modes() == user.modes_before
    assert session.state()["state"] == "STOPPED"
    assert processes_of(session.name) == []


def test_an_agent_whose_tui_cannot_be_started_is_passed_over(session) -> None:
    session.demo.plays(TO_THE_LIMIT, [ACCEPT])
    user = session.type("start", "-i", "do the job", "--agent", "demo", "--then", "codex,demo")
    user.sees("git relay accept")
    (between,) = BETWEEN.findall(user.seen)
    assert b"; codex is passed over: Codex is not installed: no `codex` on PATH; demo takes over\r\n" in between
    user.type("\x04")
    assert user.ends() == 0


def test_without_a_terminal_nothing_is_begun(session) -> None:
    done = session.elsewhere("start", "-i", "do the job", *DEMO)
    assert done.rc == 2
    assert "-i needs a terminal" in done.stderr
    assert 'git relay start "your task"' in done.stderr
    assert traces(session.repo.path) == []
