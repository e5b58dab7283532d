"""Taking over the work of agents that git relay did not start: real processes of the demo agent in a user's tree."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.agents import samples
from tests.cli.scene import (
    HANG,
    TAKE_OVER,
    Demo,
    Step,
    commit,
    only_session,
    photograph,
    processes_of,
    say,
    states,
    traces,
    wait_for,
    write,
)
from tests.seal.environment import ROOT

GOAL = "add a refund flow"
IN_MID_TASK = [say("I begin."), write("made.txt", "made\n"), commit("Make it"), write("half.txt", "half\n")]
WAITS: Step = {"do": "retry", "seconds": 600}  # between two calls
SLEEPS: Step = {"do": "sleep", "seconds": 600}
CUT = """
import os, signal, sys
from relay_git.ledger import journal
append, (moment, event) = journal.append, sys.argv.pop(1).split()
def cut(store, before, entry, *rest, **more):
    if (moment, entry.event) == ("before", event):
        os.kill(os.getpid(), signal.SIGKILL)
    done = append(store, before, entry, *rest, **more)
    if (moment, entry.event) == ("after", event):
        os.kill(os.getpid(), signal.SIGKILL)
    return done
journal.append = cut
from relay_git.cli import main
sys.exit(main())
"""


@dataclass
class Source:
    """An agent as a user has started it: its process, folder and transcript."""

    process: subprocess.Popen[bytes]
    name: str
    cwd: Path
    transcript: Path
    home: Path

    @property
    def status(self) -> str:
        return psutil.Process(self.process.pid).status()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def source(tmp_path: Path, demo: Demo) -> Iterator[Callable[..., Source]]:
    """`source(cwd, *steps, own_home=True)`: a demo agent at work there; back when it has come to its last step."""
    begun: list[Source] = []

    def begin(cwd: Path, *steps: Step, own_home: bool = True) -> Source:
        name = str(uuid.uuid4())  # others at work on this machine are seen, too
        home = tmp_path / f"home-{name}" if own_home else demo.home
        home.mkdir(exist_ok=True)
        script = tmp_path / f"{name}.json"
        script.write_text(json.dumps({"legs": [steps]}))
        env = {**os.environ, "RELAY_DEMO_HOME": str(home), "RELAY_DEMO_STEPS": str(script), "PYTHONPATH": str(ROOT)}
        argv = [sys.executable, "-m", "relay_git.agents.demo_agent", "--session-id", name]
        task = tmp_path / f"{name}.task"
        task.write_text(GOAL)
        with task.open("rb") as stdin, (tmp_path / f"{name}.out").open("wb") as out:
            process = subprocess.Popen(
                argv, cwd=cwd, env=env, stdin=stdin, stdout=out, stderr=out, start_new_session=True
            )
        begun.append(Source(process, name, cwd, home / "sessions" / f"{name}.jsonl", home))
        last = {"hang": "hangs", "sleep": "sleeps", "retry": "retry"}.get(steps[-1]["do"], "end")
        wait_for(lambda: last in (tmp_path / f"{name}.out").read_text())
        return begun[-1]

    yield begin
    for one in begun:
        one.end()


def contract_of_leg_1(repo, session: str) -> dict:
    ids = repo.git("rev-list", "--first-parent", "--reverse", f"refs/relay/sessions/{session}").split("\n")
    built = [oid for oid, s in zip(ids, states(repo.path, session), strict=True) if s["event"] == "contract-built"]
    return json.loads(repo.git("cat-file", "blob", f"{built[0]}:contract.json"))


def paths(repo, rev: str) -> list[str]:
    return repo.git("ls-tree", "-r", "--name-only", rev).split("\n")


def dirty(repo) -> None:
    """Staged, edited and untracked work, in the source's tree."""
    repo.write("staged.txt", "staged\n")
    repo.git("add", "staged.txt")
    repo.write("README.md", "# edited\n")
    repo.write("new/untracked.txt", "untracked\n")


