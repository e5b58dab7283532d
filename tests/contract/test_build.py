"""What was done and said reaches the next leg and the one after it, with its source, within 256 KiB."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import replace
from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay_git.contract.bounds import LISTS, TEXTS, cut
from relay_git.contract.brief import TITLE, brief
from relay_git.contract.build import Previous, build
from relay_git.contract.canonical import MAX_BYTES, JsonObject, canonical
from relay_git.contract.model import Contract
from relay_git.contract.pause import PauseFacts, SafePoint
from relay_git.contract.proof import shows_nothing
from relay_git.contract.sign import seal
from relay_git.git.work import FileChange, FileStatus, Hunk, WorkCommit, WorkFacts
from relay_git.session import Command, LimitKind, LimitNotice, PlanItem, PlanStatus, SessionRecord, ToolCall
from tests.contract.samples import (
    BASE,
    HEAD,
    KEY,
    PAUSE,
    RECORD,
    SNAPSHOT,
    TASK,
    TREE,
    WORK,
    identity,
    link,
    unsigned,
)

EMPTY = SessionRecord(agent="codex")
NO_WORK = WorkFacts("relay/x", BASE, BASE, BASE, TREE)


def texts(contract: JsonObject, name: str, member: str = "text") -> list[str]:
    """One member of all items of a list."""
    return [item[member] for item in contract[name]]


def next_action(record: SessionRecord, work: WorkFacts = NO_WORK, **more: object) -> tuple[str, str]:
    """The action that a contract names, and its source."""
    contract = build(identity(2 if "previous" in more else 1), PAUSE, record, work, **more)  # type: ignore[arg-type]
    return contract["nextAction"], contract["nextActionSource"]


def test_words_of_a_refused_contract_are_not_carried_on_but_it_is_named() -> None:
    refused = replace(link(seal(unsigned(), KEY)), words=None)
    contract = build(identity(2), PAUSE, EMPTY, NO_WORK, refused)
    assert contract["previous"] == {"contractId": refused.contract_id, "sha256": refused.sha256}
    assert "The orders table was migrated by hand" not in texts(contract, "doNotRedo")


def test_every_member_of_the_format_is_there_and_fits_the_model() -> None:
    contract = unsigned()
    named = {field.alias or name for name, field in Contract.model_fields.items()}
    assert named - set(contract) == {"briefSha256", "keyId", "signature"}
    assert set(contract) <= named
    stored = json.loads(seal(contract, KEY).stored)
    assert json.loads(Contract.model_validate(stored).model_dump_json(by_alias=True, exclude_unset=True)) == stored


def test_the_same_input_gives_the_same_contract_and_another_leg_another_id() -> None:
    assert canonical(unsigned()) == canonical(unsigned())
    other = build(identity(2), PAUSE, RECORD, WORK)
    assert other["contractId"] != unsigned()["contractId"]


def test_do_not_redo_holds_commits_finished_steps_and_what_ran_once() -> None:
    items = {item["text"]: item["source"] for item in unsigned()["doNotRedo"]}
    assert items == {
        "The orders table was migrated by hand": f"commit {HEAD[:12]}",
        "Already run with success: npx prisma migrate deploy": "command",
        "Write the model": "plan",
        f"Committed as {HEAD[:12]}: Add the refund model": "git",
        f"Committed as {'9' * 12}: Start": "git",
    }


def test_trailers_become_decisions_constraints_and_questions() -> None:
    contract = unsigned()
    source = f"commit {HEAD[:12]}"
    assert contract["decisions"] == [{"summary": "Amounts are cents", "rationale": "floats lie", "source": source}]
    assert contract["constraints"] == [{"rule": "Never touch billing/", "source": source}]
    assert contract["summary"]["openQuestions"] == [{"text": "Who pays the fee?", "source": source}]


@pytest.mark.parametrize(
    ("command", "once"),
    [
        ("npx prisma migrate deploy", True),
        ("python manage.py migrate", True),
        ("DATABASE_URL=x alembic upgrade head", True),
        ("cd api && npm run db:migrate", True),
        ("npm publish --access public", True),
        ("cargo publish", True),
        ("git push origin main", True),
        ("kubectl apply -f k.yaml", True),
        ("terraform apply -auto-approve", True),
        ("./scripts/deploy.sh staging", True),
        ("docker push registry.example/app:1", True),
        ("grep -rn migrate src", False),
        ("cat deploy.sh", False),
        ("npm publish --dry-run", False),
        ("terraform plan", False),
        ("echo publish", False),
        ("git commit -m 'deploy later'", False),
        ("npm test", False),
    ],
)
def test_what_changes_the_world_is_told_from_what_only_names_it(command: str, once: bool) -> None:
    for code in (0, 1, None):
        contract = build(identity(), PAUSE, replace(EMPTY, commands=(Command(command, code, None),)), NO_WORK)
        assert (texts(contract, "doNotRedo") != []) == (once and code == 0)


def test_checks_keep_the_latest_run_of_each_command() -> None:
    assert unsigned()["checks"] == [
        {"command": "npm test", "exitCode": 0, "outputSha256": "1" * 64, "leg": 1},
        {"command": "npx prisma migrate deploy", "exitCode": 0, "outputSha256": None, "leg": 1},
    ]


def test_what_showed_something_in_an_earlier_leg_is_still_known_and_the_end_of_its_output_is_evidence() -> None:
    ran = (Command("ls src", 0, "3" * 64, "a.py"), Command("npm test", 1, "4" * 64, "1 failed, 41 passed"))
    first = build(identity(), PAUSE, replace(RECORD, commands=ran), WORK)
    assert [(e["source"], e["excerpt"]) for e in first["evidence"] if e["kind"] == "command"] == [
        ("ended with 1: npm test", "1 failed, 41 passed")
    ]
    ran = (Command("npm test", 0, "5" * 64, "42 passed"), Command("make lint", 0, "6" * 64, "clean"))
    second = build(identity(2), PAUSE, replace(RECORD, commands=ran), WORK, Previous("c-1", "7" * 64, first))
    third = build(identity(3), PAUSE, EMPTY, WORK, Previous("c-2", "8" * 64, second))
    assert [(c["command"], c["exitCode"], c["leg"]) for c in third["checks"]] == [
        ("make lint", 0, 2),
        ("npm test", 0, 2),
    ]
    assert "- exit 0: `npm test` (leg 2)" in brief(third)


@pytest.mark.parametrize(
    ("command", "nothing"),
    [
        ("ls", True),
        ("cd src && grep -rn x . | head -3", True),
        ("git add --all && git commit -m 'x; y'", True),
        ("true", True),
        ("FOO=1 cat a", True),
        ("npm test", False),
        ("cd api; make check 2>&1 | tail -5", False),
        ("./ls", False),
        ("git bisect run make", False),
        ("test-all", False),
        ("catalog build", False),
    ],
)
def test_a_command_that_only_looks_around_shows_nothing(command: str, nothing: bool) -> None:
    assert shows_nothing(command) is nothing


def test_a_step_that_was_cancelled_is_said_to_be_left_alone() -> None:
    assert "- (cancelled, leave it) Think about fees" in brief(unsigned())


def test_the_next_action_follows_the_stated_order() -> None:
    pending = PlanItem("Later", PlanStatus.PENDING)
    working = PlanItem("Now", PlanStatus.IN_PROGRESS)
    spoken = replace(NO_WORK, commits=(WorkCommit(HEAD, "s", (("Relay-Next", "Said"),)),))
    full = replace(EMPTY, plan=(pending, working), pending_calls=(ToolCall("t1", "Bash", "make"),))
    assert next_action(full, spoken) == ("Said", f"commit {HEAD[:12]}")
    assert next_action(full) == ("Now", "plan: first step in progress")
    assert next_action(replace(full, plan=(pending,))) == ("Later", "plan: first step pending")
    action, source = next_action(replace(full, plan=()))
    assert "Bash: make" in action
    assert source == "transcript: call without a result"
    assert next_action(replace(EMPTY, turn_complete=True))[1].startswith("rule: ")
    assert next_action(EMPTY)[1].startswith("rule: ")


def test_a_next_action_of_an_earlier_leg_does_not_beat_a_newer_plan() -> None:
    said = WorkCommit(HEAD, "s", (("Relay-Next", "Said in leg 1"),))
    work = replace(NO_WORK, head_commit=HEAD, snapshot_commit=HEAD, commits=(said,))
    first = link(seal(build(identity(), PAUSE, EMPTY, work), KEY))
    later = replace(work, head_commit="e" * 40, snapshot_commit="e" * 40, commits=(said, WorkCommit("e" * 40, "more")))
    planned = replace(EMPTY, plan=(PlanItem("Now", PlanStatus.IN_PROGRESS),))
    assert next_action(planned, later, previous=first)[0] == "Now"
    later = replace(later, snapshot_tree="e" * 40)
    assert next_action(EMPTY, later, previous=first) == ("Said in leg 1", f"commit {HEAD[:12]}, of an earlier leg")


def test_the_third_leg_still_knows_what_the_first_said() -> None:
    first = link(seal(unsigned(), KEY))
    second = link(seal(build(identity(2), PAUSE, EMPTY, NO_WORK, first), KEY))
    third = build(identity(3), PAUSE, EMPTY, NO_WORK, second)
    assert third["previous"] == {"contractId": second.contract_id, "sha256": second.sha256}
    assert third["initialPrompt"] == TASK
    assert "The orders table was migrated by hand" in texts(third, "doNotRedo")
    assert {"text": "Write the model", "source": "plan, leg 1"} in third["doNotRedo"]
    assert texts(third, "constraints", "rule") == ["Never touch billing/"]
    assert texts(third, "decisions", "summary") == ["Amounts are cents"]
    assert texts(third["summary"], "openQuestions") == ["Who pays the fee?"]
    assert texts(third, "plan")[1] == "Write the endpoint"
    assert third["plan"][1]["source"] == "plan, leg 1"
    assert third["nextAction"] == "Write the endpoint"
    assert "Also update the docs" in texts(third, "evidence", "excerpt")


def test_a_new_plan_takes_the_place_of_the_carried_one() -> None:
    first = link(seal(unsigned(), KEY))
    record = replace(EMPTY, plan=(PlanItem("Only this", PlanStatus.PENDING),))
    second = build(identity(2), PAUSE, record, NO_WORK, first)
    assert texts(second, "plan") == ["Only this"]
    assert "Write the model" in texts(second, "doNotRedo")


def test_nothing_said_gives_empty_lists() -> None:
    contract = build(identity(), PAUSE, EMPTY, NO_WORK)
    for name in ("plan", "tasksRemaining", "doNotRedo", "decisions", "constraints", "evidence", "checks"):
        assert contract[name] == [], name
    assert all(loss.startswith("thin, ") for loss in contract["losses"])
    assert contract["summary"]["hypotheses"] == contract["summary"]["openQuestions"] == []


def test_the_last_message_is_a_hypothesis_and_evidence_is_kept_apart() -> None:
    contract = unsigned()
    assert contract["summary"]["hypotheses"][0]["source"] == "the agent's last message"
    assert [(item["kind"], item["id"]) for item in contract["evidence"]] == [
        ("prompt", "e1"),
        ("limit", "e2"),
        ("commit", "e3"),
        ("commit", "e4"),
    ]
    for item in contract["evidence"]:
        assert item["sha256"] == hashlib.sha256(item["excerpt"].encode()).hexdigest()


def test_a_name_that_is_not_utf_8_keeps_its_exact_bytes() -> None:
    entries = unsigned()["fileManifest"]
    assert entries[0] == {"path": "src/refund.py", "status": "added", "sha256": "2" * 64}
    assert entries[1]["path"] == "caf\\xe9.txt"
    assert base64.b64decode(entries[1]["pathBase64"]) == b"caf\xe9.txt"


def test_secrets_are_gone_before_anything_is_hashed_and_a_changed_snippet_says_so() -> None:
    secret = "sk-" + "ant-api03-" + "Zz9" * 10
    record = replace(RECORD, last_text=f"the key is {secret}", prompts=("first", f"use {secret}"))
    hunk = Hunk(b"a", f"+KEY = '{secret}'\n", truncated=False)
    contract = build(identity(task=f"use {secret}"), PAUSE, record, replace(WORK, hunks=(hunk,)))
    assert secret.encode() not in canonical(contract)
    assert contract["redactions"]["anthropic-key"] == 4
    assert contract["inFlightCode"][0]["snippet"].startswith("[changed by redaction")
    assert contract["initialPromptSha256"] == hashlib.sha256(contract["initialPrompt"].encode()).hexdigest()


def test_a_task_of_200_kb_keeps_head_tail_length_and_hash() -> None:
    task = "HEAD " + "the quick brown fox\n" * 10_000 + " TAIL"
    contract = build(identity(task=task), PAUSE, EMPTY, NO_WORK)
    prompt = contract["initialPrompt"]
    assert prompt.startswith("HEAD the quick")
    assert prompt.endswith(" TAIL")
    assert "cut by git relay" in prompt
    assert contract["initialPromptBytes"] == len(task)
    assert contract["initialPromptSha256"] == hashlib.sha256(task.encode()).hexdigest()
    assert any(loss.startswith("initialPrompt: ") for loss in contract["losses"])
    carried = build(identity(2, task=task), PAUSE, EMPTY, NO_WORK, link(seal(contract, KEY)))
    assert carried["initialPrompt"] == prompt
    assert carried["initialPromptBytes"] == len(task)


def test_100_000_files_are_capped_with_a_loss() -> None:
    files = tuple(FileChange(b"src/%06d.py" % n, FileStatus.MODIFIED, "4" * 64) for n in range(100_000))
    contract = build(identity(), PAUSE, EMPTY, replace(NO_WORK, files=files))
    kept = len(contract["fileManifest"])
    assert 100 < kept <= 400
    assert f"fileManifest: {kept} of 100000 entries are kept" in contract["losses"]
    assert contract["summary"]["facts"][1]["text"].startswith("100000 files")


def test_many_commits_are_told_as_a_range() -> None:
    commits = tuple(WorkCommit(f"{n:040x}", f"commit {n}") for n in range(5000))
    items = texts(build(identity(), PAUSE, EMPTY, replace(NO_WORK, commits=commits)), "doNotRedo")
    assert len(items) == 31
    assert items[-1] == f"Committed before those: 4970 commits, {0:012x} to {0:012x}"


def fattened(size: int, unit: str) -> JsonObject:
    """A contract from input where every list and every text is far too large."""
    fat = unit * size
    many = range(600)
    trailers = tuple(
        (key, f"{n} {fat}") for n in many for key in ("Relay-Constraint", "Relay-Do-Not-Redo", "Relay-Decision")
    )
    record = SessionRecord(
        agent=fat,
        prompts=tuple(f"{n}{fat}" for n in many),
        last_text=fat,
        plan=tuple(PlanItem(f"{n}{fat}", status) for n in many for status in PlanStatus),
        commands=tuple(Command(f"git push a/{n} {fat}", 0, "0" * 64) for n in many),
        pending_calls=(ToolCall("t1", fat),) * 10,
        skills=(fat,) * 100,
        limits=(LimitNotice(LimitKind.USAGE, fat, fat),) * 5,
        losses=(fat,) * 300,
    )
    work = WorkFacts(
        fat,
        BASE,
        HEAD,
        SNAPSHOT,
        TREE,
        commits=tuple(WorkCommit(f"{n:040x}", fat, trailers if n == 1 else ()) for n in many),
        files=tuple(FileChange(b"%d" % n + fat.encode()[:4000], FileStatus.ADDED, "1" * 64) for n in many),
        hunks=tuple(Hunk(b"%d" % n, fat, truncated=False) for n in range(50)),
        losses=(fat,) * 300,
    )
    pause = PauseFacts(fat, SafePoint.INTERRUPTED, fat)
    who = identity(task=fat * 50, acceptance=(fat,) * 60, output_contract=fat * 20)
    return build(who, pause, record, work)


def crowded(*rules: str) -> tuple[SessionRecord, WorkFacts]:
    """A session whose human says these, and whose agent has left more rules in its commits than fit."""
    said = tuple(("Relay-Constraint", f"{n} of the agent " + "x" * 300) for n in range(250))
    return replace(EMPTY, prompts=(TASK, *rules)), replace(NO_WORK, commits=(WorkCommit(HEAD, "s", said),))


def test_the_rules_of_the_human_come_before_the_agent_s_and_what_does_not_fit_is_counted_with_its_place() -> None:
    rules = [f"never touch module m{n}, it belongs to team {n}" for n in range(60)]
    contract = build(identity(), PAUSE, *crowded(*rules))
    assert "20 older prompts of the user are not quoted: the transcript of the agent has them" in contract["losses"]
    kept = texts(contract, "constraints", "rule")
    assert kept[:60] == rules[::-1]
    left_out = 310 - len(kept) + 1
    assert kept[-1] == f"and {left_out} more that did not fit into the contract of leg 1: {left_out} in git log"
    assert any(loss.startswith(f"constraints: {left_out} of 310") for loss in contract["losses"])
    again = build(identity(2), PAUSE, EMPTY, NO_WORK, link(seal(contract, KEY)))
    assert again["constraints"][0] == {"rule": kept[-1], "source": "git relay, leg 1"}
    assert set(rules) <= set(texts(again, "constraints", "rule"))


def test_who_quotes_the_title_of_a_brief_is_heard_and_a_brief_is_not() -> None:
    told = f"{TITLE}\n\nI paste what I got, but don't use the staging db"
    record = replace(EMPTY, prompts=(TASK, told, brief(unsigned())))
    contract = build(identity(), PAUSE, record, NO_WORK)
    assert texts(contract, "constraints", "rule")[0] == "I paste what I got, but don't use the staging db"
    assert [item["excerpt"] for item in contract["evidence"] if item["kind"] == "prompt"] == [told]


def test_pasted_output_crowds_no_rule_out() -> None:
    log = "and eslint:\n" + "\n".join(f"src/a{n}.ts:5:3 error  it must be awaited" for n in range(60))
    contract = build(identity(), PAUSE, *crowded("never touch the prod db", *(f"{n} {log}" for n in range(8))))
    assert texts(contract, "constraints", "rule")[0] == "never touch the prod db"
    assert not any("awaited" in rule for rule in texts(contract, "constraints", "rule"))


@pytest.mark.parametrize(("size", "unit"), [(600, "x"), (3000, "x"), (300, "\x01"), (900, "\U0001f600")])
def test_the_signed_bytes_are_bounded_whatever_went_in(size: int, unit: str) -> None:
    contract = fattened(size, unit)
    sealed = seal(contract, KEY)
    assert len(sealed.stored) <= MAX_BYTES
    assert contract["nextAction"]
    for name in ("doNotRedo", "constraints"):
        assert len(contract[name]) > 10
        assert any(loss.startswith(f"{name}: ") for loss in contract["losses"])
        assert "more that did not fit" in canonical(contract[name][-1]).decode()


def test_the_caps_leave_room_for_the_rest() -> None:
    assert sum(TEXTS.values()) + sum(cap.total for cap in LISTS.values()) <= MAX_BYTES - 12 * 1024


@given(st.text(), st.integers(200, 400))
@settings(max_examples=50)
def test_a_cut_text_fits_its_limit(text: str, limit: int) -> None:
    text = text * 40
    assert len(canonical(cut(text, limit))) <= limit


def test_a_lone_surrogate_does_not_stop_a_handoff() -> None:
    contract = build(identity(task="a\ud800b"), PAUSE, replace(EMPTY, last_text="\udfff"), NO_WORK)
    assert contract["taskGoal"] == "a\ufffdb"
    seal(contract, KEY)


def test_a_time_without_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="aware"):
        build(identity(created_at=datetime(2026, 1, 1)), PAUSE, EMPTY, NO_WORK)
