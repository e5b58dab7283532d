"""What only a session's worktree holds: files that no commit has, in it and in the repositories within, at any depth,
and commits that only its git dir names.

Promise: nothing is passed over because of a setting of the user's, of an index bit, or because it lies in a repository
into which git would not look; in doubt it is there. No git is run by a configuration that an agent may have written,
and a folder of which all is ignored is one name, not a walk.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from relay_git.git import links
from relay_git.git.repo import Repo, make_private
from relay_git.git.run import Git
from relay_git.git.store import Oid
from relay_git.session import SessionId

_NESTED = b"160000 "
# Asked outright, since the user's `status.showUntrackedFiles` and `submodule.<name>.ignore` say what is shown, not what
# is there. With `dirty` no git is started in a repository within.
_STATUS = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=dirty")
_IGNORED = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
_OWN_REFS = ("refs/worktree", "refs/bisect", "refs/rewritten")  # git shares them with no other worktree
_AUTOSTASHES = ("rebase-merge/autostash", "rebase-apply/autostash", "MERGE_AUTOSTASH")
_OID = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_BITS = {b"S": ("skip-worktree",), b"h": ("assume-unchanged",), b"s": ("skip-worktree", "assume-unchanged")}


@dataclass(frozen=True, slots=True)
class Loose:
    """What no commit has of the files of one repository; `place` is its path below the worktree, "" for the worktree.

    `hidden` names edits that an index bit keeps out of `git status`, `bits` what these are called; `unread` where git
    cannot tell.
    """

    place: str
    changed: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    bits: tuple[str, ...] = ()
    unread: bool = False


def look(repo: Repo, session: SessionId) -> tuple[Loose, tuple[Loose, ...]]:
    """The worktree itself, and each repository within that holds something which no commit has."""
    git, scratch = repo.session_git(session), repo.spool_dir(session) / "look"
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        changed, ignored = _names(git, *_STATUS, skip=3), _names(git, *_IGNORED)
        hidden, bits = _hidden(git, repo.worktree_git_dir(session) / "index", scratch, changed)
        within = tuple(_within(git, git.cwd, scratch))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return Loose("", changed, ignored, hidden, bits), within


def commits(repo: Repo, session: SessionId) -> tuple[Oid, ...]:
    """What the worktree's git dir alone names beside HEAD: its own refs, and what a rebase or merge has put aside."""
    git_dir = repo.worktree_git_dir(session)
    if not git_dir.is_dir():
        return ()
    git = Git(repo.common_dir, git_dir=git_dir, common_dir=repo.common_dir)
    asked = ("for-each-ref", "--format=%(objecttype) %(objectname)", *_OWN_REFS)
    named = [line.partition(b" ")[2] for line in git.result(*asked).stdout.split(b"\n") if line.startswith(b"commit ")]
    aside = ((links.read_small(git_dir / name) or b"").strip() for name in _AUTOSTASHES)
    found = dict.fromkeys((*named, *(oid for oid in aside if _OID.fullmatch(oid))))
    return tuple(Oid(oid.decode()) for oid in found)


def repositories(git: Git, place: Path) -> list[str]:
    """Where repositories lie in a work tree that git's own status does not look into, by the index of `git`.

    The index knows them by their commit id, or they were made over files that it tracks itself. None of them is behind
    a link, so all of them are the worktree's. A broken index must not stop who gives all up.
    """
    known, folders = list[bytes](), {b""}
    for line in git.result("ls-files", "-s", "-z").stdout.split(b"\0"):
        mode, _, path = line.partition(b"\t")
        if mode.startswith(_NESTED):
            known.append(path)
        while (path := path.rpartition(b"/")[0]) not in folders:
            folders.add(path)
    top = os.fsencode(place) + b"/"
    made = (folder for folder in folders - {b""} if os.path.lexists(top + folder + b"/.git"))
    real = os.path.realpath(top) + b"/"
    return [os.fsdecode(p) for p in sorted({*known, *made}) if os.path.realpath(top + p) == real + p]


def git_dir_of(place: Path) -> Path | None:
    """The git dir of a repository within, also where a file in its place names it; None for none."""
    git_dir = place / ".git"
    if git_dir.is_file():
        with git_dir.open("rb") as file:
            named = file.read(4096).partition(b"gitdir: ")[2].rstrip(b"\n")
        if not named or b"\0" in named:
            return None
        git_dir = place / os.fsdecode(named)
    return git_dir if git_dir.is_dir() else None


