"""What is found in what opencode, Gemini CLI, Qwen Code and Copilot CLI wrote, and how their refusals are heard."""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from relay_git.agents import AGENTS
from relay_git.agents.agent import Ended, Identified, Limited, Retrying
from relay_git.agents.headers import retry_after
from relay_git.agents.moments import Moment, seconds
from relay_git.agents.refusal import refusal
from relay_git.session import LimitKind, PlanItem, PlanStatus, SessionRecord, Usage
from tests.agents.recordings import CASES, DATA, RECORDED_AT, heard, transcript

GOAL = "Add a farewell function next to greet and commit it"
LAST = "Done: farewell is written and committed; tests are still missing. Decision: plain functions, no classes."
COMMIT = "git add -A && git commit -m 'Add farewell' && git log --oneline | head -3"
FAILING = "python3 -c 'import nosuchmodule'"
NOW = datetime(2026, 6, 10, 9, tzinfo=UTC)


def database(case: str, place: Path) -> Path:
    """The database of a recording, where nothing else is."""
    path = place / "opencode.db"
    path.write_bytes(gzip.decompress((DATA / "opencode" / case / "opencode.db.gz").read_bytes()))
    return path


def entry(agent: str, case: str, place: Path) -> Path:
    return database(case, place) if agent == "opencode" else transcript(agent, case)


def follow(agent: str, path: Path, native_id: str = "", worktree: Path = RECORDED_AT) -> SessionRecord:
    following = AGENTS[agent].follow(path, native_id, worktree)
    following.poll()
    return following.record(ended=True)


EVERY = pytest.mark.parametrize("agent", ["opencode", "gemini", "qwen", "copilot"])


@pytest.mark.parametrize(
    ("agent", "model", "version", "branch", "turns", "usage"),
    [
        ("opencode", "scripted-model", "1.18.33", "", 8, Usage(16000, 320)),
        ("gemini", "gemini-3.8-flash", "", "", 6, Usage(10800, 240)),
        ("qwen", "scripted-model", "0.24.4", "feature/greeting", 8, Usage(16000, 320)),
        ("copilot", "gpt-5.4", "1.0.102", "feature/greeting", 8, Usage(16000, 320)),
    ],
)
def test_a_finished_run_is_read_whole(tmp_path, agent, model, version, branch, turns, usage) -> None:
    path = entry(agent, "normal", tmp_path)
    native_id = AGENTS[agent].sessions(path)[-1]
    record = follow(agent, path)
    assert record.native_id == native_id
    assert (record.cwd, record.branch, record.model, record.version) == (str(RECORDED_AT), branch, model, version)
    assert record.prompts == (GOAL,)
    assert record.files_touched == ("src/farewell.py", "src/greet.py")
    assert (record.model_turns, record.usage, record.last_text) == (turns, usage, LAST)
    assert record.turn_complete
    assert (record.pending_calls, record.limits, record.skipped, record.losses) == ((), (), 0, ())


# In opencode's recording a second run of the same script found nothing to commit.
@pytest.mark.parametrize(("agent", "committed"), [("opencode", 1), ("gemini", 0), ("qwen", 0), ("copilot", 0)])
def test_commands_come_with_exit_code_and_the_end_of_their_output(tmp_path, agent, committed) -> None:
    record = follow(agent, entry(agent, "normal", tmp_path))
    assert [(c.command, c.exit_code) for c in record.commands] == [(COMMIT, committed), (FAILING, 1)]
    assert "ModuleNotFoundError: No module named 'nosuchmodule'" in record.commands[-1].excerpt


@pytest.mark.parametrize("agent", ["opencode", "qwen", "copilot"])
def test_a_plan_comes_with_its_status(tmp_path, agent) -> None:
    plan = follow(agent, entry(agent, "normal", tmp_path)).plan
    assert plan[0] == PlanItem("Write src/farewell.py", PlanStatus.COMPLETED)
    assert plan[-1] == PlanItem("Add tests for farewell", PlanStatus.PENDING)


