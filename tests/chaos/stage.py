"""The stage of the cuts: a small repository on a small disk, the real commands in processes of their own, and the end.

Run as a program, in a mount namespace of its own where it may mount: it has imported everything once, and forks for
each command, so that a whole session with a handoff costs a fraction of a second. Jobs come on stdin and results go to
stdout, one JSON object a line:

    unshare --mount python -m tests.chaos.stage FOLDER --small-disk
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil

from relay_git import cli
from relay_git.cli import app, contracts, going, reading
from relay_git.git.repo import discover
from relay_git.git.store import open_store
from relay_git.ledger import journal, key, replay
from relay_git.supervisor import carry, dispatch, handoff, pause
from tests.chaos import power
from tests.chaos.points import Points, Tear
from tests.cli.scene import photograph
from tests.seal.environment import ROOT

WARM = (app, contracts, going, reading)  # what a command would import again in each fork
AGENT = Path(__file__).with_name("agent.sh")
PYTHON = sys.executable
START = ["start", "carry it", "--agent", "demo", "--then", "demo"]
DISK = "6m"
PATIENCE = 180.0  # seconds; what takes so long is stuck


@dataclass(frozen=True, slots=True)
class Job:
    """Cut `command` at the point `at`, in the way `mode`; then resume, which is cut at `then` where that is given."""

    mode: str  # who is struck: "supervisor", "agent", "both", "full" (the disk), or "none", to only count
    ends: str  # how the first leg ends: "limit", "stays", or "asks": as that, and it is asked what the next must know
    at: str = ""  # with "both": nothing; all points of this part are played
    then: int = 0  # the resume is cut again at its point of this number
    part: int = 0
    parts: int = 1


@dataclass(slots=True)
class Result:
    """What came of a job; `wrong` is what must not be, in words."""

    job: Job
    points: list[str] = field(default_factory=list)
    reached: bool = False
    rounds: int = 0
    wrong: list[str] = field(default_factory=list)
    end: dict[str, Any] = field(default_factory=dict)
    said: str = ""


class Stage:
    """One repository after another, at the same place, so that two ends can be compared."""

    def __init__(self, folder: Path, *, small_disk: bool) -> None:
        self.folder = folder
        self.disk = folder / "disk"
        self.repo = self.disk / "repo"
        self.backstage = folder / "backstage"
        self.template = folder / "template"
        self.disk.mkdir()
        self.small = small_disk and _mount(self.disk)
        _make_template(self.template)
        self.set_up()
        self._before = photograph(self.repo)

    def play(self, job: Job) -> Result:
        """One job from a fresh repository to its end."""
        result, env = Result(job), self.environment(job)
        self.set_up()
        try:
            self._first(job, env, result)
        except Stuck as stuck:
            result.wrong.append(f"stuck: {stuck}")
        return self._finish(result, env)

    def _finish(self, result: Result, env: dict[str, str]) -> Result:
        """Go on until the session is done, and judge the end."""
        try:
            self._to_the_end(result.job, env, result)
            result.end = self.end()
            result.wrong += judge(result.end, photograph(self.repo) == self._before)
        except Stuck as stuck:
            result.wrong.append(f"stuck: {stuck}")
        finally:
            self.clear(result)
        return result

    def play_both(self, job: Job) -> Iterator[Result]:
        """Who is struck together leaves just what is on disk at that moment, so one run shows it for all points.

        While a picture is taken everybody stands still.
        """
        self.set_up()
        env, album = self.environment(job), self.folder / "album"
        shutil.rmtree(album, ignore_errors=True)
        names: list[str] = []

        def reached(name: str, tear: Tear) -> None:
            names.append(name)
            if len(names) % job.parts != job.part:
                return
            others: list[int] = []
            while fresh := freeze([*self.marked(), *children(os.getpid())]):  # what was born meanwhile, too
                others += fresh
            mend = tear()
            for place in (self.repo, self.backstage):
                shutil.copytree(place, album / str(len(names)) / place.name, symlinks=True)
            mend()
            (album / str(len(names)) / "name").write_text(name)
            send(others, signal.SIGCONT)

        if self.run(START, env, "start", Points(self.disk, reached).install) != 0:
            raise RuntimeError(f"the run that is photographed went wrong: {self.said()}")
        for picture in sorted(album.iterdir(), key=lambda p: int(p.name)):
            self.set_up(picture)
            yield self._finish(Result(replace(job, at=(picture / "name").read_text()), reached=True), env)

    def play_power(self, job: Job) -> Iterator[Result]:
        """The power goes off at every moment that matters of one run: what was not synced then is not there."""
        self.set_up()
        env, disk = self.environment(job), power.Disk(str(self.repo))
        disk.load()
        trace, mark = self.folder / "trace", self.folder / "mark"
        argv = [*power.STRACE, "-o", trace, PYTHON, "-m", "tests.chaos.traced", mark]
        subprocess.run(argv, cwd=self.repo, env=env | {"PYTHONPATH": str(ROOT)}, capture_output=True, check=True)
        shutil.rmtree(self.folder / "after", ignore_errors=True)
        shutil.move(self.backstage, self.folder / "after")  # what the agents say of themselves lies on another disk
        seen: set[int] = set()
        moments = enumerate(power.Replay(disk, str(mark)).moments(trace))
        for number, recorded in (m for m in moments if m[0] % job.parts == job.part):
            for newest in (False, True):
                left = disk.left(newest=newest)
                if hash(frozenset(left.items())) not in seen:
                    seen.add(hash(frozenset(left.items())))
                    at = f"moment {number}, {recorded} entries, {'all names' if newest else 'names as synced'}"
                    yield self._after_power_cut(replace(job, at=at), env, left, recorded)

    def _after_power_cut(self, job: Job, env: dict[str, str], left: dict[str, bytes | None], recorded: int) -> Result:
        result = Result(job, reached=True)
        self.set_up()
        power.lay_out(left, self.repo)
        shutil.copytree(self.folder / "after", self.backstage, dirs_exist_ok=True)
        # Where it is not known when the machine was last started, it has been started anew.
        for file in (self.repo / ".git").glob("relay/spool/*/boot"):
            file.unlink()
        try:
            announced = self._announced()
            if len(announced) < recorded:
                result.wrong.append(f"{recorded} entries were recorded, {len(announced)} are there")
            self._to_the_end(job, env, result)
            result.end = self.end()
            result.wrong += judge(result.end, photograph(self.repo) == self._before, after_power_cut=True)
            result.wrong += [f"{oid} is not on the branch" for oid in announced if oid and not self._has(oid)]
        except (Stuck, subprocess.CalledProcessError) as error:
            result.wrong.append(f"stuck: {error} {getattr(error, 'stderr', '')}")
        self.clear(result)
        return result

    def _announced(self) -> list[str]:
        """The snapshot that each entry of the journal tells of."""
        refs = _git(self.repo, "for-each-ref", "--format=%(objectname)", "refs/relay/sessions/").split()
        chain = _git(self.repo, "rev-list", "--first-parent", *refs).split() if refs else []
        return [json.loads(text)["snapshot"] for text in _read(self.repo, [f"{oid}:state.json" for oid in chain])]

    def _has(self, oid: str) -> bool:
        argv = ["git", "merge-base", "--is-ancestor", oid, self._branch()]
        return subprocess.run(argv, cwd=self.repo, capture_output=True, check=False).returncode == 0

    def _branch(self) -> str:
        return _git(self.repo, "for-each-ref", "--format=%(refname)", "refs/heads/relay/").strip()

    def _first(self, job: Job, env: dict[str, str], result: Result) -> None:
        def reached(name: str, tear: Tear) -> None:
            with (self.backstage / "points").open("a") as out:
                out.write(f"{'agent' if job.mode == 'none' and self.marked() else 'alone'}\t{name}\n")
            if name == job.at:
                (self.backstage / "reached").touch()
                self._strike(job.mode, tear)

        rc = self.run(START, env, "start", Points(self.disk, reached).install)
        result.points += (self.backstage / "points").read_text().splitlines()
        result.reached = (self.backstage / "reached").exists()
        if job.mode == "full":
            (self.disk / "ballast").unlink(missing_ok=True)
            if rc != 0:
                result.wrong += _not_clean(rc, self._said("start"))
        elif rc not in (0, 1, -signal.SIGKILL):
            result.wrong.append(f"start ended with {rc}")

    def _strike(self, mode: str, tear: Tear) -> None:
        if mode == "full":
            with (self.disk / "ballast").open("wb", buffering=0) as out:
                for size in (1 << 16, 4096, 1):
                    try:
                        while True:
                            out.write(b"\0" * size)
                    except OSError:
                        continue
        elif mode == "agent":
            send(self.marked(), signal.SIGKILL)
        elif mode == "supervisor":
            tear()
            os.kill(os.getpid(), signal.SIGKILL)

    def _to_the_end(self, job: Job, env: dict[str, str], result: Result) -> None:
        """Type what the program says until the session is done."""
        seen = 0

        def cut(name: str, tear: Tear) -> None:
            nonlocal seen
            seen += 1
            if seen == job.then:
                (self.backstage / "cut again").write_text(name)
                tear()
                os.kill(os.getpid(), signal.SIGKILL)

        for round_ in range(5):
            argv = self.next_command()
            if argv is None:
                return
            again = job.then > 0 and round_ == 0
            rc = self.run(argv, env, f"go-on-{round_}", Points(self.disk, cut).install if again else None)
            result.rounds += 1
            if rc not in ((0, 1, -signal.SIGKILL) if again else (0, 1)):
                result.wrong.append(f"{argv[0]} ended with {rc}")
        if self.next_command() is not None:
            result.wrong.append("stuck: not done after five commands")

    def end(self) -> dict[str, Any]:
        """All that is left at the end, read by stock git; only the signatures are checked by the program."""
        repo, store = discover(self.repo, {}), open_store(self.repo / ".git")
        [session] = journal.sessions(store)
        worktree, branch = self.repo / ".relay/sessions" / session, f"relay/{session}"
        chain = _git(self.repo, "rev-list", "--first-parent", "--reverse", f"refs/relay/sessions/{session}").split()
        entries = [json.loads(text) for text in _read(self.repo, [f"{oid}:state.json" for oid in chain])]
        names = _git(self.repo, "ls-tree", "-r", "--name-only", branch).split()
        subjects = _git(self.repo, "log", "--reverse", "--format=%s", f"main..{branch}").splitlines()
        fsck = subprocess.run(["git", "fsck", "--strict"], cwd=self.repo, capture_output=True, text=True, check=False)
        verdicts = [c.verdict.outcome for c in replay.check(repo, store, key.load(repo), session)]
        store.write_blob(b"what is left of new objects is made good by the next writer\n")
        del store
        relay = self.repo / ".git/relay"
        return {
            "entries": [
                {k: e[k] for k in ("state", "event", "leg", "agent", "contractId", "snapshot", "nativeId")}
                for e in entries
            ],
            "commits": [s for s in subjects if not s.startswith("relay: ")],
            "tree": dict(zip(names, _read(self.repo, [f"{branch}:{name}" for name in names]), strict=True)),
            "status": _git(worktree, "status", "--porcelain"),
            "verdicts": [str(v) for v in verdicts],
            "fsck": fsck.stdout + fsck.stderr if fsck.returncode else "",
            "witness": (self.backstage / "witness").read_text().splitlines(),
            "alive": self.marked(),
            "spool": sorted(p.name for p in (relay / "spool").iterdir()),
            "locks": [str(p) for p in (self.repo / ".git").rglob("*.lock") if "locks" not in p.parts],
            "leftovers": sorted(p.name for p in relay.rglob("*") if _is_leftover(p.relative_to(relay))),
        }

    def marked(self) -> list[int]:
        """Every live process of a session in this repository."""
        mark = f"RELAY_DIR={self.repo}/.git/relay".encode()
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue
        return found

    def set_up(self, picture: Path | None = None) -> None:
        for place in (self.repo, self.backstage):
            shutil.rmtree(place, ignore_errors=True)
        if picture is not None:
            for place in (self.repo, self.backstage):
                shutil.move(picture / place.name, place)
            return
        shutil.copytree(self.template, self.repo, symlinks=True)
        self.backstage.mkdir()
        (self.backstage / "points").touch()
        (self.backstage / "witness").touch()

    def environment(self, job: Job) -> dict[str, str]:
        names = {"RELAY_DEMO_HOME": "home", "CHAOS_LOG": "witness", "CHAOS_LOCK": "lock"}
        ends = {"CHAOS_ENDS": "stays", "RELAY_DEMO_RESUMES": "1"} if job.ends == "asks" else {"CHAOS_ENDS": job.ends}
        return {**os.environ, **ends} | {k: str(self.backstage / v) for k, v in names.items()}

    def next_command(self) -> list[str] | None:
        """What the program says is to be typed; None when the session is done."""
        self._let_git_end()
        store = open_store(self.repo / ".git")
        states = [str(journal.tip(store, session).entry.state) for session in journal.sessions(store)]
        if states == ["DONE"]:
            return None
        return START if not states else ["handoff", "--to", "demo"] if states == ["NEEDS_HUMAN"] else ["resume"]

    def _let_git_end(self) -> None:
        """A git that outlives who started it may be about to write the session's first entry."""
        while any(p.info["name"] == "git" and p.info["cwd"] == str(self.repo) for p in _processes()):
            time.sleep(0.01)

    def run(
        self,
        argv: list[str],
        env: dict[str, str],
        name: str,
        prepare: Callable[[], object] | None = None,
        meanwhile: Callable[[int], object] = lambda pid: None,
    ) -> int:
        """The command in a fork of this process; its exit status, negative for a signal."""
        pid = os.fork()
        if pid == 0:
            _become(argv, env, self.repo, self.backstage / name, prepare)
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
            meanwhile(pid)
            time.sleep(0.002)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise Stuck(f"{' '.join(argv)} did not end: {self._said(name)[-1500:]}")

    def _said(self, name: str) -> str:
        return (self.backstage / f"{name}.err").read_text(errors="replace")

    def _out(self, name: str) -> str:
        return (self.backstage / f"{name}.out").read_text(errors="replace")

    def clear(self, result: Result) -> None:
        send(self.marked(), signal.SIGKILL)
        if result.wrong:
            result.said = self.said()

    def said(self) -> str:
        """What the commands have told the user, in the order in which they ended."""
        files = sorted(self.backstage.glob("*.err"), key=lambda f: f.stat().st_mtime_ns)
        return "\n".join(f"--- {f.stem}\n{f.read_text(errors='replace')}" for f in files if f.stat().st_size)