def bare(git_dir: Path) -> Git:
    """A git for what a git dir holds; it does not miss the work tree, which may be gone."""
    return Git(git_dir, git_dir=git_dir, work_tree=git_dir)


def _within(git: Git, top: Path, scratch: Path) -> Iterator[Loose]:
    for path in repositories(git, git.cwd):
        place = git.cwd / path
        name = str(place.relative_to(top))
        if not os.path.lexists(place / ".git"):  # a submodule that was never filled; git sees no file in it
            left = tuple(sorted(file.name for file in place.iterdir())) if place.is_dir() else ()
            if left:
                yield Loose(name, left)
            continue
        git_dir = git_dir_of(place)
        inner = _seen_from_outside(place, git_dir, scratch / str(len(list(scratch.glob("*"))))) if git_dir else None
        if git_dir is None or inner is None:
            yield Loose(name, unread=True)
            continue
        changed = dict.fromkeys((*_names(inner, *_STATUS, skip=3), *_staged(inner, git_dir / "index")))
        ignored = _names(inner, *_IGNORED)
        if changed or ignored:
            yield Loose(name, tuple(changed), ignored)
        yield from _within(inner, top, scratch)


def _seen_from_outside(place: Path, git_dir: Path, look: Path) -> Git | None:
    """A git that has of a repository the objects, HEAD and files alone; None where these cannot be found.

    Its configuration is an agent's to write, and may name programs that git would run. Its index may bear bits that
    hide edits: this one is made of HEAD.
    """
    head = bare(git_dir).result("rev-parse", "--verify", "HEAD")
    if head.returncode != 0:
        return None
    make_private(look / "refs")
    (look / "HEAD").write_bytes(head.stdout)
    sha256 = "\trepositoryFormatVersion = 1\n[extensions]\n\tobjectFormat = sha256\n" if len(head.stdout) > 60 else ""
    (look / "config").write_text(f"[core]\n\tbare = false\n{sha256}")
    extra = {"GIT_OBJECT_DIRECTORY": str(git_dir / "objects")}
    seen = Git(place, git_dir=look, work_tree=place, extra=extra)
    return seen if seen.result("read-tree", "HEAD").returncode == 0 else None


def _staged(inner: Git, index: Path) -> tuple[str, ...]:
    """What the repository's own index alone may hold: staged, and changed again or taken away since."""
    if not index.is_file():
        return ()
    asked = ("diff-index", "--cached", "--name-only", "--no-renames", "-z", "HEAD")
    return _names(inner, *asked, env={"GIT_INDEX_FILE": str(index)})


def _hidden(git: Git, index: Path, scratch: Path, shown: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Which edits only a status without any index bit shows, and the names of the bits."""
    lines = [line for line in git.run("ls-files", "-v", "-z").split(b"\0") if line[:1] in _BITS]
    marked = {line[2:]: line[:1] for line in lines if os.path.lexists(git.cwd / os.fsdecode(line[2:]))}
    if not marked:
        return (), ()
    make_private(scratch)
    was, copy = index.stat(), scratch / "index"
    shutil.copyfile(index, copy)
    os.utime(copy, ns=(was.st_atime_ns, was.st_mtime_ns))  # git trusts no entry that is as young as its index
    env, paths = {"GIT_INDEX_FILE": str(copy)}, b"".join(path + b"\0" for path in marked)
    for bit in ("skip-worktree", "assume-unchanged"):  # git takes one of them at a time
        git.run("update-index", f"--no-{bit}", "-z", "--stdin", input=paths, env=env)
    seen = [path for path in _names(git, *_STATUS, skip=3, env=env) if path not in shown]
    bits = dict.fromkeys(bit for path in seen for bit in _BITS.get(marked.get(os.fsencode(path), b""), ()))
    return tuple(seen), tuple(bits)


def _names(git: Git, *args: str, skip: int = 0, env: dict[str, str] | None = None) -> tuple[str, ...]:
    return tuple(os.fsdecode(name[skip:]) for name in git.run(*args, env=env).split(b"\0") if name)
