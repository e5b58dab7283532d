"""Where notes lie: an agent's where its sandbox lets it write, a person's where it does not.

Promise: a note is one line, appended at once and 0600; what is read is bounded, and a file that cannot be read is a
loss that is named, never an end. Who wrote a note is told by the file alone, since a line can say anything.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from relay_git.contract.notes import MOST_BYTES, Note, parse
from relay_git.errors import UserError
from relay_git.git.repo import Repo, make_private
from relay_git.git.run import disk_error
from relay_git.session import SessionId

OF_AGENT, OF_PERSON = "note of the agent", "note of the user"


def file_of(repo: Repo, session: SessionId, *, agent: bool) -> Path:
    """The file of an agent's notes, or of a person's."""
    return (repo.worktree_git_dir(session) / "relay" if agent else repo.spool_dir(session)) / "notes"


def append(file: Path, line: bytes) -> None:
    """Add a note; raises UserError where the file is full, RepoError where the disk refuses."""
    try:
        make_private(file.parent)
        fd = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "wb") as out:
            if os.fstat(fd).st_size + len(line) > MOST_BYTES:
                raise UserError("there are too many notes in this session", hint="leave it in a commit's trailer")
            out.write(line)
    except OSError as error:
        raise disk_error(error, "the note could not be written") from error


def read(repo: Repo, session: SessionId) -> tuple[tuple[Note, ...], tuple[str, ...]]:
    """All notes of a session, the person's last so that they count as the newest, and what could not be read."""
    notes, losses = list[Note](), list[str]()
    for agent, source in ((True, OF_AGENT), (False, OF_PERSON)):
        try:
            fd = os.open(file_of(repo, session, agent=agent), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(fd, "rb") as file:
                found, skipped = parse(file.read(MOST_BYTES), source)
        except FileNotFoundError:
            continue
        except OSError as error:
            losses.append(f"the notes of the {source.rpartition(' ')[2]} could not be read: {error.strerror}")
            continue
        # What is answered is no longer asked, and that is not for an agent to say.
        notes += [replace(note, answers=()) for note in found] if agent else found
        losses += [f"{skipped} lines of its notes are none ({source})"] if skipped else []
    return tuple(notes), tuple(losses)


def in_order(notes: tuple[Note, ...], asked: tuple[Note, ...]) -> tuple[Note, ...]:
    """With what the agent answered when asked: newer than its notes, and before the person's, which count most."""
    theirs = tuple(note for note in notes if note.source == OF_PERSON)
    return (*(note for note in notes if note.source != OF_PERSON), *asked, *theirs)
