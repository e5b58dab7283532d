"""What of a prompt is pasted: output of programs, code, and what others wrote.

Promise: what comes back is as long as what went in, with everything that is not plainly the human's own words blanked
out. Where that is unsure it is blanked: the prompt is quoted as evidence all the same, and a stranger's "you must" is
no rule of the human's.
"""

from __future__ import annotations

import re

_JUDGED = 1000  # characters of a line that are looked at

_MACHINE = re.compile(
    r"""\s*(?:
    Traceback\ \(most | File\ " | at\ [\w$.<>\ ]+\ ?\( | at\ \S+:\d+ | Caused\ by: | During\ handling | ={3,} | _{5,}
    | (?:npm|yarn|pnpm|pip|cargo|make(?:\[\d+\])?|gcc|g\+\+|ld|node|deno|bun|sh|bash|zsh|git|go|tsc|eslint)
      (?::\s | \ ERR! | \ error\b | \ warn\b | \ WARN\b)
    | (?:error|fatal|remote|panic|err!)(?:\[\w+\])?:\s | (?:error|warning)\[\w+\] | ={1}\ (?:note|help):
    | \[?\d{4}-\d\d-\d\d[T\ ]\d\d:\d\d | \d{4}[-/]\d\d[-/]\d\d\s+\[?[A-Z]{4,} | \[?\d\d:\d\d:\d\d\b
    | \w{3}\ +\d+\ \d\d:\d\d:\d\d
    | E\ {2,}\S | >>>\ | \$\ \S | PS\ [A-Z]:\\ | \+{3}\  | -{3}\ a/ | @@\ | diff\ --git\b | -->\ | \d+\ *\|\  | \|\
    | \^+
    | \S+\.\w{1,5}(?::\d+:\d+\b | :\d+:\s | \(\d+,\d+\)) | \d+:\d+\s+(?:error|warning)\b
    | [✓✔✖✗×●❯⨯]\s | not\ ok\ \d | ok\ \d+\ -
    | // | /\* | \*/ | \#include\b | "[^"\n]{1,80}"\s*: | [}\])]+[;,]?\s*$ | </?\w[^>]*>\s*$
    | (?:import|from|const|let|var|def|class|function|public|private|return|if|for|while|async|export)\b.*[{;:(]\s*$
    )""",
    re.X | re.I,
)
_MACHINE_CASED = re.compile(
    r"\s*(?:\[?(?:INFO|WARN|WARNING|ERROR|DEBUG|TRACE|FATAL|CRITICAL|NOTICE)\b[\]:]?\s|(?:FAILED|PASSED|PASS"
    r"|FAIL)\s+\S+[./:])"
    r"|.*?(?:[a-z](?:Error|Exception)(?:\s*\[[^\]]{1,40}\])?:\s|\berror TS\d+:|\berror\[E\d+\]|\{\s*$|[=(){}].*;\s*$)"
)
# How the human begins again right below a program's lines.
_COMMANDED = re.compile(
    r"(?:(?:and|but|so|also|oh|ok(?:ay)?|anyway|again)\b[\s,]*)*"
    r"(?:do not|don['’]?t|never|please|pls|plz|keep|leave|stop|make sure|hands off)\b",
    re.I,
)
# A line that leads to what a program said; what stands below it is that, unless it is a list.
_SHOWS = re.compile(
    r".*\b(?:logs?|output|errors?|trace(?:back)?|stack(?:trace)?|warnings?|prints?|shows?|says|get|getting|fail\w*"
    r"|crash\w*"
    r"|console|response|ausgabe|fehler\w*|meldung|salida|registro|erreur|sortie)\b[^.!?]{0,40}:\W*$",
    re.I,
)
_LIST = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s")

