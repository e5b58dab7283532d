"""What a task asks for in lines of its own: the commands by which it is accepted, and the form of the result.

    Acceptance: `npm test`, `npm run lint`          Done when:
    Output: a table of the findings, in docs/        - `make check` is green

Promise: only lines that begin with such a word count, and of an acceptance only what is plainly a command: a code span,
or a line that begins with `$` or with the name of a known runner. What else it says stays in the goal, where it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_HEAD = r"^[ \t]{0,8}(?:[-*+][ \t]+|#{1,6}[ \t]+)?[*_]{0,2}(?:%s)[*_]{0,2}[ \t]*:[*_]{0,2}[ \t]*(?P<rest>.*)$"
_ACCEPTED = re.compile(
    _HEAD % r"acceptance(?:[ \t]+(?:criteria|criterion|commands?|tests?|checks?))?|accept(?:ed)?[ \t]+(?:when|if)"
    r"|done[ \t]+when|definition[ \t]+of[ \t]+done|verify[ \t]+(?:with|by)|verification",
    re.IGNORECASE,
)
_FORM = re.compile(
    _HEAD % r"(?:expected[ \t]+)?(?:output|result|deliverables?)(?:[ \t]+(?:format|form))?|output[ \t]+contract"
    r"|form[ \t]+of[ \t]+the[ \t]+result",
    re.IGNORECASE,
)
_ITEM = re.compile(r"^[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+(?P<rest>.*)$|^[ \t]{2,}(?P<more>\S.*)$")
_SPAN = re.compile(r"(`{1,3})(?!`)([^`\n]{1,1000})\1(?!`)")
_RUNNER = re.compile(
    r"(?:npm|npx|pnpm|yarn|bun|node|deno|make|just|pytest|tox|nox|uv|poetry|python3?|ruff|mypy|cargo|go|mvn|gradle|bazel|dotnet"
    r"|bundle|rake|rspec|mix|swift|xcodebuild|ctest|cmake|docker|tsc|eslint|jest|vitest|php|composer|phpunit|sh|bash|\.{1,2}/\S+)"
    r"(?:[ \t]+[\w./:=@,+*{}\[\]'\"-]+){0,12}$"
)
_WORDS = re.compile(
    r"[ \t](?:is|are|must|should|pass(?:es)?|succeeds?|exits?|works?|returns?|has|have|and|with(?:out)?)\b"
)


def acceptance(task: str) -> tuple[str, ...]:
    """The commands that must succeed, in order, each once."""
    found = (command for part in _parts(task, _ACCEPTED) for command in _commands(part))
    return tuple(dict.fromkeys(found))


def form(task: str) -> str:
    """What the task says of the form of its result, line by line; empty where it says nothing."""
    return "\n".join(part.strip() for part in _parts(task, _FORM) if part.strip())


def _parts(task: str, head: re.Pattern[str]) -> Iterator[str]:
    """What follows such a word in its line, and the list items or indented lines right below."""
    below = False
    for line in task.splitlines():
        if found := head.match(line):
            below = True
            yield found["rest"]
        elif below and (item := _ITEM.match(line)) and not (_ACCEPTED.match(line) or _FORM.match(line)):
            yield item["rest"] if item["rest"] is not None else item["more"]
        else:
            below = False


def _commands(part: str) -> Iterator[str]:
    spans = [found[2].strip() for found in _SPAN.finditer(part)]
    if spans:
        yield from (span for span in spans if span)
        return
    line = part.strip().rstrip(".;,")
    if line.startswith("$ "):
        yield line[2:].strip()
    elif _RUNNER.match(line) and not _WORDS.search(line):
        yield line
