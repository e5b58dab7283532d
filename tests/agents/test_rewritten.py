"""Documents that are rewritten as a whole: read value by value, as far as they go, and never half."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from relay_git.agents import rewritten
from relay_git.agents.cline import Cline
from relay_git.agents.rewritten import Document
from tests.agents.samples import GOAL, SAMPLES
from tests.agents.test_reader_properties import VALUES

WHOLE = {"id": "x", "n": 12345, "list": [{"a": [1, "]}", {}]}, "\u2028", 678, None], "last": 'é\\"'}
ELEMENTS: list[tuple[str, object]] = [
    ("id", "x"), ("n", 12345), *(("list", value) for value in WHOLE["list"]), ("last", WHOLE["last"]),
]  # fmt: skip


def read(path: Path, *lists: str) -> tuple[list[tuple[str, object]], str]:
    document = Document(path, lists)
    return list(document), document.torn


def test_a_document_comes_member_by_member_and_a_named_list_element_by_element(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    for form in (json.dumps(WHOLE), json.dumps(WHOLE, indent=1), "\ufeff" + json.dumps(WHOLE, ensure_ascii=False)):
        path.write_text(form)
        assert read(path, "list") == (ELEMENTS, "")
        assert read(path) == (list(WHOLE.items()), "")
    path.write_text(json.dumps(WHOLE["list"]))
    assert read(path) == ([("", value) for value in WHOLE["list"]], "")


@pytest.mark.parametrize("chunk", [1, 2, 7, 1000])
def test_any_cut_gives_what_stands_whole_before_it(chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewritten, "CHUNK", chunk)
    path = tmp_path / "d.json"
    whole = json.dumps(WHOLE)
    seen = []
    for at in range(len(whole) + 1):
        path.write_text(whole[:at])
        found, torn = read(path, "list")
        assert found == ELEMENTS[: len(found)]
        assert bool(torn) == (at < len(whole))
        seen.append(len(found))
    assert seen == sorted(seen)
    assert seen[-1] == len(ELEMENTS)


@given(VALUES)
def test_what_was_written_is_what_is_read(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    path = tmp_path_factory.mktemp("d") / "d.json"
    path.write_text(json.dumps([value]))
    found, torn = read(path)
    assert (json.dumps([inner for _, inner in found]), torn) == (json.dumps([value]), "")


@pytest.mark.parametrize("text", ["", "null", "12", '"x"', "[" * 100_000, '{"a"' + ":" * 9, "{1: 2}", "[1 2"])
def test_what_is_no_document_is_said(text: str, tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_text(text)
    assert "cut or broken" in read(path)[1]


def test_a_list_of_any_length_takes_the_memory_of_its_longest_value(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    with path.open("w") as file:
        file.write('{"messages": [{"a": 0}')
        for number in range(1, 40_000):
            file.write(f', {{"a": {number}, "text": "{"x" * 900}"}}')
        file.write("]}")
    assert path.stat().st_size > 35_000_000
    tracemalloc.start()
    count = sum(1 for _ in Document(path, ["messages"]))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 40_000
    assert peak < 5_000_000


def test_a_file_without_end_is_left_after_its_first_sign(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    with path.open("wb") as file:
        file.truncate(10_000_000_000)
    assert read(path) == ([], "d.json is cut or broken: what stands whole before that was read")


def test_a_value_longer_than_any_session_s_ends_the_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewritten, "MOST_VALUE", 1_000)
    monkeypatch.setattr(rewritten, "CHUNK", 100)
    path = tmp_path / "d.json"
    path.write_text(json.dumps([1, "x" * 100_000, 2]))
    assert read(path) == ([("", 1)], "d.json is cut or broken: what stands whole before that was read")


def test_a_session_that_is_read_while_it_is_written_keeps_its_last_good_record(tmp_path: Path) -> None:
    sample = SAMPLES["cline"](tmp_path)
    messages = sample.files[1]
    whole = messages.read_bytes()
    following = Cline().follow(sample.entry, sample.native_id, Path("/home/dev/repo"))
    assert following.poll()
    good = following.record()
    messages.write_bytes(whole[: len(whole) // 3])
    assert not following.poll()
    torn = following.record()
    assert (torn.prompts, torn.model_turns, torn.limits) == (good.prompts, good.model_turns, good.limits)
    assert any("torn since its last change" in loss for loss in torn.losses)
    messages.write_bytes(whole.replace(GOAL.encode(), b"Something else"))
    assert following.poll()
    assert following.record().prompts == ("Something else",)
    assert following.record(ended=True).losses == ()


def test_a_session_that_was_torn_from_the_start_is_given_as_far_as_it_goes_and_tried_again(tmp_path: Path) -> None:
    sample = SAMPLES["continue_"](tmp_path)
    whole = sample.entry.read_bytes()
    sample.entry.write_bytes(whole[: len(whole) // 2])
    record = sample.read()
    assert record.prompts == (GOAL,)
    assert 0 < record.model_turns < 8
    assert "is cut or broken" in record.losses[0]


def test_a_session_is_read_again_only_when_one_of_its_files_has_changed(tmp_path: Path) -> None:
    sample = SAMPLES["continue_"](tmp_path)
    reads = 0

    def read_it() -> tuple[Any, bool]:
        nonlocal reads
        reads += 1
        return sample.read(), False

    following = rewritten.Rewritten(lambda: [sample.entry], read_it, "continue")
    assert [following.poll(), following.poll(), following.poll()] == [True, False, False]
    assert reads == 1
    os.utime(sample.entry)
    assert not following.poll()  # written again, with the same in it
    assert reads == 2
