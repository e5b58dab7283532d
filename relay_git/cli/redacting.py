"""`redact`: what would be taken out of a text as a secret, and by which rule, so that a user can check."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import orjson

from relay_git.cli import context
from relay_git.cli.render import print_json
from relay_git.contract.redact import redact as redacted
from relay_git.errors import ExitCode, RelayError, UserError

if TYPE_CHECKING:
    from relay_git.contract.placeholder import Policy

_MOST = 64 << 20


def redact(*, as_json: bool, lines: bool) -> int:
    """Print what stands on standard input without its secrets; what was taken out is counted on stderr."""
    policy = policy_here()
    if lines:
        for number, line in enumerate(sys.stdin.buffer, 1):
            if line.strip():
                sys.stdout.write(orjson.dumps(_one(number, line, policy)).decode() + "\n")
        return ExitCode.DONE
    said = sys.stdin.buffer.read(_MOST + 1)
    if len(said) > _MOST:
        raise UserError(f"more than {_MOST >> 20} MiB is too much at once", hint="split -C 50m FILE")
    text, counts = redacted(said.decode("utf-8", "replace"), policy)
    if as_json:
        print_json({"text": text, "counts": dict(counts)})
    else:
        sys.stdout.write(text)
        sys.stdout.flush()
        print(_told(counts), file=sys.stderr)
    return ExitCode.DONE


def _one(number: int, line: bytes, policy: Policy) -> dict[str, Any]:
    """The answer to one line of JSON: what else it holds than its text is given back as it is."""
    try:
        asked = orjson.loads(line)
    except orjson.JSONDecodeError:
        asked = None
    if not isinstance(asked, dict) or not isinstance(asked.get("text"), str):
        raise UserError(f"line {number} is not an object with a text", hint='{"id": "1", "text": "..."}')
    text, counts = redacted(asked["text"], policy)
    return asked | {"text": text, "counts": dict(counts)}


def _told(counts: Counter[str]) -> str:
    if not counts:
        return "nothing looks like a secret"
    return f"taken out: {', '.join(f'{count} {rule}' for rule, count in sorted(counts.items()))}"


def policy_here() -> Policy:
    """This repository's patterns and key; where there is none, secrets are found all the same."""
    from relay_git.contract.placeholder import Policy
    from relay_git.ledger.key import load

    try:
        repo, _ = context.open_repo()
    except RelayError:
        return Policy()
    allow = context.settings(repo).redact_allow
    try:
        return Policy(load(repo).secret, allow)
    except RelayError:
        return Policy(allow=allow)
