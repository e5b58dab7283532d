"""The one question about limits: what does this say, which a tool printed, wrote to its transcript or got as headers?

Promise: only the tool's own channel is believed. Of a transcript and of structured output the records that the tool
writes for errors count, by the rules by which its adapter reads them; of plain output the lines that it prints for
them. Of several notices the last decides; a moment that a field names outranks the minute in a sentence. Any input
gives a verdict and no exception.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from pathlib import Path

from relay_git.agents import AGENTS, TOOLS, headers, jsonl, printed
from relay_git.agents.agent import Limited, Reader, Retrying
from relay_git.agents.claude_reader import ClaudeReader
from relay_git.agents.codex_reader import CodexReader
from relay_git.agents.copilot_reader import CopilotReader
from relay_git.agents.moments import Moment
from relay_git.agents.opencode_limits import error_notice
from relay_git.agents.qwen_reader import QwenReader
from relay_git.session import LimitNotice

_READERS: dict[str, Callable[[Moment], Reader]] = {
    "claude": lambda moment: ClaudeReader(Path(), moment=moment),
    "codex": lambda moment: CodexReader(Path(), moment),
    "copilot": lambda moment: CopilotReader(Path(), moment),
    "qwen": lambda moment: QwenReader(Path(), moment),
}


class Channel(StrEnum):
    """Where something was said."""

    STDOUT = "stdout"
    STDERR = "stderr"
    TRANSCRIPT = "transcript"
    HEADER = "header"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The limit that was told of, or None, and in words by what that was decided."""

    notice: LimitNotice | None
    why: str


def judge(
    tool: str, channel: Channel, said: str | Mapping[str, object], moment: Moment, status: int | None = None
) -> Verdict:
    """Say whether a tool's text, records or headers tell of a limit; a tool that is not known is a service."""
    tool = _our_name(tool)
    if isinstance(said, Mapping):
        found = headers.notice(said, status, moment.at)
        return Verdict(found, "the headers of an answer" if found else "no header tells of a window that is used up")
    match channel:
        case Channel.TRANSCRIPT:
            return _of_transcript(tool, said, moment)
        case Channel.HEADER:
            return judge(tool, channel, jsonl.parse_text(said), moment, status)
        case Channel.STDOUT | Channel.STDERR:
            return _of_output(tool, said, moment, stderr=channel is Channel.STDERR)


def _our_name(tool: str) -> str:
    wanted = tool.strip().lower()
    return next((known.name for known in TOOLS.values() if wanted in (known.name, *known.aliases)), wanted)


def _of_transcript(tool: str, said: str, moment: Moment) -> Verdict:
    if tool == "aider":  # its transcript is text, in which it marks what it says itself
        own = "\n".join(line[2:] for line in said.split("\n") if line.startswith("> "))
        return _of_output(tool, own, moment, stderr=True)
    lines = said.encode("utf-8", "replace").split(b"\n")
    found = _newest(tool, lines, moment)
    return Verdict(
        found, "a record that the tool writes for errors" if found else "none of the records is one for that"
    )


def _newest(tool: str, lines: list[bytes], moment: Moment) -> LimitNotice | None:
    """The last limit in a transcript; where the tool is not named, of the first whose records tell of one."""
    for name in [tool] if tool else _READERS:
        if name not in _READERS:
            return _last(notice for line in lines for notice in _of_message(name, line, moment))
        reader = _READERS[name](moment)
        for line in lines:
            reader.feed(line)
        if limits := reader.record().limits:
            return limits[-1]
    return None


def _of_message(tool: str, line: bytes, moment: Moment) -> Iterator[LimitNotice]:
    """A message of opencode's database, or a record of a tool that writes the same to stdout."""
    record = jsonl.parse(line) or {}
    error = jsonl.record(record.get("error")) if tool == "opencode" and "type" not in record else {}
    done = jsonl.epoch_time(jsonl.record(record.get("time")).get("completed"))
    if error and (notice := error_notice(error, moment.of(done))):
        yield notice
    yield from _heard(tool, line, moment)


def _of_output(tool: str, said: str, moment: Moment, *, stderr: bool) -> Verdict:
    """Structured output by its records, what is no record of the tool's by its lines."""
    plain, told, last = [], False, None
    for line in said.split("\n"):
        record = None if stderr or tool not in AGENTS else jsonl.parse(line.encode("utf-8", "replace"))
        if record is None or "type" not in record:
            plain.append(line)
            continue
        told = True
        for notice in _heard(tool, line.encode("utf-8", "replace"), moment):
            last = _later(last, notice)
    if last is not None:
        return Verdict(last, "a record that the tool prints for errors")
    found = printed.notice("\n".join(plain), tool, moment, stderr=stderr)
    if found is not None:
        return Verdict(found, "a line that begins as the tool's own notices do")
    return Verdict(None, "none of its records is one for an error" if told else "no line begins as a notice does")


def _heard(tool: str, line: bytes, moment: Moment) -> Iterator[LimitNotice]:
    if tool in AGENTS:
        for heard in AGENTS[tool].hear(line, moment):
            if isinstance(heard, Limited) or (isinstance(heard, Retrying) and heard.refused):
                yield heard.notice


def _last(notices: Iterable[LimitNotice]) -> LimitNotice | None:
    last = None
    for notice in notices:
        last = _later(last, notice)
    return last


def _later(known: LimitNotice | None, new: LimitNotice) -> LimitNotice:
    """The later notice; where it is of the same refusal, with the moment that an earlier record names more exactly."""
    if known is None or known.kind is not new.kind or known.resets_at is None:
        return new
    if new.resets_at is None or timedelta() <= known.resets_at - new.resets_at < timedelta(minutes=1):
        return replace(new, resets_at=known.resets_at, window=known.window or new.window)
    return new
