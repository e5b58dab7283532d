"""Runs git itself, for what must act as git does for the user.

Promise: the child sees none of the caller's GIT_* state, asks no question, and cannot outlive its time limit; a
failure becomes a `RepoError` that quotes git's own last words, escaped and bounded.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import IO

from relay_git.errors import RepoError, printable
from relay_git.git.fresh import alternates

# `git rev-parse --local-env-vars` of git 2.55 and all before it; a test holds it against the git on the machine.
LOCAL_ENV_VARS = frozenset({
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_CONFIG", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT",
    "GIT_OBJECT_DIRECTORY", "GIT_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE", "GIT_GRAFT_FILE",
    "GIT_INDEX_FILE", "GIT_NO_REPLACE_OBJECTS", "GIT_REPLACE_REF_BASE", "GIT_PREFIX", "GIT_SHALLOW_FILE",
    "GIT_COMMON_DIR", "GIT_INTERNAL_SUPER_PREFIX", "GIT_QUARANTINE_PATH", "GIT_NAMESPACE",
})  # fmt: skip
# What of the user's GIT_* a git of ours may see: where configuration lies and how remotes are reached.
_KEPT = re.compile(
    r"GIT_(CONFIG_(GLOBAL|SYSTEM|NOSYSTEM)|EXEC_PATH|(AUTHOR|COMMITTER)_(NAME|EMAIL|DATE)|SSH(_COMMAND|_VARIANT)?|ASKPASS|CEILING_DIRECTORIES)"
)
_CONFIG_PAIR = re.compile(r"GIT_CONFIG_(KEY|VALUE)_\d+")
# No hook, watcher or gc of the user's may run inside a step of ours, and what was written must survive a power cut.
_SAFE_CONFIG = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.splitIndex=false",
    "core.fsync=objects,reference",
    "core.filesRefLockTimeout=3000",
    "core.packedRefsTimeout=3000",
    "gc.auto=0",
    "maintenance.auto=false",
    "commit.gpgSign=false",
    "advice.detachedHead=false",
    "core.quotePath=true",
)
MINIMUM = (2, 38)
_TIMEOUT = 600.0
_STDERR = 64 << 10  # how much of git's last words is looked at
_FULL = 64 << 10  # less room than this is no room for git


# Pids of children of ours that serve us, such as gits that live as long as a store: nothing that an agent has started.
OWN_READERS: set[int] = set()


def without_local_env(env: Mapping[str, str]) -> dict[str, str]:
    """The environment without anything that would point a child's git at another repository, index or config."""
    return {k: v for k, v in env.items() if k not in LOCAL_ENV_VARS and not _CONFIG_PAIR.fullmatch(k)}