def test_a_running_agent_s_work_goes_on_elsewhere_and_the_agent_notices_nothing(repo, relay, demo, source) -> None:
    running = source(repo.path, *IN_MID_TASK, HANG)
    dirty(repo)
    before, transcript = photograph(repo.path), running.transcript.read_bytes()
    demo.plays([], TAKE_OVER)
    ran = relay("adopt", running.name, "--to", "demo", cwd=repo.path.parent)  # from anywhere
    assert ran.rc == 0, ran.stderr
    session = only_session(repo.path)
    assert photograph(repo.path) == before
    assert running.transcript.read_bytes() == transcript
    assert running.process.poll() is None
    assert running.status != psutil.STATUS_STOPPED
    contract = contract_of_leg_1(repo, session)
    assert contract["taskGoal"] == GOAL
    assert contract["from"]["agent"] == "demo"
    assert contract["pause"]["reason"] == "adopted"
    assert contract["pause"]["safePoint"] == "interrupted"  # its call was open
    assert f"its process {running.process.pid} is left running" in contract["pause"]["detail"]
    assert [loss for loss in contract["losses"] if "was left running" in loss]
    told = [fact["text"] for fact in contract["summary"]["facts"]]
    assert "the agent was in the middle of its turn, and was left running" in told
    assert not [text for text in told if "stopped" in text]
    changed = {f["path"]: f["status"] for f in contract["fileManifest"]}
    assert changed == {
        "README.md": "modified",
        "half.txt": "added",
        "new/untracked.txt": "added",
        "staged.txt": "added",
    }
    assert "hang" in contract["nextAction"]
    assert GOAL in demo.prompts()[-1]
    assert contract["contractId"] in demo.prompts()[-1]
    assert repo.git("show", f"relay/{session}:half.txt") == "whole"
    assert repo.git("show", f"relay/{session}:new/untracked.txt") == "untracked"
    assert [s["event"] for s in states(repo.path, session)][:2] == ["adopted", "snapshot-taken"]
    assert states(repo.path, session)[-1]["state"] == "DONE"
    assert relay("verify", "--all", cwd=repo.path).rc == 0
    assert relay("land", cwd=repo.path).rc != 0  # the same files lie uncommitted in the user's tree


@pytest.mark.parametrize(
    ("last", "point"), [(WAITS, "tool-boundary"), (SLEEPS, "interrupted")], ids=["between calls", "in a call"]
)
def test_a_source_that_is_to_stop_is_held_captured_and_proven_gone(repo, relay, demo, source, last, point) -> None:
    repo.git("config", "relay.hardLimit", "1")
    running = source(repo.path, *IN_MID_TASK, last)
    before = photograph(repo.path)
    demo.plays([], TAKE_OVER)
    ran = relay("adopt", running.process.pid, "--stop", "--to", "demo", cwd=repo.path)
    assert ran.rc == 0, ran.stderr
    assert running.process.wait(timeout=30) == -signal.SIGTERM
    session = only_session(repo.path)
    contract = contract_of_leg_1(repo, session)
    assert contract["pause"]["safePoint"] == point
    assert f"its process {running.process.pid} is ended" in contract["pause"]["detail"]
    assert not [loss for loss in contract["losses"] if "left running" in loss]
    assert "the agent was stopped before it ended its turn" in [fact["text"] for fact in contract["summary"]["facts"]]
    assert photograph(repo.path) == before
    assert f"(pid {running.process.pid}) is ended" in ran.stderr


def test_a_source_that_is_deaf_is_ended_all_the_same(repo, relay, demo, source) -> None:
    repo.git("config", "relay.termGrace", "0")
    running = source(repo.path, *IN_MID_TASK, {"do": "ignore_term"}, WAITS)
    demo.plays([], TAKE_OVER)
    ran = relay("adopt", running.name, "--stop", "--to", "demo", cwd=repo.path)
    assert ran.rc == 0, ran.stderr
    assert running.process.wait(timeout=30) == -signal.SIGKILL


