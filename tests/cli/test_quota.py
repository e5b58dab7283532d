"""`git relay quota` as a user sees it: from the history, from the tools' own files, from a declared plan."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from relay_git.cli import quota_table
from relay_git.quota.entry import HEADERS, Account, Entry, Refusal, Spent
from relay_git.quota.history import History
from relay_git.session import LimitKind, LimitNotice, QuotaReading
from tests.terminal.user import User

NOW = datetime.now(UTC)
OWN = 77  # minutes of a window that no agent has which runs beside this test


@pytest.fixture(autouse=True)
def this_moment(request, monkeypatch) -> None:
    """Made anew for each test: what is told is so and so long ago, and a run of all tests takes its time."""
    monkeypatch.setattr(request.module, "NOW", datetime.now(UTC))


def record(account: Account, *entries: Entry) -> Path:
    folder = Path(os.environ["XDG_STATE_HOME"]) / "git-relay" / "quota"
    assert History(folder).record(account, entries, NOW) == ""
    return folder


def reading(used: float, minutes_ago: float) -> QuotaReading:
    at = NOW - timedelta(minutes=minutes_ago)
    return QuotaReading("five_hour", used, at, NOW + timedelta(hours=3), 300, HEADERS)


@pytest.fixture
def look(relay, tmp_path):
    """`look()`: the accounts of `git relay quota --json`, by name, outside any repository."""

    def run() -> dict[str, dict[str, dict[str, object]]]:
        done = relay("quota", "--json", cwd=tmp_path)
        assert done.rc == 0, done.stderr
        accounts = json.loads(done.stdout)["accounts"]
        named = {f"{a['agent']}:{a['account'] or ''}": a["windows"] for a in accounts}
        return {name: {w["name"]: w for w in windows} for name, windows in named.items()}

    return run


def codex_session(home: Path, used: float) -> None:
    """A rollout that Codex would have written just now."""
    folder = home / "sessions" / "2026" / "01" / "01"
    folder.mkdir(parents=True)
    resets = (NOW + timedelta(hours=2)).timestamp()
    window = {"used_percent": used, "window_minutes": OWN, "resets_at": int(resets)}
    rows = [
        {"type": "session_meta", "payload": {"id": "01a22884-cbed-7240-808f-5154bfdc920b", "cwd": str(home)}},
        {"type": "event_msg", "payload": {"type": "token_count", "rate_limits": {"primary": window}}},
    ]
    name = "rollout-2026-01-01T00-00-00-01a22884-cbed-7240-808f-5154bfdc920b.jsonl"
    lines = [json.dumps({"timestamp": NOW.isoformat(), **row}) + "\n" for row in rows]
    (folder / name).write_text("".join(lines))


def test_where_nothing_is_known_it_is_said_how_something_gets_known(capsys):
    quota_table.show([], [], NOW)
    said = capsys.readouterr().out
    assert "nothing is known yet" in said
    assert "relay.plan.claude" in said


def test_the_table_has_a_bar_what_is_left_and_when_it_runs_dry(relay, tmp_path):
    record(Account("claude", "work"), *(reading(0.4 + i / 100, 60 - 2 * i) for i in range(30)))
    done = relay("quota", cwd=tmp_path, env={"TZ": "Europe/Berlin"})
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("claude:work")]
    assert "███████████" in row
    assert "31 %" in row
    assert "(in 2 h 5" in row
    assert "about " in row
    assert "response headers" in row
    assert "CET" in row or "CEST" in row
    assert "\x1b" not in done.stdout


def test_the_json_has_what_the_table_has(look):
    record(Account("claude"), *(reading(0.4 + i / 100, 60 - 2 * i) for i in range(30)))
    window = look()["claude:"]["five_hour"]
    assert (window["used"], window["left"], window["minutes"], window["source"]) == (0.69, 0.31, 300, HEADERS)
    times = [str(window[name]) for name in ("dryEarliest", "dryAt", "dryLatest")]
    assert times == sorted(times)
    assert window["perHour"] == pytest.approx(0.3, rel=0.1)


def test_a_refusal_is_shown_as_one(look, relay, tmp_path):
    notice = LimitNotice(LimitKind.USAGE, "", "five_hour", NOW + timedelta(hours=1))
    record(Account("claude"), reading(0.9, 5), Refusal(notice, NOW - timedelta(minutes=4)))
    assert look()["claude:"]["five_hour"]["refusedAt"] is not None
    assert "refused" in relay("quota", cwd=tmp_path).stdout


def test_what_a_tool_wrote_without_git_relay_is_found(look, home):
    codex_session(home / ".codex", 42.0)
    assert look()["codex:"][f"{OWN}_minutes"]["used"] == 0.42


def test_what_lies_in_the_folder_of_an_account_is_that_accounts(look, relay, tmp_path):
    folder = tmp_path / "codex-work"
    assert relay("accounts", "add", "codex", "work", "--config-dir", folder, cwd=tmp_path).rc == 0
    codex_session(folder, 77.0)
    assert look()["codex:work"][f"{OWN}_minutes"]["used"] == 0.77


def test_a_declared_plan_is_counted_by_what_went_through(look, repo, relay):
    record(Account("codex", "work"), *(Spent(NOW - timedelta(minutes=m), 2, 500) for m in (50, 30, 10)))
    repo.git("config", "--global", "--add", "relay.plan.codex.work", "10 requests/5h")
    repo.git("config", "--global", "--add", "relay.plan.codex.work", "1m tokens/week")
    windows = look()["codex:work"]
    assert {name: w["used"] for name, w in windows.items()} == {"five_hour": 0.6, "seven_day": 0.0015}
    assert windows["five_hour"]["source"] == "declared plan"


def test_a_plan_that_is_none_is_a_wrong_setting_and_no_bug(relay, repo):
    repo.git("config", "relay.plan.codex", "lots")
    done = relay("quota", cwd=repo.path)
    assert done.rc == 2
    assert "lots is no plan" in done.stderr


def test_a_history_of_a_newer_version_is_told_and_the_rest_is_shown(relay, tmp_path):
    folder = record(Account("claude"), reading(0.4, 5))
    (folder / "codex.jsonl").write_text('{"format":"git-relay-quota","version":9,"agent":"codex","account":""}\n')
    done = relay("quota", cwd=tmp_path)
    assert done.rc == 0
    assert "newer git relay" in done.stdout
    assert "claude" in done.stdout


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_watching_is_for_a_terminal(relay, tmp_path, more):
    done = relay("quota", "--watch", *more, cwd=tmp_path)
    assert done.rc == 2
    assert "git relay quota" in done.stderr


def test_at_a_terminal_it_has_colours_and_watching_leaves_no_trace(tmp_path):
    record(Account("claude"), reading(0.95, 5))
    user = User(["git-relay", "quota", "--watch"], cwd=tmp_path, columns=160)
    try:
        user.sees("Ctrl-C to leave")
        assert "95 %" in user.text()
        assert b"\x1b[31m" in user.seen  # red
        user.type("\x03")
        assert user.ends() == 0
        assert "Traceback" not in user.text()
        assert user.seen.rindex(b"\x1b[?1049l") > user.seen.rindex(b"\x1b[?1049h")
        assert user.seen.rindex(b"\x1b[?25h") > user.seen.rindex(b"\x1b[?25l")
    finally:
        user.close()


def test_what_is_no_history_any_more_is_named(relay, tmp_path):
    folder = record(Account("claude"), reading(0.5, 60))
    (folder / "codex.jsonl").write_bytes(b"\0\xff torn")
    (folder / "gemini.jsonl").mkdir()
    told = json.loads(relay("quota", "--json", cwd=tmp_path).stdout)
    assert [account["agent"] for account in told["accounts"]] == ["claude"]
    assert [trouble.split("/")[-1] for trouble in told["troubles"]] == [
        "codex.jsonl cannot be read: it is none any more",
        "gemini.jsonl cannot be read: Is a directory",
    ]
