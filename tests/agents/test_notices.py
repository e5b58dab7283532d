"""What is a limit, of which kind and until when, and what only looks like one."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from relay_git.agents.limits import Channel, judge
from relay_git.agents.moments import Moment
from relay_git.session import LimitNotice
from tests.agents.recordings import DATA

NOW = datetime(2026, 7, 1, 10, 0, tzinfo=UTC)
REPORTED = [json.loads(line) for line in (DATA / "limits" / "reported.jsonl").read_text().splitlines()]


def verdict(case: dict[str, Any]) -> LimitNotice | None:
    moment = Moment(datetime.fromisoformat(case["now"]), ZoneInfo(case["local_tz"]))
    said = case.get("headers") or case["text"]
    return judge(case["tool"], Channel(case["source"]), said, moment, case.get("status")).notice


@pytest.mark.parametrize("case", REPORTED, ids=[case["id"] for case in REPORTED])
def test_a_reported_text_is_judged_as_it_should_be(case: dict[str, Any]) -> None:
    notice, wanted = verdict(case), case["expected"]
    assert (notice is not None, notice.kind if notice else "none") == (wanted["is_limit"], wanted["kind"])
    until = notice.resets_at if notice else None
    if wanted["resets_at"] is None or (until is None and wanted.get("resets_at_may_be_null")):
        assert until is None
    else:
        assert until is not None
        assert abs(until - datetime.fromisoformat(wanted["resets_at"])) <= timedelta(seconds=2)