def test_a_crashed_source_is_adopted_by_the_beginning_of_its_id(repo, relay, demo, source) -> None:
    crashed = source(repo.path, *IN_MID_TASK, HANG, own_home=False)
    crashed.end()
    before = photograph(repo.path)
    demo.plays([], TAKE_OVER)
    ran = relay("adopt", crashed.name[:20], "--to", "demo", cwd=repo.path)
    assert ran.rc == 0, ran.stderr
    contract = contract_of_leg_1(repo, only_session(repo.path))
    assert contract["pause"]["safePoint"] == "interrupted"
    assert "no process of it was found" in contract["pause"]["detail"]
    assert "the turn of the agent did not come to its end" in [fact["text"] for fact in contract["summary"]["facts"]]
    assert "half.txt" in [f["path"] for f in contract["inFlightCode"]]
    assert photograph(repo.path) == before


def test_a_source_in_a_subdirectory_names_its_files_from_the_top(repo, relay, demo, source) -> None:
    ended = source(repo.path / "src", say("I begin."), write("made.txt", "made\n"), own_home=False)
    demo.plays([], TAKE_OVER)
    ran = relay("adopt", ended.name, "--to", "demo", cwd=repo.path.parent)
    assert ran.rc == 0, ran.stderr
    session = only_session(repo.path)
    assert "src/made.txt" in paths(repo, f"relay/{session}")


@pytest.fixture
def linked(repo, tmp_path) -> Path:
    """A linked worktree of the user's, on a branch of its own with a commit that main has not."""
    place = tmp_path / "linked"
    repo.git("worktree", "add", "-q", "-b", "feature", str(place))
    (place / "on-feature.txt").write_text("feature\n")
    subprocess.run(["git", "add", "."], cwd=place, check=True)
    subprocess.run(["git", "commit", "-qm", "On feature"], cwd=place, check=True)
    return place


def test_a_source_in_a_linked_worktree_is_captured_from_there(repo, relay, demo, source, linked) -> None:
    running = source(linked, *IN_MID_TASK, HANG)
    index = (repo.path / ".git/worktrees/linked/index").read_bytes()
    before = photograph(repo.path)
    demo.plays([], TAKE_OVER)
    ran = relay("adopt", running.name, "--to", "demo", cwd=repo.path.parent)
    assert ran.rc == 0, ran.stderr
    session = only_session(repo.path)
    assert {"on-feature.txt", "made.txt", "half.txt"} <= set(paths(repo, f"relay/{session}"))
    assert (repo.path / ".git/worktrees/linked/index").read_bytes() == index
    assert (linked / "half.txt").read_text() == "half\n"
    assert photograph(repo.path) == before


@pytest.mark.parametrize("stands", ["in its repository", "elsewhere"])
def test_a_source_whose_folder_is_gone_goes_on_from_its_branch_where_it_belonged(
    repo, make_repo, relay, demo, source, linked, stands
) -> None:
    ended = source(linked, *IN_MID_TASK, own_home=False)
    shutil.rmtree(linked)
    demo.plays([], TAKE_OVER)
    if stands == "elsewhere":
        other = make_repo("other")
        ran = relay("adopt", ended.name, "--to", "demo", cwd=other.path)
        assert ran.rc == 2
        assert "is gone, and nothing says that it belonged to the repository" in ran.stderr
        assert traces(other.path) == []
        return
    ran = relay("adopt", ended.name, "--to", "demo", cwd=repo.path)
    assert ran.rc == 0, ran.stderr
    session = only_session(repo.path)
    contract = contract_of_leg_1(repo, session)
    assert [
        loss for loss in contract["losses"] if "that folder is gone; the work goes on from the branch feature" in loss
    ]
    assert {"on-feature.txt", "made.txt"} <= set(paths(repo, f"relay/{session}"))


def of_cursor(home: Path) -> str:
    """A session of a tool that can only be read; it does not tell where it worked. Its id."""
    name = str(uuid.uuid4())
    place = home / ".cursor" / "projects" / "p" / "agent-transcripts" / f"{name}.jsonl"
    place.parent.mkdir(parents=True)
    words = [{"type": "text", "text": f"<user_query>{GOAL}</user_query>"}]
    answer = [{"type": "text", "text": "I have edited the README."}]
    lines = [{"role": "user", "message": {"content": words}}, {"role": "assistant", "message": {"content": answer}}]
    place.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return name