_PLACE = (
    r"(?:forums?|internet|web|net|web ?(?:site|page)|site|blog\w*|posts?|threads?|articles?|tickets?|issues?"
    r"|e-?mails?|mails?|newsletter"
    r"|slack|discord|teams|chats?|reddit|stack ?overflow|so|hacker ?news|hn|twitter|github|gist|wiki(?:pedia)?|docs?"
    r"|documentation"
    r"|manual|readme|tutorial|chat ?gpt|gpt|copilot|claude|gemini|llm|pull request|pr|review|bug report|customers?"
    r"|users?"
    r"|colleagues?|vendors?|support)"
)
_WHO = (
    rf"(?:he|she|they|it|someone|somebody|(?:the|a|an|one|our|my|this)\s+(?:\w+\s+)?(?:{_PLACE}|guy|man|woman|person"
    rf"|boss|team|page)"
    rf"|{_PLACE})"
)
# What leads to what somebody else wrote; all behind it is that, or what stands between two lines of marks.
_OTHERS = re.compile(
    r"\b(?:sent|gave|showed|told)\s+(?:me|us)\s+(?:this|the following)\b"
    r"|\b(?:found|copied|pasted|received|got|have)\s+(?:this|the following)(?=\s*[:,?]|\s*$)"
    rf"|\b(?:found|copied|pasted|received|got|saw|read)\s+(?:this|that|it|the following|a"
    rf"|an)\b[^.!?:\n]{{0,40}}?\b(?:on|in|at|from|via|by)\s+(?:\w+\s+){{0,2}}?{_PLACE}\b"
    r"|\b(?:found|saw|read)\s+(?:this|the following)\s+online\b"
    rf"|\b{_WHO}\s+(?:said|says?|wrote|writes|suggest\w*|recommend\w*|answer\w*|claim\w*|repl(?:y|ied|ies)|told me"
    rf"|sent(?: me)?(?: this)?)\s*[:,]?\s*(?=:|$)"
    rf"|\b(?:here(?:['’]s|\s+is|\s+are|\s+comes?)|this\s+is|see|below(?:\s+is)?|quoting|quote|according\s+to"
    rf"|from)\b[^.!?:\n]{{0,60}}\b(?:{_PLACE}|message|letter|comment|quote|answer|text)\b[^.!?:\n]{{0,40}}(?=:)"
    r"|^[ \t]{0,8}(?:From|Subject|Sent|Betreff|Von):\s.*$|^On\b.{4,80}\bwrote:\s*$|^-{3,}\s*(?:Original|Forwarded).*$"
    r"|^Begin forwarded message",
    re.I | re.M,
)
_ENDS = re.compile(r"[.:?!](?=\s|$)|\n")
_LINE = re.compile(r"\S.*")
_MARKS = re.compile(r"\s*([-=*_~#]{3,}|`{3,}|\"{3}|'{3})(?:\s*$|(?<=`)\w*$)")
_QUOTED = re.compile(r">.*(?:\n[ \t]*>.*)*|\"[^\"]+\"|“[^”]+”|„[^“”]+[“”]|«[^»]+»")


def blanked(prompt: str) -> str:
    """The prompt with blanks for what is pasted into it."""
    return _without_output(_without_others(prompt))


def _without_others(prompt: str) -> str:
    begin = 0
    while (found := _OTHERS.search(prompt, begin)) and (end := _ENDS.search(prompt, found.end())):
        stop = _end_of_theirs(prompt, end.end())
        prompt = prompt[: end.end()] + _blank(prompt[end.end() : stop]) + prompt[stop:]
        begin = stop
    return prompt


def _end_of_theirs(prompt: str, begin: int) -> int:
    """Where what is marked as a quotation ends; without marks it may go on to the end."""
    first = _LINE.search(prompt, begin)
    if first is None:
        return len(prompt)
    if quoted := _QUOTED.match(prompt, first.start()):
        return quoted.end()
    if marks := _MARKS.match(first[0]):
        again = prompt.find(f"\n{marks[1]}", first.end())
        return again + 1 + len(marks[1]) if again >= 0 else len(prompt)
    return len(prompt)


def _without_output(prompt: str) -> str:
    kept, paragraph, shown = list[str](), list[str](), False
    for line in [*prompt.split("\n"), ""]:
        if line.strip():
            paragraph.append(line)
            continue
        kept += [*_told(paragraph, shown), line]
        # A line of blanks is what others wrote: the line above led to that.
        shown = not line and (_shows(paragraph[-1]) if paragraph else shown)
        paragraph = []
    return "\n".join(kept[:-1])


def _told(lines: list[str], shown: bool) -> list[str]:
    """The lines of a paragraph, without those of a program; `shown` says that the line above it leads to such."""
    marked = [number for number, line in enumerate(lines) if _is_output(line)]
    leads = -1 if shown else next((number for number, line in enumerate(lines) if _shows(line)), len(lines))
    if leads + 1 < len(lines) and not _LIST.match(lines[leads + 1]):
        return [line if number <= leads else _blank(line) for number, line in enumerate(lines)]
    if not marked:
        return lines
    own = (number < marked[0] or (number > marked[-1] and _COMMANDED.match(line)) for number, line in enumerate(lines))
    return [line if mine else _blank(line) for line, mine in zip(lines, own, strict=True)]


def _shows(line: str) -> bool:
    return _SHOWS.match(line[:_JUDGED]) is not None and not _is_output(line)


def _is_output(line: str) -> bool:
    line = line[:_JUDGED]
    return _MACHINE.match(line) is not None or _MACHINE_CASED.match(line) is not None


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)
