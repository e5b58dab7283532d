"""Accounts: each login in its folder, keys by name only, and a file that is believed only if it is the user's own."""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from relay_git.agents import AGENTS
from relay_git.errors import AgentError, FormatTooNew, RelayError, UserError
from relay_git.quota.entry import Account
from relay_git.supervisor.accounts import Accounts, Login, account_of

SECRET = "sk-test-MADE-UP-not-a-key"


@pytest.fixture
def accounts(tmp_path: Path) -> Accounts:
    return Accounts(tmp_path / "config" / "accounts.json")


@pytest.fixture
def work(tmp_path: Path) -> Login:
    return Login("claude", "work", tmp_path / "claude-work", key_variable="WORK_KEY")


def test_an_account_gets_its_own_folder_and_key_and_nothing_of_the_others(accounts, work, tmp_path) -> None:
    accounts.add(work)
    accounts.add(Login("claude", "home", tmp_path / "claude-home", key_variable="CLAUDE_CODE_OAUTH_TOKEN=HOME_KEY"))
    mine = {"PATH": "/bin", "WORK_KEY": SECRET, "HOME_KEY": "other", "ANTHROPIC_API_KEY": "usual"}
    there = accounts.environment(mine, "claude", "work")
    assert dict(there) == {"PATH": "/bin", "CLAUDE_CONFIG_DIR": str(work.folder), "ANTHROPIC_API_KEY": SECRET}
    there = accounts.environment(mine, "claude", "home")
    assert (there["CLAUDE_CODE_OAUTH_TOKEN"], "ANTHROPIC_API_KEY" in there, "WORK_KEY" in there) == (
        "other",
        False,
        False,
    )
    assert accounts.environment(mine, "claude", "") is mine
    assert accounts.known("claude") == ("work", "home")


def test_the_file_holds_names_and_no_credential_and_only_the_user_can_read_it(accounts, work, tmp_path) -> None:
    accounts.add(work)
    file = tmp_path / "config" / "accounts.json"
    assert json.loads(file.read_bytes()) == {
        "format": "git-relay-accounts",
        "version": 1,
        "accounts": [
            {"agent": "claude", "label": "work", "configDir": str(work.folder), "apiKeyEnv": "WORK_KEY"},
        ],
    }
    assert (file.stat().st_mode & 0o777, work.folder.stat().st_mode & 0o777) == (0o600, 0o700)


@pytest.mark.parametrize("name", [name for name in AGENTS if AGENTS[name].account.folder])
def test_every_tool_with_a_folder_looks_for_its_sessions_in_that_of_the_account(name, accounts, tmp_path) -> None:
    folder = tmp_path / "there"
    accounts.add(Login(name, "work", folder))
    home = {"HOME": str(tmp_path / "home"), "PATH": "/bin"}
    there = accounts.environment(home, name, "work")
    assert there[AGENTS[name].account.folder] == str(folder)
    assert list(AGENTS[name].found(there)) == []


def test_what_cannot_be_an_account_is_refused(accounts, work, tmp_path) -> None:
    accounts.add(work)
    for login in (
        work,  # the label again
        Login("claude", "twin", work.folder),  # the folder again
        Login("aider", "work", tmp_path / "a"),  # it has no folder
        Login("claude", "me@example.com", tmp_path / "b"),
        Login("claude", "x", Path("relative")),
        Login("claude", "x", tmp_path / "c", key_variable=SECRET),
        Login("claude", "x", tmp_path / "c", key_variable="PATH=WORK_KEY"),
        Login("claude", "x", tmp_path / "c", key_variable="K", keyring="a/b"),
        Login("cline", "x", tmp_path / "d", key_variable="K"),
        Login("claude", "x", tmp_path / "e", keyring="only-a-service"),
    ):
        with pytest.raises(UserError) as refused:
            accounts.add(login)
        assert SECRET not in f"{refused.value} {refused.value.hint}"
    assert accounts.all() == (work,)


