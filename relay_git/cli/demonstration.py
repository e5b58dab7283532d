"""`demo`: the main job from start to landing, with two scripted demo agents, in a repository of its own."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

from relay_git.cli import context
from relay_git.cli.teller import ConsoleTeller
from relay_git.contract.lifecycle import State
from relay_git.errors import ExitCode, UserError
from relay_git.git.repo import Repo, discover
from relay_git.git.run import Git
from relay_git.git.store import Store, open_store
from relay_git.ledger import journal, replay
from relay_git.ledger.key import ensure
from relay_git.session import SessionId
from relay_git.supervisor import opening
from relay_git.supervisor.carry import carry
from relay_git.supervisor.meter import Meter
from relay_git.supervisor.run import Stop, Surroundings

TASK = "Add a refund flow to the orders service"
_ORDERS = "def total(lines):\n    return sum(line.price for line in lines)\n"
_REFUND_HALF = "def refund(order):\n    # half-made when the pretend limit came\n    raise RuntimeError\n"
_REFUND = "def refund(order):\n    return -total(order.lines)\n"
_PLAN = ("Run the migration for the refunds table", "Write refund()", "Say so in the README")


def _plan(done: int) -> dict[str, object]:
    status = ["completed"] * done + ["in_progress"] + ["pending"] * len(_PLAN)
    return {"do": "plan", "items": [{"text": t, "status": s} for t, s in zip(_PLAN, status, strict=False)]}


STEPS = {
    "legs": [
        [
            _plan(0),
            {"do": "say", "text": "I run the migration first."},
            {"do": "write", "path": "migrations/001-refunds.sql", "content": "create table refunds (id integer);\n"},
            {"do": "shell", "argv": ["sh", "-c", "echo migrated >> migrations/applied"]},
            {
                "do": "commit",
                "message": "Add and apply the refunds migration\n\nRelay-Do-Not-Redo: migration 001 is applied\n"
                "Relay-Decision: refunds are negative totals, not orders of their own",
            },
            _plan(1),
            {"do": "write", "path": "orders/refund.py", "content": _REFUND_HALF},
            {"do": "limit", "reset_in": 7200},
        ],
        [
            {"do": "accept"},
            {"do": "say", "text": "I have read the brief: the migration is applied, refund() is half-made."},
            {"do": "write", "path": "orders/refund.py", "content": "from orders.total import total\n\n\n" + _REFUND},
            {"do": "append", "path": "README.md", "content": "\nRefunds are negative totals.\n"},
            {"do": "commit", "message": "Finish refund() and say so in the README"},
            _plan(3),
            {"do": "say", "text": "All three steps are done."},
        ],
    ]
}


def demo(keep: Path | None) -> int:
    """Play the demo; the repository is left at `keep`, or removed."""
    if keep is not None and keep.exists() and any(keep.iterdir() if keep.is_dir() else [keep]):
        raise UserError(f"{keep} is already there and not empty", hint="git relay demo --keep NEW-FOLDER")
    scratch = Path(tempfile.mkdtemp(prefix="git-relay-demo-"))
    try:
        place = (keep or scratch / "orders").absolute()
        place.mkdir(parents=True, exist_ok=True)
        repo, store = _make_repository(place)
        state = _play(repo, store, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if keep is not None:
        print(f"\nThe repository is yours to look at: cd {keep} && git relay status && git log --all --graph --oneline")
    else:
        print("\nThe demo's repository is gone again; git relay demo --keep DIR leaves one to look at.")
    return ExitCode.DONE if state is State.DONE else ExitCode.FAILED


def _play(repo: Repo, store: Store, scratch: Path) -> State:
    steps = scratch / "steps.json"
    steps.write_text(json.dumps(STEPS))
    env = {**os.environ, "RELAY_DEMO_STEPS": str(steps), "RELAY_DEMO_HOME": str(scratch / "home")}
    print(
        "Two scripted demo agents (no model, no login) carry one task; the first meets a pretend limit.\n", flush=True
    )
    with ConsoleTeller() as teller:
        key = ensure(repo, store)
        around = Surroundings(
            repo,
            store,
            key,
            context.settings(repo),
            env,
            context.now,
            teller,
            Stop(),
            Meter(None, context.now, teller.say),
        )
        with opening.open_session(around, opening.Order(TASK, "demo", ("demo",))) as run:
            teller.say(f"session {run.session}, leg 1: demo agent (scripted, no model)")
            state = carry(run)
    _show(repo, store, run.session, around)
    return state


def _show(repo: Repo, store: Store, session: SessionId, around: Surroundings) -> None:
    git = repo.git()
    print("\nWhat the second agent was told first (the brief, from the verified contract):\n")
    verdict = replay.current(repo, store, around.key, session)
    for item in verdict.contract["doNotRedo"]:
        print(f"  do not redo: {item['text']}  [{item['source']}]")
    print(f"  next action: {verdict.contract['nextAction']}")
    print("\nThe session's branch:\n")
    print(_indented(git.text("log", "--format=%h %an: %s", f"HEAD..relay/{session}")))
    print("\nIts journal, with stock git:\n")
    print(_indented(git.text("log", "--first-parent", "--reverse", "--format=%s", journal.ref_of(session))))
    checked = replay.check(repo, store, around.key, session)
    print(f"\nContracts verified: {', '.join(f'{c.contract_id} is {c.verdict.outcome}' for c in checked)}")
    status = git.text("status", "--porcelain")
    print(f"Your work tree: {status or 'untouched'}")


def _make_repository(place: Path) -> tuple[Repo, Store]:
    git = Git(place)
    git.run("init", "--quiet", "--initial-branch=main", ".")
    git.run("config", "user.name", "Demo User")
    git.run("config", "user.email", "demo@example.invalid")
    (place / "orders").mkdir()
    (place / "orders" / "total.py").write_text(_ORDERS)
    (place / "README.md").write_text("# Orders\n")
    git.run("add", "--all")
    git.run("commit", "--quiet", "--message", "Orders service")
    repo = discover(place, {})
    return repo, open_store(repo.common_dir)


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.split("\n"))
