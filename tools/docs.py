"""Writes the pages that are made from the program, or with --check says which of them no longer match it.

Promise: what README.md, docs/cli.md, docs/architecture.md and man/git-relay.1 say of the commands and of the state
machine is what the program says of itself. Only the text between a pair of markers is touched in a page that people
write too.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol, cast

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 90
PLAIN = {"COLUMNS": str(WIDTH), "TERMINAL_WIDTH": str(WIDTH), "NO_COLOR": "1", "TERM": "dumb"}
REPAIR = "make docs"


class Missing(Exception):
    """The part of the program, or the page, that a text is made from or for is not there yet."""


# ------------------------------------------------------------------ what the program says of itself
class Command(Protocol):
    """What is used here of a Typer command; a group has `commands` too."""

    help: str | None

    def main(self, args: list[str], prog_name: str, standalone_mode: bool) -> object:
        """Run it with these words."""


def command() -> Command:
    """The program's root command, as Typer builds it."""
    try:
        app = importlib.import_module("relay_git.cli.app")
    except ModuleNotFoundError as error:
        raise Missing(f"{error.name} is not there yet") from error
    import typer.main

    return cast(Command, typer.main.get_command(app.app))


def help_of(root: Command, *path: str) -> str:
    """What `git-relay PATH... -h` prints on a terminal of WIDTH columns, without colour."""
    said = io.StringIO()
    before = dict(os.environ)
    os.environ.update(PLAIN)
    os.environ.pop("FORCE_COLOR", None)
    try:
        with contextlib.redirect_stdout(said):
            root.main(args=[*path, "-h"], prog_name="git-relay", standalone_mode=False)
    finally:
        os.environ.clear()
        os.environ.update(before)
    return "\n".join(line.rstrip() for line in said.getvalue().strip("\n").splitlines())


def walk(root: Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Command]]:
    """Every visible command below `root` with its words, in the order in which the program lists them."""
    for name, child in getattr(root, "commands", {}).items():
        if getattr(child, "hidden", False):
            continue
        yield (*path, name), child
        yield from walk(child, (*path, name))


def diagram() -> str:
    """The state machine as a mermaid diagram."""
    try:
        lifecycle = importlib.import_module("relay_git.contract.lifecycle")
    except ModuleNotFoundError as error:
        raise Missing(f"{error.name} is not there yet") from error
    return str(lifecycle.diagram()).strip("\n")


# ------------------------------------------------------------------ the pages
def between(page: str, name: str, text: str) -> str:
    """`page` with `text` between its markers `<!-- name:begin -->` and `<!-- name:end -->`."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(begin) > page.index(end):
        raise Missing(f"the page needs the lines `{begin}` and `{end}`, once and in this order")
    head, rest = page.split(begin)
    return f"{head}{begin}\n{text}\n{end}{rest.split(end)[1]}"


def fenced(text: str, language: str = "text") -> str:
    """`text` as a Markdown code block."""
    return f"```{language}\n{text}\n```"


def cli_page(_page: str) -> str:
    """docs/cli.md: the help of every command."""
    root = command()
    parts = [
        "# The commands",
        "Made by `make docs` from the program's own help: change it there.",
        fenced(help_of(root)),
    ]
    for path, _ in walk(root):
        parts += [f"## git relay {' '.join(path)}", fenced(help_of(root, *path))]
    return "\n\n".join(parts) + "\n"


def readme(page: str) -> str:
    """README.md: the help of the root command between its markers."""
    return between(page, "help", fenced(help_of(command())))


def architecture(page: str) -> str:
    """docs/architecture.md: the state diagram between its markers."""
    text = diagram()
    return between(page, "states", text if text.startswith("```") else fenced(text, "mermaid"))


def roff(text: str) -> str:
    """`text` for a line of a man page: nothing in it is a roff request or an escape."""
    lines = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").splitlines()
    return "\n".join("\\&" + line if line.startswith(".") else line for line in lines)


def manual(_page: str) -> str:
    """man/git-relay.1: what `git relay --help` shows."""
    root = command()
    parts = [
        ".\\\" Made by `make docs` from the program's own help: change it there.",
        '.TH GIT\\-RELAY 1 "" "git relay" "Git relay manual"',
        ".SH NAME",
        roff("git-relay") + " \\- " + roff(brief(root)),
        ".SH SYNOPSIS",
        ".nf",
        roff("git relay [OPTIONS] COMMAND [ARGS]..."),
        ".fi",
        ".SH DESCRIPTION",
        ".nf",
        roff(help_of(root)),
        ".fi",
    ]
    for path, _ in walk(root):
        parts += [f'.SH "GIT RELAY {roff(" ".join(path).upper())}"', ".nf", roff(help_of(root, *path)), ".fi"]
    parts += [
        ".SH EXIT STATUS",
        roff("0 done, 1 an expected failure, 2 wrong usage, 3 verification refused, 4 a bug, 130 interrupted."),
        ".SH SEE ALSO",
        roff("git(1), git-worktree(1), git-notes(1)"),
    ]
    return "\n".join(parts) + "\n"


def brief(root: Command) -> str:
    """The program in one line."""
    first = (root.help or "").strip().splitlines()
    return first[0].rstrip(".") if first else "carry a coding task from one agent to the next"


PAGES: dict[str, Callable[[str], str]] = {
    "docs/cli.md": cli_page,
    "README.md": readme,
    "docs/architecture.md": architecture,
    "man/git-relay.1": manual,
}


# ------------------------------------------------------------------ write or check
def settle(root: Path, name: str, make: Callable[[str], str], *, check: bool) -> bool:
    """Write one page, or compare it; say what is wrong, and return whether all is well."""
    file = root / name
    old = file.read_text(encoding="utf-8") if file.exists() else ""
    try:
        new = make(old)
    except Missing as reason:
        print(f"{name}: {reason}", file=sys.stderr)
        return False
    if new == old:
        return True
    if check:
        print(f"{name}: does not match the program. Run: {REPAIR}", file=sys.stderr)
        return False
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(new, encoding="utf-8")
    print(f"{name}: written")
    return True


def main(argv: list[str] | None = None, root: Path = ROOT) -> int:
    """Settle every page; the exit status is 1 when one of them is not as it should be."""
    parser = argparse.ArgumentParser(prog="python -m tools.docs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only, write nothing")
    check = parser.parse_args(argv).check
    results = [settle(root, name, make, check=check) for name, make in PAGES.items()]
    if check and all(results):
        print(f"{len(results)} pages match the program")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