class Stuck(Exception):
    """A command that did not end, or a session that cannot go on."""


def _become(argv: list[str], env: dict[str, str], cwd: Path, log: Path, prepare: Callable[[], object] | None) -> None:
    """Be the command, and never come back."""
    code = 70
    try:
        os.setsid()
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(env)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, suffix in ((1, "out"), (2, "err")):
            os.dup2(os.open(f"{log}.{suffix}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
        if prepare is not None:
            prepare()
        code = cli.run(argv)
        sys.stdout.flush()
    finally:
        os._exit(code)


def judge(end: dict[str, Any], untouched: bool, *, after_power_cut: bool = False) -> list[str]:
    """What is wrong with an end, whatever the way there: lost, doubled, damaged or left behind.

    What an agent had done since the last snapshot may be gone after a power cut; then its script does it again.
    """
    entries, witness = end["entries"], end["witness"]
    built = [e for e in entries if e["event"] == "contract-built"]
    wrong = [f"{w}" for w in witness if "DOUBLED" in w]
    checks = {
        "the user's own files changed": not untouched,
        f"the end is {entries[-1]['state']}": entries[-1]["state"] != "DONE",
        f"a commit is lost or doubled: {end['commits']}": end["commits"] != ["Make it", "Finish it"],
        f"files: {end['tree']}": end["tree"] not in _expected(witness, maybe_lost=after_power_cut),
        f"not clean: {end['status']}": end["status"] != "",
        f"contracts: {end['verdicts']}": len(end["verdicts"]) != len(built)
        or not set(end["verdicts"][:-1]) <= {"superseded"}
        or end["verdicts"][-1:] not in ([], ["valid"]),
        "a contract was built twice for a leg": _built_twice(entries),
        "a leg was asked twice": any(witness.count(w) > 1 for w in witness if w.endswith("is asked")),
        "a leg number was left out": sorted({e["leg"] for e in entries})
        != list(range(1, max(e["leg"] for e in entries) + 1)),
        f"git fsck: {end['fsck']}": end["fsck"] != "",
        f"alive: {end['alive']}": end["alive"] != [],
        f"spool: {end['spool']}": len(end["spool"]) != 1,
        f"locks: {end['locks']}": end["locks"] != [],
        f"leftovers: {end['leftovers']}": end["leftovers"] != [],
    }
    return wrong + [what for what, is_wrong in checks.items() if is_wrong]


def _built_twice(entries: list[dict[str, Any]]) -> bool:
    """Whether a leg has two contracts without a rest between them, from which only the user's word leads on."""
    since_rest: set[int] = set()
    for entry in entries:
        if entry["event"] == "contract-built":
            if entry["leg"] in since_rest:
                return True
            since_rest.add(entry["leg"])
        elif entry["state"] in ("NEEDS_HUMAN", "STOPPED"):
            since_rest.clear()
    return False


def _expected(witness: list[str], *, maybe_lost: bool) -> list[dict[str, str]]:
    """The files of an undisturbed run; what the first leg had written last is in them if it had come so far."""
    half = [w for w in witness if w.startswith("half by")]
    kept = [[*half, "whole"], *([*one, "whole"] for one in ([], *([h] for h in half)) if maybe_lost)]
    return [
        {"file.txt": "as it was\n", "half.txt": "".join(f"{w}\n" for w in words), "made.txt": "made\n"}
        for words in kept
    ]


def _is_leftover(path: Path) -> bool:
    """Whether a file or folder below `relay/` belongs to an act that was never ended."""
    parted = re.search(r"\.\d+$|^key\.new|^request|^adding$|^index\.", path.name)
    return parted is not None or (path.parts[0] == "fresh" and len(path.parts) > 1)


def _not_clean(rc: int, said: str) -> list[str]:
    """What a full disk must look like to the user."""
    lines = said.splitlines()
    wrong = [] if rc == 1 else [f"on a full disk start ended with {rc}"]
    if "No space left on device" not in said:
        wrong.append("the full disk is not named")
    if not lines or not lines[-1].startswith("hint: "):
        wrong.append("the full disk ends without a hint")
    return wrong


def _read(repo: Path, names: list[str]) -> list[str]:
    """What objects hold, as text, by one git."""
    asked = "".join(f"{name}\n" for name in names).encode()
    argv = ["git", "cat-file", "--batch"]
    rest = subprocess.run(argv, cwd=repo, input=asked, capture_output=True, check=True).stdout
    found = []
    for name in names:
        head, _, rest = rest.partition(b"\n")
        if not head.split()[-1].isdigit():
            raise Stuck(f"{name} cannot be read: {head.decode()}")
        size = int(head.split()[-1])
        found.append(rest[:size].decode())
        rest = rest[size + 1 :]
    return found


def _git(cwd: Path, *args: str) -> str:
    return subprocess.run(["git", *args], cwd=cwd, capture_output=True, text=True, check=True).stdout


def send(pids: list[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _processes() -> Iterator[psutil.Process]:
    return psutil.process_iter(["name", "cwd"])


def children(pid: int) -> list[int]:
    """Every process below this one."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    return []


def freeze(pids: list[int]) -> list[int]:
    """Stop those that may move, and come back when none does any more; who stood already is not to be woken later."""
    moving = [pid for pid in pids if not _stands(pid)]
    send(moving, signal.SIGSTOP)
    while not all(map(_stands, moving)):
        time.sleep(0.001)
    return moving


def _stands(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_DISK_SLEEP:  # after a vfork until its child, which is stopped, begins
            return any(child.status() == psutil.STATUS_STOPPED for child in process.children())
        return process.status() in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE)
    return True


def _mount(disk: Path) -> bool:
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", disk], capture_output=True, check=False
    )
    return done.returncode == 0


def _make_template(place: Path) -> None:
    place.mkdir()
    _git(place, "init", "-q", "--template=")
    (place / "file.txt").write_text("as it was\n")
    _git(place, "add", "-A")
    _git(place, "commit", "-q", "-m", "one")
    settings = {"grace": "0", "hardLimit": "0", "termGrace": "0.3", "ackTimeout": "120", "ownSession": "false"}
    for name, value in settings.items():
        _git(place, "config", f"relay.{name}", value)


def open_stage(folder: Path, *, small_disk: bool = False) -> Stage:
    """A stage in this process; a small disk stays mounted until the mount namespace ends."""
    stage = Stage(folder, small_disk=small_disk)
    sys.executable = str(AGENT)  # what the demo agent is started with
    handoff.make_ready()
    carry._STEP = dispatch._STEP = pause._STEP = 0.01
    return stage


def main() -> None:
    stage = open_stage(Path(sys.argv[1]), small_disk="--small-disk" in sys.argv)
    several = {"both": stage.play_both, "power": stage.play_power}
    print(json.dumps({"full": stage.small}), flush=True)
    for line in sys.stdin:
        job = Job(**json.loads(line))
        for result in several[job.mode](job) if job.mode in several else (stage.play(job),):
            print(json.dumps(asdict(result)), flush=True)
        print("{}", flush=True)


if __name__ == "__main__":
    main()
