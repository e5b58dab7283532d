"""The page for a person: the same contract, as what is asked of them, why now, what it risks and how to answer.

Promise: rendered from one verified contract and nothing else, bounded, quoted by the same rules as the brief; what is
not in the contract is said to be unknown, never made up.
"""

from __future__ import annotations

from relay_git.contract.canonical import JsonObject
from relay_git.contract.quote import block, code, inline, word

TITLE = "# git relay: a decision is waiting for you"
_LISTED = 8
_RUN_BEFORE = "Already run with success: "


def page(contract: JsonObject) -> str:
    """The page of a verified contract."""
    session = word(contract["sessionId"])
    sections = (
        ("What is asked of you", _asked(contract)),
        ("Why now", _why(contract)),
        ("Deadline", _deadline(contract)),
        ("Risk, and what can be taken back", _risk(contract)),
        ("What git relay noticed", _noticed(contract)),
        ("Options", _options(session, len(contract["summary"]["openQuestions"]))),
        ("What the task is", block(contract["taskGoal"], limit=2000)),
        ("Evidence", _evidence(contract)),
    )
    head = [TITLE, "", f"Contract: {word(contract['contractId'])}", f"Session: {session}", ""]
    body = [line for title, lines in sections for line in (f"## {title}", "", *lines, "")]
    return "\n".join([*head, *body]).rstrip("\n") + "\n"


def _asked(contract: JsonObject) -> list[str]:
    questions = [
        _said(item, "text", f"{number}. ") for number, item in enumerate(contract["summary"]["openQuestions"], 1)
    ]
    step = (
        f"- Say whether this is next: {inline(contract['nextAction'])} (source: {inline(contract['nextActionSource'])})"
    )
    return [*_some(questions), step]


def _why(contract: JsonObject) -> list[str]:
    pause, sender = contract["pause"], contract["from"]
    who = ", ".join(inline(sender[name], 80) for name in ("agent", "account", "model") if sender[name])
    reason = f"- {who or 'The agent'} was stopped: {inline(pause['reason'], 200)}"
    return [reason, *([f"- {inline(pause['detail'], 400)}"] if pause["detail"] else [])]


def _deadline(contract: JsonObject) -> list[str]:
    resets = [item for item in contract["summary"]["facts"] if "resets at" in item["text"]]
    if not resets:
        return ["- None is known; the session waits until you answer."]
    return [f"- None for you, but a quota comes back: {_said(item, 'text')[2:]}" for item in resets[-2:]]


def _risk(contract: JsonObject) -> list[str]:
    done = [item["text"] for item in contract["doNotRedo"] if item["text"].startswith(_RUN_BEFORE)]
    outside = [f"- Cannot be taken back by git: {code(text.removeprefix(_RUN_BEFORE))}" for text in done]
    half = [_said(item, "text") for item in contract["summary"]["facts"] if "stands half-done" in item["text"]]
    files = len(contract["fileManifest"])
    kept = (
        f"- {files} changed files lie on {code('relay/' + contract['sessionId'])} alone; your branches are as they were"
    )
    return [
        kept,
        *_some(outside),
        *half,
        *(_said(item, "rule", "Keep: ") for item in contract["constraints"][:_LISTED]),
    ]


def _noticed(contract: JsonObject) -> list[str]:
    """Keys in what was committed come first there."""
    return _some([f"- {inline(text, 300)}" for text in contract["losses"]]) or ["- nothing"]


def _options(session: str, questions: int) -> list[str]:
    one_by_one = f'- Answer one of several questions: `git relay answer {session} "..." --question NUMBER`'
    return [
        f'- Answer, and let the next agent go on by it: `git relay answer {session} "..." --to AGENT`',
        *([one_by_one] if questions > 1 else []),
        f'- Make it a rule for all that follow: `git relay answer {session} --rule "..."`',
        f"- See all that is known: `git relay show {session}`; bring the changes to you: `git relay land {session}`",
        f"- Leave it: the session rests. Give it up: `git relay drop {session} --force`",
    ]


def _evidence(contract: JsonObject) -> list[str]:
    checks = [f"- exit {word(str(item['exitCode']))}: {code(item['command'], 200)}" for item in contract["checks"]]
    pieces = [f"- {word(i['id'])} {word(i['kind'])}: {inline(i['excerpt'], 200)}" for i in contract["evidence"]]
    return [*_some(checks), *_some(pieces)] or ["- none"]


def _said(item: JsonObject, member: str, before: str = "") -> str:
    return f"- {before}{inline(item[member])} (source: {inline(item['source'], 160)})"


def _some(lines: list[str]) -> list[str]:
    more = [f"- and {len(lines) - _LISTED} more, see the contract"] if len(lines) > _LISTED else []
    return [*lines[:_LISTED], *more]
