"""The seal around every test, and the fixtures that all rooms share.

Promise: a test that forgets to ask for anything is sealed all the same (see `seal.environment`). Tests run in parallel
and in random order, so none may change the working directory.
"""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import HealthCheck, settings

from tests.seal.environment import home_environ, make_bin, make_home, real_home, sealed_environ
from tests.seal.repo import Repo, git_version
from tests.seal.warm import Warm, may_run

MakeRepo = Callable[..., Repo]

# How long a draw or an example takes says how busy the machine is, not whether the code is right.
settings.register_profile("sealed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("sealed")


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of one command."""

    rc: int
    stdout: str
    stderr: str


def _refuse_chdir(path: object) -> NoReturn:
    raise AssertionError(f"a test must not chdir (to {path}): tests run in parallel; pass cwd instead")


@pytest.fixture(scope="session", autouse=True)
def sealed_machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Once a worker: the sealed environment, and the folder that the tests' homes lie in."""
    before = dict(os.environ)
    base = tmp_path_factory.mktemp("sealed")
    if real_home() != Path("/") and base.resolve().is_relative_to(real_home()):
        pytest.exit(f"refusing to run: the temporary folder {base} lies in the real home {real_home()}", returncode=2)
    bin_dir = make_bin(base / "bin")
    (base / "homes").mkdir()
    os.environ.clear()
    os.environ.update(sealed_environ(bin_dir, before))
    os.environ.update(home_environ(make_home(base / "homes" / "session")))
    chdir, os.chdir = os.chdir, _refuse_chdir
    yield base
    os.chdir = chdir
    os.environ.clear()
    os.environ.update(before)


_numbers = itertools.count()


@pytest.fixture(autouse=True)
def home(sealed_machine: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This test's own home, empty but for the sealed .gitconfig."""
    path = make_home(sealed_machine / "homes" / str(next(_numbers)))
    for name, value in home_environ(path).items():
        monkeypatch.setenv(name, value)
    if Path.home().resolve() == real_home():
        pytest.exit("refusing to run against the real home", returncode=2)
    return path


@pytest.fixture
def make_repo(tmp_path: Path) -> MakeRepo:
    """A factory of repositories in `tmp_path`.

    `make_repo(name, unborn=, bare=, detached=, dirty=, object_format="sha256", ref_format="reftable")`; without any, a
    repository on branch `main` with one commit that holds `README.md` and `src/greet.py`.
    """

    def make(
        name: str = "repo",
        *,
        unborn: bool = False,
        bare: bool = False,
        detached: bool = False,
        dirty: bool = False,
        object_format: str = "sha1",
        ref_format: str = "files",
    ) -> Repo:
        if ref_format != "files" and git_version() < (2, 45):
            pytest.skip(f"git {'.'.join(map(str, git_version()))} knows no {ref_format} (2.45 is the first)")
        path = tmp_path / name
        options = ["--template="]
        if object_format != "sha1":
            options.append(f"--object-format={object_format}")
        if ref_format != "files":
            options.append(f"--ref-format={ref_format}")
        if bare:
            options.append("--bare")
        path.mkdir(parents=True)
        made = Repo(path)
        made.git("init", "-q", *options)
        if unborn or bare:
            return made
        made.commit("initial commit", {"README.md": "# demo\n", "src/greet.py": 'def greet(name):\n    return "hi"\n'})
        if detached:
            made.git("checkout", "-q", "--detach")
        if dirty:
            made.write("README.md", "# demo, changed and not committed\n")
            made.write("staged.txt", "staged\n")
            made.git("add", "staged.txt")
            made.write("untracked.txt", "untracked\n")
        return made

    return make


@pytest.fixture
def repo(make_repo: MakeRepo) -> Repo:
    """A repository on branch `main` with one commit."""
    return make_repo()


@pytest.fixture(scope="session")
def warm(sealed_machine: Path) -> Iterator[Warm]:
    """Once a worker: what commands are forked from."""
    made = Warm(sealed_machine)
    yield made
    made.stop()


@pytest.fixture
def relay(warm: Warm) -> Callable[..., Ran]:
    """`relay(*args, cwd=, env=, stdin=, timeout=)`: run `git-relay` in a process of its own and return a `Ran`."""

    def run(
        *args: str | Path,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        stdin: str | bytes = b"",
        timeout: float = 120,
    ) -> Ran:
        argv = ["git-relay", *map(str, args)]
        data = stdin.encode() if isinstance(stdin, str) else stdin
        full = {**os.environ, **(env or {})}
        if may_run(env or {}):
            done = warm.run(argv, cwd, full, data, timeout)
        else:
            done = subprocess.run(
                argv, cwd=cwd, env=full, input=data, capture_output=True, timeout=timeout, check=False
            )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run
