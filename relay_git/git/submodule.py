"""Submodules of a session's worktree: filled from what the user already has, and never thrown away with work in them.

Promise: nothing is fetched from a network and nothing of the user's own module repositories is written: a session has
copies of its own, which read the user's objects. Before a worktree goes, repositories within it that hold commits which
exist nowhere else are moved to `<common git dir>/relay/kept/<session>/`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from relay_git.errors import RepoError, printable
from relay_git.git import loose
from relay_git.git.repo import Repo, make_private
from relay_git.git.run import Git
from relay_git.session import SessionId

_BASE = "refs/relay/base/commit"  # in a copy of ours: the commit that it began on


def fill(repo: Repo, session: SessionId) -> tuple[str, ...]:
    """Check out every submodule whose repository the user has; notes on those that stay empty, in words.

    Only for a worktree in which no agent has been yet.
    """
    place = repo.session_dir(session)
    return tuple(_fill(place, place, [repo.git_dir / "modules", repo.common_dir / "modules"]))


def _fill(top: Path, place: Path, sources: list[Path]) -> Iterator[str]:
    git = Git(place)
    for name, path in _listed(git, place):
        if not git.run("ls-files", "-s", "-z", "--", f":(literal){path}").startswith(b"160000 "):
            continue
        shown = printable(str((place / path).relative_to(top)))
        source = next((s / name for s in sources if (s / name / "HEAD").is_file()), None)
        why = "you have not initialised it either" if source is None else _copy(git, place / path, name, path, source)
        if why:
            yield f"the submodule {shown} is empty: {why} (git -C {printable(str(place))} submodule update --init)"
        elif source is not None:
            yield from _fill(top, place / path, [source / "modules"])


def _listed(git: Git, place: Path) -> list[tuple[str, str]]:
    """Name and path of each submodule; of names and paths that lead elsewhere git itself wants nothing either."""
    if not (place / ".gitmodules").is_file() or (place / ".gitmodules").is_symlink():
        return []
    asked = ("config", "--file", place / ".gitmodules", "-z", "--get-regexp", r"^submodule\..*\.path$")
    pairs = (os.fsdecode(item).partition("\n") for item in git.run(*asked, ok=(0, 1)).split(b"\0") if item)
    found = [(key.removeprefix("submodule.").removesuffix(".path"), path) for key, _, path in pairs]
    return [(n, p) for n, p in found if all(".." not in Path(w).parts and not Path(w).is_absolute() for w in (n, p))]


def _copy(git: Git, place: Path, name: str, path: str, source: Path) -> str:
    """Why the submodule could not be checked out, or nothing."""
    settings = {f"submodule.{name}.url": source.as_uri(), f"submodule.{name}.active": "true"}
    settings["protocol.file.allow"] = "always"
    env = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    try:
        git.run("submodule", "--quiet", "update", "--reference", source, "--", path, env=env)
        if not (place / ".git").exists():
            return "your settings leave it so"
        inner = Git(place)
        inner.run("update-ref", _BASE, "HEAD")
        url = inner.text("config", "--file", source / "config", "remote.origin.url", ok=(0, 1))
        if url:
            inner.run("config", "remote.origin.url", url)
    except RepoError as error:
        return str(error)
    return ""


def keep(repo: Repo, session: SessionId) -> tuple[Path, ...]:
    """Move what holds commits of its own out of a worktree that is to go; where it lies now."""
    git = repo.session_git(session)
    there = git.cwd.is_dir() and repo.worktree_git_dir(session).is_dir()
    within = list(_nested(git, git.cwd, git.cwd)) if there else []  # all found before a git dir goes
    return (*keep_modules(repo, session), *_keep(repo, session, within))


def keep_modules(repo: Repo, session: SessionId) -> tuple[Path, ...]:
    """The same for submodules alone, of which the repositories lie in the git dir of the worktree."""
    modules = repo.worktree_git_dir(session) / "modules"
    return _keep(repo, session, ((m, str(m.relative_to(modules))) for m in _modules(modules)))


def _keep(repo: Repo, session: SessionId, found: Iterable[tuple[Path, str]]) -> tuple[Path, ...]:
    kept, moved = repo.relay_dir / "kept" / session, list[Path]()
    for git_dir, name in found:
        if not git_dir.is_dir() or not _has_own(git_dir):
            continue
        flat = name.replace("/", "-")
        free = (kept / f"{flat}{n or ''}.git" for n in range(10_000))
        target = next(path for path in free if not path.exists())
        make_private(kept)
        shutil.move(git_dir, target)
        _stand_alone(target)
        moved.append(target)
    return tuple(moved)


def _modules(folder: Path) -> Iterator[Path]:
    """The git dirs of submodules below a `modules` folder, inner ones first."""
    for place, inner, files in os.walk(folder, topdown=True):
        if "HEAD" in files and "objects" in inner:
            yield from _modules(Path(place) / "modules")
            yield Path(place)
            inner.clear()


def _nested(git: Git, top: Path, place: Path) -> Iterator[tuple[Path, str]]:
    """The git dirs of repositories that were made in the worktree, however deep, inner ones first."""
    for path in loose.repositories(git, place):
        inner, own = place / path, loose.git_dir_of(place / path)
        if own is None:
            continue
        yield from _nested(loose.bare(own), top, inner)
        if own == inner / ".git" and not own.is_symlink():
            name = str(inner.relative_to(top))
            yield from ((m, f"{name}/{m.relative_to(own / 'modules')}") for m in _modules(own / "modules"))
            yield own, name


def _has_own(git_dir: Path) -> bool:
    """Whether a repository holds commits that it was neither made with nor fetched; where git cannot tell, it does."""
    asked = ("rev-list", "--max-count=1", "--all", "HEAD", "--not", "--remotes", "--glob=refs/relay/base")
    done = loose.bare(git_dir).result(*asked)
    return done.returncode != 0 or bool(done.stdout.strip())


def _stand_alone(git_dir: Path) -> None:
    """Take in what it reads from another repository, and forget its work tree, which goes."""
    loose.bare(git_dir).run("config", "--file", git_dir / "config", "--unset", "core.worktree", ok=(0, 5))
    if (git_dir / "objects/info/alternates").is_file():
        done = loose.bare(git_dir).result("repack", "-a", "-d", "-q")
        if done.returncode == 0:
            (git_dir / "objects/info/alternates").unlink()
