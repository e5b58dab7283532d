"""The demo agent at the terminal: a tiny TUI that plays the same script and calls no model.

Run by the demo adapter as `python -m relay_git.agents.demo_tui --session-id ID [--brief FILE]`, at a terminal.

Promise: it uses a terminal as real TUIs do (raw mode, alternate screen, mouse, bracketed paste, focus, kitty keyboard,
Ctrl-Z), shows its size and every key, and notes each byte that it read in its transcript. The brief, or the first line
that is typed, starts the steps of its leg; each later line is answered and counts as a turn. At the pretend limit it
says so and stays, idle, as Claude Code does. Ctrl-D quits.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import termios
import tty
from pathlib import Path
from types import FrameType
from typing import NoReturn

from relay_git.agents.demo import TITLE, sessions_dir
from relay_git.agents.demo_agent import MAX_PROMPT, VERSION, Play, Refused, play_step, read_steps

_ENTER = b"\x1b[?1049h\x1b[?25l\x1b[?1000h\x1b[?1006h\x1b[?2004h\x1b[?1004h\x1b[>1u\x1b[2J\x1b[H"
_LEAVE = b"\x1b[<u\x1b[?1004l\x1b[?2004l\x1b[?1006l\x1b[?1000l\x1b[?25h\x1b[?1049l"
_CTRL_C, _CTRL_D, _ENTER_KEY, _CTRL_Z = b"\x03", b"\x04", b"\r", b"\x1a"


class TurnOver(Exception):
    """The script has ended its run; the TUI stays."""


class AtTerminal(Play):
    """One run on a screen instead of an event stream."""

    began = False

    def hear(self, prompt: str) -> None:
        """Take what the user wants: the first time the script is played, later there is an answer."""
        self.note("prompt", text=prompt)
        try:
            if self.began:
                self.note("say", text="Demo: I heard you, and no model was asked.")
                self.end(0)
            self.began = True
            for step in read_steps(os.environ):
                play_step(self, step)
            self.end(0)
        except TurnOver:
            return
        except (Refused, OSError) as error:
            show(f"demo agent: {error}")

    def tell(self, kind: str, **fields: object) -> None:
        """Show one event as a line."""
        show(f"{kind}: {', '.join(str(value) for value in fields.values())}")

    def end(self, code: int, detail: str = "") -> NoReturn:
        """The run is over, the TUI is not."""
        self.note("end", ok=code == 0, detail=detail)
        show(f"demo: {detail or 'ready'}")
        raise TurnOver


class Keyboard:
    """The terminal in raw mode, and what is typed there."""

    def __init__(self, play: AtTerminal) -> None:
        self._play = play
        self._before = termios.tcgetattr(0)
        self._line = b""

    def enter(self) -> None:
        tty.setraw(0, termios.TCSANOW)  # what was typed before is not thrown away: whoever lends the terminal does that
        _write(_ENTER)
        show(TITLE)
        show_size()

    def leave(self) -> None:
        _write(_LEAVE)
        termios.tcsetattr(0, termios.TCSADRAIN, self._before)

    def listen(self) -> None:
        """Until the user quits, or the terminal is gone."""
        while data := os.read(0, 4096):
            self._play.note("keys", hex=data.hex())
            show(f"keys: {data.decode('utf-8', 'replace')!r}")
            for key in (bytes([byte]) for byte in data):
                if key == _CTRL_D:
                    return
                self._take(key)

    def _take(self, key: bytes) -> None:
        if key == _CTRL_Z:
            self._suspend()
        elif key == _ENTER_KEY:
            said, self._line = self._line.decode("utf-8", "replace"), b""
            self._play.hear(said)
        elif key == _CTRL_C:
            self._line = b""
        else:
            self._line += key

    def _suspend(self) -> None:
        self.leave()
        os.kill(0, signal.SIGTSTP)
        self.enter()


def show(line: str) -> None:
    """One line on the screen."""
    _write(line.encode("utf-8", "replace") + b"\r\n")


def show_size(number: int = 0, frame: FrameType | None = None) -> None:
    """The size that the terminal has now."""
    columns, rows = os.get_terminal_size(1)
    show(f"size: {columns}x{rows}")


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def main(argv: list[str] | None = None) -> int:
    """Play the script of this leg, then listen."""
    parser = argparse.ArgumentParser(prog="demo-tui", description=f"git relay's {TITLE}, at a terminal")
    parser.add_argument("--session-id", required=True)
    parser.add_argument("--brief", type=Path)
    given = parser.parse_args(argv)
    prompt = given.brief.read_bytes()[:MAX_PROMPT].decode("utf-8", "replace") if given.brief else ""
    worktree, folder = Path.cwd().resolve(), sessions_dir(os.environ)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder / f"{given.session_id}.jsonl").open("ab") as transcript:
        play = AtTerminal(given.session_id, transcript, worktree, prompt)
        branch = str(play.run(["git", "branch", "--show-current"])["output"]).strip()
        play.note("session", id=given.session_id, cwd=str(worktree), branch=branch, version=VERSION, title=TITLE)
        keyboard = Keyboard(play)
        signal.signal(signal.SIGWINCH, show_size)
        keyboard.enter()
        if prompt:
            play.hear(prompt)
        try:
            keyboard.listen()
        finally:
            keyboard.leave()
    return 0


if __name__ == "__main__":
    sys.exit(main())