def test_a_session_that_names_no_folder_is_adopted_where_the_user_says(repo, relay, demo, home) -> None:
    name = of_cursor(home)
    dirty(repo)
    demo.plays([], TAKE_OVER)
    args = ["adopt", name, "--to", "demo"]
    ran = relay(*args, cwd=repo.path)
    assert ran.rc == 2
    assert "it does not tell in which folder it works" in ran.stderr
    assert "--here" in ran.stderr
    assert traces(repo.path) == []
    before = photograph(repo.path)
    ran = relay(*args, "--here", cwd=repo.path / "src")
    assert ran.rc == 0, ran.stderr
    contract = contract_of_leg_1(repo, only_session(repo.path))
    assert (contract["from"]["agent"], contract["taskGoal"]) == ("cursor", GOAL)
    assert "new/untracked.txt" in [f["path"] for f in contract["fileManifest"]]
    assert photograph(repo.path) == before
    assert relay("log", cwd=repo.path).rc == 0
    assert relay("status", "--json", cwd=repo.path).rc == 0


@pytest.mark.parametrize("maker", [samples.antigravity, samples.copilot_chat])
def test_a_session_of_an_editor_is_adopted_from_its_transcript(repo, relay, demo, home, maker) -> None:
    sample = maker(home)
    for file in sample.files:  # they name the folder where they were made
        file.write_text(file.read_text().replace("/w/app", str(repo.path)))
    for named in home.rglob("workspace.json"):
        named.write_text(json.dumps({"folder": repo.path.as_uri()}))
    dirty(repo)
    demo.plays([], TAKE_OVER)
    before = photograph(repo.path)
    ran = relay("adopt", sample.native_id, "--to", "demo", cwd=repo.path.parent)
    assert ran.rc == 0, ran.stderr
    contract = contract_of_leg_1(repo, only_session(repo.path))
    assert (contract["from"]["agent"], contract["taskGoal"]) == (sample.tool, samples.GOAL)
    assert [step["text"] for step in contract["plan"]]
    assert {"command": "pytest -q", "exitCode": 1} in [
        {key: check[key] for key in ("command", "exitCode")} for check in contract["checks"]
    ]
    assert "new/untracked.txt" in [f["path"] for f in contract["fileManifest"]]
    assert samples.GOAL in demo.prompts()[-1]
    assert photograph(repo.path) == before


def test_an_adoption_goes_on_in_the_background(repo, relay, demo, source) -> None:
    running = source(repo.path, *IN_MID_TASK, HANG)
    demo.plays([], TAKE_OVER)
    ran = relay("adopt", running.name, "--to", "demo", "--detach", cwd=repo.path)
    assert ran.rc == 0, ran.stderr
    session = only_session(repo.path)
    assert session in ran.stderr + ran.stdout
    wait_for(lambda: states(repo.path, session)[-1]["state"] == "DONE")
    assert GOAL in demo.prompts()[-1]
    assert running.process.poll() is None
    wait_for(lambda: not processes_of(session))


def test_a_leg_of_git_relay_is_not_adopted_but_handed_over(repo, relay, demo, source) -> None:
    demo.plays([say("I begin."), write("made.txt", "made\n")])
    assert relay("start", "x", "--agent", "demo", cwd=repo.path).rc == 0
    session = only_session(repo.path)
    native_id = states(repo.path, session)[-1]["nativeId"]
    ran = relay("adopt", native_id, "--to", "demo", cwd=repo.path)
    assert (ran.rc, f"git relay handoff {session} --to AGENT" in ran.stderr) == (2, True), ran.stderr


