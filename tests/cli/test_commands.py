"""Every command on its good days: what it prints, where, and that its JSON says what its table says."""

from __future__ import annotations

import json
import stat
import subprocess
from itertools import pairwise

import pytest

from relay_git.contract.lifecycle import TRANSITIONS, Event, State
from tests.cli.scene import HANG, LIMIT, TAKE_OVER, TO_THE_LIMIT, WORK, only_session, say


@pytest.fixture
def handed(repo, relay, demo):
    """A repository with one session that was handed over and finished."""
    demo.plays(TO_THE_LIMIT, TAKE_OVER)
    ran = relay("start", "add a refund flow", "--agent", "demo", "--then", "demo", cwd=repo.path)
    assert ran.rc == 0, ran.stderr
    return repo


def test_start_prints_nothing_on_stdout_and_tells_each_step_on_stderr(repo, relay, demo) -> None:
    demo.plays(TO_THE_LIMIT, TAKE_OVER)
    ran = relay("start", "add a refund flow", "--agent", "demo", "--then", "demo", cwd=repo.path)
    session = only_session(repo.path)
    assert (ran.rc, ran.stdout) == (0, "")
    for line in (
        f"session {session}: branch relay/{session}, worktree {repo.path}/.relay/sessions/{session}",
        "leg 1: demo agent (scripted, no model)",
        "no sandbox",
        "leg 1 (demo): usage limit (demo), resets at ",
        "leg 2: handing over to demo",
        "leg 2 (demo) has picked the work up: demo ran git relay accept",
        f"{session} is done after 2 legs: demo finished",
        f"take it: git relay land {session}",
    ):
        assert line in ran.stderr


def test_handoff_of_a_session_at_rest_prints_nothing_on_stdout(repo, relay, demo) -> None:
    demo.plays(TO_THE_LIMIT, TAKE_OVER)
    assert relay("start", "x", "--agent", "demo", cwd=repo.path).rc == 1
    ran = relay("handoff", "--to", "demo", "--reason", "I want it done", cwd=repo.path)
    assert (ran.rc, ran.stdout) == (0, "")
    assert "I want it done" in relay("log", cwd=repo.path).stdout
    ran = relay("handoff", "--to", "demo", cwd=repo.path)
    assert (ran.rc, ran.stdout) == (2, "")
    assert "is DONE: there is nothing to hand over" in ran.stderr


def test_status_as_json_says_all_that_the_table_says(handed, relay) -> None:
    table, data = relay("status", cwd=handed.path), relay("status", "--json", cwd=handed.path)
    assert (table.rc, data.rc, table.stderr, data.stderr) == (0, 0, "", "")
    (shown,) = json.loads(data.stdout)["sessions"]
    _, row, advice = table.stdout.splitlines()
    for field in ("id", "state", "leg", "agent", "at", "title"):
        assert str(shown[field]) in row
    assert advice == f"{shown['id']}: {shown['next']}"
    assert [(leg["leg"], leg["agent"], leg["pausedBecause"]) for leg in shown["legs"]] == [
        (1, "demo", "usage-limit"),
        (2, "demo", ""),
    ]
    assert shown["legs"][0]["nativeId"] != shown["legs"][1]["nativeId"]


def test_log_as_json_says_all_that_the_table_says(handed, relay) -> None:
    table, data = relay("log", cwd=handed.path), relay("log", "--json", cwd=handed.path)
    assert (table.stderr, data.stderr) == ("", "")
    entries = json.loads(data.stdout)["entries"]
    rows = table.stdout.splitlines()[1:]
    assert len(rows) == len(entries)
    for row, entry in zip(rows, entries, strict=True):
        assert row.split()[:5] == [entry["at"], str(entry["leg"]), entry["agent"], entry["event"], entry["state"]]
        what = row.split(maxsplit=5)[5:]
        assert all(
            word.strip("();") in json.dumps(entry) for word in (what[0].split() if what else ()) if word != "next:"
        )


