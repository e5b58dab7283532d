"""Whether the user's own signer signs a commit for somebody who can answer no question, as an agent is.

Promise: nobody is asked anything, nothing is stored in the repository, and a signer that hangs is ended.
"""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path

from relay_git.errors import RepoError
from relay_git.git.run import Git

PATIENCE = 5.0
# No window, no terminal: what would ask fails. For ssh a program that says no answers in the user's place.
_NOBODY = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "GPG_TTY": "", "SSH_ASKPASS": "false", "SSH_ASKPASS_REQUIRE": "force"}
_GNUPG = ("gpg", "gpg2")


def refusal(git: Git, patience: float = PATIENCE) -> str:
    """Why a commit would not be signed, in words, or an empty text."""
    kind = git.text("config", "--get", "gpg.format", ok=(0, 1)) or "openpgp"
    named = git.text("config", "--get", "gpg.openpgp.program", ok=(0, 1))
    program = named or git.text("config", "--get", "gpg.program", ok=(0, 1)) or "gpg"
    with tempfile.TemporaryDirectory() as folder:
        settings = []
        if kind == "openpgp" and Path(program).name in _GNUPG:
            asking_nobody = Path(folder, "gpg")
            asking_nobody.write_text(
                f'#!/bin/sh\nexec {shlex.quote(program)} --batch --no-tty --pinentry-mode error "$@"\n'
            )
            asking_nobody.chmod(0o700)
            settings = ["-c", f"gpg.program={asking_nobody}", "-c", f"gpg.openpgp.program={asking_nobody}"]
        env = _NOBODY | {"GIT_OBJECT_DIRECTORY": folder}
        try:
            empty = git.run("hash-object", "-w", "-t", "tree", "--stdin", env=env).decode().strip()
            git.run(*settings, "commit-tree", "-S", empty, "-m", "probe", env=env, timeout=patience)
        except RepoError as error:
            return str(error)
    return ""