def test_resumed_runs_add_their_prompts_and_count_nothing_twice() -> None:
    record = follow("gemini", transcript("gemini", "resume", "11111111"))
    assert record.prompts == ("Add farewell", "Go on", "Again")
    assert (record.model_turns, record.usage) == (5, Usage(8500, 200))
    record = follow("copilot", transcript("copilot", "hooks-resume"))
    assert (record.prompts, record.usage) == (("Add farewell", "Go on", "Again"), Usage(9200, 200))


def test_what_a_subagent_of_opencode_used_is_counted_in_its_session(tmp_path) -> None:
    path = database("subagent", tmp_path)
    (own,) = AGENTS["opencode"].sessions(path)
    record = follow("opencode", path, own)
    assert record.subagents == ("ses_dd75bb6ccffewme6miLAAOoW6G",)
    assert (record.prompts, record.usage, record.model_turns) == ((GOAL,), Usage(5600, 160), 2)


@pytest.mark.parametrize(
    ("agent", "case", "kind"),
    [
        ("opencode", "rate-limit-429", LimitKind.RATE),
        ("qwen", "rate-limit-429-killed", LimitKind.RATE),
        ("qwen", "quota-429-killed", LimitKind.BILLING),
        ("copilot", "rate-limit-429", LimitKind.RATE),
    ],
)
def test_a_refusal_is_in_the_record(tmp_path, agent, case, kind) -> None:
    record = follow(agent, entry(agent, case, tmp_path))
    assert {limit.kind for limit in record.limits} == {kind}
    assert not record.turn_complete


# ---------------------------------------------------------------------- what stdout says


def test_each_tool_tells_its_session_and_its_end() -> None:
    for agent, native_id in (
        ("opencode", "ses_dd76667c7ffe83yf0g6rdkwu2O"),
        ("gemini", "324a5421-7ea2-4339-bfda-73004bdb20ed"),
        ("qwen", "f4a63c89-7593-49a0-82ff-f70162ccaece"),
        ("copilot", "fd650e03-5efa-4df2-9bd6-d5c46b594014"),
    ):
        said = heard(agent, "normal")
        assert Identified(native_id) in said
        assert Ended(True) in said
        assert not [one for one in said if isinstance(one, Limited | Retrying)]


def test_a_daily_quota_of_gemini_is_a_usage_limit() -> None:
    (limited,) = [one for one in heard("gemini", "quota-429-daily") if isinstance(one, Limited)]
    assert (limited.notice.kind, limited.notice.resets_at) == (LimitKind.USAGE, None)


def test_a_wait_of_two_hours_that_opencode_keeps_to_itself_is_heard_of_our_plugin() -> None:
    session, retry = heard("opencode", "rate-limit-429-retry-after-7200")
    assert session == Identified("ses_dd760b08bffeFHEfgonm18oS6n")
    assert isinstance(retry, Retrying)
    assert (retry.notice.kind, retry.attempt) == (LimitKind.USAGE, 1)
    assert retry.notice.resets_at == datetime(2026, 11, 29, 20, 44, 20, 824000, UTC)


def test_a_wait_that_qwen_and_copilot_announce_is_no_limit_yet() -> None:
    (retry,) = [one for one in heard("qwen", "rate-limit-429-killed") if not isinstance(one, Identified)][-1:]
    assert isinstance(retry, Retrying)
    assert (retry.seconds, retry.attempt, retry.of) == (60, 1, 10)
    said = [one for one in heard("copilot", "rate-limit-429") if isinstance(one, Retrying | Limited | Ended)]
    assert [type(one) for one in said] == [*[Retrying] * 6, Limited, Ended, Ended]
    assert [one.detail[:30] for one in said if isinstance(one, Ended)] == ["Failed to get response from th", ""]


@EVERY
def test_prose_and_tool_output_say_nothing_of_a_limit(agent) -> None:
    words = "429 Too Many Requests: usage limit reached, try again in 5 hours"
    for line in (
        {"type": "text", "part": {"type": "text", "text": words}},
        {"type": "tool_use", "part": {"type": "tool", "tool": "bash", "state": {"output": words}}},
        {"type": "assistant.message", "data": {"content": words}},
        {"type": "tool.execution_complete", "data": {"success": True, "result": {"content": words}}},
        {"type": "message", "role": "assistant", "content": words},
        {"type": "assistant", "message": {"content": [{"type": "text", "text": words}]}},
        {"type": "user", "message": {"content": [{"type": "tool_result", "content": words, "is_error": True}]}},
    ):
        said = AGENTS[agent].hear(json.dumps(line).encode())
        assert not [one for one in said if isinstance(one, Limited | Retrying)]