def test_the_journal_of_a_real_run_follows_the_table_from_entry_to_entry(handed, relay) -> None:
    entries = json.loads(relay("log", "--json", cwd=handed.path).stdout)["entries"]
    for before, after in pairwise(entries):
        assert TRANSITIONS[State(before["state"]), Event(after["event"])] == after["state"]
    launched = [e for e in entries if e["event"] == "launched"]
    assert [(e["state"], e["leg"], e["nextAgent"]) for e in launched] == [("RUNNING", 1, ""), ("RESUMING", 1, "demo")]
    told = handed.git("log", "--format=%s", f"refs/relay/sessions/{only_session(handed.path)}")
    assert "leg 1 (demo) handed over; demo launched as leg 2" in told


def test_nobody_else_may_read_what_lies_below_relay(handed) -> None:
    relay_dir = handed.git_dir / "relay"
    found = {p: stat.S_IMODE(p.stat().st_mode) for p in (relay_dir, *relay_dir.rglob("*"))}
    assert {p.name for p in found} >= {"key", "locks", "logs", "spool", only_session(handed.path)}
    open_to_others = {p.relative_to(relay_dir) for p, mode in found.items() if mode & 0o077}
    assert open_to_others == set()


@pytest.mark.parametrize("words", [["verify"], ["verify", "--all"]])
def test_verify_where_git_relay_was_never_used_finds_nothing_wrong(repo, relay, words) -> None:
    ran = relay(*words, cwd=repo.path)
    assert (ran.rc, ran.stdout) == (0, "no contract yet: the first is built at the first handoff\n")
    assert json.loads(relay(*words, "--json", cwd=repo.path).stdout) == {"contracts": [], "refused": 0}


def test_verify_as_json_says_all_that_the_table_says(handed, relay) -> None:
    table, data = relay("verify", "--all", cwd=handed.path), relay("verify", "--all", "--json", cwd=handed.path)
    assert (table.rc, data.rc, table.stderr, data.stderr) == (0, 0, "", "")
    body = json.loads(data.stdout)
    (row,) = body["contracts"]
    assert body["refused"] == 0
    assert table.stdout.splitlines()[1].split(maxsplit=4) == [
        row["contractId"], row["sessionId"], str(row["leg"]), row["outcome"], row["reason"],
    ]  # fmt: skip


def test_show_prints_the_brief_that_stock_git_shows_and_the_contract_as_json(handed, relay) -> None:
    session = only_session(handed.path)
    brief, data = relay("show", cwd=handed.path), relay("show", "--json", cwd=handed.path)
    assert (brief.rc, data.rc, brief.stderr, data.stderr) == (0, 0, "", "")
    contract = json.loads(data.stdout)["contract"]
    assert brief.stdout.startswith("# git relay brief")
    assert contract["taskGoal"] in brief.stdout
    assert brief.stdout.strip() == handed.git("notes", f"--ref=relay/{session}", "show", contract["snapshotCommit"])
    assert contract["contractId"] in handed.git("log", "--all", "--notes=relay/*")
    by_id = relay("show", contract["contractId"], cwd=handed.path)
    assert by_id.stdout == brief.stdout
    assert relay("show", session, "--md", cwd=handed.path).stdout == brief.stdout
    assert relay("show", "c-0000", cwd=handed.path).rc == 2


def test_doctor_as_json_says_all_that_the_table_says(handed, relay) -> None:
    table, data = relay("doctor", cwd=handed.path), relay("doctor", "--json", cwd=handed.path)
    assert (table.rc, data.rc, table.stderr, data.stderr) == (0, 0, "", "")
    for finding in json.loads(data.stdout)["findings"]:
        assert finding["verdict"] in ("ok", "note", "bad")
        assert finding["text"] in table.stdout
        assert finding["verdict"] == "ok" or finding["hint"] in table.stdout


def test_doctor_outside_of_a_repository_still_looks_at_the_agents(tmp_path, relay) -> None:
    ran = relay("doctor", "--json", cwd=tmp_path)
    found = {f["check"]: f["verdict"] for f in json.loads(ran.stdout)["findings"]}
    assert ran.rc == 1
    assert found["repository"] == "bad"
    assert found["demo"] == "ok"