@pytest.mark.parametrize(
    ("what", "to", "status", "said"),
    [
        ("nobody", "demo", 2, "is neither a file nor the id of a session"),
        ("", "cursor", 2, "cannot be started from here"),
        ("", "claude", 1, "claude cannot be started"),
    ],
)
def test_what_cannot_be_adopted_is_refused_and_leaves_nothing(
    repo, relay, demo, source, what, to, status, said
) -> None:
    running = source(repo.path, *IN_MID_TASK, WAITS, own_home=False)
    ran = relay("adopt", what or running.name, "--to", to, "--stop", cwd=repo.path)
    assert ran.rc == status
    assert said in ran.stderr
    assert traces(repo.path) == []
    assert running.status != psutil.STATUS_STOPPED


def test_a_source_outside_any_repository_is_refused(tmp_path, relay, demo, source) -> None:
    (tmp_path / "bare-folder").mkdir()
    ended = source(tmp_path / "bare-folder", say("I begin."), write("made.txt", "made\n"), own_home=False)
    ran = relay("adopt", ended.name, "--to", "demo", cwd=tmp_path)
    assert ran.rc == 1
    assert "is not in a git repository" in ran.stderr


def test_a_source_that_is_to_stop_goes_on_where_the_session_cannot_be_opened(repo, relay, demo, source) -> None:
    running = source(repo.path, *IN_MID_TASK, WAITS)
    (repo.path / ".relay").symlink_to("/nonexistent")
    ran = relay("adopt", running.name, "--stop", "--to", "demo", cwd=repo.path)
    assert ran.rc == 1
    assert running.process.poll() is None
    assert running.status != psutil.STATUS_STOPPED


def cut(repo, moment: str, *args: str) -> None:
    done = subprocess.run([sys.executable, "-c", CUT, moment, *args], cwd=repo.path, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.parametrize(
    ("moment", "stops"),
    [
        ("before adopted", True),
        ("after adopted", True),
        ("after adopted", False),
        ("after snapshot-taken", False),
        ("after contract-built", False),
        ("after chosen", True),
        ("after launched", False),
    ],
)
def test_an_adoption_that_is_killed_goes_on(repo, relay, demo, source, stops, moment) -> None:
    running = source(repo.path, *IN_MID_TASK, WAITS)
    dirty(repo)
    before = photograph(repo.path)
    demo.plays([], TAKE_OVER)
    args = ["adopt", running.name, "--to", "demo", *(["--stop"] if stops else [])]
    cut(repo, moment, *args)
    repo.write("later.txt", "what the source does meanwhile\n")
    ran = relay(*(args if moment == "before adopted" else ["resume"]), cwd=repo.path)
    assert ran.rc == 0, ran.stderr
    (repo.path / "later.txt").unlink()
    session = only_session(repo.path)
    assert processes_of(session) == []
    assert (running.process.poll() is None) is not stops
    assert stops or running.status != psutil.STATUS_STOPPED
    assert photograph(repo.path) == before
    assert {"staged.txt", "new/untracked.txt", "half.txt"} <= set(paths(repo, f"relay/{session}"))
    assert repo.git("show", f"relay/{session}:half.txt") == "whole"
    assert contract_of_leg_1(repo, session)["taskGoal"] == GOAL
    assert relay("verify", "--all", cwd=repo.path).rc == 0


def test_an_adoption_that_is_killed_goes_on_with_the_heir_and_not_with_the_tool_that_is_only_read(
    repo, relay, demo, home
) -> None:
    demo.plays([], TAKE_OVER)
    cut(repo, "after adopted", "adopt", of_cursor(home), "--here", "--to", "demo")
    ran = relay("resume", cwd=repo.path)
    assert ran.rc == 0, ran.stderr
    assert GOAL in demo.prompts()[-1]


def test_a_source_that_was_frozen_and_never_adopted_is_let_go_by_the_next_command(repo, relay, demo, source) -> None:
    running = source(repo.path, *IN_MID_TASK, WAITS)
    cut(repo, "before adopted", "adopt", running.name, "--stop", "--to", "demo")
    assert running.status == psutil.STATUS_STOPPED
    demo.plays([say("I begin.")])
    assert relay("start", "another task", "--agent", "demo", cwd=repo.path).rc == 0
    assert running.status != psutil.STATUS_STOPPED
