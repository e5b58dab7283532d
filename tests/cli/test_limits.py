"""`git relay limits explain`: the judgement of limits, for a user who doubts one."""

from __future__ import annotations

import json
import subprocess
import sys

SAID = "You've hit your session limit · resets 11:20am (Europe/Budapest)"


def explain(said: str, *options: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "relay_git", "limits", "explain", *options]
    return subprocess.run(argv, input=said, capture_output=True, text=True, check=False)


def test_a_notice_is_told_with_its_kind_its_window_and_its_end_in_utc() -> None:
    out = explain(SAID, "--tool", "claude-code", "--now", "2026-06-22T07:00:00+02:00", "--json")
    assert json.loads(out.stdout) == {
        "isLimit": True,
        "kind": "usage",
        "resetsAt": "2026-06-22T09:20:00Z",
        "window": "five_hour",
        "evidence": SAID,
        "why": "a line that begins as the tool's own notices do",
    }
    out = explain(SAID, "--now", "2026-06-22T07:00:00+02:00", "--tz", "Europe/Budapest")
    assert "resets: 2026-06-22 11:20:00 CEST, 2026-06-22 09:20:00Z" in out.stdout


def test_headers_are_judged_with_their_status() -> None:
    out = explain('{"Retry-After": "30"}', "--source", "header", "--status", "529", "--now", "2026-01-01", "--json")
    assert json.loads(out.stdout)["kind"] == "overload"


def test_what_is_no_limit_is_told_with_the_reason() -> None:
    out = explain("all tests passed")
    assert (out.returncode, out.stdout) == (0, "no limit: no line begins as a notice does\n")


def test_options_that_mean_nothing_are_refused_with_a_hint() -> None:
    for options in (["--tz", "Mars/Base"], ["--now", "soon"], ["--source", "smoke"], ["--source", "header"]):
        out = explain("x", *options)
        assert (out.returncode, out.stdout) == (2, "")
        assert "hint: " in out.stderr
