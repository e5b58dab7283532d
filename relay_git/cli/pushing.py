"""`pre-push`: whether what a push would send holds a key, asked by the user's own hook."""

from __future__ import annotations

import sys

from relay_git.cli import context
from relay_git.cli.redacting import policy_here
from relay_git.errors import ExitCode, UserError
from relay_git.git.outgoing import parse, remote_at
from relay_git.supervisor.committed import leaving

_HOOK = 'the last line of your pre-push hook: git relay pre-push "$@"'
_LISTED = 20


def pre_push(remote: str, url: str) -> int:
    """Name on stderr where keys would leave; exit status 1 if one would, which stops the push."""
    if sys.stdin.isatty():
        raise UserError("a pre-push hook gets on standard input what is pushed", hint=_HOOK)
    repo, store = context.open_repo()
    push = parse(sys.stdin.buffer)
    git = repo.git()
    found, left_out = leaving(git, push, remote_at(git, store, remote, url), policy_here())
    if left_out:
        print(f"git relay: {left_out} large or missing objects were not searched for secrets", file=sys.stderr)
    if not found:
        return ExitCode.DONE
    print("git relay: this push would send what looks like a secret, and is stopped", file=sys.stderr)
    for line in found[:_LISTED]:
        print(f"  {line}", file=sys.stderr)
    if len(found) > _LISTED:
        print(f"  and {len(found) - _LISTED} more", file=sys.stderr)
    print("take it out of the commits (git rebase -i) and change the key;", file=sys.stderr)
    print("if it is harmless: git config --add relay.redact.allow GLOB", file=sys.stderr)
    return ExitCode.FAILED
