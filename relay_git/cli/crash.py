"""The crash log: what a bug report needs and nothing that is the user's."""

from __future__ import annotations

import platform
import sys
import tempfile
import traceback
from pathlib import Path

from relay_git import __version__


def write_log(error: BaseException) -> str:
    """Write where it happened, without values: an exception's text or a local may hold a prompt or a key."""
    frames = [f"  {Path(f.filename).name}:{f.lineno} in {f.name}" for f in traceback.extract_tb(error.__traceback__)]
    chain: list[str] = []
    seen: BaseException | None = error
    while seen is not None and len(chain) < 10:
        chain.append(type(seen).__name__)
        seen = seen.__cause__ or seen.__context__
    text = "\n".join(
        [
            f"git relay {__version__}, Python {platform.python_version()}, {platform.platform()}",
            f"command: {sys.argv[1] if len(sys.argv) > 1 and sys.argv[1].isalpha() else '(none)'}",
            f"raised: {' from '.join(chain)}",
            *frames,
        ]
    )
    try:
        with tempfile.NamedTemporaryFile("w", prefix="git-relay-crash-", suffix=".log", delete=False) as out:
            out.write(text + "\n")
    except OSError:
        print(text, file=sys.stderr)
        return "the lines above"
    return out.name
