"""The user's signer, tried out as an agent would meet it: nobody is asked, and what hangs is ended."""

from __future__ import annotations

import os

import psutil
import pytest

from relay_git.git import signing
from relay_git.git.repo import discover

SIGNS = """cat >/dev/null
echo "[GNUPG:] SIG_CREATED D 1 8 00 0 0" >&2
printf -- '-----BEGIN PGP SIGNATURE-----\\n\\nabcd\\n-----END PGP SIGNATURE-----\\n'
"""
WOULD_ASK = 'case " $* " in *" --pinentry-mode error "*) echo no pinentry >&2; exit 2 ;; esac\ntouch asked\n'


@pytest.mark.parametrize(
    ("program", "script", "why"),
    [
        ("signer", SIGNS, ""),
        ("signer", "sleep 300\n", "did not end within"),
        ("signer", None, "No such file"),
        ("gpg", WOULD_ASK, "failed to sign"),
    ],
    ids=["signs", "hangs", "missing", "would ask"],
)
def test_a_signer_is_tried_out_without_a_question_and_without_a_trace(repo, tmp_path, program, script, why) -> None:
    file = tmp_path / program
    if script is not None:
        file.write_text(f"#!/bin/sh\n{script}")
        file.chmod(0o755)
    repo.git("config", "commit.gpgsign", "true")
    repo.git("config", "gpg.program", str(file))
    repo.git("config", "user.signingkey", "somebody")
    before = repo.git("count-objects")
    found = signing.refusal(discover(repo.path, os.environ).git(), 0.5 if why.startswith("did") else 30)
    assert (why in found) if why else found == ""
    assert repo.git("count-objects") == before
    assert not (repo.path / "asked").exists()
    assert [p for p in psutil.process_iter(["cmdline"]) if str(file) in (p.info["cmdline"] or ())] == []
