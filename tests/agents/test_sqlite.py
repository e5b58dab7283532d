"""A database of another program is read from a private copy, whatever it holds, and is itself never touched."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from relay_git.agents import sqlite
from relay_git.agents.sqlite import Database, Mirror, opened


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "theirs" / "a.db"


@pytest.fixture
def owner(path: Path) -> Iterator[sqlite3.Connection]:
    """The program that the database belongs to, at work in it."""
    path.parent.mkdir()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, data)")
    connection.execute("INSERT INTO t(data) VALUES ('one')")
    yield connection
    connection.close()


def files(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


def read(path: Path, sql: str = "SELECT data FROM t ORDER BY id") -> list[object]:
    with opened(path) as database:
        return [row[0] for row in database.rows(sql)] if isinstance(database, Database) else [database]


def test_rows_that_are_only_in_the_log_are_read_and_nothing_is_touched(path, owner) -> None:
    before = files(path.parent)
    assert "a.db-wal" in before
    assert read(path) == ["one"]
    assert files(path.parent) == before


def test_no_copy_is_left(path, owner, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(sqlite.os, "access", lambda *_: False)
    monkeypatch.setattr(sqlite.tempfile, "tempdir", str(tmp_path))
    with opened(path):
        (folder,) = tmp_path.glob("git-relay-*")
        assert folder.stat().st_mode & 0o777 == 0o700
    assert not list(tmp_path.glob("git-relay-*"))


def test_a_mirror_sees_what_was_written_since(path, owner) -> None:
    mirror = Mirror(path)
    for expected in (["one"], ["one", "more"], ["one", "more", "more"]):
        assert mirror.changed()
        with mirror.opened() as database:
            assert [row[0] for row in database.rows("SELECT data FROM t")] == expected
        assert not mirror.changed()
        owner.execute("INSERT INTO t(data) VALUES ('more')")
        owner.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    mirror.close()


def test_a_change_that_was_not_committed_is_rolled_back_in_the_copy(tmp_path) -> None:
    path = tmp_path / "a.db"
    owner = sqlite3.connect(path, isolation_level=None)
    owner.execute("PRAGMA cache_spill=ON")
    owner.execute("PRAGMA cache_size=2")
    owner.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, data)")
    owner.executemany("INSERT INTO t(data) VALUES (?)", [("one" * 500,)] * 50)
    owner.execute("BEGIN")
    owner.execute("UPDATE t SET data = 'two' || hex(zeroblob(600))")
    before = files(tmp_path)
    assert "a.db-journal" in before
    assert {text[:3] for text in read(path)} == {"one"}
    assert files(tmp_path) == before
    owner.close()


def test_a_journal_that_names_a_file_does_not_have_it_deleted(tmp_path) -> None:
    path, victim = tmp_path / "a.db", tmp_path / "precious"
    victim.write_bytes(b"work of a day\0")
    owner = sqlite3.connect(path, isolation_level=None)
    owner.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, data)")
    owner.execute("PRAGMA cache_size=1")
    owner.executemany("INSERT INTO t(data) VALUES (?)", [("one" * 500,)] * 50)
    owner.execute("BEGIN")
    owner.execute("UPDATE t SET data = 'two' || hex(zeroblob(600))")
    copy = tmp_path / "hostile" / "a.db"
    copy.parent.mkdir()
    copy.write_bytes(path.read_bytes())
    name = os.fsencode(victim)
    page = (4 << 28).to_bytes(4, "big")  # a page number that is none, as SQLite writes it
    tail = page + name + len(name).to_bytes(4, "big") + sum(name).to_bytes(4, "big")
    magic = bytes([0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7])
    (copy.parent / "a.db-journal").write_bytes((tmp_path / "a.db-journal").read_bytes() + tail + magic)
    owner.close()
    assert read(copy)
    assert victim.exists()


@pytest.mark.parametrize(
    "schema",
    [
        "CREATE TABLE x(data); CREATE VIEW t AS SELECT 1 AS id, 'fake' AS data",
        "CREATE VIRTUAL TABLE t USING fts5(data)",
        "CREATE TABLE u(data); CREATE INDEX t ON u(data)",
    ],
)
def test_only_a_plain_table_has_columns(tmp_path, schema) -> None:
    path = tmp_path / "a.db"
    made = sqlite3.connect(path)
    made.executescript(schema)
    made.close()
    with opened(path) as database:
        assert database.columns("t") == ()


def test_a_view_runs_nothing(tmp_path) -> None:
    path = tmp_path / "a.db"
    made = sqlite3.connect(path)
    made.execute("CREATE VIEW v AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n FROM c) SELECT n FROM c")
    made.close()
    with opened(path) as database:
        assert list(database.rows("SELECT n FROM v")) == []
        assert "prohibited" in str(database.trouble) or "not authorized" in str(database.trouble)


def test_a_column_that_is_computed_takes_no_more_memory_than_a_stored_one(tmp_path) -> None:
    path = tmp_path / "a.db"
    made = sqlite3.connect(path)
    made.executescript("CREATE TABLE x(id, data AS (zeroblob(900000000))); INSERT INTO x(id) VALUES (1);")
    made.close()
    with opened(path) as database:
        assert list(database.rows("SELECT data FROM x")) == []
        assert "too big" in str(database.trouble)


def test_nothing_but_reading_is_allowed(path, owner) -> None:
    with opened(path) as database:
        for sql in ("DELETE FROM t", "ATTACH '/var/tmp/x' AS x", "PRAGMA query_only=OFF", "SELECT load_extension('x')"):
            database.trouble.clear()
            assert list(database.rows(sql)) == []
            assert "not authorized" in str(database.trouble)


def test_a_huge_value_costs_only_itself(path, owner) -> None:
    owner.execute("INSERT INTO t(data) VALUES (zeroblob(34000000))")
    owner.execute("INSERT INTO t(data) VALUES ('three')")
    with opened(path) as database:
        ids = [row[0] for row in database.rows("SELECT id FROM t ORDER BY id")]
        assert [database.value("SELECT data FROM t WHERE id = ?", one) for one in ids] == ["one", None, "three"]
        assert len(database.trouble) == 1


def test_a_query_without_end_is_ended(path, owner, monkeypatch) -> None:
    monkeypatch.setattr(sqlite, "_MAX_STEPS", 3 * sqlite._STEPS_A_CALL)
    owner.execute("BEGIN")
    owner.executemany("INSERT INTO t(data) VALUES (?)", [(n,) for n in range(2000)])
    owner.execute("COMMIT")
    with opened(path) as database:
        assert database.value("SELECT length(a.data) FROM t a, t b WHERE a.data + b.data = -1") is None
        assert list(database.trouble) == ["the database could not be read whole: interrupted"]


def test_no_more_rows_than_can_be_worked_through(path, owner, monkeypatch) -> None:
    monkeypatch.setattr(sqlite, "_MAX_ROWS", 2)
    owner.executemany("INSERT INTO t(data) VALUES (?)", [("x",)] * 3)
    with opened(path) as database:
        assert len(list(database.rows("SELECT data FROM t"))) == 2
        assert database.trouble


def test_what_is_no_database_is_said(tmp_path) -> None:
    (tmp_path / "text.db").write_bytes(b"no database at all")
    (tmp_path / "folder.db").mkdir()
    os.mkfifo(tmp_path / "fifo.db")
    (tmp_path / "loop.db").symlink_to("loop.db")
    for name in ("text.db", "folder.db", "fifo.db", "loop.db", "gone.db"):
        (said,) = read(tmp_path / name)
        assert isinstance(said, str)
        assert "database" in said


def test_a_log_that_is_a_fifo_is_left_alone(path, owner) -> None:
    owner.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    owner.close()
    os.mkfifo(f"{path}-wal")
    assert read(path) == ["one"]


def test_a_sparse_giant_is_not_copied(tmp_path) -> None:
    path = tmp_path / "a.db"
    with path.open("wb") as file:
        file.write(sqlite._MAGIC)
        file.truncate(10 << 30)
    (said,) = read(path)
    assert "too big" in str(said)


def test_a_database_that_its_owner_has_locked_is_read_as_it_was(path, owner) -> None:
    owner.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    owner.execute("BEGIN EXCLUSIVE")
    owner.execute("INSERT INTO t(data) VALUES ('not yet')")
    assert read(path) == ["one"]


def test_every_cut_of_a_database_is_survived(path, owner) -> None:
    owner.executemany("INSERT INTO t(data) VALUES (?)", [("x" * 3000,)] * 20)
    owner.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    owner.close()
    whole = path.read_bytes()
    for at in range(0, len(whole), 997):
        path.write_bytes(whole[:at])
        read(path)
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        read(path)


def test_a_schema_that_is_no_text_costs_itself_only(tmp_path) -> None:
    path = tmp_path / "a.db"
    made = sqlite3.connect(path)
    made.execute("CREATE TABLE plain(data)")
    made.commit()
    made.close()
    path.write_bytes(path.read_bytes().replace(b"plain", b"pla\xd6\xff").replace(b"CREATE", b"CREAXE"))
    with opened(path) as database:
        assert database.columns("plain") == ()
        assert database.trouble