# ---------------------------------------------------------------------- what only one of them has


def test_the_log_beside_opencodes_database_is_read_too(tmp_path) -> None:
    expected = json.loads((CASES / "B32" / "expected.json").read_text())
    shutil.copytree(CASES / "B32", tmp_path / "case")
    path = tmp_path / "case" / expected["entry"]
    path.with_name("opencode.db-wal").unlink()
    record = follow("opencode", path, "ses_1", Path("/w/app"))
    wanted = expected["without_wal"]
    assert (list(record.prompts), record.model_turns) == (wanted["user_prompts"], wanted["assistant_messages"])


@pytest.fixture
def written(tmp_path) -> Iterator[tuple[Path, sqlite3.Connection]]:
    path = database("normal", tmp_path)
    owner = sqlite3.connect(path, isolation_level=None)
    yield path, owner
    owner.close()


def test_what_the_user_of_opencode_took_back_is_left_out(written) -> None:
    path, owner = written
    session, prompt = owner.execute(
        "SELECT session_id, id FROM message WHERE json_extract(data, '$.role') = 'user' ORDER BY time_created DESC"
    ).fetchone()
    owner.execute("UPDATE session SET revert = json_object('messageID', ?) WHERE id = ?", (prompt, session))
    record = follow("opencode", path, session)
    assert (record.prompts, record.abandoned_prompts) == ((), (GOAL,))
    assert (record.usage, record.usage_active) == (Usage(16000, 320), Usage())


def test_opencodes_session_is_read_on_while_it_is_written(written) -> None:
    path, owner = written
    session = AGENTS["opencode"].sessions(path)[-1]
    following = AGENTS["opencode"].follow(path, session, RECORDED_AT)
    assert following.poll()
    assert not following.poll()
    message = {"role": "user", "time": {"created": 1795977500000}}
    owner.execute("INSERT INTO message VALUES ('msg_z', ?, 1795977500000, 0, ?)", (session, json.dumps(message)))
    text = {"type": "text", "text": '"say \\"bye\\" too"'}
    hint = {"type": "text", "text": "a reminder of the tool's own", "synthetic": True}
    for name, part in (("prt_y", hint), ("prt_z", text)):
        owner.execute("INSERT INTO part VALUES (?, 'msg_z', ?, 0, 0, ?)", (name, session, json.dumps(part)))
    assert following.poll()
    record = following.record(ended=True)
    assert record.prompts == (GOAL, 'say "bye" too')
    assert record.open_prompt == 'say "bye" too'


@pytest.mark.parametrize(
    "damage",
    [
        "DROP TABLE part",
        "ALTER TABLE message RENAME COLUMN data TO body",
        "UPDATE part SET data = x'00ff'",
        "UPDATE message SET data = '[1]', time_created = 'soon'",
        "DROP TABLE todo",
        "UPDATE session SET directory = 7, version = x'00', revert = '{', time_created = 1e300",
        "UPDATE session SET parent_id = id",
    ],
)
def test_a_database_that_is_not_as_opencode_writes_it_is_survived(written, damage) -> None:
    path, owner = written
    owner.execute("PRAGMA foreign_keys=OFF")
    sessions = AGENTS["opencode"].sessions(path)
    owner.execute(damage)
    record = follow("opencode", path, sessions[-1])
    json.dumps(record.prompts).encode()
    assert damage.startswith(("DROP TABLE todo", "UPDATE session")) or record.losses or record.skipped


def test_while_gemini_is_at_work_an_answer_may_have_a_call_that_is_not_written_yet(tmp_path) -> None:
    lines = transcript("gemini", "normal").read_bytes().split(b"\n")
    path = tmp_path / "session-2026-11-29T18-37-324a5421.jsonl"
    path.write_bytes(b"\n".join(lines[:6]) + b"\n")  # the first answer, before its call has ended
    following = AGENTS["gemini"].follow(path, "", RECORDED_AT)
    following.poll()
    assert following.record().pending_calls
    assert following.record(ended=True).pending_calls == ()
    path.write_bytes(b"\n".join(lines[:8]) + b"\n")
    following.poll()
    assert following.record().pending_calls == ()


