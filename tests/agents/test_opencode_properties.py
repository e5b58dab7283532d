"""Whatever values opencode's rows hold and whatever bytes its files are, its sessions are read on."""

from __future__ import annotations

import gzip
import json
import random
import shutil
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from relay_git.agents import AGENTS
from relay_git.agents.opencode_reader import OpencodeReader
from tests.agents.recordings import CASES, DATA, RECORDED_AT
from tests.agents.test_reader_properties import SOME, VALUES, mutated, sane

OPENCODE = AGENTS["opencode"]


def rows() -> tuple[dict[str, Any], list[tuple[str, dict[str, Any], list[dict[str, Any]]]]]:
    """The session, and its messages with their parts, of a recording."""
    with tempfile.NamedTemporaryFile(suffix=".db") as file:
        file.write(gzip.decompress((DATA / "opencode" / "normal" / "opencode.db.gz").read_bytes()))
        file.flush()
        database = sqlite3.connect(file.name)
        session = dict(id="ses", directory="/home/dev/repo", version="1", time_created=1, time_updated=2, revert=None)
        parts: dict[str, list[dict[str, Any]]] = {}
        for key, data in database.execute("SELECT message_id, data FROM part ORDER BY id"):
            parts.setdefault(key, []).append(json.loads(data))
        found = database.execute("SELECT id, data FROM message ORDER BY time_created, id").fetchall()
        database.close()
        return session, [(key, json.loads(data), parts.get(key, [])) for key, data in found]


SESSION, MESSAGES = rows()


@SOME
@given(st.randoms(use_true_random=False), VALUES)
def test_values_of_any_type_are_survived(dice: random.Random, other: Any) -> None:
    reader = OpencodeReader(RECORDED_AT)
    bent = mutated(SESSION, dice, other)
    reader.begin(bent if isinstance(bent, dict) else {})
    for key, message, parts in MESSAGES:
        told = mutated(message, dice, other)
        some = [part for part in (mutated(part, dice, other) for part in parts) if isinstance(part, dict)]
        reader.message(key, told if isinstance(told, dict) else {}, some)
    sane(reader.record())


@SOME
@given(st.randoms(use_true_random=False), VALUES)
def test_any_event_on_stdout_is_survived(dice: random.Random, other: Any) -> None:
    for case in ("normal", "rate-limit-429", "rate-limit-429-retry-after-7200"):
        for line in (DATA / "opencode" / case / "stdout.jsonl").read_bytes().splitlines():
            OPENCODE.hear(json.dumps(mutated(json.loads(line), dice, other)).encode())


@SOME
@given(st.data())
def test_any_damage_to_the_older_tree_is_survived(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        storage = Path(folder, "storage")
        shutil.copytree(CASES / "B31/home/.local/share/opencode/storage", storage)
        file = data.draw(st.sampled_from(sorted(path for path in storage.rglob("*.json"))))
        file.write_bytes(data.draw(st.binary(max_size=60) | VALUES.map(lambda value: json.dumps(value).encode())))
        for native_id in OPENCODE.sessions(storage):
            following = OPENCODE.follow(storage, native_id, Path("/w/app"))
            following.poll()
            sane(following.record(ended=True))


@SOME
@given(st.data())
def test_any_damage_to_the_database_is_survived(data: st.DataObject) -> None:
    whole = bytearray((CASES / "B32/home/.local/share/opencode/opencode.db").read_bytes())
    for at, flip in data.draw(st.lists(st.tuples(st.integers(0, len(whole) - 1), st.integers(1, 255)), max_size=30)):
        whole[at] ^= flip
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "opencode.db")
        path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
        for native_id in (*OPENCODE.sessions(path), "ses_1"):
            following = OPENCODE.follow(path, native_id, Path("/w/app"))
            following.poll()
            sane(following.record(ended=True))


def test_an_answer_to_a_question_of_the_agents_is_the_users_word() -> None:
    reader = OpencodeReader(RECORDED_AT)
    reader.begin(SESSION)
    asked = {"questions": [{"question": "Which store?"}, {"question": "Which port?"}, {"question": "Why?"}]}
    answers = {"answers": [["Postgres", "no ORM"], ["5433"], []]}
    state = {"status": "completed", "input": asked, "metadata": answers, "output": "answered"}
    reader.message("m1", {"role": "user"}, [{"type": "text", "text": "the task"}])
    reader.message("m2", {"role": "assistant"}, [{"type": "tool", "tool": "question", "callID": "c", "state": state}])
    said = 'Asked "Which store?": Postgres, no ORM\nAsked "Which port?": 5433'
    assert reader.record().prompts == ("the task", said)
