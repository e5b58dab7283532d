"""A place where real agents run: a network namespace that has only loopback, with a scripted model in it.

Promise: nothing that runs here reaches another machine where the system allows namespaces (`sealed` says whether it
does), and no process that was started here outlives the test.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.seal.records import records

ROOT = Path(__file__).resolve().parents[2]
Env = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of one command."""

    rc: int
    stdout: str
    stderr: str

    def events(self) -> list[dict[str, Any]]:
        """The JSON lines of stdout."""
        return [json.loads(line) for line in self.stdout.splitlines() if line.startswith("{")]


@dataclass
class Model:
    """A scripted model; see scripted_model.py for the script."""

    url: str
    log: Path

    def requests(self, api: str | None = None, kind: str | None = "main") -> list[dict[str, Any]]:
        """The requests so far, in order; of one API ("claude", "codex") and one kind (None: all)."""
        return [r for r in records(self.log) if api in (None, r.get("api")) and kind in (None, r["kind"])]

    def wait_for(self, count: int, api: str | None = None, timeout: float = 60) -> None:
        """Wait until so many main requests have come."""
        until = time.monotonic() + timeout
        while len(self.requests(api)) < count:
            if time.monotonic() > until:
                raise AssertionError(f"{len(self.requests(api))} requests of {api} in {timeout} s, not {count}")
            time.sleep(0.05)


@dataclass
class Loopback:
    """One network namespace; commands are run and started in it."""

    scratch: Path
    sealed: bool = False
    _enter: list[str] = field(default_factory=list)
    _holder: subprocess.Popen[str] | None = None
    _started: list[subprocess.Popen[str]] = field(default_factory=list)

    def open(self) -> None:
        """Make the namespace, where this user may; `sealed` tells whether it is there."""
        if not (shutil.which("unshare") and shutil.which("nsenter") and shutil.which("ip")):
            return
        as_user = [] if os.getuid() == 0 else ["-r"]
        script = "ip link set lo up && echo up && exec sleep infinity"
        command = ["unshare", "-n", *as_user, "sh", "-c", script]
        holder = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        with holder.stdout:
            up = holder.stdout.readline() == "up\n"
        if not up:
            holder.wait()
            return
        self._holder, self.sealed = holder, True
        user = ["-U", "--preserve-credentials"] if as_user else []
        self._enter = ["nsenter", "-t", str(holder.pid), "-n", *user, "--"]

    def inside(self, argv: Sequence[str | Path]) -> list[str]:
        """The command that runs this one in the namespace."""
        return [*self._enter, *map(str, argv)]

    def start(
        self, argv: Sequence[str | Path], *, cwd: Path, env: Env, stdin: str | None = None
    ) -> subprocess.Popen[str]:
        """Start a command in its own process group, stdout and stderr in pipes; its end is waited for at the latest
        when the test ends."""
        source = subprocess.DEVNULL
        if stdin is not None:
            file = self.scratch / f"stdin-{time.monotonic_ns()}"
            file.write_text(stdin)
            source = file.open()
        with contextlib.ExitStack() as stack:
            if stdin is not None:
                stack.enter_context(source)
            process = subprocess.Popen(
                self.inside(argv),
                cwd=cwd,
                env=dict(env),
                stdin=source,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        self._started.append(process)
        return process

    def finish(self, process: subprocess.Popen[str], timeout: float = 120) -> Ran:
        """Wait for a started command."""
        try:
            stdout, stderr = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            _end_group(process)
            stdout, stderr = process.communicate()
            raise AssertionError(f"still running after {timeout} s\nstdout: {stdout}\nstderr: {stderr}") from None
        return Ran(process.returncode, stdout, stderr)

    def run(
        self,
        argv: Sequence[str | Path],
        *,
        cwd: Path,
        env: Env,
        stdin: str | None = None,
        timeout: float = 120,
    ) -> Ran:
        """Run a command to its end."""
        return self.finish(self.start(argv, cwd=cwd, env=env, stdin=stdin), timeout)

    def processes(self) -> dict[int, str]:
        """Who lives in the namespace, by pid: the words of each, without the holder and the models (sealed only)."""
        if not self._holder:
            return {}
        ours = {self._holder.pid, *(p.pid for p in self._started if "tests.real.scripted_model" in p.args)}
        return {pid: words for pid, words in self._inside().items() if pid not in ours}

    def _inside(self) -> dict[int, str]:
        assert self._holder
        namespace = Path(f"/proc/{self._holder.pid}/ns/net").readlink()
        found = {}
        for proc in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if proc.name.isdigit() and (proc / "ns/net").readlink() == namespace:
                    found[int(proc.name)] = (
                        (proc / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    )
        return found

    def close(self) -> None:
        """End all that was started here."""
        for process in self._started:
            _end_group(process)
        if self._holder:
            for pid in self._inside():
                if pid != self._holder.pid:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            self._holder.kill()
            self._holder.wait()
        for process in self._started:
            process.communicate()

    def model(self, script: dict[str, Any]) -> Model:
        """Start a scripted model in the namespace."""
        base = self.scratch / f"model-{time.monotonic_ns()}"
        base.mkdir()
        (base / "script.json").write_text(json.dumps(script))
        module = [sys.executable, "-m", "tests.real.scripted_model"]
        files = ["--script", "script.json", "--log", "requests.jsonl", "--port-file", "port"]
        process = self.start([*module, *files], cwd=base, env={**os.environ, "PYTHONPATH": str(ROOT)})
        port, until = base / "port", time.monotonic() + 20
        while not port.exists():
            if process.poll() is not None or time.monotonic() > until:
                _end_group(process)
                raise AssertionError(f"the scripted model did not start: {process.communicate()[1]}")
            time.sleep(0.02)
        return Model(f"http://127.0.0.1:{port.read_text()}", base / "requests.jsonl")


def _end_group(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