def test_removing_forgets_the_label_and_deletes_nothing(accounts, work) -> None:
    accounts.add(work)
    (work.folder / "login").write_text("x")
    accounts.remove(Account("claude", "work"))
    assert (accounts.all(), (work.folder / "login").read_text()) == ((), "x")
    with pytest.raises(UserError, match="there is no account claude:work"):
        accounts.environment({}, "claude", "work")


def test_a_folder_or_key_that_is_gone_is_told_in_words(accounts, work) -> None:
    accounts.add(work)
    with pytest.raises(AgentError, match="WORK_KEY, which holds the key of claude:work, is not set"):
        accounts.environment({}, "claude", "work")
    work.folder.chmod(0o777)
    with pytest.raises(AgentError, match="can be written by somebody else"):
        accounts.environment({"WORK_KEY": SECRET}, "claude", "work")
    work.folder.rmdir()
    with pytest.raises(AgentError, match="is not there"):
        accounts.environment({"WORK_KEY": SECRET}, "claude", "work")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a folder to somebody else")
def test_a_folder_of_somebody_else_is_refused(accounts, tmp_path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, 65_534, 65_534)
    with pytest.raises(AgentError, match="somebody else"):
        accounts.add(Login("claude", "work", theirs))
    assert accounts.all() == ()


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"", RelayError),
        (b'{"format": "git-relay-acc', RelayError),
        (b"[]", RelayError),
        (b'{"format":"git-relay-accounts","version":2,"accounts":[]}', FormatTooNew),
        (b'{"format":"other","version":1,"accounts":[]}', RelayError),
        (b'{"format":"git-relay-accounts","version":1,"accounts":[{"agent":"claude"}]}', RelayError),
        (
            b'{"format":"git-relay-accounts","version":1,"accounts":[{"agent":"x","label":"y","configDir":"/"}]}',
            RelayError,
        ),
        (b"[" * 100_000, RelayError),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_and_left_as_it_is(accounts, work, tmp_path, body, error) -> None:
    accounts.add(work)
    file = tmp_path / "config" / "accounts.json"
    file.write_bytes(body)
    for act in (accounts.all, lambda: accounts.add(work), lambda: accounts.environment({}, "claude", "work")):
        with pytest.raises(error) as refused:
            act()
        assert refused.value.hint
    assert file.read_bytes() == body


def test_a_file_that_others_can_write_is_not_believed(accounts, work, tmp_path) -> None:
    accounts.add(work)
    (tmp_path / "config" / "accounts.json").chmod(0o666)
    with pytest.raises(RelayError, match="somebody else"):
        accounts.all()


def test_many_writers_at_once_lose_nothing(accounts, tmp_path) -> None:
    logins = [Login("codex", f"n{number}", tmp_path / f"f{number}") for number in range(20)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(accounts.add, logins))
    assert set(accounts.all()) == set(logins)


def test_a_key_of_the_keyring_is_read_when_it_is_needed(accounts, tmp_path, monkeypatch) -> None:
    accounts.add(Login("claude", "work", tmp_path / "f", keyring="anthropic/work"))
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(AgentError) as lacking:
        accounts.environment({}, "claude", "work")
    assert lacking.value.hint == 'pip install "git-relay[keyring]"'
    kept = {("anthropic", "work"): SECRET}
    ring = SimpleNamespace(get_password=lambda *entry: kept.get(entry), errors=SimpleNamespace(KeyringError=OSError))
    monkeypatch.setitem(sys.modules, "keyring", ring)
    assert accounts.environment({}, "claude", "work")["ANTHROPIC_API_KEY"] == SECRET
    kept.clear()
    with pytest.raises(AgentError, match="holds no entry anthropic/work"):
        accounts.environment({}, "claude", "work")


def test_an_account_is_written_behind_its_agent() -> None:
    assert account_of("claude-code:work") == Account("claude", "work")
    assert account_of(" codex ") == Account("codex")
    for text in ("claude:", "claude:Work", "claude:a:b", "claude:../x", "nobody:work", ""):
        with pytest.raises(UserError):
            account_of(text)
