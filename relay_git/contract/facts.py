"""What happened, as git and the transcript show it: files, code in flight, checks, evidence, the summary.

Promise: nothing here is anybody's opinion, save `hypotheses`, which says whose it is.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterator

from relay_git.contract.canonical import JsonObject
from relay_git.contract.pause import PauseFacts
from relay_git.contract.proof import shows_nothing
from relay_git.contract.quote import clip
from relay_git.contract.said import later_prompts
from relay_git.git.work import WorkFacts
from relay_git.session import Command, LimitNotice, SessionRecord

LISTED_EVIDENCE = 40
LISTED_OUTPUTS = 8
MOST_SOURCE = 200
LISTED_UNMERGED = 20


def manifest(work: WorkFacts) -> list[JsonObject]:
    """The changed files with the SHA-256 of the bytes that git stores."""
    return [path_of(file.path) | {"status": file.status.value, "sha256": file.sha256} for file in work.files]


def in_flight(work: WorkFacts) -> list[JsonObject]:
    """The diffs since the last commit."""
    return [path_of(hunk.path) | {"snippet": hunk.text, "truncated": hunk.truncated} for hunk in work.hunks]


def path_of(path: bytes) -> JsonObject:
    """The members that name a path: readable, and where it is not UTF-8 also exact."""
    try:
        return {"path": path.decode("utf-8")}
    except UnicodeDecodeError:
        exact = base64.b64encode(path).decode("ascii")
        return {"path": path.decode("utf-8", "backslashreplace"), "pathBase64": exact}


def checks(record: SessionRecord, leg: int, before: JsonObject | None) -> list[JsonObject]:
    """The latest run of each command that has an exit code, and the leg of that run, the newest first.

    Of the legs before, those stay that could show something; what they showed may not hold any more.
    """
    latest: dict[str, JsonObject] = {}
    for command in reversed(record.commands):
        if command.exit_code is not None and command.command not in latest:
            latest[command.command] = {
                "command": command.command,
                "exitCode": command.exit_code,
                "outputSha256": command.output_sha256,
                "leg": leg,
            }
    for check in (before or {}).get("checks", ()):
        if not shows_nothing(check["command"]):
            latest.setdefault(check["command"], {"leg": (before or {})["leg"]} | check)
    return list(latest.values())


def facts(record: SessionRecord, work: WorkFacts, pause: PauseFacts) -> list[JsonObject]:
    """What can be counted or was reported by the agent's own channel."""
    found = [_fact(_count(len(work.commits), "commit") + " since the base", "git")]
    kinds = Counter(file.status.value for file in work.files)
    told = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    found.append(
        _fact(f"{_count(len(work.files), 'file')} changed since the base" + (f": {told}" if told else ""), "git")
    )
    if work.snapshot_commit != work.head_commit:
        text = f"the snapshot holds work that the agent had not committed, on top of {work.head_commit[:12]}"
        found.append(_fact(text, "git"))
    if work.operation:
        found.append(_fact(_half_done(work), "git"))
    ended = "the agent ended its turn" if record.turn_complete else pause.unfinished
    found.append(_fact(ended, "transcript"))
    return [*found, *(_fact(_limit(notice), "the agent's own channel") for notice in record.limits[-3:])]


def _half_done(work: WorkFacts) -> str:
    text = f"a {work.operation} stands half-done in the worktree"
    names = [str(path_of(path)["path"]) for path in work.unmerged[:LISTED_UNMERGED]]
    more = f" and {len(work.unmerged) - len(names)} more" if len(work.unmerged) > len(names) else ""
    return f"{text}; not merged yet: {', '.join(names)}{more}" if names else text


def hypotheses(record: SessionRecord) -> list[JsonObject]:
    """The agent's last words: what it believed, not what is known."""
    return [_fact(record.last_text, "the agent's last message")] if record.last_text.strip() else []


def evidence(record: SessionRecord, work: WorkFacts, task: str, before: JsonObject | None) -> list[JsonObject]:
    """Quoted pieces by kind: later prompts of the user, limits, open calls, ends of outputs, commits; from e1."""
    pieces = list(dict.fromkeys([*_pieces(record, work, task), *_prompts_before(before)]))
    return [
        {"id": f"e{number}", "kind": kind, "source": source, "excerpt": text}
        for number, (kind, source, text) in enumerate(pieces, 1)
    ]


def _pieces(record: SessionRecord, work: WorkFacts, task: str) -> Iterator[tuple[str, str, str]]:
    for prompt, source in later_prompts(record, task)[:LISTED_EVIDENCE]:
        yield "prompt", source, prompt
    for notice in record.limits[-3:]:
        yield "limit", "the agent's own channel", notice.evidence
    for call in record.pending_calls[-5:]:
        yield "open-call", "transcript: call without a result", str(call)
    for command in _telling(record)[:LISTED_OUTPUTS]:
        ended = f"ended with {command.exit_code}: {command.command}"
        yield "command", clip(ended, MOST_SOURCE), command.excerpt
    for commit in work.commits[: -LISTED_EVIDENCE - 1 : -1]:
        yield "commit", commit.oid, commit.subject


def _telling(record: SessionRecord) -> list[Command]:
    """The latest run of each command whose end shows something and that printed anything, the newest first."""
    latest = {command.command: command for command in record.commands if not shows_nothing(command.command)}
    found = [command for command in latest.values() if command.exit_code is not None and command.excerpt.strip()]
    return found[::-1]


def _prompts_before(before: JsonObject | None) -> Iterator[tuple[str, str, str]]:
    for item in (before or {}).get("evidence", ()):
        if item["kind"] == "prompt":
            yield "prompt", item["source"], item["excerpt"]


def _limit(notice: LimitNotice) -> str:
    window = f", window {notice.window}" if notice.window else ""
    resets = f", resets at {notice.resets_at.isoformat()}" if notice.resets_at else ""
    return f"limit of kind {notice.kind.value}{window}{resets}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _fact(text: str, source: str) -> JsonObject:
    return {"text": text, "source": source}
