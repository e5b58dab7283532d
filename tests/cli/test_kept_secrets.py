"""Of a whole run with secrets in all that is said, nothing that git relay keeps holds one."""

from __future__ import annotations

import string

from tests.cli.scene import ACCEPT, LIMIT, commit, only_session, say, shell, write

PLACES = ("task", "title", "words", "output", "errors", "reason", "note", "plan", "answer")
ALPHABET = string.ascii_letters + string.digits
SECRETS = {
    place: "gsk_" + "".join(ALPHABET[(n * 7 + i * 11) % 62] for i in range(52)) for n, place in enumerate(PLACES)
}


def kept(repo) -> dict[str, bytes]:
    """Every file in the git dir, and every object."""
    held = {str(f): f.read_bytes() for f in repo.git_dir.rglob("*") if f.is_file() and "objects" not in f.parts}
    objects = repo.git("cat-file", "--batch-check=%(objecttype) %(objectname)", "--batch-all-objects").splitlines()
    for kind, oid in map(str.split, objects):
        held[oid] = repo.git("cat-file", "-p", oid).encode()
        assert kind in ("blob", "tree", "commit", "tag")
    return held


def test_nothing_that_is_kept_holds_a_secret_and_the_first_agent_was_told_the_whole_task(
    repo, relay, demo, tmp_path
) -> None:
    task, seen = tmp_path / "task", tmp_path / "processes"
    task.write_text(f"Deploy with {SECRETS['title']}\n\nThe other one is {SECRETS['task']}.\n")
    (tmp_path / "said").write_text(f"{SECRETS['output']}\n")
    demo.plays(
        [
            say(f"I use {SECRETS['words']}."),
            {"do": "plan", "items": [{"text": f"Use {SECRETS['plan']}", "status": "pending"}]},
            shell("sh", "-c", f"cat /proc/[0-9]*/cmdline > {seen}; cat {tmp_path}/said; cat {tmp_path}/said >&2"),
            write("made.txt", "made\n"),
            commit("Make it"),
            LIMIT,
        ],
        [ACCEPT, say(f"I have {SECRETS['answer']}."), write("b.txt", "b\n"), commit("End it"), say("Done.")],
    )
    first = relay("start", "--file", task, "--agent", "demo", cwd=repo.path)
    session = only_session(repo.path)
    assert first.rc == 1, first
    assert "note: the task holds what looks like a secret (groq-key)" in first.stderr
    assert relay("note", "--session", session, "decision", f"no {SECRETS['note']}", cwd=repo.path).rc == 0
    done = relay("handoff", session, "--to", "demo", "--reason", f"as {SECRETS['reason']} says", cwd=repo.path)
    assert done.rc == 0, done

    leaks = {(place, where) for where, text in kept(repo).items() for place, s in SECRETS.items() if s.encode() in text}
    assert leaks == set()
    assert not [place for place, secret in SECRETS.items() if secret.encode() in seen.read_bytes()]
    assert not [place for place, secret in SECRETS.items() if secret in first.stdout + first.stderr + done.stderr]
    prompts = demo.prompts()
    assert (SECRETS["task"] in prompts[0], SECRETS["title"] in prompts[0]) == (True, True)
    assert "[redacted:groq-key#" in prompts[1]
    assert "You work on the branch" not in prompts[1], "what git relay told the first agent is nobody's rule"
    assert not [place for place, secret in SECRETS.items() if secret in prompts[1]]
    assert b"[redacted:" in (repo.git_dir / f"relay/logs/{session}/leg-1-demo/stdout").read_bytes()
    assert "[redacted:" in (repo.git_dir / f"relay/spool/{session}/task").read_text()


def test_what_is_too_long_for_a_line_loses_its_secrets_before_it_is_cut(repo, relay, demo) -> None:
    secret = "postgres://me:s3cretpw9@db.example.com/shop"
    demo.plays([shell("sh", "-c", f": {'x' * fill} {secret}") for fill in range(60, 110, 2)])
    ran = relay("start", "the task", "--agent", "demo", cwd=repo.path)
    assert "redacted" in ran.stderr
    assert "s3c" not in ran.stderr
