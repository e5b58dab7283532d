"""Which repository the user means, and where everything of git relay's lies in it.

Promise: discovery changes nothing. Paths are absolute; the layout below is the one place that knows where files go.

    <common git dir>/relay/key            the signing key, 0600
    <common git dir>/relay/locks/         one lock file a session, one for worktrees
    <common git dir>/relay/logs/<id>/     bounded output of each leg
    <common git dir>/relay/fresh/         objects that were written and are not yet safe from a prune (see `fresh`)
    <common git dir>/relay/spool/<id>/    requests to the supervisor, files of a leg, temporary indexes
    <main work tree>/.relay/sessions/<id> the session's worktree; for a bare repository see `_beside_bare`
    <its git dir>/relay/                  marker, safe points, pause flag: what the hook reads
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from relay_git.errors import RepoError, printable
from relay_git.git import fresh
from relay_git.git.durable import sync_folder
from relay_git.git.run import MINIMUM, Git, disk_error, version
from relay_git.git.store import OID, Oid
from relay_git.session import SessionId

SESSIONS = ".relay/sessions"
BRANCHES = "refs/heads/relay/"
JOURNALS = "refs/relay/sessions/"
NOTES = "refs/notes/relay/"


@dataclass(frozen=True, slots=True)
class Repo:
    """One repository; `work_tree` is where the user stands (None in a bare one), `home` where sessions lie.

    That is the main work tree; of a bare repository with worktrees it is a folder beside them.
    """

    common_dir: Path
    git_dir: Path
    work_tree: Path | None
    home: Path | None

    @property
    def relay_dir(self) -> Path:
        """Our private folder in the common git dir."""
        return self.common_dir / "relay"

    @property
    def key_file(self) -> Path:
        return self.relay_dir / "key"

    @property
    def fresh_dir(self) -> Path:
        """What our gits read beside the repository's objects: what stores are about to add to them."""
        return fresh.top_of(self.common_dir)

    @property
    def exclude_file(self) -> Path:
        return self.common_dir / "info" / "exclude"

    def lock_file(self, name: str) -> Path:
        return self.relay_dir / "locks" / f"{name}.lock"

    def log_dir(self, session: SessionId) -> Path:
        return self.relay_dir / "logs" / session

    def spool_dir(self, session: SessionId) -> Path:
        return self.relay_dir / "spool" / session

    def session_dir(self, session: SessionId) -> Path:
        if self.home is None:
            raise no_work_tree()
        return self.home / SESSIONS / session

    def worktree_git_dir(self, session: SessionId) -> Path:
        """The git dir of the session's worktree, under the name that `worktree add` gives it."""
        return self.common_dir / "worktrees" / session

    def git(self, *, safe: bool = True) -> Git:
        """A git at the user's own place; not `safe` where the user's own configuration is asked for."""
        place = self.work_tree or self.home
        if place is not None and (place / ".git").exists():
            return Git(place, safe=safe, fresh=self.fresh_dir)
        if place is None or self.work_tree is None:
            return Git(self.common_dir, git_dir=self.common_dir, safe=safe, fresh=self.fresh_dir)
        # GIT_DIR and GIT_WORK_TREE have brought the two together: git would not find the one from the other.
        return Git(place, git_dir=self.git_dir, work_tree=place, safe=safe, fresh=self.fresh_dir)

    def resolve(self, rev: str) -> Oid | None:
        """The commit that the user's words (HEAD, @, HEAD~1, a branch) mean where the user stands; None for none.

        Each linked worktree has a HEAD of its own, so this is no question to the common git dir.
        """
        done = self.git().result("rev-parse", "--verify", "--quiet", "--end-of-options", rev + "^{commit}")
        text = done.stdout.decode("ascii", "replace").strip()
        return Oid(text) if done.returncode == 0 and OID.fullmatch(text) else None

    @property
    def stands_in_session(self) -> bool:
        """Whether the user stands in a session's worktree: its git dir bears our marker."""
        return self.git_dir != self.common_dir and (self.git_dir / "relay" / "session").is_file()

    def session_git(self, session: SessionId) -> Git:
        """A git in the session's worktree that believes none of the links an agent could have changed there."""
        place = self.session_dir(session)
        own = self.worktree_git_dir(session)
        return Git(place, git_dir=own, common_dir=self.common_dir, work_tree=place, fresh=self.fresh_dir)


def discover(cwd: Path, env: Mapping[str, str]) -> Repo:
    """The repository around `cwd`, or the one that GIT_DIR names, and none of both mixed; raises RepoError for none."""
    if version() < MINIMUM:
        has = ".".join(map(str, version()))
        raise RepoError(f"git relay needs git {MINIMUM[0]}.{MINIMUM[1]} or newer, this is {has}", hint="git --version")
    named = {k: env[k] for k in ("GIT_DIR", "GIT_WORK_TREE") if k in env}
    git = Git(cwd, extra=named)
    done = git.result(
        "rev-parse",
        "--path-format=absolute",
        "--is-bare-repository",
        "--is-inside-work-tree",
        "--git-dir",
        "--git-common-dir",
    )
    if done.returncode != 0:
        raise _no_repository(cwd, done.stderr)
    words = os.fsdecode(done.stdout).removesuffix("\n").split("\n")
    if len(words) != 4:
        raise RepoError(
            "the repository's path holds a line break, which git relay cannot follow", hint="move it to another folder"
        )
    bare, inside, git_dir, common_dir = words[0] == "true", words[1] == "true", Path(words[2]), Path(words[3])
    stands = inside or "GIT_WORK_TREE" in named
    work_tree = Path(git.text("rev-parse", "--path-format=absolute", "--show-toplevel")) if stands else None
    if named and work_tree is not None:
        work_tree = _its_own(work_tree, git_dir)
    home = _beside_bare(common_dir) if bare else _home(git, git_dir, common_dir, work_tree)
    return Repo(common_dir, git_dir, work_tree, home)


