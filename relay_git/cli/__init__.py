"""The face: parse, one call, render.

Promise: stdout is data, stderr is talk; every failure is one sentence and a hint; only here are clock and environment
read and exceptions caught for good. A bug leaves a crash log without prompts, file contents or keys.
"""

from __future__ import annotations

import io
import os
import sys

from relay_git.errors import ExitCode, RelayError, printable


def main() -> None:
    """The executable `git-relay`."""
    for out in (sys.stdout, sys.stderr):
        if isinstance(out, io.TextIOWrapper):
            out.reconfigure(errors="backslashreplace")  # a path that is not UTF-8 must not end a command, nor its JSON
    sys.exit(run(sys.argv[1:]))


def run(argv: list[str]) -> int:
    """Carry out one command line; the exit status."""
    from typer import Abort, Exit, TyperException

    from relay_git.cli.app import app
    from relay_git.cli.plain import spare_conversion

    spare_conversion()

    try:
        status = app(args=argv or ["-h"], prog_name="git relay", standalone_mode=False)
    except RelayError as error:
        return _fail(str(error), error.hint, error.exit_code)
    except TyperException as error:
        return _fail(error.format_message().rstrip("."), _usage_hint(error, argv), ExitCode.USAGE)
    except Exit as error:
        return error.exit_code
    except (KeyboardInterrupt, Abort):
        return _fail("interrupted", "git relay status", ExitCode.INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has gone (git relay log | head): nothing is wrong.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.DONE
    except OSError as error:
        from relay_git.git.run import disk_error

        told = disk_error(error, "the system refused a step")
        return _fail(str(told), told.hint, told.exit_code)
    except Exception as error:  # noqa: BLE001 - the one place where nothing may get past
        from relay_git.cli.crash import write_log

        where = write_log(error)
        return _fail(
            f"this is a bug in git relay ({type(error).__name__})", f"please report it with {where}", ExitCode.BUG
        )
    return int(status or 0)


def _fail(message: str, hint: str, code: ExitCode) -> int:
    print(f"git relay: {printable(message)}", file=sys.stderr)
    if hint:
        print(f"hint: {printable(hint)}", file=sys.stderr)
    return int(code)


def _usage_hint(error: object, argv: list[str]) -> str:
    context = getattr(error, "ctx", None)
    name = context.command_path.removeprefix("git relay").strip() if context is not None else ""
    if not name and argv and argv[0].isalpha() and type(error).__name__ != "UsageError":
        name = argv[0]  # an option without its value is told without the command
    if type(error).__name__ == "NoSuchOption" and name == "start":
        return 'git relay start -h; a task that begins with - comes after --: git relay start -- "- my task"'
    return f"git relay {name} -h" if name else "git relay -h"