# ---------------------------------------------------------------------- what a refusal means


@pytest.mark.parametrize(
    ("said", "more", "kind", "seconds"),
    [
        ("Your quota will reset after 8h44m7s.", {"status": 429}, LimitKind.USAGE, 31447),
        ("You have exhausted your capacity on this model. Your quota will reset after 5s.", {}, LimitKind.RATE, 5),
        ("Rate limit reached.", {"status": 429, "wait": 7200.0}, LimitKind.USAGE, 7200),
        ("Rate limit reached. Please try again in 20s.", {"status": 429}, LimitKind.RATE, 20),
        ("Rate limit exceeded.", {"body": '{"type":"FreeUsageLimitError"}'}, LimitKind.USAGE, None),
        ("You exceeded your current quota", {"body": "insufficient_quota", "status": 429}, LimitKind.BILLING, None),
        ("quota", {"status": 429, "body": '"quotaId":"RequestsPerDayPerProject"', "wait": 22.0}, LimitKind.USAGE, None),
        ("402 You have no quota", {"status": 402}, LimitKind.USAGE, None),
        ("You've hit a rate limit. Please try again in 2 hours.", {}, LimitKind.USAGE, 7200),
        ("You've reached your weekly rate limit.", {}, LimitKind.USAGE, None),
        ("Overloaded", {"status": 529}, LimitKind.OVERLOAD, None),
        ("upstream says no", {"status": 429}, LimitKind.RATE, None),
    ],
)
def test_a_refusal_is_what_its_code_and_its_words_say(said, more, kind, seconds) -> None:
    notice = refusal(said, moment=Moment(NOW), **more)
    assert notice is not None
    assert notice.kind is kind
    assert notice.resets_at is None if seconds is None else (notice.resets_at - NOW).total_seconds() == seconds


@pytest.mark.parametrize(
    ("said", "more"),
    [("bad request", {"status": 400}), ("", {}), ("server error", {"status": 500}), ("rate limit", {"status": 404})],
)
def test_other_errors_are_no_limit(said, more) -> None:
    assert refusal(said, moment=Moment(NOW), **more) is None


def test_lengths_of_time_are_read_and_nothing_else() -> None:
    assert seconds("try again in 6h16m - attempt #1") == 22560
    assert seconds("retry after 1.5 hours, 3 minutes") == 5580
    assert seconds("in 99999999 days") is None
    assert seconds("in the evening, after five") is None
    assert retry_after({"Retry-After": "120"}) == 120
    assert retry_after({"retry-after-ms": "1500", "retry-after": "9"}) == 1.5
    assert retry_after({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}) is None
    assert retry_after("no headers") is None


def test_going_on_from_an_earlier_state_is_the_same_as_reading_anew(written) -> None:
    path, owner = written
    session = AGENTS["opencode"].sessions(path)[-1]
    following = AGENTS["opencode"].follow(path, session, RECORDED_AT)

    def same() -> bool:
        following.poll()
        return following.record() == follow("opencode", path, session)

    for number in range(30):
        message = {"role": "assistant", "time": {"created": 1, "completed": 2}, "tokens": {"input": 1, "output": 1}}
        part = {"type": "tool", "tool": "bash", "callID": f"c{number}", "state": {"status": "running"}}
        name = f"msg_z{number:02}"
        values = (name, session, 1795977500000 + number, json.dumps(message))
        owner.execute("INSERT INTO message VALUES (?, ?, ?, 0, ?)", values)
        owner.execute("INSERT INTO part VALUES (?, ?, ?, 0, 0, ?)", (f"prt_{name}", name, session, json.dumps(part)))
        assert same()
    done = json.dumps({**part, "state": {"status": "completed"}, "callID": "c3"})
    owner.execute("UPDATE part SET data = ?, time_updated = 9 WHERE message_id = 'msg_z03'", (done,))
    assert same()
    owner.execute("UPDATE session SET revert = json_object('messageID', 'msg_z20') WHERE id = ?", (session,))
    assert same()
    owner.execute("DELETE FROM message WHERE id = 'msg_z10'")
    assert same()