def _its_own(work_tree: Path, git_dir: Path) -> Path | None:
    """The work tree of a git dir that the environment names, None where that is not the folder one stands in.

    Git takes any folder for the work tree of what GIT_DIR names, also another repository's. Then the one that is named
    counts, as if one stood in its git dir.
    """
    around = _found_from(work_tree)
    if around is not None and _is_same(around, git_dir):
        return Path(Git(work_tree).text("rev-parse", "--path-format=absolute", "--show-toplevel"))
    beside = _found_from(git_dir.parent) if git_dir.name == ".git" else None
    elsewhere = (git_dir / "gitdir").is_file() or (beside is not None and _is_same(beside, git_dir))
    return None if elsewhere or os.path.lexists(work_tree / ".git") else work_tree


def _found_from(place: Path) -> Path | None:
    """The git dir that git finds from a folder by itself."""
    done = Git(place).result("rev-parse", "--absolute-git-dir") if place.is_dir() else None
    return Path(os.fsdecode(done.stdout).removesuffix("\n")) if done is not None and done.returncode == 0 else None


def _is_same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()


def _home(git: Git, git_dir: Path, common_dir: Path, work_tree: Path | None) -> Path | None:
    if git_dir == common_dir and work_tree is not None:
        return work_tree
    listed = git.run("worktree", "list", "--porcelain", "-z").split(b"\0\0", 1)[0].split(b"\0")
    if b"bare" in listed:
        return _beside_bare(common_dir)
    main = Path(os.fsdecode(listed[0].removeprefix(b"worktree ")))
    if main == common_dir:  # what git says where the git dir lies apart: it does not know the work tree
        return _home_of_separate(git, common_dir)
    return main if main.is_dir() else None


def _beside_bare(common_dir: Path) -> Path | None:
    """Where the sessions of a bare repository lie: beside a hidden git dir (`.bare`, `.git`), else within it.

    One that has no worktree at all, as on a server, is no place to work in.
    """
    worktrees = common_dir / "worktrees"
    if not worktrees.is_dir() or not any(worktrees.iterdir()):
        return None
    return common_dir.parent if common_dir.name.startswith(".") else common_dir


def _home_of_separate(git: Git, common_dir: Path) -> Path:
    """The main work tree of a git dir that lies apart (--separate-git-dir, a submodule)."""
    named = git.text("config", "--file", common_dir / "config", "--get", "core.worktree", ok=(0, 1))
    places = [common_dir / named] if named else []
    for link in sorted(common_dir.glob("relay/spool/*/links/gitdir")):  # a session's worktree lies in the main one
        place = Path(os.fsdecode(link.read_bytes()).removesuffix("\n")).parent
        places += [place.parents[2]] if place.parts[-3:-1] == tuple(SESSIONS.split("/")) else []
    for place in places:
        if _found_from(place) == common_dir:
            return place.resolve()
    raise RepoError(
        f"the git dir {printable(str(common_dir))} lies apart from its main work tree, which git does not name here",
        hint="run it in the main work tree",
    )


def _no_repository(cwd: Path, stderr: bytes) -> RepoError:
    said = stderr.decode("utf-8", "replace")
    if "dubious ownership" in said:
        return RepoError(
            f"git does not trust {printable(str(cwd))}: it belongs to another user",
            hint=f"git config --global --add safe.directory {printable(str(cwd))}",
        )
    if "unknown repository extension" in said or "repository format version" in said:
        return RepoError(
            f"this git is too old for the repository: {printable(said.strip())[:200]}", hint="git --version"
        )
    return RepoError(
        f"{printable(str(cwd))} is not in a git repository",
        hint="cd to your project, or: git init && git add -A && git commit",
    )


def no_work_tree() -> RepoError:
    """Why a bare repository holds no session."""
    return RepoError(
        "this repository is bare and has no worktree: a session needs one to start from",
        hint="git worktree add ../main main, and run it there",
    )


def make_private(folder: Path) -> None:
    """Make a folder 0700, and with it all that it lies in up to our `relay/`; raises RepoError if it cannot."""
    try:
        for place in reversed(_up_to_relay(folder)):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            if stat.S_IMODE(place.stat().st_mode) & 0o077:
                place.chmod(0o700)
    except OSError as error:
        raise disk_error(error, "a private folder could not be made") from error


def _up_to_relay(folder: Path) -> list[Path]:
    """The folder and its parents, inmost first, up to the `relay/` of the git dir; elsewhere the folder alone."""
    for i, parent in enumerate((folder, *folder.parents)):
        if parent.name == "relay" and (parent.parent / "HEAD").exists():
            return [folder, *folder.parents][: i + 1]
    return [folder]


def write_private(file: Path, data: bytes) -> None:
    """Write a 0600 file in one step: readers see the old bytes or the new ones, never half of them."""
    make_private(file.parent)
    part = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        part.unlink(missing_ok=True)
        fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
        with os.fdopen(fd, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        part.replace(file)
        sync_folder(file.parent)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise disk_error(error, f"{file.name} could not be written") from error
