"""`git relay detect`: sessions that rest in the folder of another account, and a watch that reads only what changed."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

# Loaded by Python itself when it starts: each file that is opened is a line in $OPENED.
LISTENS = """
import os, sys
log = os.open(os.environ["OPENED"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
sys.addaudithook(lambda event, args: event == "open" and os.write(log, f"{args[0]}\\n".encode("utf-8", "replace")))
"""


def rests(home: Path, name: str, cwd: Path, *texts: str) -> Path:
    """A session of the demo agent that has ended in the middle of its task."""
    file = home / "sessions" / f"{name}.jsonl"
    file.parent.mkdir(parents=True)
    at = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
    first = {"type": "session", "id": name, "cwd": str(cwd)}, {"type": "prompt", "text": f"the task of {name}"}
    rows = (*first, *({"type": "say", "text": text} for text in texts))
    file.write_text("".join(json.dumps({"demo": True, "at": at, **row}) + "\n" for row in rows))
    return file


def test_a_session_that_rests_in_another_accounts_folder_is_shown_with_its_account(relay, demo, tmp_path) -> None:
    for label in ("work", "spare"):
        assert relay("accounts", "add", "demo", label, "--config-dir", str(tmp_path / label), cwd=tmp_path).rc == 0
    rests(demo.home, "of-mine", tmp_path)
    rests(tmp_path / "work", "of-work", tmp_path)
    rests(tmp_path / "spare", "of-spare", tmp_path)
    rows = json.loads(relay("detect", "--json", cwd=tmp_path).stdout)["sessions"]
    ours = [
        row for row in rows if row["record"]["cwd"] == str(tmp_path)
    ]  # others at work on this machine are seen, too
    assert {row["sessionId"]: row["account"] for row in ours} == {
        "of-mine": None,
        "of-work": "work",
        "of-spare": "spare",
    }
    shown = relay("detect", cwd=tmp_path).stdout
    assert "demo:work" in shown
    assert "demo:spare" in shown


class Watch:
    """`git relay detect --watch` as a process, what it has printed, and which files it has opened."""

    def __init__(self, folder: Path) -> None:
        (folder / "listens").mkdir()
        (folder / "listens" / "sitecustomize.py").write_text(LISTENS)
        self._opened = folder / "opened"
        paths = os.pathsep.join([str(folder / "listens"), str(Path(__file__).parents[2])])
        env = {**os.environ, "PYTHONPATH": paths, "OPENED": str(self._opened)}
        argv = [sys.executable, "-m", "relay_git", "detect", "--watch"]
        self.process = subprocess.Popen(argv, cwd=folder, env=env, stdout=subprocess.PIPE)
        self.printed = ""

    def until(self, words: str) -> None:
        """Wait until a whole look shows these words."""
        stdout = self.process.stdout
        assert stdout is not None
        while words not in self.printed.rpartition("\x1b[H")[2] or not self.printed.endswith("Ctrl-C to leave\n"):
            assert select.select([stdout], [], [], 60)[0], self.printed
            data = os.read(stdout.fileno(), 1 << 16)
            assert data, self.printed
            self.printed += data.decode()

    def opened(self) -> Counter[str]:
        """How often each file was opened so far."""
        return Counter(self._opened.read_text().splitlines())


def test_a_watch_shows_what_has_changed_and_reads_nothing_that_has_not(demo, tmp_path) -> None:
    still, busy = (rests(tmp_path / name, name, tmp_path) for name in ("still", "busy"))
    (demo.home / "sessions").mkdir(parents=True)
    still, busy = (file.rename(demo.home / "sessions" / file.name) for file in (still, busy))
    watch = Watch(tmp_path)
    watch.until("the task of busy")
    before = watch.opened()
    with busy.open("a") as more:
        more.write(json.dumps({"demo": True, "type": "prompt", "text": "one thing more"}) + "\n")
    watch.until("one thing more")
    after = watch.opened()
    assert after[str(busy)] > before[str(busy)] > 0
    assert after[str(still)] == before[str(still)] > 0
    watch.process.send_signal(signal.SIGINT)
    rest, _ = watch.process.communicate(timeout=60)
    assert watch.process.returncode == 0
    assert rest.decode().endswith("\x1b[?1049l")