def clean_env(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment for a git of ours: the user's, without GIT_* state, in plain English, never prompting."""
    source = os.environ if env is None else env
    kept = {k: v for k, v in source.items() if not k.startswith("GIT_") or _KEPT.fullmatch(k)}
    return kept | {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "false", "GIT_OPTIONAL_LOCKS": "0"}


@dataclass(frozen=True, slots=True)
class Git:
    """A git bound to one place.

    `cwd` alone lets git find the repository. With `git_dir`, `common_dir` and `work_tree` git is told where all of
    it lies, so that links an agent could have changed (`.git`, `commondir`) are not believed. `safe` switches the
    user's hooks and watchers off; only what the user asks for by name (`land`) runs with them. `fresh` is where
    objects lie that the repository is only about to get.
    """

    cwd: Path
    git_dir: Path | None = None
    common_dir: Path | None = None
    work_tree: Path | None = None
    safe: bool = True
    extra: Mapping[str, str] = field(default_factory=dict)
    fresh: Path | None = None

    def run(
        self,
        *args: str | bytes | Path,
        input: bytes | None = None,
        env: Mapping[str, str] | None = None,
        ok: tuple[int, ...] = (0,),
        timeout: float = _TIMEOUT,
    ) -> bytes:
        """Git's stdout; raises RepoError unless the exit status is one of `ok`."""
        return self.result(*args, input=input, env=env, ok=ok, timeout=timeout).stdout

    def result(
        self,
        *args: str | bytes | Path,
        input: bytes | None = None,
        env: Mapping[str, str] | None = None,
        ok: tuple[int, ...] | None = None,
        timeout: float = _TIMEOUT,
    ) -> subprocess.CompletedProcess[bytes]:
        """The finished process, whatever its status where `ok` is None."""
        try:
            # stdin is never inherited: a git of ours must not eat what the user types.
            with subprocess.Popen(
                self._argv(args),
                cwd=self.cwd,
                env=self._env(env),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=self.safe,  # the user's Ctrl-C asks us for a clean stop, it must not end our git
            ) as process:
                try:
                    out, err = process.communicate(input or b"", timeout)
                except BaseException:
                    self._end(process)
                    raise
        except subprocess.TimeoutExpired as error:
            raise RepoError(f"git {_verb(args)} did not end within {timeout:.0f} s", hint="git status") from error
        except OSError as error:
            raise _start_failure(error, self.cwd) from error
        done = subprocess.CompletedProcess(process.args, process.returncode, out, err)
        if ok is not None and done.returncode not in ok:
            raise failure(_verb(args), done.returncode, done.stderr, self.git_dir or self.cwd)
        return done

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """With all that it has started, such as a signer that hangs."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL) if self.safe else process.kill()

    @contextmanager
    def stream(self, *args: str | bytes | Path) -> Iterator[IO[bytes]]:
        """Git's stdout as a pipe, for output that must not be held in memory; git is ended when the block is left.

        Where the block has read to the end, git must have succeeded: else RepoError is raised as the block is left. A
        block that leaves some unread has stopped on purpose, and git's status says nothing.
        """
        with contextlib.ExitStack() as opened:
            try:
                stderr = opened.enter_context(tempfile.TemporaryFile())  # a pipe that nobody reads could block git
                process = subprocess.Popen(
                    self._argv(args),
                    cwd=self.cwd,
                    env=self._env(None),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                    start_new_session=self.safe,
                )
            except OSError as error:
                raise _start_failure(error, self.cwd) from error
            assert process.stdout is not None  # noqa: S101 - PIPE was asked for
            try:
                yield process.stdout
                status = 0 if process.stdout.read(1) else process.wait(_TIMEOUT)
            except subprocess.TimeoutExpired as error:
                raise RepoError(f"git {_verb(args)} did not end within {_TIMEOUT:.0f} s", hint="git status") from error
            finally:
                process.stdout.close()
                process.kill()
                process.wait()
            if status != 0:
                stderr.seek(0)
                raise failure(_verb(args), status, stderr.read(_STDERR), self.git_dir or self.cwd)

    def converse(self, *args: str | bytes | Path) -> Conversation:
        """A git that answers questions on its stdin until nobody refers to it any more."""
        try:
            process = subprocess.Popen(
                self._argv(args),
                cwd=self.cwd,
                env=self._env(None),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=self.safe,
            )
        except OSError as error:
            raise _start_failure(error, self.cwd) from error
        return Conversation(process)

    def text(self, *args: str | bytes | Path, ok: tuple[int, ...] = (0,)) -> str:
        """Git's stdout as text, without its last line end."""
        return os.fsdecode(self.run(*args, ok=ok)).removesuffix("\n")

    def _argv(self, args: tuple[str | bytes | Path, ...]) -> list[str | bytes | Path]:
        config = [word for pair in _SAFE_CONFIG for word in ("-c", pair)] if self.safe else []
        return [program(), *config, *args]

    def _env(self, more: Mapping[str, str] | None) -> dict[str, str]:
        places = {"GIT_DIR": self.git_dir, "GIT_COMMON_DIR": self.common_dir, "GIT_WORK_TREE": self.work_tree}
        env = clean_env() | {k: str(v) for k, v in places.items() if v is not None} | dict(self.extra)
        env |= alternates(self.fresh) if self.fresh is not None else {}
        return env | dict(more or {})


class Conversation:
    """Questions to one git, one at a time from any thread."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None  # noqa: S101 - both were asked for as pipes
        assert process.stdout is not None  # noqa: S101
        self._stdin, self._stdout = process.stdin, process.stdout
        self._lock = threading.Lock()
        OWN_READERS.add(process.pid)
        weakref.finalize(self, _end, process)

    def ask(self, question: bytes, body: Callable[[bytes], int] | None = None) -> tuple[bytes, bytes] | None:
        """The first line of the answer, and as many bytes after it as `body` says; None where git has ended."""
        with self._lock, contextlib.suppress(BrokenPipeError):
            self._stdin.write(question)
            self._stdin.flush()
            head = self._stdout.readline()
            size = body(head) if body is not None else 0
            data = self._stdout.read(size)
            if head.endswith(b"\n") and len(data) == size:
                return head, data[:-1]
        return None


def _end(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    process.kill()
    process.wait()
    OWN_READERS.discard(process.pid)


@lru_cache(maxsize=1)
def program() -> str:
    """The git on PATH, as an absolute path; raises RepoError where there is none."""
    found = shutil.which("git")
    if found is None:
        raise RepoError("git is not installed, or not on PATH", hint="git --version")
    return found


@lru_cache(maxsize=1)
def version() -> tuple[int, ...]:
    """The version of that git, such as (2, 39, 5)."""
    words = Git(Path("/")).text("version")
    return tuple(int(n) for n in re.findall(r"\d+", words)[:3])


def failure(verb: str, status: int, stderr: bytes, place: Path) -> RepoError:
    """git's own last words as one sentence of ours, with the next command where the cause is known.

    Of a full disk git often says no more than that it could not write: so the disk at `place` is asked.
    """
    said = [line for line in printable(stderr.decode("utf-8", "replace")).split("\n") if line.strip()]
    telling = [line for line in said if line.startswith(("fatal:", "error:"))] or said or ["no message"]
    text = " / ".join(dict.fromkeys(telling[-3:]))[:600]
    hint = "git status"
    if "No space left" not in text and _is_full(place):
        text += " (No space left on device)"
    if "No space left on device" in text or "Disk quota exceeded" in text:
        hint = "free some disk space (df -h .), then run the command again"
    elif "Permission denied" in text or "Read-only file system" in text:
        hint = "check who may write to the repository (ls -ld .git)"
    return RepoError(f"git {verb} failed ({status}): {text}", hint=hint)


def _is_full(place: Path) -> bool:
    try:
        disk = os.statvfs(place)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < _FULL or (disk.f_files > 0 and disk.f_favail == 0)


def disk_error(error: OSError, doing: str) -> RepoError:
    """An operating system error as a sentence; the hint names the usual cure."""
    hints = {
        errno.ENOSPC: "free some disk space (df -h .), then run the command again",
        errno.EDQUOT: "free some disk space (quota), then run the command again",
        errno.EACCES: "check who may write there (ls -ld .git)",
        errno.EROFS: "the file system is read-only; mount it writable or work in another clone",
    }
    where = f" ({printable(str(error.filename))})" if error.filename else ""
    return RepoError(f"{doing}: {error.strerror or error}{where}", hint=hints.get(error.errno or 0, "git relay doctor"))


def _verb(args: tuple[str | bytes | Path, ...]) -> str:
    return str(next((a for a in args if not str(a).startswith("-")), "command"))


def _start_failure(error: OSError, cwd: Path) -> RepoError:
    if not cwd.is_dir():
        return RepoError(f"the folder {printable(str(cwd))} does not exist", hint="git relay doctor")
    return disk_error(error, "git could not be started")
