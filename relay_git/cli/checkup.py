"""`doctor`: what is right, what is not, and the next command for each."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from relay_git.agents import AGENTS
from relay_git.agents.agent import Permission, Unready
from relay_git.agents.installed import installed, is_newer
from relay_git.cli import interrupted
from relay_git.cli.render import print_json, print_table
from relay_git.errors import ExitCode, RelayError
from relay_git.git import hooks, signing, worktree
from relay_git.git.hooks import HookPlan, Route
from relay_git.git.rehearsal import rehearse
from relay_git.git.repo import Repo, discover
from relay_git.git.run import version
from relay_git.git.store import Store, open_store
from relay_git.ledger import journal
from relay_git.ledger.key import load
from relay_git.ledger.lost import lost, newest
from relay_git.session import SessionId

OK, NOTE, BAD = "ok", "note", "bad"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    check: str
    verdict: str
    text: str
    hint: str = ""


def doctor(*, as_json: bool) -> int:
    """Look at everything; exit status 1 if something is bad."""
    found = list(_all())
    if as_json:
        print_json({"findings": [asdict(f) for f in found]})
    else:
        print_table(("CHECK", "IS", "WHAT"), [(f.check, f.verdict, f.text) for f in found])
        for f in found:
            if f.hint and f.verdict != OK:
                print(f"{f.check}: {f.hint}")
    return ExitCode.FAILED if any(f.verdict == BAD for f in found) else ExitCode.DONE


def _all() -> Iterator[Finding]:
    yield Finding("git", OK, ".".join(map(str, version())))
    try:
        repo = discover(Path.cwd(), os.environ)
        store = open_store(repo.common_dir)
    except RelayError as error:
        yield Finding("repository", BAD, str(error), error.hint)
    else:
        interrupted.tell(repo, store)
        yield Finding("repository", OK, str(repo.home or repo.common_dir))
        yield from _repository(repo, store)
    yield from _agents()


def _repository(repo: Repo, store: Store) -> Iterator[Finding]:
    if repo.key_file.exists():
        try:
            yield Finding("key", OK, f"id {load(repo).key_id}")
        except RelayError as error:
            yield Finding("key", BAD, str(error), error.hint)
    else:
        lacks = bool(journal.sessions(store))
        yield Finding("key", BAD if lacks else NOTE, "there is no signing key yet", "git relay init")
    yield from _hooks(repo, store)
    git = repo.git()
    if not git.text("config", "user.email", ok=(0, 1)):
        yield Finding(
            "identity",
            NOTE,
            "user.email is not set: an agent's commits may fail",
            "git config user.email you@example.com",
        )
    yield from _signing(repo)
    if any(line.startswith(b"160000 ") for line in git.run("ls-files", "-s", "-z", "--", ".relay").split(b"\0")):
        yield Finding("gitlink", BAD, "a session's worktree is committed as a gitlink", "git rm --cached -r .relay")
    mirrors = git.text("config", "--get-regexp", r"^remote\..*\.mirror$", ok=(0, 1))
    if "true" in mirrors:
        yield Finding("mirror", NOTE, "a mirror remote pushes relay's refs too", "git config --get-regexp mirror")
    yield from _sessions(repo, store)


def _signing(repo: Repo) -> Iterator[Finding]:
    """The safe git of ours signs nothing, so it is the user's that is asked whether commits are signed."""
    if repo.git(safe=False).text("config", "--type=bool", "commit.gpgsign", ok=(0, 1)) != "true":
        return
    if why := signing.refusal(repo.git()):
        text = f"commit.gpgsign is on, and without a question nothing is signed: an agent's commits will fail ({why})"
        yield Finding("signing", NOTE, text, "unlock or mend the signer, or: git config commit.gpgsign false")
    else:
        yield Finding("signing", OK, "commit.gpgsign is on, and the signer asks no question now")


def _sessions(repo: Repo, store: Store) -> Iterator[Finding]:
    for session in journal.sessions(store):
        try:
            entry = journal.tip(store, session).entry
        except RelayError as error:
            yield Finding(session, BAD, str(error), error.hint)
            continue
        if (cut := interrupted.cut_off(repo, session, entry)) is not None:
            yield Finding(session, NOTE, *cut)
    for session in lost(repo, store):
        yield _lost(repo, store, session)


def _lost(repo: Repo, store: Store, session: SessionId) -> Finding:
    text, ref = "its journal is gone: the ref was deleted", journal.ref_of(session)
    last = newest(repo, store, session)
    if last is not None:
        return Finding(session, BAD, f"{text}, and git still has it", f"git update-ref {ref} {last}")
    where = f"; its files are in {repo.session_dir(session)}" if repo.session_dir(session).is_dir() else ""
    return Finding(session, BAD, f"{text}, and git has it no longer{where}", f"git log relay/{session}")


def _hooks(repo: Repo, store: Store) -> Iterator[Finding]:
    """Whether the hook fires where the user stands and in each session's worktree, tried out by a dry run."""
    plan = hooks.plan(repo, repo.work_tree or repo.common_dir)
    mute = rehearse(plan)
    how = "once a session has put it there" if plan.file and not hooks.is_in_place(plan) else "in a dry run"
    yield _hook("hook", plan, mute, how)
    for session in journal.sessions(store):
        if repo.home is None or not worktree.is_whole(repo, session):
            continue
        own = hooks.plan(repo, repo.session_dir(session))
        gone = own.file is not None and not hooks.is_in_place(own)
        reason = f"it is not in {own.file}, another program may have written that file" if gone else own.reason or mute
        yield _hook(f"hook of {session}", own, reason, "in a dry run")


def _hook(check: str, plan: HookPlan, mute: str, how: str) -> Finding:
    lent = f"; your hooks of {plan.borrowed.folder} run in it" if plan.borrowed else ""
    if mute:
        text = f"the hook does not fire: {mute}; commits are seen by watching HEAD{lent}"
        return Finding(check, NOTE, text, "nothing to do: safe points are found without it, only no commit is held")
    where = f" in {plan.file}" if plan.route is Route.BLOCK else ", named in the agent's environment"
    return Finding(check, OK, f"{plan.route}{where}: fires {how}{lent}")


def _agents() -> Iterator[Finding]:
    for name, agent in AGENTS.items():
        verdict = agent.check(os.environ, Permission.SANDBOX)
        if isinstance(verdict, Unready):
            yield Finding(name, NOTE, verdict.reason, verdict.hint)
        else:
            yield Finding(name, OK, f"{agent.title}: {verdict.program}")
        found = installed(name, os.environ)
        if found is not None and is_newer(found.version, agent.last_seen):
            newer = f"{agent.title} {found.version} is newer than {agent.last_seen}, which git relay was verified with"
            yield Finding(f"{name} version", NOTE, newer, "git relay agents")
    if shutil.which("git-relay") is None:
        yield Finding(
            "PATH", NOTE, "git-relay is not on PATH: `git relay` works only by its full name", "add its folder to PATH"
        )
