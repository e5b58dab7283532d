"""Whatever a transcript was turned into, its reader reads on; and how it came in pieces makes no difference."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relay_git.agents import AGENTS
from relay_git.agents.demo import DemoReader
from relay_git.agents.transcript import Follower
from relay_git.session import SessionRecord
from tests.agents.recordings import DATA, READERS, RECORDED_AT, heard, read, transcript

RECORDINGS = {
    "claude": transcript("claude", "normal").read_bytes(),
    "codex": transcript("codex", "usage-limit").read_bytes(),
    "gemini": transcript("gemini", "resume", "11111111").read_bytes(),
    "qwen": transcript("qwen", "rate-limit-429-killed").read_bytes(),
    "copilot": transcript("copilot", "rate-limit-429").read_bytes(),
}
STDOUT = {
    "claude": "usage-limit-subscription",
    "codex": "usage-limit",
    "gemini": "quota-429-daily",
    "qwen": "rate-limit-429-killed",
    "copilot": "rate-limit-429",
}
AGENT = pytest.mark.parametrize("agent", sorted(RECORDINGS))
SOME = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def sane(record: SessionRecord) -> None:
    """What holds for every record: it can be written down, and its counts are counts."""
    assert record.records >= 0
    assert record.skipped >= 0
    for text in (
        record.native_id,
        record.last_text,
        record.branch,
        *record.prompts,
        *record.files_touched,
        *record.losses,
    ):
        text.encode("utf-8")
    assert all(limit.resets_at is None or limit.resets_at.tzinfo is not None for limit in record.limits)


@AGENT
@SOME
@given(st.data())
def test_any_cut_is_survived(agent: str, data: st.DataObject) -> None:
    whole = RECORDINGS[agent]
    at = data.draw(st.integers(0, len(whole)))
    record = read(agent, whole[:at])
    sane(record)
    assert record.skipped == 0


@AGENT
@SOME
@given(st.data())
def test_flipped_bytes_are_survived(agent: str, data: st.DataObject) -> None:
    whole = bytearray(RECORDINGS[agent])
    for at, flip in data.draw(st.lists(st.tuples(st.integers(0, len(whole) - 1), st.integers(1, 255)), max_size=20)):
        whole[at] ^= flip
    sane(read(agent, bytes(whole)))


@AGENT
@SOME
@given(st.binary(max_size=200).map(lambda line: line.replace(b"\n", b"")), st.integers(0, 20))
def test_a_line_of_garbage_costs_that_line_only(agent: str, garbage: bytes, at: int) -> None:
    lines = RECORDINGS[agent].split(b"\n")
    clean, dirty = read(agent, b"\n".join(lines)), read(agent, b"\n".join([*lines[:at], b"x" + garbage, *lines[at:]]))
    assert dirty.skipped == clean.skipped + 1
    assert (dirty.prompts, dirty.commands, dirty.plan, dirty.usage) == (
        clean.prompts,
        clean.commands,
        clean.plan,
        clean.usage,
    )


def mutated(value: Any, dice: random.Random, other: Any) -> Any:
    """The same JSON with one value somewhere in it replaced."""
    if isinstance(value, dict) and value and dice.random() < 0.85:
        key = dice.choice(sorted(value))
        return {**value, key: mutated(value[key], dice, other)}
    if isinstance(value, list) and value and dice.random() < 0.85:
        at = dice.randrange(len(value))
        return [*value[:at], mutated(value[at], dice, other), *value[at + 1 :]]
    return other


@AGENT
@SOME
@given(st.randoms(use_true_random=False), VALUES)
def test_values_of_any_type_are_survived(agent: str, dice: random.Random, other: Any) -> None:
    reader = READERS[agent](RECORDED_AT)
    for line in RECORDINGS[agent].split(b"\n")[:-1]:
        bent = json.dumps(mutated(json.loads(line), dice, other)).encode()
        reader.feed(bent)
        AGENTS[agent].hear(bent)
    sane(reader.record())


@AGENT
@SOME
@given(st.randoms(use_true_random=False), VALUES)
def test_any_event_on_stdout_is_survived(agent: str, dice: random.Random, other: Any) -> None:
    name = STDOUT[agent]
    for line in (DATA / agent / name / "stdout.jsonl").read_bytes().split(b"\n"):
        if line:
            AGENTS[agent].hear(json.dumps(mutated(json.loads(line), dice, other)).encode())
    assert heard(agent, name)


@SOME
@given(
    st.lists(st.dictionaries(st.sampled_from(["type", "text", "items", "call", "at", "resetsAt"]), VALUES), max_size=20)
)
def test_the_demo_transcript_too(records: list[dict[str, Any]]) -> None:
    reader = DemoReader(RECORDED_AT)
    for record in records:
        line = json.dumps({**record, "demo": True}).encode()
        reader.feed(line)
        AGENTS["demo"].hear(line)
    sane(reader.record())


@AGENT
@SOME
@given(st.data())
def test_a_transcript_in_pieces_gives_the_same_record(agent: str, tmp_path: Path, data: st.DataObject) -> None:
    whole = RECORDINGS[agent]
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"")
    follower = Follower(path, lambda: READERS[agent](RECORDED_AT))
    cuts = sorted({0, len(whole), *data.draw(st.lists(st.integers(0, len(whole)), max_size=12))})
    for begin, end in itertools.pairwise(cuts):
        with path.open("ab") as file:
            file.write(whole[begin:end])
        follower.poll(data.draw(st.sampled_from([None, 1000, 50_000])))
        follower.record()
    while follower.poll():
        pass
    assert follower.record(ended=True) == read(agent, whole)
    assert follower.offset == len(whole)


@pytest.mark.parametrize(
    "line", [b"[" * 200_000, b'{"a":' * 100_000, b"1" * 5_000, b"\xef\xbb\xbf{}", b"\0" * 50, b"NaN"]
)
@AGENT
def test_lines_that_break_parsers_are_survived(agent: str, line: bytes) -> None:
    sane(read(agent, line + b"\n"))
    assert AGENTS[agent].hear(line) == ()