def test_json_stays_data_when_there_is_something_to_worry_about(repo, relay, demo) -> None:
    repo.git("config", "commit.gpgsign", "true")
    demo.plays([say("I begin."), LIMIT])
    assert relay("start", "x", "--agent", "demo", cwd=repo.path).rc == 1
    for command in ("status", "log", "doctor"):
        assert json.loads(relay(command, "--json", cwd=repo.path).stdout)
    assert "commit.gpgsign is on" in relay("doctor", cwd=repo.path).stdout


def test_accept_by_hand_is_recorded_and_only_for_the_newest_contract_by_its_whole_id(repo, relay, demo) -> None:
    demo.plays(TO_THE_LIMIT)
    assert relay("start", "x", "--agent", "demo", cwd=repo.path).rc == 1
    contract = json.loads(relay("show", "--json", cwd=repo.path).stdout)["contract"]["contractId"]
    assert relay("accept", contract[:-2], cwd=repo.path).rc == 2
    ran = relay("accept", contract, cwd=repo.path)
    assert (ran.rc, ran.stderr) == (0, "")
    assert ran.stdout.startswith(f"accepted {contract} (verified)")
    assert relay("log", cwd=repo.path).stdout.splitlines()[-1].split()[3] == "accepted"
    demo.plays([HANG], TAKE_OVER)
    assert relay("handoff", "--to", "demo", cwd=repo.path).rc == 0
    ran = relay("accept", contract, cwd=repo.path)
    assert (ran.rc, ran.stdout) == (2, "")
    assert f"{contract} is superseded by a newer contract" in ran.stderr


def test_git_itself_finds_the_command(repo) -> None:
    done = subprocess.run(["git", "relay", "status", "--json"], cwd=repo.path, capture_output=True, check=True)
    assert json.loads(done.stdout) == {"sessions": []}
    done = subprocess.run(["git", "relay", "-h"], cwd=repo.path, capture_output=True, text=True, check=True)
    assert "Usage: git" in done.stdout
    done = subprocess.run(["git", "relay", "strat"], cwd=repo.path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "No such command 'strat'" in done.stderr


def test_a_reader_that_leaves_early_is_no_error(handed) -> None:
    done = subprocess.run(
        ["bash", "-c", "set -o pipefail; git-relay log | head -n 1"], cwd=handed.path, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_demo_leaves_its_repository_where_it_is_told_and_takes_no_folder_that_holds_something(
    tmp_path, relay
) -> None:
    ran = relay("demo", "--keep", tmp_path / "kept", cwd=tmp_path)
    assert ran.rc == 0, ran.stderr
    assert "Contracts verified: c-" in ran.stdout
    assert "do not redo: migration 001 is applied" in ran.stdout
    assert "Your work tree: untouched" in ran.stdout
    kept = tmp_path / "kept"
    assert '"state": "DONE"' in relay("status", "--json", cwd=kept).stdout
    assert relay("verify", "--all", cwd=kept).rc == 0
    before = sorted(kept.rglob("*"))
    again = relay("demo", "--keep", kept, cwd=tmp_path)
    assert (again.rc, again.stdout) == (2, "")
    assert f"{kept} is already there and not empty" in again.stderr
    assert sorted(kept.rglob("*")) == before


def test_without_keep_the_demo_leaves_nothing(tmp_path, relay, monkeypatch) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    ran = relay("demo", cwd=tmp_path)
    assert ran.rc == 0, ran.stderr
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_setting_that_means_nothing_is_refused_with_its_name(repo, relay, demo) -> None:
    demo.plays(WORK)
    for name, value in (("relay.ackTimeout", "soon"), ("relay.demo.permission", "all"), ("relay.agents", "nobody")):
        repo.git("config", name, value)
        ran = relay("start", "x", "--agent", "demo", cwd=repo.path)
        assert (ran.rc, ran.stdout) == (2, "")
        assert value in ran.stderr
        repo.git("config", "--unset", name)
