"""Aider's history: whose line is whose, in a file where everybody writes Markdown."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from relay_git.agents.agent import Doing
from relay_git.agents.aider import Aider
from relay_git.session import LimitKind, SessionRecord, Usage
from tests.agents.recordings import CASES, DATA

START = (
    "\n# aider chat started at 2026-06-10 09:00:00\n\n> Aider v0.86.2  \n> Model: openai/m with diff edit format  \n"
)
TOKENS = "\n> Tokens: 4.2k sent, 310 received.  \n"
HISTORY = ".aider.chat.history.md"


def read(tmp_path: Path, text: str, native_id: str = "") -> SessionRecord:
    path = tmp_path / HISTORY
    path.write_text(text)
    following = Aider(UTC).follow(path, native_id, tmp_path)
    following.poll()
    return following.record(ended=True)


def test_each_session_of_a_file_is_read_by_itself() -> None:
    path = CASES / "B37/work" / HISTORY
    tool = Aider(ZoneInfo("Europe/Berlin"))
    first, second = tool.sessions(path)
    records = []
    for name in (first, second):
        following = tool.follow(path, name, path.parent)
        following.poll()
        records.append(following.record())
    assert [r.prompts for r in records] == [("add a readme",), ("now a license\nMIT please",)]
    assert [r.files_touched for r in records] == [("README.md",), ("LICENSE",)]
    # The clocks were put forward by an hour in between.
    assert records[1].started == datetime(2026, 3, 29, 1, 10, tzinfo=UTC)


def test_a_history_in_another_zone_has_other_times() -> None:
    path = CASES / "B37/work" / HISTORY
    assert Aider(ZoneInfo("America/New_York")).sessions(path)[0] == "2026-03-29T05:50:10Z"


def test_a_spent_quota_is_a_limit_although_aider_tries_again() -> None:
    path = DATA / "aider/restore-and-quota-killed" / HISTORY
    following = Aider(UTC).follow(path, "", Path("/home/dev/repo"))
    following.poll()
    record = following.record()
    assert (record.prompts, record.open_prompt, record.turn_complete) == (("More",), "More", False)
    assert [limit.kind for limit in record.limits] == [LimitKind.BILLING]


ERROR = "> litellm.RateLimitError: RateLimitError: OpenAIException - Rate limit reached for requests.  \n"
AGAIN = "> The API provider has rate limited you. Try again later or check your quotas.  \n"


@pytest.mark.parametrize(
    ("after", "limits"),
    [
        (f"{ERROR}{AGAIN}> Retrying in 0.2 seconds...  \n\nDone.\n{TOKENS}", []),
        (f"{ERROR}{AGAIN}> Retrying in 0.2 seconds...  \n", []),
        (f"{ERROR}{AGAIN}> Retrying in 32.0 seconds...  \n{ERROR}{AGAIN}", [LimitKind.RATE]),
        (f"{ERROR}{AGAIN}\n#### again  \n\nDone.\n{TOKENS}", [LimitKind.RATE]),
        (f"\nSay litellm.RateLimitError: Rate limit reached.\n{TOKENS}", []),
        (f"\n> litellm.RateLimitError: Rate limit reached, as they say\nand so on.\n{TOKENS}", []),
        (f"\n```\n{ERROR}```\n{TOKENS}", []),
    ],
)
def test_a_throttle_is_a_limit_once_aider_has_given_up(after: str, limits: list[LimitKind], tmp_path: Path) -> None:
    record = read(tmp_path, f"{START}\n#### go  \n{after}")
    assert [limit.kind for limit in record.limits] == limits


def test_a_throttle_is_no_limit_between_two_lines_of_aider_s(tmp_path: Path) -> None:
    path = tmp_path / HISTORY
    path.write_text(f"{START}\n#### go  \n{ERROR}{AGAIN}")
    following = Aider(UTC).follow(path, "", tmp_path)
    following.poll()
    assert following.record().limits == ()
    assert [limit.kind for limit in following.record(ended=True).limits] == [LimitKind.RATE]


@pytest.mark.parametrize(
    "answer",
    [
        "# Title\n\n#### Install\n\nDo it.",
        "```markdown\n#### not said  \n```\nDone.",
        "```\n# aider chat started at 2020-01-01 00:00:00\n\n```",
        "> a quotation\n\n#### a heading  \n\nmore",
        "README.md\n```\n# Title\n```bash\nnpm i\n```\n#### Usage  \n```",
        "```\nnever closed\n\n#### not said  \n",
        "````\n```\n#### not said  \n```\n````",
    ],
)
def test_nothing_in_an_answer_is_taken_for_the_user_s_words(answer: str, tmp_path: Path) -> None:
    text = f"{START}\n#### go  \n\n{answer}\n\n{TOKENS}> Applied edit to a.md  \n\n#### and on  \n\nDone.\n{TOKENS}"
    record = read(tmp_path, text)
    assert record.prompts == ("go", "and on")
    assert record.files_touched == ("a.md",)
    assert (record.model_turns, record.last_text, record.turn_complete) == (2, "Done.", True)
    assert len(Aider(UTC).sessions(tmp_path / HISTORY)) == 1


def test_commands_to_aider_and_its_own_questions_are_no_prompts(tmp_path: Path) -> None:
    said = ("/add a.py", "!ls", "<blank>", "Run shell command? (Y)es/(N)o [Yes]: y", "/ask why?", "/architect do it")
    text = START + "".join(f"\n#### {line}  \n> Added a.py to the chat.  \n" for line in said)
    assert read(tmp_path, text).prompts == ("why?", "do it")


def test_a_command_line_with_the_whole_task_in_it_is_no_answer(tmp_path: Path) -> None:
    text = (
        f"\n# aider chat started at 2026-06-10 09:00:00\n\n> aider --message do\n```\nthis\n\nand that  \n{START[44:]}"
    )
    record = read(tmp_path, f"{text}\n#### do  \n#### this  \n\nDone.\n{TOKENS}")
    assert (record.prompts, record.last_text, record.version) == (("do\nthis",), "Done.", "0.86.2")


def test_tokens_are_counted_up_within_a_prompt_and_added_over_prompts(tmp_path: Path) -> None:
    round_one = "\n> Tokens: 1.0k sent, 10 received.  \n\nFix.\n\n> Tokens: 3.0k sent, 30 received.  \n"
    cached = "> Tokens: 2.0k sent, 100 cache write, 500 cache hit, 5 received.\nCost: $0.01 message, $0.02 session.  \n"
    text = f"{START}\n#### go  \n\nTry.\n{round_one}\n#### more  \n\nDone.\n\n{cached}\n#### last  \n\nBye.\n{TOKENS}"
    record = read(tmp_path, text)
    assert record.usage == Usage(3000 + 2000 + 4200, 30 + 5 + 310, 500, 100)
    assert (record.prompts, record.model_turns) == (("go", "more", "last"), 4)


def test_a_prompt_is_seen_before_its_answer_is_there(tmp_path: Path) -> None:
    path = tmp_path / HISTORY
    path.write_text(f"{START}\n#### go  \n")
    following = Aider(UTC).follow(path, "", tmp_path)
    following.poll()
    assert (following.record().prompts, following.record().open_prompt) == (("go",), "go")
    with path.open("a") as file:
        file.write("#### on  \n\nDone.\n")
    following.poll()
    assert (following.record().prompts, following.record().last_text) == (("go\non",), "Done.")
    with path.open("a") as file:
        file.write(f"{TOKENS}\n#### more  \n")
    following.poll()
    assert (following.record().prompts, following.record().open_prompt) == (("go\non", "more"), "more")


def test_a_start_that_is_no_time_begins_no_session(tmp_path: Path) -> None:
    record = read(tmp_path, "\n# aider chat started at 2026-13-40 09:00:00\n\n#### x  \n")
    assert (record.prompts, record.losses) == ((), ("a session's start is no time that there is",))


def test_only_what_aider_prints_of_its_own_is_shown_and_nothing_is_believed() -> None:
    tool = Aider()
    assert tool.hear(b"Applied edit to src/a.py") == (Doing("Applied edit to src/a.py"),)
    assert tool.hear(b"litellm.RateLimitError: RateLimitError: You exceeded your current quota") == ()
