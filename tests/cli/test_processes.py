"""Legs that hang, wait or are half-way through something: each is paused at a point that is told truthfully."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time

import psutil
import pytest

from tests.chaos.stage import freeze, send
from tests.cli.scene import (
    HANG,
    LIMIT,
    TAKE_OVER,
    WORK,
    commit,
    end_survivors,
    only_session,
    processes_of,
    say,
    shell,
    states,
    wait_for,
    write,
)
from tests.cli.test_crash import at_state, begin, said

__all__ = ["begin"]  # the fixture

TO_DEMO = ("start", "x", "--agent", "demo", "--then", "demo")


@pytest.fixture(autouse=True)
def no_survivors(repo):
    yield
    end_survivors(repo.path)


def contract_of(repo, relay) -> dict:
    return json.loads(relay("show", "--json", cwd=repo.path).stdout)["contract"]


def worktree_of(repo, session: str):
    return repo.path / ".relay" / "sessions" / session


def test_a_machine_that_sleeps_longer_than_any_limit_hands_nothing_over(repo, relay, demo, begin) -> None:
    for name in ("hangTimeout", "maxWait", "grace", "ackTimeout"):
        repo.git("config", f"relay.{name}", "6")
    asleep = shell("sh", "-c", "touch ready; while [ ! -e go ]; do sleep 0.1; done; rm ready go")
    demo.plays([*WORK[:-1], asleep, write("after.txt", "after\n"), commit("After the night"), say("It is done.")])
    running = begin(repo, *TO_DEMO)
    wait_for(lambda: list(repo.path.glob(".relay/sessions/*/ready")))
    session = only_session(repo.path)
    tree = [running.pid, *freeze([running.pid]), *freeze(processes_of(session))]
    assert len(tree) > 2
    time.sleep(3.5)  # nobody can have done anything: it is a lid that is closed
    send([running.pid], signal.SIGCONT)
    time.sleep(0.5)  # who wakes first looks at agents that still sleep, and then the lid is closed again
    freeze([running.pid])
    time.sleep(3.5)
    send([running.pid], signal.SIGCONT)
    time.sleep(0.5)
    send(tree, signal.SIGCONT)
    (worktree_of(repo, session) / "go").touch()
    assert running.wait(60) == 0, said(repo)
    events = [s["event"] for s in states(repo.path, session)]
    assert set(events) <= {"started", "launched", "identified", "agent-done"}, said(repo)
    assert repo.git("log", "-1", "--format=%s", f"relay/{session}") == "After the night"


def test_a_leg_without_any_sign_of_life_is_handed_over_and_the_reason_is_told(repo, relay, demo) -> None:
    repo.git("config", "relay.hangTimeout", "1")
    repo.git("config", "relay.hardLimit", "1")
    demo.plays([*WORK, HANG], TAKE_OVER)
    ran = relay(*TO_DEMO, cwd=repo.path)
    assert ran.rc == 0, ran
    assert "leg 1 (demo): it hangs: no output, no transcript, no commit and no work" in ran.stderr
    pause = contract_of(repo, relay)["pause"]
    assert (pause["reason"], pause["safePoint"]) == ("agent-hangs", "interrupted")


@pytest.mark.parametrize(
    "busy",
    [
        shell("python3", "-c", "import time; e = time.process_time\nwhile e() < 2.5: pass"),
        shell("sh", "-c", "for i in 1 2 3 4 5 6; do sleep 0.4; git commit -q --allow-empty -m $i; done"),
    ],
    ids=["computes", "commits"],
)
def test_a_silent_leg_that_works_does_not_hang(repo, relay, demo, busy) -> None:
    repo.git("config", "relay.hangTimeout", "1")
    demo.plays([*WORK, busy, say("done")])
    ran = relay("start", "x", "--agent", "demo", cwd=repo.path)
    assert ran.rc == 0, ran
    assert "hangs" not in ran.stderr


@pytest.mark.parametrize(
    "retry", [{"seconds": 7200, "times": 1}, {"seconds": 0.3, "times": 60}], ids=["a long wait", "a loop of short ones"]
)
def test_a_tool_that_waits_for_its_model_too_long_is_at_its_limit(repo, relay, demo, retry) -> None:
    repo.git("config", "relay.maxWait", "1")
    demo.plays([*WORK, {"do": "retry", **retry}], TAKE_OVER)
    ran = relay(*TO_DEMO, cwd=repo.path)
    assert ran.rc == 0, ran
    contract = contract_of(repo, relay)
    assert contract["pause"]["reason"] == "rate-limit"
    assert "demo: pretend rate limit" in contract["pause"]["detail"]


def test_a_tool_that_waits_and_then_goes_on_is_left_alone(repo, relay, demo) -> None:
    repo.git("config", "relay.maxWait", "2")
    retry = {"do": "retry", "seconds": 0.4, "times": 3}
    demo.plays([*WORK, retry, say("on"), retry, say("on"), retry, say("done")])
    ran = relay("start", "x", "--agent", "demo", cwd=repo.path)
    assert ran.rc == 0, ran
    assert states(repo.path, only_session(repo.path))[-1]["state"] == "DONE"


REBASE = "git rebase -q other"
MERGE = "git merge -q other"
PICK = "git cherry-pick other"


@pytest.mark.parametrize(
    ("half", "name", "rest"),
    [
        (REBASE, "rebase", "GIT_EDITOR=true git rebase --continue"),
        (MERGE, "merge", "git commit -qm merged"),
        (PICK, "cherry-pick", "GIT_EDITOR=true git cherry-pick --continue"),
    ],
)
class TestAnOperationOfGitThatStandsHalfDone:
    def conflict(self, repo, half: str):
        repo.git("checkout", "-q", "-b", "other")
        repo.commit("theirs", {"made.txt": "theirs\n"})
        repo.git("checkout", "-q", "main")
        return [write("made.txt", "ours\n"), commit("ours"), say("I begin."), shell("sh", "-c", f"{half} || true")]

    def test_is_kept_for_the_next_agent_who_is_told_to_end_it_first(self, repo, relay, demo, half, name, rest) -> None:
        last = [{"do": "accept"}, write("made.txt", "both\n"), shell("git", "add", "made.txt"), shell("sh", "-c", rest)]
        demo.plays([*self.conflict(repo, half), LIMIT], [*last, say("done")])
        ran = relay(*TO_DEMO, cwd=repo.path)
        assert ran.rc == 0, ran
        contract = contract_of(repo, relay)
        assert contract["nextAction"].startswith(f"First finish or abort the {name}")
        assert contract["nextActionSource"].startswith("git: state of the worktree; ")
        (fact,) = [f["text"] for f in contract["summary"]["facts"] if name in f["text"]]
        assert "made.txt" in fact
        assert "First finish or abort" in demo.prompts()[-1]
        session = only_session(repo.path)
        assert repo.git("show", f"relay/{session}:made.txt") == "both"
        assert repo.git("-C", str(worktree_of(repo, session)), "status", "--porcelain") == ""
        assert relay("verify", "--all", cwd=repo.path).rc == 0

    def test_is_waited_for_when_a_handoff_is_asked(self, repo, relay, demo, begin, half, name, rest, tmp_path) -> None:
        repo.git("config", "relay.grace", "0")
        repo.git("config", "relay.hardLimit", "40")
        until = shell("sh", "-c", f"while ! [ -e {tmp_path}/go ]; do sleep 0.05; done")
        ends = [write("made.txt", "both\n"), shell("git", "add", "made.txt"), shell("sh", "-c", rest)]
        demo.plays([*self.conflict(repo, half), until, *ends, HANG], TAKE_OVER)
        supervisor = begin(repo, *TO_DEMO)
        session = at_state(repo, "RUNNING")
        looks = ("--no-optional-locks", "-C", str(worktree_of(repo, session)), "status", "--porcelain")
        wait_for(lambda: "AA made.txt" in repo.git(*looks))  # a lock on the index would make the agent's git fail
        assert relay("handoff", cwd=repo.path).rc == 0
        wait_for(lambda: f"waiting for the end of the {name}" in said(repo))
        (tmp_path / "go").touch()
        assert supervisor.wait(60) == 0, said(repo)
        assert "half-done" not in json.dumps(contract_of(repo, relay))
        assert repo.git("show", f"relay/{session}:made.txt") == "both"


def test_a_handoff_that_was_asked_for_outlives_the_supervisor_that_was_asked(repo, relay, demo, begin) -> None:
    demo.plays([*WORK, HANG])
    supervisor = begin(repo, "start", "x", "--agent", "demo")
    session = at_state(repo, "RUNNING")
    wait_for((worktree_of(repo, session) / "made.txt").exists)
    os.kill(supervisor.pid, signal.SIGSTOP)
    assert relay("handoff", "--to", "demo", "--reason", "of my own", cwd=repo.path).rc == 0
    os.kill(supervisor.pid, signal.SIGKILL)
    supervisor.wait()
    demo.plays(TAKE_OVER)
    ran = relay("resume", cwd=repo.path)
    assert ran.rc == 0, ran
    assert contract_of(repo, relay)["pause"]["detail"] == "of my own"
    assert processes_of(session) == []
    assert not list((repo.git_dir / "relay" / "spool").glob("*/request.json"))


def test_a_process_that_put_its_environment_away_is_ended_after_a_crash_and_the_users_own_is_not(
    repo, relay, demo, begin, tmp_path
) -> None:
    daemon = f'trap "" TERM; echo $$ >{tmp_path}/pid; exec sleep 300'
    demo.plays(
        [*WORK, shell("sh", "-c", f"env -i setsid sh -c '{daemon}' >/dev/null 2>&1 </dev/null & sleep 0.2"), HANG]
    )
    supervisor = begin(repo, "start", "x", "--agent", "demo")
    session = at_state(repo, "RUNNING")
    wait_for(lambda: (tmp_path / "pid").read_text().strip() and "hangs" in said(repo))
    stray = psutil.Process(int((tmp_path / "pid").read_text()))
    own = subprocess.Popen(["sleep", "300"], cwd=worktree_of(repo, session), start_new_session=True)
    for process in [psutil.Process(supervisor.pid), *(psutil.Process(p) for p in processes_of(session))]:
        process.kill()
    try:
        assert relay("stop", cwd=repo.path).rc == 0
        assert not stray.is_running() or stray.status() == psutil.STATUS_ZOMBIE
        assert own.poll() is None
    finally:
        own.kill()
        own.wait()
