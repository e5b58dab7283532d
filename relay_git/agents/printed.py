"""Which lines of a tool's plain output are notices of its own, and what they say.

Promise: a notice stands at the start of a line, once colours, bullets, frames and the mark of an error are off it, and
it says that something was refused or has run out. What is quoted is none: diffs, code, listings, tables, prompts of the
human, what a command printed below its own headline, prose. Work is linear in the text and bounded; nothing raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from relay_git.agents import jsonl
from relay_git.agents.moments import Moment
from relay_git.agents.refusal import refusal
from relay_git.session import LimitNotice

_MOST_CHARS = 262_144
_MOST_LINE = 2_000
_MORE_LINES = 4  # that a notice may go on over
_MOST_MARKS = 4  # before the words of an error

_ANSI = re.compile(r"\x1b(?:\[[0-?]{0,32}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,512}(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe0f\ufeff]")
# Marks before a notice: bullets, the tools' own marks of an error, emoji, the frame of a box.
_BULLETS, _ALARMS = "\u2022\u25cf\u23fa\u2219\u00b7\u2139", "\u23bf\u25a0\u2717\u2715\u2718\u274c\u26a0\u26a1"
_MARKS = re.compile(f"[ \t{_BULLETS}{_ALARMS}\u2500-\u257f\u2580-\u259f\U0001f300-\U0001faff]{{1,16}}")
_LOUD = re.compile(f"[{_ALARMS}\U0001f590]")
_FRAME = re.compile("[ \t]{0,200}[\u2502\u2503\u2551|]?[ \t]{0,200}$")
_CELLS = re.compile("[\u2502\u2503\u2551]|\\s\\|\\s")
# What shows something else: a diff, a fence, what came of a tool call in a TUI, what Codex ran, a stack trace.
_DIFF = re.compile(r"diff --git |--- |@@ -\d")
_FENCE = re.compile(r"\s{0,8}(?:```|~~~)")
_CALL = re.compile("[ \t]{0,8}[\u25cf\u23fa\u2022\u25cb][ \t]{0,2}(?:[A-Z][A-Za-z]{1,24}\\(|Ran |Read |Explored)")
_BELOW = re.compile("[ \t]{0,8}[\u23bf\u2514\u2570]|[ \t]{4}")
_RAN = re.compile(r"\s?(?:succeeded|exited -?\d+) in [\d.]+m?s:")
_STACK = re.compile(r"\s{1,16}at |\s{0,16}[{}]")
_TRACEBACK = "Traceback (most recent call last)"

# What a tool, a library of a service or a service puts before the words of an error.
_CLASS = r"(?:RateLimit|API|Quota|Overloaded|InternalServer|ServiceUnavailable|UsageLimit)"
_ERROR = re.compile(
    r"(?:\[?API Error\b|\[?(?:upstream |stream |fatal |unexpected )?error\b(?=\s?:|\s(?:\(?\d|code))"
    r"|error when talking to [\w ]{1,30} API\b[^:]{0,20}.{0,200}?(?=\b\w{1,40}Error:)"
    r"|(?:execution|request|model call) failed"
    r"|stream disconnected before completion|litellm\.\w{1,30}(?:Error|Exception)\b"
    rf"|(?:\w{{0,30}}\.)?\w{{0,20}}{_CLASS}\w{{0,20}}(?:Error|Exception)\b|attempt \d{{1,4}} failed"
    r"|retrying in \S{1,12} \(attempt \d+/\d+\))(?:\s-\s|[:\s]){0,3}",
    re.I,
)
_STATUS = re.compile(
    r"\(?(?:(?:unexpected )?status(?: code)?:? |error code:? |HTTP )?(?P<status>400|402|403|429|503|529)\b\)?"
    r"(?:[:\s-]{1,4}|(?=\{)|$)",
    re.I,
)
_FIELD = re.compile(r"\"message\"\s?:\s?\"")
# On stdout stands what the agent says and does, too: there only the words that each tool uses for its own errors.
_ON_STDOUT = {
    "claude": re.compile(r"\[?API Error\b"),
    "codex": re.compile(r"(?:stream error|ERROR)\b"),
    "gemini": re.compile(r"\[API Error\b"),
    "qwen": re.compile(r"\[API Error\b"),
    "copilot": re.compile(r"(?:Execution|Model call) failed"),
    "opencode": re.compile(r"Error\b"),
    "cline": re.compile(r"(?!)"),
    "continue": re.compile(r"(?!)"),
    "demo": re.compile(r"(?!)"),
    "aider": re.compile(r"litellm\.\w{1,40}(?:Error|Exception)\b"),
}
_OTHERS = re.compile(r"(?:\[?API Error|[Uu]pstream error|[A-Z]\w{0,30}Error|Error|HTTP 4|[45]\d\d )")

# The sentences with which the tools say it themselves; a word more or less in them makes prose of it.
_PLAN = (
    r"(?:(?:your|the|claude|ai|pro|max|(?:opus|sonnet|haiku)(?: \d(?:\.\d)?)?|usage|session|hourly|daily"
    r"|weekly|monthly|free|free-tier|plan|account|spend|premium|request|api|token|model|\d{1,3}-(?:hour|day)) ){0,5}"
)
_NOUN = r"[\w .-]{0,40}?(?:limits?|quota|capacity|allowance|requests|credits)"
_END = (
    "(?=\\s{0,3}(?:$|[.!,|\u00b7\u2219\u2022:;(\u2014\u2013]|- )"
    r"|\s(?:for \d|for [A-Z]|and resets|resets|until|on (?:your|this) ))"
)
_SENTENCES = re.compile(
    "(?:You['\u2019]ve (?:hit|reached|exceeded|exhausted|used up|used (?:all|100%)(?: of)?) (?:your|the|all your) "
    f"{_NOUN}{_END}|You (?:have|are) (?:reached|exhausted|exceeded|hit|used up) (?:your|the) {_NOUN}{_END}"
    "|You(?: are|['\u2019]re) out of (?:extra usage|usage|credits|requests)|You have no quota"
    rf"|{_PLAN}usage limit (?:has been )?reached(?![,:]){_END}"
    rf"|{_PLAN}limit (?:has been )?reached(?=\s{{0,3}}[·∙•|]|[.!]?$|\. \w[^.]{{0,60}}\breset)"
    r"|Credit balance (?:is )?too low|Your credit balance is too low|Your workspace is out of credits"
    r"|Free usage exceeded|Insufficient balance\b[.!]|Quota exceeded\. (?:Check|Upgrade|Please)"
    "|Sorry, you(?:['\u2019]ve| have) (?:hit|reached|exceeded|been rate)"
    r"|Selected model is at capacity|exceeded retry limit, last status: (?:429|503|529))",
    re.I,
)
# With the mark of an error before them, or on stderr, these count as well.
_WITH_A_MARK = re.compile(
    r"(?:rate limit (?:reached|exceeded)|too many requests|resource has been exhausted|quota exceeded|overloaded\b"
    r"|(?:daily |weekly |monthly )?quota (?:limit )?(?:reached|exceeded|exhausted)|no capacity available"
    r"|the (?:model|service|server) is overloaded|server is temporarily limiting)",
    re.I,
)
# Warnings and offers begin like notices.
_NO_NOTICE = re.compile(
    r".{0,80}\b(?:used \d{1,2}% of|approaching|close to|nearing)\b|.{0,200}\bno (?:usage )?limit reached", re.I
)


@dataclass(frozen=True, slots=True)
class Printed:
    """One notice: the line that begins it, with what it goes on over, and how it is to be taken."""

    said: str
    status: int | None


def notice(said: str, tool: str, moment: Moment, *, stderr: bool) -> LimitNotice | None:
    """The last limit that this output tells of; on stderr a tool speaks for itself, on stdout for its agent, too."""
    last = None
    for printed in _notices(said[-_MOST_CHARS:], tool, stderr):
        last = refusal(printed.said, status=printed.status, body=printed.said, moment=moment) or last
    return last


def _notices(said: str, tool: str, stderr: bool) -> Iterator[Printed]:
    lines = [_CONTROL.sub("", line)[:_MOST_LINE] for line in _ANSI.sub("", said).replace("\r\n", "\n").split("\n")]
    library = tool == "aider" or (stderr and tool not in _ON_STDOUT)  # whose own errors may be a stack trace
    quoted = list(_quoted(lines, library=library))
    begins = [None if quote else _begin(line, tool, stderr) for line, quote in zip(lines, quoted, strict=True)]
    for number, begun in enumerate(begins):
        if begun is None:
            continue
        more = []
        for line, other in zip(lines[number + 1 :][:_MORE_LINES], begins[number + 1 :], strict=False):
            if other is not None or not line.strip() or _STACK.match(line):
                break
            more.append(_bare(line)[0])
        yield Printed("\n".join([begun.said, *more]), begun.status)


def _quoted(lines: list[str], *, library: bool) -> Iterator[bool]:
    """Of each line whether it shows something else: a diff, a fence, what a call returned, a stack trace."""
    diff = fence = call = ran = trace = False
    for line in lines:
        if _FENCE.match(line):
            fence = not fence
        diff = bool(_DIFF.match(line)) or (diff and line[:1] in (" ", "+", "-", "\\", "@", ""))
        call = bool(_CALL.match(line)) or (call and bool(_BELOW.match(line)))
        ran = bool(_RAN.match(line)) or (ran and bool(line.strip()))
        yield diff or fence or call or ran or trace
        trace = not library and (_TRACEBACK in line or (trace and line[:1] in (" ", "\t", "")))


def _bare(line: str) -> tuple[str, str]:
    """A line without the frame, the bullets and the marks around it, and those marks."""
    line = _FRAME.sub("", line)
    marks = _MARKS.match(line)
    return (line[marks.end() :], marks[0]) if marks else (line, "")


def _begin(line: str, tool: str, stderr: bool) -> Printed | None:
    """The notice that begins on this line."""
    said, marks = _bare(line)
    if not said or _NO_NOTICE.match(said) or (_CELLS.search(said) and "reached|" not in said):
        return None
    loud = stderr or bool(_LOUD.search(marks))
    if loud and (field := _FIELD.match(said)):
        return Printed(said[field.end() :], None)
    error = stderr or _ON_STDOUT.get(tool, _OTHERS).match(said) is not None
    if error or loud:
        rest, status = _after_the_mark(said, error=error)
        if rest != said:
            return Printed(said, status) if refusal(said, status=status, body=said) else None
    if (stderr or tool not in _ON_STDOUT) and _is_body(said):
        return Printed(said, None)
    return Printed(said, None) if _SENTENCES.match(said) or (loud and _WITH_A_MARK.match(said)) else None


def _after_the_mark(said: str, *, error: bool) -> tuple[str, int | None]:
    """What follows the words and numbers that come before an error's own, and the status among them.

    A number alone is a status only where the rest is a refusal by itself: it may count anything.
    """
    rest, status, named = said, None, False
    for _ in range(_MOST_MARKS):
        if found := _STATUS.match(rest):
            status, named = int(found["status"]), named or not found[0].lstrip("(")[:1].isdigit()
        elif error and (found := _ERROR.match(rest)):
            named = True
        else:
            break
        rest = rest[found.end() :]
    if not rest.strip():
        named = named and said[:1].upper() == "E"  # `Error: 429`, and not a field of something that is dumped
    return (rest, status) if named or (rest != said and refusal(rest, body=rest)) else (said, None)


def _is_body(said: str) -> bool:
    """Whether the line is the JSON in which a service tells of an error."""
    record = jsonl.parse(said.encode("utf-8", "replace")) if said.startswith("{") else None
    return (
        record is not None
        and ("error" in record or record.get("type") == "error")
        and refusal(said, body=said) is not None
    )
