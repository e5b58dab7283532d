"""The history on a real disk: many writers, torn files, a newer version, and a bounded size."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay_git.quota import lines
from relay_git.quota.entry import Account, Refusal, Spent
from relay_git.quota.history import MAX_BYTES, History
from relay_git.session import LimitKind, QuotaReading
from tests.quota.samples import CLAUDE, CODEX, NOW, WORK, ago, read, refused

_WRITER = """
import sys
from datetime import datetime, timedelta, UTC
from pathlib import Path
from relay_git.quota import history
from relay_git.quota.entry import Account, Spent
history.MAX_BYTES = int(sys.argv[3])
now = datetime(2026, 3, 29, 0, 2, tzinfo=UTC)
store = history.History(Path(sys.argv[1]))
for i in range(60):
    told = store.record(Account("claude"), [Spent(now - timedelta(seconds=60 - i), 1, int(sys.argv[2]))], now)
    assert not told, told
"""


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "quota")


def file_of(history: History, account: Account = CLAUDE) -> Path:
    return history.folder / f"{str(account).replace(':', '%3A')}.jsonl"


def test_what_is_recorded_is_loaded(history: History) -> None:
    entries = (read(0.4, 5), refused(3), Spent(ago(1), 2, 30_000), read(0.1, 1, "x", None, minutes=None))
    assert history.record(CLAUDE, entries, NOW) == ""
    loaded = History(history.folder).load(CLAUDE)
    assert [type(e) for e in loaded.entries] == [type(e) for e in entries]
    assert (loaded.entries[0], *loaded.entries[2:]) == (entries[0], *entries[2:])
    assert (loaded.skipped, loaded.trouble) == (0, "")


def test_a_refusal_is_kept_without_the_words_of_the_tool(history: History) -> None:
    history.record(CLAUDE, [refused()], NOW)
    assert b"limit reached" not in file_of(history).read_bytes()
    (found,) = history.load(CLAUDE).entries
    assert isinstance(found, Refusal)
    assert (found.notice.kind, found.notice.window, found.at) == (LimitKind.USAGE, "five_hour", NOW)


def test_accounts_of_one_agent_have_histories_of_their_own(history: History) -> None:
    odd = Account("claude", "../../Büro/x")
    for account in (WORK, CLAUDE, CODEX, odd):
        history.record(account, [read(0.4)], NOW)
    assert history.accounts() == tuple(sorted((CLAUDE, odd, WORK, CODEX)))
    assert len(history.load(odd).entries) == 1
    assert len(list(history.folder.glob("*.jsonl"))) == 4


def test_the_files_are_the_users_alone(history: History) -> None:
    history.record(CLAUDE, [read(0.4)], NOW)
    assert file_of(history).stat().st_mode & 0o077 == 0
    assert history.folder.stat().st_mode & 0o077 == 0


def test_the_same_reading_again_within_a_minute_is_kept_once(history: History) -> None:
    for seconds in (0, 5, 30):
        history.record(CLAUDE, [QuotaReading("five_hour", 0.4, NOW + timedelta(seconds=seconds))], NOW)
    history.record(CLAUDE, [refused(), refused(-0.2)], NOW)
    assert len(history.load(CLAUDE).entries) == 2
    history.record(CLAUDE, [QuotaReading("five_hour", 0.4, NOW + timedelta(seconds=90))], NOW)
    assert len(history.load(CLAUDE).entries) == 3


@pytest.mark.parametrize("bound", [MAX_BYTES, 6_000], ids=["appending", "compacting all the time"])
def test_of_many_writers_at_once_none_loses_a_turn(history: History, bound: int) -> None:
    argv = [sys.executable, "-c", _WRITER, str(history.folder)]
    writers = [subprocess.Popen([*argv, str(10**n), str(bound)]) for n in range(4)]
    assert [w.wait(timeout=60) for w in writers] == [0] * 4
    turns = [e for e in history.load(CLAUDE).entries if isinstance(e, Spent)]
    assert sum(e.requests for e in turns) == 240
    assert sum(e.tokens for e in turns) == 60 * 1111
    assert history.load(CLAUDE).trouble == ""


def test_turns_that_are_summed_up_are_neither_lost_nor_doubled(history: History) -> None:
    old = [Spent(ago(60 * 24 * 20 + i * 2), 1, 10) for i in range(4_000)]
    new = [read(0.5 + i / 1e5, i / 100) for i in range(3_000)]
    for start in range(0, 4_000, 1_000):
        history.record(CLAUDE, old[start : start + 1_000], NOW)
    history.record(CLAUDE, new, NOW)
    turns = [e for e in history.load(CLAUDE).entries if isinstance(e, Spent)]
    assert file_of(history).stat().st_size <= MAX_BYTES
    assert len(turns) < 1_000
    assert sum(e.tokens for e in turns) == 40_000


def test_however_much_is_recorded_the_file_stays_small(history: History) -> None:
    for day in range(4):
        rows = [read((i % 997) / 997, 24 * 60 * (8 - day) - i / 2) for i in range(1_500)]
        assert history.record(CLAUDE, rows, ago(24 * 60 * (8 - day) - 750)) == ""
        assert file_of(history).stat().st_size <= MAX_BYTES
    assert history.load(CLAUDE).entries[-1] == rows[-1]


@pytest.mark.parametrize(
    "tail",
    [
        b'{"at":"2026-03-2',
        b"\0" * 300,
        b"\xff\xfe{}[]",
        b'{"at": "2026-03-29"}',
        b"[" * 9000,
        b'{"at":"0001-01-01T00:00:00+00:00","requests":1,"tokens":1}',
    ],
)
def test_a_torn_last_line_costs_that_line_alone(history: History, tail: bytes) -> None:
    history.record(CLAUDE, [read(0.4, 2)], NOW)
    with file_of(history).open("ab") as out:
        out.write(tail)
    assert history.record(CLAUDE, [read(0.5, 1)], NOW) == ""
    loaded = history.load(CLAUDE)
    assert [e.used for e in loaded.entries if isinstance(e, QuotaReading)] == [0.4, 0.5]
    assert loaded.skipped == 1
    assert "1 line" in loaded.trouble


def test_a_file_that_is_no_history_is_put_aside_and_told_once(history: History) -> None:
    history.folder.mkdir()
    file_of(history).write_bytes(b"my shopping list\n")
    assert "kept as claude.torn" in history.record(CLAUDE, [read(0.4, 2)], NOW)
    assert history.record(CLAUDE, [read(0.5, 1)], NOW) == ""
    assert (history.folder / "claude.torn").read_bytes() == b"my shopping list\n"
    assert len(history.load(CLAUDE).entries) == 2


def test_a_file_of_a_newer_version_is_left_alone(history: History) -> None:
    history.folder.mkdir()
    newer = b'{"format":"git-relay-quota","version":2}\nwhatever\n'
    file_of(history).write_bytes(newer)
    assert "newer git relay" in history.record(CLAUDE, [read(0.4)], NOW)
    assert "newer git relay" in history.load(CLAUDE).trouble
    assert file_of(history).read_bytes() == newer


def test_what_is_no_file_is_told_and_neither_followed_nor_waited_for(history: History, tmp_path: Path) -> None:
    history.folder.mkdir()
    os.mkfifo(file_of(history))
    (tmp_path / "elsewhere").write_text("not ours\n")
    file_of(history, CODEX).symlink_to(tmp_path / "elsewhere")
    for account in (CLAUDE, CODEX):
        assert "cannot be written" in history.record(account, [read(0.4)], NOW)
        assert "cannot be read" in history.load(account).trouble
    assert (tmp_path / "elsewhere").read_text() == "not ours\n"
    assert history.accounts() == ()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    blocked = History(tmp_path / "file" / "quota")
    assert "cannot be written" in blocked.record(CLAUDE, [read(0.4)], NOW)
    assert blocked.load(CLAUDE).entries == ()


def test_what_a_kill_left_of_a_compaction_is_in_nobodys_way(history: History) -> None:
    history.record(CLAUDE, [read(0.1, 9000)], NOW)
    file_of(history).with_suffix(".part").write_bytes(b"half")
    assert history.record(CLAUDE, [read(i / 9000, 9000 - i) for i in range(6_000)], NOW) == ""
    assert history.load(CLAUDE).trouble == ""
    assert not file_of(history).with_suffix(".part").exists()


@given(st.binary(max_size=300))
def test_no_line_whatever_raises(body: bytes) -> None:
    lines.entries(body)
    lines.is_newer(body)


def test_what_another_process_has_added_is_seen(history: History) -> None:
    history.record(CLAUDE, [read(0.4, 5)], NOW)
    assert len(history.load(CLAUDE).entries) == 1
    History(history.folder).record(CLAUDE, [read(0.5, 2)], NOW)
    assert len(history.load(CLAUDE).entries) == 2


def test_a_clock_that_is_a_year_ahead_for_once_takes_nothing_away(history: History) -> None:
    history.record(CLAUDE, [refused(50), *(read(i / 4000, 4000 - i) for i in range(3_000))], NOW)
    later = NOW + timedelta(days=365)
    ahead = [QuotaReading("day", i / 4000, later - timedelta(seconds=i)) for i in range(4_000)]
    assert history.record(CLAUDE, ahead, later) == ""
    kept = history.load(CLAUDE).entries
    assert any(isinstance(entry, Refusal) for entry in kept)
    assert sum(isinstance(entry, QuotaReading) and entry.at <= NOW for entry in kept) > 200


def test_more_than_a_file_may_hold_can_be_the_first_that_is_recorded(history: History) -> None:
    assert history.record(CLAUDE, [read(i / 9000, 9000 - i) for i in range(6_000)], NOW) == ""
    assert 0 < file_of(history).stat().st_size <= MAX_BYTES
