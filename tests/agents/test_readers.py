"""What the readers find in transcripts that the real tools wrote, and in made-up ones that go back to reported bugs."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from relay_git.agents import jsonl
from relay_git.agents.draft import Draft
from relay_git.agents.transcript import Follower
from relay_git.session import LimitKind, PlanItem, PlanStatus, Usage
from tests.agents.recordings import CASES, CASES_AT, READERS, case, read, recorded, transcript

PROMPT = "Add a farewell function next to greet and commit it"
DONE, DOING, TO_DO = PlanStatus.COMPLETED, PlanStatus.IN_PROGRESS, PlanStatus.PENDING


def at(hour: int, minute: int, second: int, micro: int = 0) -> datetime:
    return datetime(2026, 11, 29, hour, minute, second, micro, UTC)


@pytest.mark.parametrize(
    ("agent", "native_id", "model", "version", "turns", "usage", "last"),
    [
        (
            "claude",
            "9746912e-3829-43e1-90d9-309c866c6910",
            "claude-opus-5-5",
            "2.1.332",
            10,
            Usage(23000, 400),
            "Done.",
        ),
        (
            "codex",
            "01a22884-cbed-7240-808f-5154bfdc920b",
            "gpt-5.5",
            "0.171.0",
            8,
            Usage(19900, 320),
            "Done: farewell is written and committed; tests are still missing. Decision: plain functions, no classes.",
        ),
    ],
)
def test_a_finished_run_is_read_whole(
    agent: str, native_id: str, model: str, version: str, turns: int, usage: Usage, last: str
) -> None:
    record = recorded(agent, "normal")
    assert (record.native_id, record.model, record.version) == (native_id, model, version)
    assert (record.cwd, record.branch) == ("/home/dev/repo", "feature/greeting")
    assert record.prompts == (PROMPT,)
    assert record.files_touched == ("src/farewell.py", "src/greet.py")
    assert (record.model_turns, record.usage, record.last_text) == (turns, usage, last)
    assert record.turn_complete
    assert (record.pending_calls, record.limits, record.skipped) == ((), (), 0)


def test_plans_come_with_their_status() -> None:
    assert recorded("claude", "normal").plan == (
        PlanItem("Write src/farewell.py", DONE),
        PlanItem("Add tests for farewell", TO_DO),
    )
    assert recorded("codex", "normal").plan == (
        PlanItem("Write src/farewell.py", DONE),
        PlanItem("Commit the change", DONE),
        PlanItem("Add tests for farewell", TO_DO),
    )


def test_a_plan_is_read_out_of_code_mode() -> None:
    record = recorded("codex", "interactive-usage-limit")
    assert record.model == "gpt-6.2-sol"
    assert record.plan == (
        PlanItem("Write src/farewell.py", DOING),
        PlanItem("Commit the change", TO_DO),
        PlanItem("Add tests for farewell", TO_DO),
    )
    assert [(c.command, c.exit_code) for c in record.commands] == [("cat /home/dev/repo/src/greet.py", 0)]
    assert record.files_touched == ("src/farewell.py",)


COMMIT = "git add -A && git commit -m 'Add farewell' && git log --oneline | head -3"
FAILING = "python3 -c 'import nosuchmodule'"


@pytest.mark.parametrize(
    ("agent", "commands"),
    [
        (
            "claude",
            [
                (COMMIT, 0, "a9a4c5c243319f7927a8c495fdd4761815d8934ee10bf65cba3b342bbbb5972f"),
                (FAILING, 1, "f6ade82cc52e98a655bff10b1ef588026433dbe19f9ce3d1adacc9265e2a9af9"),
            ],
        ),
        (
            "codex",
            [
                (
                    "cat '/home/dev/repo/src/greet.py'",
                    0,
                    "c66fe374189689fffcc2eb20c4dbaa8ed53918c922b1ef240622635e1fbc5f5d",
                ),
                (COMMIT, 0, "c03c2ca3e48afb760ec60afce9042c930507050fd663cd0d4541102336a6e0c6"),
                (FAILING, 1, "dc4c3cbe53c5676df42f083022a34ec03737af6a006b0ca93275d61d06049e98"),
            ],
        ),
    ],
)
def test_commands_come_with_exit_code_and_digest_of_their_output(
    agent: str, commands: list[tuple[str, int, str]]
) -> None:
    record = recorded(agent, "normal")
    assert [(c.command, c.exit_code, c.output_sha256) for c in record.commands] == commands
    assert record.commands[-1].excerpt.endswith("ModuleNotFoundError: No module named 'nosuchmodule'")


@pytest.mark.parametrize(
    ("agent", "name", "resets_at"),
    [
        ("claude", "usage-limit-subscription", at(20, 12, 13)),
        ("claude", "interactive-usage-limit", at(20, 41, 37)),
        ("claude", "limit-then-resume", at(20, 34, 6)),
        ("codex", "usage-limit", at(20, 16, 5)),
        ("codex", "interactive-usage-limit", at(20, 44, 8)),
    ],
)
def test_a_used_up_window_is_named_with_its_reset(agent: str, name: str, resets_at: datetime) -> None:
    (limit,) = recorded(agent, name).limits
    assert (limit.kind, limit.window, limit.resets_at) == (LimitKind.USAGE, "five_hour", resets_at)


@pytest.mark.parametrize(
    ("agent", "name", "kinds"),
    [
        ("claude", "rate-limit-429-api-key", [LimitKind.RATE]),
        ("claude", "overloaded-529", [LimitKind.OVERLOAD]),
        ("claude", "disconnect", []),
        ("codex", "rate-limit-429", [LimitKind.RATE]),
        ("codex", "server-error-500", []),
        ("codex", "disconnect", []),
    ],
)
def test_other_refusals_have_no_reset(agent: str, name: str, kinds: list[LimitKind]) -> None:
    limits = recorded(agent, name).limits
    assert [limit.kind for limit in limits] == kinds
    assert {limit.resets_at for limit in limits} <= {None}


@pytest.mark.parametrize(("agent", "name"), [("claude", "usage-limit-subscription"), ("codex", "usage-limit")])
def test_a_run_that_met_a_limit_is_not_complete(agent: str, name: str) -> None:
    record = recorded(agent, name)
    assert not record.turn_complete
    assert (record.model_turns, record.last_text) == (3, "Now I write the module.")


def test_a_compaction_and_resumed_runs_add_no_prompts_of_their_own() -> None:
    claude = recorded("claude", "hooks-resume-fork-compact", "11111111")
    assert claude.prompts == ("Add a farewell function", "Go on", "What is left?")
    codex = recorded("codex", "hooks-resume-compact")
    assert codex.prompts == ("Add a farewell function", "Go on", "Again", "And now compact", "After")
    assert codex.usage == Usage(19300, 320)


@pytest.mark.parametrize(("agent", "name", "part"), [("claude", "normal", "agent-"), ("codex", "subagent", "18-49-48")])
def test_the_prompts_of_a_subagent_are_not_the_humans(agent: str, name: str, part: str) -> None:
    record = recorded(agent, name, part)
    assert record.prompts == ()
    assert record.subagents or any("subagent" in loss for loss in record.losses)


def test_times_are_those_of_the_first_and_the_last_record() -> None:
    record = recorded("codex", "usage-limit")
    assert (record.started, record.last_activity) == (at(18, 16, 5, 83000), at(18, 16, 5, 281000))
    assert record.records == 29


def test_a_torn_last_line_waits_for_its_rest(tmp_path) -> None:
    _, path, expected = case("B01")
    copy = tmp_path / "s-main.jsonl"
    copy.write_bytes(path.read_bytes())
    follower = Follower(copy, lambda: READERS["claude"](CASES_AT))
    follower.poll()
    first = follower.record()
    assert (first.records, follower.offset) == (3, expected["first_read"]["resume_offset"])
    assert first.files_touched == ()
    assert follower.record(ended=True).losses == ("the last line is cut: its writer was stopped in the middle of it",)
    with copy.open("ab") as file:
        file.write((CASES / "B01" / "append.bin").read_bytes())
    follower.poll()
    assert follower.record().files_touched == ("src/fetch.py",)


def test_a_line_of_twenty_mebibytes_is_read() -> None:
    agent, path, expected = case("B17")
    data = path.read_bytes()
    longest = max(data.split(b"A"), key=len)
    assert longest  # the run of A's is one image
    start = data.index(b'"data":"A') + len(b'"data":"')
    grown = data[:start] + b"A" * (20 << 20) + data[start:]
    record = read(agent, grown, CASES_AT)
    assert record.prompts == tuple(expected["user_prompts"])
    assert record.skipped == 0


def test_a_record_of_a_surrogate_can_be_encoded() -> None:
    agent, path, _ = case("B16")
    assert read(agent, path.read_bytes(), CASES_AT).last_text.encode("utf-8") == "key \ufffd done".encode()


def test_half_a_surrogate_goes_wherever_it_stands_and_a_whole_pair_stays() -> None:
    line = rb'{"a\ud800": ["\uDC00", NaN], "b": {"\ud83d\ude00": "\ud83d\ude00"}}'
    found = jsonl.parse(line)
    assert json.dumps(found, ensure_ascii=False) == '{"a\ufffd": ["\ufffd", NaN], "b": {"😀": "😀"}}'


def test_every_recording_is_read_without_a_broken_record() -> None:
    for agent, name in [
        ("claude", "normal"),
        ("claude", "limit-then-resume"),
        ("codex", "normal"),
        ("codex", "subagent"),
    ]:
        assert read(agent, transcript(agent, name).read_bytes()).skipped == 0


def test_what_gemini_cli_says_by_itself_is_no_prompt_of_the_human() -> None:
    said = (
        "Add a test",
        "System: Potential loop detected. Details: x. Avoid repeating it.",
        "System: Please continue.",
    )
    lines = [json.dumps({"id": str(i), "type": "user", "content": [{"text": text}]}) for i, text in enumerate(said)]
    data = "\n".join(['{"sessionId": "s", "kind": "main"}', *lines, ""]).encode()
    assert read("gemini", data).prompts == ("Add a test",)


def test_the_agents_words_are_kept_in_order_and_those_of_a_branch_taken_back_are_not() -> None:
    record = recorded("claude", "normal")
    assert record.texts
    assert record.texts[-1] == record.last_text
    draft = Draft("x", ".")
    draft.prompt("one")
    draft.say("kept")
    mark = draft.mark()
    draft.prompt("two")
    draft.say("taken back")
    draft.go_back(mark)
    assert draft.record().texts == ("kept",)


def test_commands_are_the_same_however_often_they_are_asked_for() -> None:
    often, once, only_after = drafts = [Draft("x", ".") for _ in range(3)]
    for number in range(1_300):
        if number == 1_000:
            marks = [draft.mark() for draft in drafts]
        for draft in drafts:
            draft.ran(f"make {number}", 0, f"{number}" * (5_000 if number % 3 else 1))
        if number % 7 == 0:
            often.record()
    told = once.record().commands
    assert [command.command for command in told] == [f"make {number}" for number in range(800, 1_300)]
    assert all(command.output_sha256 and command.excerpt for command in told)
    assert often.record().commands == told
    for draft, mark in zip(drafts, marks, strict=True):
        draft.go_back(mark)
    assert often.record().commands == once.record().commands == only_after.record().commands == told[:200]


def test_of_endless_words_the_newest_are_kept_and_the_rest_is_said_to_be_left_out() -> None:
    draft = Draft("x", ".")
    for number in range(200):
        draft.say(f"{number} " + "word " * 2_000)
    record = draft.record()
    assert sum(map(len, record.texts)) <= 1_000_000
    assert record.texts[-1] == record.last_text[-8_192:]
    assert f"the agent's words before its newest {len(record.texts)} messages were left out" in record.losses
