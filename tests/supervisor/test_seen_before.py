"""What detection keeps of a transcript is what it read."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from relay_git.session import LimitKind, LimitNotice, PlanItem, PlanStatus, QuotaReading, SessionRecord, ToolCall, Usage
from relay_git.supervisor.seen_before import SeenBefore

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    record = SessionRecord(
        "codex",
        native_id="a",
        prompts=("do it",),
        plan=(PlanItem("one", PlanStatus.COMPLETED),),
        calls=(ToolCall("1", "shell", "ls", ok=True),),
        usage=Usage(1, 2, 3, 4),
        limits=(LimitNotice(LimitKind.USAGE, "no", "five_hour", NOW),),
        quota=(
            QuotaReading("five_hour", 0.97, NOW, NOW, 300, "Codex's rollout"),
            QuotaReading("credits", 0.5, NOW),
        ),
        started=NOW,
    )
    key = ("codex", tmp_path / "rollout.jsonl", "a")
    first = SeenBefore(tmp_path / "detect.json")
    first.put(key, (1, 2.0), record)
    first.keep([key])
    assert SeenBefore(tmp_path / "detect.json").get(key, (1, 2.0)) == record
