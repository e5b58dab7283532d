"""What counts as a limit on stdout: the tool's own error records, and nothing that anyone says or prints."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from relay_git.agents import AGENTS
from relay_git.agents.agent import Ended, Heard, Identified, Limited
from relay_git.agents.codex_reader import CodexReader
from relay_git.session import LimitKind
from tests.agents.recordings import CASES_AT, heard

NOTICE = "You've hit your 5-hour limit · resets 8:12pm (UTC)"


def limits(said: list[Heard]) -> list[tuple[LimitKind, str | None, datetime | None]]:
    return [(s.notice.kind, s.notice.window, s.notice.resets_at) for s in said if isinstance(s, Limited)]


def hear(agent: str, *events: object) -> list[Heard]:
    return [said for event in events for said in AGENTS[agent].hear(json.dumps(event).encode())]


def test_claude_names_the_window_and_its_reset() -> None:
    said = heard("claude", "usage-limit-subscription")
    resets_at = datetime(2026, 11, 29, 20, 12, 13, tzinfo=UTC)
    assert limits(said)[0] == (LimitKind.USAGE, "five_hour", resets_at)
    assert {kind for kind, _, _ in limits(said)} == {LimitKind.USAGE}
    assert said[-1] == Ended(False, NOTICE)


@pytest.mark.parametrize(
    ("agent", "name", "kind"),
    [
        ("claude", "rate-limit-429-api-key", LimitKind.RATE),
        ("claude", "overloaded-529", LimitKind.OVERLOAD),
        ("codex", "rate-limit-429", LimitKind.RATE),
        ("codex", "usage-limit", LimitKind.USAGE),
    ],
)
def test_a_refusal_for_good_is_heard_and_ends_the_run(agent: str, name: str, kind: LimitKind) -> None:
    said = heard(agent, name)
    assert set(limits(said)) == {(kind, None, None)}
    ended = said[-1]
    assert isinstance(ended, Ended)
    assert not ended.ok


@pytest.mark.parametrize(
    ("agent", "name"), [("claude", "disconnect"), ("claude", "normal"), ("codex", "disconnect"), ("codex", "normal")]
)
def test_retries_warnings_and_tool_output_are_no_limit(agent: str, name: str) -> None:
    said = heard(agent, name)
    assert limits(said) == []
    assert said[-1] == Ended(True)
    assert isinstance(said[0], Identified)


def test_a_failure_that_is_no_limit_only_ends_the_run() -> None:
    said = heard("codex", "server-error-500")
    assert limits(said) == []
    assert isinstance(said[-1], Ended)
    assert not said[-1].ok


# From the reported cases: id, agent, event, what must be heard.
STDOUT = [
    (
        "result that only has a sentence",
        {"type": "result", "subtype": "success", "is_error": True, "result": "API Error: Rate limit reached"},
        [(LimitKind.RATE, None, None)],
    ),
    (
        "window with room",
        {
            "type": "rate_limit_event",
            "rate_limit_info": {"status": "allowed", "resetsAt": 1783173600, "rateLimitType": "five_hour"},
        },
        [],
    ),
    (
        "window that is used up",
        {
            "type": "rate_limit_event",
            "rate_limit_info": {"status": "rejected", "resetsAt": 1783173600, "rateLimitType": "five_hour"},
        },
        [(LimitKind.USAGE, "five_hour", datetime(2026, 7, 4, 14, tzinfo=UTC))],
    ),
    (
        "used up, but extra usage pays",
        {
            "type": "rate_limit_event",
            "rate_limit_info": {"status": "rejected", "resetsAt": 1783173600, "isUsingOverage": True},
        },
        [],
    ),
    (
        "reset in milliseconds",
        {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": 1783173600000}},
        [(LimitKind.USAGE, None, datetime(2026, 7, 4, 14, tzinfo=UTC))],
    ),
    (
        "reset that is no time",
        {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": "soon"}},
        [(LimitKind.USAGE, None, None)],
    ),
    (
        "credit",
        {"type": "result", "is_error": True, "result": "Credit balance is too low", "api_error_type": "x"},
        [(LimitKind.BILLING, None, None)],
    ),
    ("prose of the model", {"type": "assistant", "message": {"content": [{"type": "text", "text": NOTICE}]}}, []),
    (
        "tool output",
        {
            "type": "user",
            "message": {"content": [{"type": "tool_result", "content": '{"error":"rate_limit"} ' + NOTICE}]},
        },
        [],
    ),
    ("the last answer of a good run", {"type": "result", "is_error": False, "result": NOTICE}, []),
    ("an error of another kind", {"type": "result", "is_error": True, "subtype": "error_max_turns"}, []),
]


@pytest.mark.parametrize(("event", "wanted"), [case[1:] for case in STDOUT], ids=[case[0] for case in STDOUT])
def test_claude_stdout(event: object, wanted: object) -> None:
    assert limits(hear("claude", event)) == wanted


CURLY = "You’ve hit your usage limit. Try again at 8:16 PM."


@pytest.mark.parametrize(
    ("event", "wanted"),
    [
        ({"type": "error", "message": CURLY.replace("’", "'")}, LimitKind.USAGE),
        ({"type": "turn.failed", "error": {"message": CURLY}}, LimitKind.USAGE),
        ({"type": "turn.failed", "error": {"message": "Quota exceeded. Check your plan."}}, LimitKind.BILLING),
        ({"type": "error", "message": "Reconnecting... 1/5 (exceeded retry limit, last status: 429)"}, None),
        ({"type": "item.completed", "item": {"type": "error", "message": CURLY}}, None),
        ({"type": "item.completed", "item": {"type": "agent_message", "text": CURLY}}, None),
        ({"type": "item.completed", "item": {"type": "command_execution", "aggregated_output": CURLY}}, None),
    ],
)
def test_codex_stdout(event: object, wanted: LimitKind | None) -> None:
    assert [kind for kind, _, _ in limits(hear("codex", event))] == ([wanted] if wanted else [])


def rollout(*payloads: dict[str, object]) -> list[tuple[LimitKind, str | None, datetime | None]]:
    reader = CodexReader(CASES_AT)
    for payload in payloads:
        reader.feed(json.dumps({"type": "event_msg", "payload": payload}).encode())
    return [(limit.kind, limit.window, limit.resets_at) for limit in reader.record().limits]


def window(used: float, minutes: int, resets_at: int) -> dict[str, object]:
    return {"used_percent": used, "window_minutes": minutes, "resets_at": resets_at}


def test_of_two_used_up_windows_the_later_reset_counts() -> None:
    quota = {"primary": window(100, 300, 1783173600), "secondary": window(100, 10080, 1783180800)}
    error = {"message": CURLY, "codex_error_info": "usage_limit_exceeded"}
    assert rollout({"type": "token_count", "rate_limits": quota}, {"type": "task_complete", "error": error}) == [
        (LimitKind.USAGE, "seven_day", datetime(2026, 7, 4, 16, tzinfo=UTC))
    ]


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        ({"message": CURLY, "codex_error_info": "usage_limit_exceeded"}, [LimitKind.USAGE]),
        ({"message": "Quota exceeded. …", "codex_error_info": "usage_limit_exceeded"}, [LimitKind.BILLING]),
        ({"message": "new words", "codex_error_info": "usage_limit_exceeded"}, [LimitKind.USAGE]),
        (
            {"message": "x", "codex_error_info": {"response_too_many_failed_attempts": {"http_status_code": 429}}},
            [LimitKind.RATE],
        ),
        ({"message": "x", "codex_error_info": {"new_kind": {"http_status_code": 529}}}, [LimitKind.OVERLOAD]),
        ({"message": CURLY}, [LimitKind.USAGE]),
        ({"message": CURLY, "codex_error_info": "unauthorized"}, []),
        ({"message": 7, "codex_error_info": ["?"]}, []),
    ],
)
def test_codex_rollout(error: dict[str, object], wanted: list[LimitKind]) -> None:
    assert [kind for kind, _, _ in rollout({"type": "task_complete", "error": error})] == wanted


def test_a_full_window_alone_is_no_refusal() -> None:
    assert rollout({"type": "token_count", "rate_limits": {"primary": window(100, 300, 1783173600)}}) == []
