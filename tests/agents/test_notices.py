"""What is a limit, of which kind and until when, and what only looks like one.

`data/limits`: `reported.jsonl` are texts as the tools print them, each after a reported failure; `known.jsonl` more of
what tools and services say; `innocent.jsonl` what agents read, write, test and say about limits.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from relay_git.agents import AGENTS, meters
from relay_git.agents.agent import Limited, Metered, Retrying
from relay_git.agents.claude_reader import ClaudeReader
from relay_git.agents.codex_reader import CodexReader
from relay_git.agents.limits import Channel, judge
from relay_git.agents.moments import Moment, zone_named
from relay_git.session import LimitKind, LimitNotice
from tests.agents.recordings import DATA, heard, recorded

NOW = datetime(2026, 7, 1, 10, 0, tzinfo=UTC)
HERE = Moment(NOW, UTC)


def cases(name: str) -> list[Any]:
    return [json.loads(line) for line in (DATA / "limits" / f"{name}.jsonl").read_text().splitlines()]


REPORTED, KNOWN, INNOCENT = cases("reported"), cases("known"), cases("innocent")


def verdict(case: dict[str, Any]) -> LimitNotice | None:
    moment = Moment(datetime.fromisoformat(case["now"]), ZoneInfo(case["local_tz"]))
    said = case["text"] if "text" in case else case["headers"]
    return judge(case["tool"], Channel(case["source"]), said, moment, case.get("status")).notice


@pytest.mark.parametrize("case", [*REPORTED, *KNOWN], ids=lambda case: case.get("id", case.get("text", "headers")[:40]))
def test_a_notice_is_told_with_its_kind_and_its_end(case: dict[str, Any]) -> None:
    notice, wanted = verdict(case), case["expected"]
    assert (notice is not None, notice.kind if notice else "none") == (wanted["is_limit"], wanted["kind"])
    until = notice.resets_at if notice else None
    if wanted["resets_at"] is None or (until is None and wanted.get("resets_at_may_be_null")):
        assert until is None
    else:
        assert until is not None
        assert abs(until - datetime.fromisoformat(wanted["resets_at"])) <= timedelta(seconds=2)


# ---------------------------------------------------------------------- what is none


def test_the_innocent_texts_are_many_and_of_every_kind() -> None:
    assert len({case["text"] for case in INNOCENT}) >= 200
    assert len({case["kind"] for case in INNOCENT}) >= 8


def test_what_an_agent_prints_about_limits_is_none_for_any_tool() -> None:
    wrong = [
        (tool, case["text"])
        for case in INNOCENT
        for tool in ([*AGENTS, ""] if case["source"] == "stdout" else [case["tool"]])
        if judge(tool, Channel(case["source"]), case["text"], HERE).notice
    ]
    assert wrong == []


# Where each tool puts what its agent says and what its commands print, on stdout.
STDOUT: dict[str, list[Callable[[str], object]]] = {
    "claude": [
        lambda said: {"type": "assistant", "message": {"content": [{"type": "text", "text": said}]}},
        lambda said: {"type": "user", "message": {"content": [{"type": "tool_result", "content": said}]}},
        lambda said: {"type": "result", "is_error": False, "result": said},
    ],
    "codex": [
        lambda said: {"type": "item.completed", "item": {"type": "agent_message", "text": said}},
        lambda said: {"type": "item.completed", "item": {"type": "command_execution", "aggregated_output": said}},
    ],
    "gemini": [
        lambda said: {"type": "message", "role": "assistant", "content": said},
        lambda said: {"type": "tool_result", "status": "error", "output": said, "error": {"message": said}},
    ],
    "qwen": [
        lambda said: {"type": "assistant", "message": {"content": [{"type": "text", "text": said}]}},
        lambda said: {"type": "user", "message": {"content": [{"type": "tool_result", "content": said}]}},
    ],
    "copilot": [
        lambda said: {"type": "assistant.message", "data": {"content": said}},
        lambda said: {"type": "tool.execution_complete", "data": {"result": {"content": said}}},
    ],
    "opencode": [
        lambda said: {"type": "text", "part": {"type": "text", "text": said}},
        lambda said: {"type": "tool_use", "part": {"type": "tool", "state": {"output": said}}},
    ],
    "cline": [
        lambda said: {"type": "agent_event", "event": {"type": "content_end", "contentType": "text", "text": said}},
    ],
}
TRANSCRIPT: dict[str, list[Callable[[str], object]]] = {
    "claude": [
        lambda said: {"type": "user", "message": {"role": "user", "content": said}},
        lambda said: {
            "type": "user",
            "message": {"content": [{"type": "tool_result", "tool_use_id": "t", "content": said}]},
        },
        lambda said: {"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": said}]}},
    ],
    "codex": [
        lambda said: {"type": "response_item", "payload": {"type": "function_call_output", "output": said}},
        lambda said: {"type": "event_msg", "payload": {"type": "agent_message", "message": said}},
    ],
    "copilot": [lambda said: {"type": "user.message", "data": {"content": said}}],
    "qwen": [lambda said: {"type": "user", "message": {"parts": [{"text": said}]}}],
}


def test_what_an_agent_says_or_runs_is_none_in_the_records_of_its_tool() -> None:
    # Notices as they are count no more than what is about them, once they stand in such a record.
    texts = [case["text"] for case in [*INNOCENT, *REPORTED, *KNOWN] if "text" in case]
    wrong: list[object] = []
    for channel, forms in ((Channel.STDOUT, STDOUT), (Channel.TRANSCRIPT, TRANSCRIPT)):
        for tool, records in forms.items():
            for record in records:
                lines = [json.dumps(record(text)) for text in texts]
                wrong += [line for line in lines if judge(tool, channel, line, HERE).notice]
                wrong += [s for x in lines for s in AGENTS[tool].hear(x.encode(), HERE) if isinstance(s, Limited)]
    assert wrong == []


# ---------------------------------------------------------------------- anything at all

DEEP = "[" * 5_000


@given(st.text(max_size=400), st.sampled_from([*AGENTS, "zai"]), st.sampled_from(["stdout", "stderr", "transcript"]))
@example("You've hit your session limit · resets 99:99pm (../../etc/passwd)", "claude", "stdout")
@example("Error: 429 " + "9" * 400 + " days", "claude", "stderr")
@example('{"error":' + DEEP, "zai", "stderr")
@example("usage limit reached|9999999999999", "claude", "stdout")
@example("You've hit your weekly limit · resets Feb 29, 9999 at 9am (Africa)", "claude", "stdout")
@example("You've hit your usage limit. Try again in 999999999 days", "codex", "stderr")
@example("\x1b[" * 300 + "\ud800 limit reached ∙ resets 3pm", "claude", "stdout")
def test_any_text_has_a_verdict(said: str, tool: str, channel: str) -> None:
    found = judge(tool, Channel(channel), said, HERE).notice
    assert found is None or found.resets_at is None or found.resets_at.tzinfo is not None


@given(st.dictionaries(st.text(max_size=40), st.one_of(st.text(max_size=20), st.floats(), st.none(), st.integers())))
@example({"retry-after": "9" * 4_000, "anthropic-ratelimit-unified-5h-reset": "1e400"})
@example({"anthropic-ratelimit-unified-5h-utilization": "nan", "x-codex-primary-used-percent": "-1"})
def test_any_headers_have_a_verdict(headers: dict[str, object]) -> None:
    judge("claude", Channel.HEADER, headers, HERE, 429)


def test_a_flood_on_one_line_costs_no_more_than_its_length() -> None:
    for piece in ("in 1h ", "reset at ", "limit reached ", "You've hit your ", "{", "│ ", "Error: ", "429 ", "\x1b["):
        judge("claude", Channel.STDERR, piece * 200_000, HERE)


@pytest.mark.parametrize("name", ["Etc/Unknown", "../UTC", "America", "PST", "", "UTC+99", "Europe/Berlin\0"])
def test_a_zone_that_does_not_exist_is_none(name: str) -> None:
    assert zone_named(name) is None


# ---------------------------------------------------------------------- how much is used


def test_claude_code_tells_its_windows_before_and_at_the_limit() -> None:
    heard_ = [
        said
        for line in (DATA / "claude/usage-limit-subscription/stdout.jsonl").read_bytes().split(b"\n")
        for said in AGENTS["claude"].hear(line, HERE)
        if isinstance(said, Metered)
    ]
    told = [[(r.window, r.used, r.minutes) for r in metered.readings] for metered in heard_]
    assert told == [
        [("five_hour", 0.93, 300), ("seven_day", 0.31, 10_080)],
        [("five_hour", 1.0, 300), ("seven_day", 0.333, 10_080)],
    ]
    assert {reading.at for metered in heard_ for reading in metered.readings} == {NOW}


def test_without_a_moment_nothing_is_metered() -> None:
    assert not [said for said in heard("claude", "usage-limit-subscription") if isinstance(said, Metered)]


def test_codex_tells_its_windows_in_the_rollout() -> None:
    quota = {reading.window: reading for reading in recorded("codex", "usage-limit").quota}
    assert {name: (r.used, r.minutes) for name, r in quota.items()} == {
        "five_hour": (1.0, 300),
        "seven_day": (0.3, 10_080),
    }
    assert all(reading.resets_at and reading.resets_at > reading.at for reading in quota.values())


@pytest.mark.parametrize("used", [-0.1, math.nan, math.inf, 10.5, True, "0.5", None, [1]])
def test_an_absurd_share_is_no_reading(used: object) -> None:
    later = NOW + timedelta(hours=1)
    assert meters.reading("five_hour", used, NOW, later, 300, "") is None
    info = {"unifiedWindows": {"five_hour": {"utilization": used, "resetsAt": later.timestamp()}}}
    assert meters.claude_event(info, NOW, "") == ()
    percent = used * 100 if isinstance(used, float) else used
    assert meters.codex({"primary": {"used_percent": percent, "resets_at": later.timestamp()}}, NOW) == ()
    status = {"used_percentage": percent, "resets_at": later.timestamp()}
    assert meters.claude_status({"five_hour": status}, NOW) == ()


def test_a_window_without_a_reset_or_seen_at_no_known_time_is_no_reading() -> None:
    assert meters.reading("five_hour", 0.5, NOW, None, 300, "") is None
    assert meters.reading("five_hour", 0.5, None, NOW, 300, "") is None
    assert meters.claude_event({"unifiedWindows": {"five_hour": 7, "x": {}}}, NOW, "") == ()


def test_copilot_tells_what_its_plan_counts() -> None:
    snapshots = {
        "premium_interactions": {"remainingPercentage": 25, "resetDate": "2026-08-01T00:00:00Z"},
        "chat": {"remainingPercentage": 100, "isUnlimitedEntitlement": True, "resetDate": "2026-08-01T00:00:00Z"},
    }
    line = json.dumps({"type": "assistant.usage", "data": {"quotaSnapshots": snapshots}}).encode()
    (metered,) = AGENTS["copilot"].hear(line, HERE)
    assert isinstance(metered, Metered)
    assert [(r.window, r.used) for r in metered.readings] == [("premium_interactions", 0.75)]


# ---------------------------------------------------------------------- the moment and the zone


def test_a_clock_counts_from_the_record_and_in_the_zone_of_the_machine() -> None:
    said = "You've hit your usage limit. Try again at 8:16 PM."
    error = {"type": "error", "message": said}
    record = {"timestamp": "2026-05-18T14:30:00Z", "type": "event_msg", "payload": error}
    reader = CodexReader(Path(), Moment(NOW, ZoneInfo("America/New_York")))
    reader.feed(json.dumps(record).encode())
    assert reader.record().limits[-1].resets_at == datetime(2026, 5, 19, 0, 16, tzinfo=UTC)
    (heard_,) = AGENTS["codex"].hear(json.dumps(error).encode(), Moment(NOW, ZoneInfo("Asia/Tokyo")))
    assert isinstance(heard_, Limited)
    assert heard_.notice.resets_at == datetime(2026, 7, 1, 11, 16, tzinfo=UTC)


def test_a_limit_that_is_met_again_is_the_newest_again() -> None:
    reader = ClaudeReader(Path(), moment=HERE)
    for number, said in enumerate(("API Error: 529 Overloaded", "Credit balance is too low") * 2):
        message = {"model": "<synthetic>", "content": [{"type": "text", "text": said}]}
        record = {"type": "assistant", "uuid": f"u{number}", "isApiErrorMessage": True, "message": message}
        reader.feed(json.dumps(record).encode())
    assert [limit.kind for limit in reader.record().limits] == [LimitKind.OVERLOAD, LimitKind.BILLING]


@pytest.mark.parametrize("tool", ["gemini", "copilot", "qwen", "opencode", "cline"])
def test_the_recorded_limits_of_the_other_tools_are_heard(tool: str) -> None:
    names = {
        "gemini": ("quota-429-daily", LimitKind.USAGE),
        "copilot": ("rate-limit-429", LimitKind.RATE),
        "qwen": ("rate-limit-429-killed", LimitKind.RATE),
        "opencode": ("rate-limit-429", LimitKind.RATE),
        "cline": ("rate-limit-429", LimitKind.RATE),
    }
    name, kind = names[tool]
    told = [said.notice for said in heard(tool, name) if isinstance(said, Limited | Retrying)]
    assert {notice.kind for notice in told} == {kind}


def test_a_line_that_was_cut_is_asked_for_again_and_no_limit() -> None:
    said = (DATA / "claude/disconnect/stdout.jsonl").read_text()
    assert "api_retry" in said
    assert judge("claude", Channel.STDOUT, said, HERE).notice is None


def test_a_dump_of_an_error_says_what_its_first_line_says() -> None:
    said = (
        "Error when talking to Gemini API Full report available at: /tmp/report-2026-11-29T18-21-51-059Z.json "
        "TerminalQuotaError: You have exhausted your daily quota on this model.\n    at classify (file:///x.js:1:1) {\n"
        "  cause: {\n    code: 429,\n    message: 'You exceeded your quota, check your plan and billing details.',\n"
        "  },\n  reason: undefined,\n  status: 429\n}\n"
    )
    notice = judge("gemini", Channel.STDERR, said, HERE).notice
    assert notice is not None
    assert (notice.kind, notice.window) == (LimitKind.USAGE, "day")
