"""The sealed environment: what a test, and every process that it starts, may see of the machine.

Promise: nothing of the developer's own is read or written. HOME and the XDG folders are the test's, git has no system
configuration and a known global one, PATH holds only the programs named here, and no variable passes that is not named
here, so no credential of an agent, and no GIT_*, gets in.
"""

from __future__ import annotations

import os
import pwd
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PASSED_ON = ("LD_LIBRARY_PATH", "SSL_CERT_FILE", "TERM", "TMPDIR", "USER", "LOGNAME")
PASSED_ON_PREFIXES = ("COV_", "HYPOTHESIS_", "PYTEST_", "PY_COLORS", "RELAY_TEST_")

PROGRAMS = """
    git git-lfs sh bash env
    awk basename cat chmod chown cmp cp cut date dd df diff dirname du echo expr false find flock grep gzip head id kill
    ln ls mkdir mkfifo mknod mktemp mount mv nice nohup nsenter od paste printf ps pwd readlink realpath rm rmdir script
    sed seq setpriv setsid sha256sum sleep sort stat stty sync tail tar tee test timeout touch tr true truncate tty
    umount uname uniq unshare wc which whoami xargs yes
    ip man mandoc groff nroff preconv tbl troff grotty col less gpg ssh-keygen
""".split()  # noqa: SIM905

GITCONFIG = """\
[user]
\tname = Dev
\temail = dev@example.invalid
[init]
\tdefaultBranch = main
[advice]
\tdetachedHead = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
"""


def make_bin(folder: Path) -> Path:
    """Fill `folder` with links to the known programs that this machine has, with this Python and with `git-relay`."""
    folder.mkdir(parents=True)
    search = os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin:/bin"
    for name in PROGRAMS:
        if found := shutil.which(name, path=search):
            (folder / name).symlink_to(found)
    (folder / "python3").symlink_to(os.path.realpath(sys.executable))
    relay = Path(sys.executable).with_name("git-relay")
    if relay.exists():
        (folder / "git-relay").symlink_to(relay)
    else:  # a plain `pytest` in an environment where the package is not installed
        run = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from relay_git.cli import main; sys.exit(main())"
        script = f"#!{sys.executable}\n{run}\n"
        (folder / "git-relay").write_text(script)
        (folder / "git-relay").chmod(0o755)
    return folder


def sealed_environ(bin_dir: Path, before: dict[str, str]) -> dict[str, str]:
    """All the variables of a test but those of its home."""
    kept = {k: v for k, v in before.items() if k in PASSED_ON or k.startswith(PASSED_ON_PREFIXES)}
    return kept | {
        "PATH": str(bin_dir),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "COLUMNS": "100",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_EDITOR": "false",
        "GIT_PAGER": "cat",
        "GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z",
        "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z",
        "PYTHONWARNINGS": "error",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def home_environ(home: Path) -> dict[str, str]:
    """The variables that say where the user's own files lie."""
    return {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_DATA_HOME": str(home / ".local" / "share"),
        "XDG_STATE_HOME": str(home / ".local" / "state"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "XDG_RUNTIME_DIR": str(home / ".run"),
        "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
    }


def make_home(home: Path) -> Path:
    """Make the folder, with the sealed git configuration in it."""
    home.mkdir(mode=0o700)
    (home / ".gitconfig").write_text(GITCONFIG)
    return home


def real_home() -> Path:
    """The home that the system knows for this user, whatever HOME says."""
    return Path(pwd.getpwuid(os.getuid()).pw_dir).resolve()
