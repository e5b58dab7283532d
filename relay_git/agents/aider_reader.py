"""Aider's chat history, one Markdown file for all sessions in a folder, read into a SessionRecord.

Promise: one pass, bounded memory, never an exception. What looks like aider's own lines inside an answer is not taken
for them: aider ends every line of its own and of the user with two blanks, and nothing but a line of its own ends an
answer.

Format, as written by 0.86.2 (`io.py` of the package): `# aider chat started at LOCAL TIME` between blank lines begins
a session; `#### ` leads each line that the user said, `> ` each that aider said; plain lines are the model's. There are
no ids and no time zones: a session is named by its start in UTC. Tokens are rounded, and counted up within a prompt.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from relay_git.agents.draft import MAX_PROMPT_CHARS, MAX_TEXT_CHARS, Draft, cut, plus
from relay_git.agents.refusal import refusal
from relay_git.agents.transcript import Follower
from relay_git.session import LimitKind, LimitNotice, SessionRecord, Usage

_START = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*")
_SAID = re.compile(r"#### ?(.*?) {2}")
_OWN = re.compile(r"> ?(.*)")
_FENCE = re.compile(r"(`{3,}|~{3,})")
_TOKENS = re.compile(
    r"Tokens: ([\d.]+k?) sent(?:, ([\d.]+k?) cache write)?(?:, ([\d.]+k?) cache hit)?, ([\d.]+k?) received\.(?: .*)?"
)
_ERROR = re.compile(r"litellm\.\w+: |.{0,40}\bAPI provider\b")
_CHAT_MODES = ("/ask ", "/code ", "/architect ", "/context ")
_QUESTION = "(Y)es/(N)o"  # what the user answered to a question of aider's own
_MAX_SESSIONS = 10_000
_APPLIED = "Applied edit to "
_BLANKS = "  "


class History(Follower):
    """Follows one session of a history file: the one named, else the newest."""

    def __init__(self, path: Path, worktree: Path, cwd: str, wanted: str, zone: tzinfo | None) -> None:
        def fresh() -> AiderReader:
            self._aider = AiderReader(worktree, cwd, wanted, zone)
            return self._aider

        super().__init__(path, fresh)

    def record(self, *, ended: bool = False) -> SessionRecord:
        """The record so far; only when nothing is to come is it known that aider has given up."""
        record, refused = super().record(ended=ended), self._aider.refused
        if not (ended and refused):
            return record
        return replace(record, limits=(*record.limits, refused), at_limit=True)


class AiderReader:
    """Folds one session of a history file: the one named, else the newest. `sessions` are those met so far."""

    def __init__(self, worktree: Path, cwd: str = "", wanted: str = "", zone: tzinfo | None = None) -> None:
        self._worktree, self._cwd, self._wanted, self._zone = worktree, cwd, wanted, zone
        self._draft = Draft("aider", str(worktree), cwd=cwd)
        self.sessions: dict[str, None] = {}
        self._inside = False
        self._blank = True
        self._header = ""
        self._forget()

    def _forget(self) -> None:
        """Stand between two lines of aider's own."""
        self._fence = ""
        self._more = False
        self._prompt: list[str] = []
        self._answer: list[str] = []
        self._room = MAX_PROMPT_CHARS
        self._spoken = False
        self._spent = Usage()
        self._refused: LimitNotice | None = None

    def feed(self, line: bytes) -> None:
        """Take one line; never raises."""
        text = line.decode("utf-8", "replace").strip("\r\0")
        if self._header:
            header, self._header = self._header, ""
            if text.strip():
                self._take(header)
            else:
                self._begin(header)
        if self._blank and not self._fence and _START.fullmatch(text):
            self._header = text
        else:
            self._take(text)
        self._blank = not text.strip()

    def record(self) -> SessionRecord:
        """Everything understood so far; what aider is still writing is not taken for finished."""
        record = self._draft.record()
        if said := self._said():
            record = replace(record, prompts=(*record.prompts, said), open_prompt=said, turn_complete=False)
        if answer := "\n".join(self._answer).strip():
            said = cut(answer, MAX_TEXT_CHARS)
            record = replace(record, last_text=said, texts=(*record.texts, said), open_prompt="")
        return record

    @property
    def refused(self) -> LimitNotice | None:
        """The refusal that aider has not yet said it tries again after."""
        return self._refused

    def _begin(self, header: str) -> None:
        found = _START.fullmatch(header)
        when = _utc(found[1], self._zone) if found else None
        if when is None:
            self._draft.lose("a session's start is no time that there is")
            return
        name = when.strftime("%Y-%m-%dT%H:%M:%SZ")
        if len(self.sessions) < _MAX_SESSIONS:
            self.sessions[name] = None
        if self._inside:
            self._end_prompt()
            self._end_answer()
            self._give_up()
        self._inside = self._wanted in ("", name)
        self._forget()
        if self._inside and self._draft.native_id != name:  # two starts within one second are one session
            self._draft = Draft("aider", str(self._worktree), native_id=name, cwd=self._cwd)
        if self._inside:
            self._draft.saw(when)

    def _take(self, text: str) -> None:
        own = text.endswith(_BLANKS)
        if not self._inside:
            return
        if self._more:  # the rest of something that aider said in several lines
            self._more = not own
        elif self._fence:
            self._fenced(text)
        elif (said := _SAID.fullmatch(text)) and not self._answer:
            self._keep(self._prompt, said[1])
        elif (found := _OWN.fullmatch(text)) and (own or self._goes_on(found[1])):
            self._own(found[1].strip(), more=not own)
        else:
            self._plain(text)

    def _goes_on(self, said: str) -> bool:
        """Whether a line that could be a quotation is the first of several that aider said in one go.

        A model's answer begins after a blank line, and only the count of tokens ends it.
        """
        begins = not self._answer and not (self._blank and self._spoken)
        return begins or _TOKENS.fullmatch(said.strip()) is not None

    def _fenced(self, text: str) -> None:
        """In a code block of an answer only its end counts, or the count of tokens where it was never closed."""
        if (found := _OWN.fullmatch(text)) and _TOKENS.fullmatch(found[1].strip()):
            self._own(found[1].strip(), more=not text.endswith(_BLANKS))
            return
        if text.strip() == self._fence:
            self._fence = ""
        self._keep(self._answer, text)

    def _plain(self, text: str) -> None:
        self._end_prompt()
        if not self._spoken or not (text.strip() or self._answer):
            return  # before the first prompt stands only the rest of a command line
        self._keep(self._answer, text)
        if found := _FENCE.match(text):
            self._fence = found[1]

    def _keep(self, lines: list[str], text: str) -> None:
        if self._room >= 0:
            lines.append(cut(text, MAX_PROMPT_CHARS))
            self._room -= len(text) + 1

    def _said(self) -> str:
        """What the user said in the lines that are being read; a command to aider itself is no prompt."""
        said = "\n".join(self._prompt).strip()
        mode = next((mode for mode in _CHAT_MODES if said.startswith(mode)), "")
        if (said.startswith(("/", "!")) and not mode) or said == "<blank>" or _QUESTION in said:
            return ""
        return said.removeprefix(mode).strip()

    def _end_prompt(self) -> None:
        if not self._prompt:
            return
        said, self._prompt, self._room = self._said(), [], MAX_PROMPT_CHARS
        if said:
            self._give_up()
            self._spoken = True
            self._draft.saw(None)
            self._draft.prompt(said)
            self._draft.turn_complete = False
            self._spent = Usage()

    def _end_answer(self) -> None:
        if said := "\n".join(self._answer).strip():
            self._draft.say(said)
        self._answer, self._room, self._fence = [], MAX_PROMPT_CHARS, ""

    def _give_up(self) -> None:
        if self._refused:
            self._draft.limit(self._refused)
        self._refused = None

    def _own(self, said: str, *, more: bool) -> None:
        """A line that aider said itself."""
        self._end_prompt()
        self._end_answer()
        draft, self._more = self._draft, more
        draft.saw(None)
        word, _, rest = said.partition(" ")
        if found := _TOKENS.fullmatch(said):
            self._answered(found)
        elif said.startswith(_APPLIED):
            draft.touch(said.removeprefix(_APPLIED))
        elif word == "Running" and rest:
            draft.ran(rest, None)
        elif word == "Aider" and rest.startswith("v"):
            draft.version = rest[1:]
        elif word == "Model:" or said.startswith("Main model: "):
            draft.model = said.partition(": ")[2].split(" with ")[0]
        else:
            self._refusal(said)

    def _answered(self, found: re.Match[str]) -> None:
        draft = self._draft
        draft.turns += 1
        draft.turn_complete, self._refused = True, None
        # What is sent and received is counted up from request to request of one prompt; the cache's part is not.
        sent, written, hit, received = (_tokens(group) for group in found.groups())
        more = Usage(max(sent - self._spent.input, 0), max(received - self._spent.output, 0), hit, written)
        draft.usage, self._spent = plus(draft.usage, more), Usage(sent, received)

    def _refusal(self, said: str) -> None:
        """An error of the provider: one that trying again may cure is a limit once aider has given up."""
        if said.startswith("Retrying in "):
            self._refused = None
        elif _ERROR.match(said) and (notice := refusal(said, body=said)):
            self._draft.turn_complete = False
            if notice.kind in (LimitKind.USAGE, LimitKind.BILLING):
                self._draft.limit(notice)
            else:
                self._refused = self._refused or notice


def _utc(local: str, zone: tzinfo | None) -> datetime | None:
    """A local time in UTC; without a zone that of this machine."""
    try:
        when = datetime.fromisoformat(local)
        return (when.replace(tzinfo=zone) if zone else when).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _tokens(written: str | None) -> int:
    """A count as aider rounds it: 310, 4.2k, 12k."""
    try:
        number = float((written or "0").removesuffix("k"))
    except ValueError:
        return 0
    return round(number * 1000) if written and written.endswith("k") else int(number)
