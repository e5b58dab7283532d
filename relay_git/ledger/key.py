"""The project's signing key: made once, kept 0600 in the common git dir, never committed, never replaced unasked.

Promise: a key that is missing, unreadable, damaged or open to others is refused with the cure; none is made while
sessions exist that another key has signed, unless the user asks for it.
"""

from __future__ import annotations

import os
import secrets
import stat

from relay_git.contract.canonical import Malformed
from relay_git.contract.sign import KEY_BYTES, Key
from relay_git.errors import SignatureRefused
from relay_git.git.repo import JOURNALS, Repo, make_private, write_private
from relay_git.git.run import disk_error
from relay_git.git.store import Store


def load(repo: Repo) -> Key:
    """The key of this repository; raises SignatureRefused, with the cure, where it cannot be used."""
    file = repo.key_file
    try:
        with file.open("rb") as source:
            mode = os.fstat(source.fileno()).st_mode
            data = source.read(4096)
    except FileNotFoundError as error:
        raise SignatureRefused(f"the signing key {file} is missing", hint=_cure_for_missing()) from error
    except OSError as error:
        raise SignatureRefused(
            f"the signing key {file} cannot be read: {error.strerror}", hint=f"ls -l {file}"
        ) from error
    if stat.S_IMODE(mode) & 0o077:
        raise SignatureRefused(f"the signing key {file} is open to other users", hint=f"chmod 600 {file}")
    try:
        return Key(bytes.fromhex(data.decode("ascii").strip()))
    except (ValueError, Malformed) as error:
        raise SignatureRefused(f"the signing key {file} is damaged", hint=_cure_for_missing()) from error


def ensure(repo: Repo, store: Store) -> Key:
    """The key, made now if this repository never had one."""
    if not repo.key_file.exists() and not any(True for _ in store.refs(JOURNALS)):
        _create(repo)
    return load(repo)


def renew(repo: Repo) -> Key:
    """A new key in place of the old one, which is kept beside it; older contracts then say `unknown-key`."""
    file = repo.key_file
    if file.exists():
        aside = next(p for n in range(1, 10_000) if not (p := file.with_name(f"key.{n}")).exists())
        try:
            file.rename(aside)
        except OSError as error:
            raise disk_error(error, "the old key could not be kept aside") from error
    _create(repo)
    return load(repo)


def _create(repo: Repo) -> None:
    make_private(repo.relay_dir)
    fresh = repo.key_file.with_name(f"key.new.{os.getpid()}")
    write_private(fresh, secrets.token_hex(KEY_BYTES).encode() + b"\n")
    try:
        # A link fails where another process was first, so that two starts never end up with two keys.
        os.link(fresh, repo.key_file)
    except FileExistsError:
        pass
    except OSError as error:
        raise disk_error(error, "the signing key could not be written") from error
    finally:
        fresh.unlink(missing_ok=True)


def _cure_for_missing() -> str:
    return "restore it from a backup, or: git relay init --new-key (older contracts will then be 'unknown-key')"
