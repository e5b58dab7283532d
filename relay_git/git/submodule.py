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
    return (*keep_modules(repo, session), *_keep(repo, session, _nested(repo, session)))


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


def unsaved(repo: Repo, session: SessionId) -> tuple[str, ...]:
    """Which repositories within the worktree hold files that they have not committed; in doubt they do."""
    git, look = repo.session_git(session), repo.spool_dir(session) / "look"
    try:
        return tuple(_unsaved(git, git.cwd, look))
    finally:
        shutil.rmtree(look, ignore_errors=True)


def _unsaved(git: Git, top: Path, look: Path) -> Iterator[str]:
    for path in _gitlinks(git):
        place = git.cwd / path
        if not os.path.lexists(place / ".git"):
            continue
        inner = _seen_from_outside(place, look / f"{len(list(look.glob('*')))}")
        if inner is None or inner.run("status", "--porcelain", "-z", "--ignore-submodules=dirty"):
            yield str(place.relative_to(top))
        else:
            yield from _unsaved(inner, top, look)


def _seen_from_outside(place: Path, look: Path) -> Git | None:
    """A git that has of a repository the objects, HEAD and files alone; None where these cannot be found.

    Its configuration is an agent's to write, and may name programs that git would run.
    """
    link = place / ".git"
    git_dir = link if link.is_dir() else place / link.read_text()[8:].rstrip("\n") if link.is_file() else None
    head = _git(git_dir).result("rev-parse", "--verify", "HEAD") if git_dir is not None and git_dir.is_dir() else None
    if git_dir is None or head is None or head.returncode != 0:
        return None
    make_private(look / "refs")
    (look / "HEAD").write_bytes(head.stdout)
    sha256 = "\trepositoryFormatVersion = 1\n[extensions]\n\tobjectFormat = sha256\n" if len(head.stdout) > 60 else ""
    (look / "config").write_text(f"[core]\n\tbare = false\n{sha256}")
    extra = {"GIT_OBJECT_DIRECTORY": str(git_dir / "objects")}
    seen = Git(place, git_dir=look, work_tree=place, extra=extra)
    return seen if seen.result("read-tree", "HEAD").returncode == 0 else None


def _modules(folder: Path) -> Iterator[Path]:
    """The git dirs of submodules below a `modules` folder, inner ones first."""
    for place, inner, files in os.walk(folder, topdown=True):
        if "HEAD" in files and "objects" in inner:
            yield from _modules(Path(place) / "modules")
            yield Path(place)
            inner.clear()


def _nested(repo: Repo, session: SessionId) -> Iterator[tuple[Path, str]]:
    """The git dirs of repositories that were made in the worktree and are in its index by their commit id."""
    git = repo.session_git(session)
    if not git.cwd.is_dir() or not repo.worktree_git_dir(session).is_dir():
        return
    for path in _gitlinks(git):
        if not (git.cwd / path / ".git").is_symlink():
            yield git.cwd / path / ".git", path


def _gitlinks(git: Git) -> list[str]:
    """The repositories that an index knows by their commit id; a broken index must not stop who gives all up."""
    lines = git.result("ls-files", "-s", "-z").stdout.split(b"\0")
    return [os.fsdecode(line.partition(b"\t")[2]) for line in lines if line.startswith(b"160000 ")]


def _has_own(git_dir: Path) -> bool:
    """Whether a repository holds commits that it was neither made with nor fetched; where git cannot tell, it does."""
    asked = ("rev-list", "--max-count=1", "--all", "HEAD", "--not", "--remotes", "--glob=refs/relay/base")
    done = _git(git_dir).result(*asked)
    return done.returncode != 0 or bool(done.stdout.strip())


def _stand_alone(git_dir: Path) -> None:
    """Take in what it reads from another repository, and forget its work tree, which goes."""
    _git(git_dir).run("config", "--file", git_dir / "config", "--unset", "core.worktree", ok=(0, 5))
    if (git_dir / "objects/info/alternates").is_file():
        done = _git(git_dir).result("repack", "-a", "-d", "-q")
        if done.returncode == 0:
            (git_dir / "objects/info/alternates").unlink()


def _git(git_dir: Path) -> Git:
    """One that does not miss the work tree, which may be gone."""
    return Git(git_dir, git_dir=git_dir, work_tree=git_dir)
