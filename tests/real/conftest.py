"""Fixtures for tests with real agent CLIs; README.md beside this file shows how they are used."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real.loopback import Loopback, Model
from tests.seal.repo import Repo

FAKE = "sk-test-not-a-key"
# What the CLIs and their sandboxes need beside git and a shell lies in the system's own folders.
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
REAL = ("claude", "codex", "opencode", "gemini", "qwen", "copilot")
OUTSIDE_PATH = os.environ.get("PATH", "")  # read before the seal


def agent_program(name: str) -> Path | None:
    """The real CLI: in $RELAY_TEST_AGENTS/bin, else on the PATH that pytest was started with."""
    prefix = os.environ.get("RELAY_TEST_AGENTS")
    found = shutil.which(name, path=f"{prefix}/bin" if prefix else OUTSIDE_PATH)
    return Path(found) if found else None


def pytest_runtest_setup(item: pytest.Item) -> None:
    marker = item.get_closest_marker("agents")
    missing = [name for name in (marker.args if marker else ()) if agent_program(name) is None]
    if not missing:
        return
    where = os.environ.get("RELAY_TEST_AGENTS", "PATH")
    reason = (
        f"no {' and no '.join(missing)} in {where}: bash tests/real/install.sh PREFIX, then RELAY_TEST_AGENTS=PREFIX"
    )
    pytest.skip(reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where the agents must be there, no test of theirs may skip, whatever its reason."""
    report = yield
    if report.skipped and item.get_closest_marker("agents") and os.environ.get("RELAY_TEST_REQUIRE_AGENTS") == "1":
        report.outcome = "failed"
        report.longrepr = f"skipped, but RELAY_TEST_REQUIRE_AGENTS=1: {report.longrepr[2]}"
    return report


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder outside /tmp: Codex's sandbox closes /tmp and looks for its helper outside of it."""
    base = Path("/var/tmp") if os.access("/var/tmp", os.W_OK) else Path(tempfile.gettempdir())
    folder = Path(tempfile.mkdtemp(prefix="git-relay-test-", dir=base))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def lo(scratch: Path) -> Iterator[Loopback]:
    """A network namespace with only loopback, where the machine allows one; all in it ends with the test."""
    place = Loopback(scratch)
    place.open()
    yield place
    place.close()


@pytest.fixture
def model(lo: Loopback) -> Callable[[dict[str, Any]], Model]:
    """`model(script)`: start a scripted model in the namespace."""
    return lo.model


@pytest.fixture
def agent_home(scratch: Path, home: Path) -> Path:
    """The agents' HOME: the test's own, outside /tmp, with the sealed .gitconfig."""
    folder = scratch / "home"
    folder.mkdir(mode=0o700)
    shutil.copy(home / ".gitconfig", folder)
    return folder


@pytest.fixture
def agent_repo(scratch: Path) -> Repo:
    """A repository outside /tmp, on branch `main` with one commit."""
    folder = scratch / "repo"
    folder.mkdir()
    made = Repo(folder)
    made.git("init", "-q", "--template=")
    made.commit("initial commit", {"README.md": "# demo\n", "src/greet.py": 'def greet(name):\n    return "hi"\n'})
    return made


@pytest.fixture
def base_env(agent_home: Path) -> dict[str, str]:
    """What every command in the namespace gets: the sealed variables, the agents' home, `git-relay` and the system."""
    programs = [path.parent for name in REAL if (path := agent_program(name))]
    # Qwen Code wants a newer node than most machines have: install.sh puts one beside it.
    node = agent_program("node") or shutil.which("node", path=OUTSIDE_PATH)
    path = [*map(str, programs), os.environ["PATH"], *([str(Path(node).parent)] if node else []), SYSTEM_PATH]
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "PYTEST_", "GIT_CONFIG_GLOBAL"))}
    own = {"HOME": str(agent_home), "TMPDIR": str(agent_home.parent / "tmp"), "SHELL": "/bin/bash"}
    Path(own["TMPDIR"]).mkdir()
    return {**kept, **own, "PATH": ":".join(dict.fromkeys(path))}


@pytest.fixture
def claude_env(scratch: Path) -> Callable[..., dict[str, str]]:
    """`claude_env(model, subscription=True)`: the variables that make Claude Code ask this model, with a fake login."""

    def env(model: Model, *, subscription: bool = True) -> dict[str, str]:
        return {
            "ANTHROPIC_BASE_URL": model.url,
            "CLAUDE_CODE_OAUTH_TOKEN" if subscription else "ANTHROPIC_API_KEY": FAKE,
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "IS_SANDBOX": "1",
            "CLAUDE_CODE_TMPDIR": str(scratch / "tmp"),  # else /tmp/claude-UID, which outlives the test
        }

    return env


@pytest.fixture
def codex_env(agent_home: Path) -> Callable[..., dict[str, str]]:
    """`codex_env(model, codex_model=, home=, more=)`: the variables that make Codex ask this model.

    They come with a CODEX_HOME whose config.toml names the model; `more` is added to that file.
    """

    def env(model: Model, *, codex_model: str = "gpt-5.5", home: Path | None = None, more: str = "") -> dict[str, str]:
        folder = home or agent_home / ".codex"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / "config.toml").write_text(
            f'model = "{codex_model}"\nmodel_provider = "scripted"\ncheck_for_update_on_startup = false\n{more}\n'
            "[analytics]\nenabled = false\n"
            f'[model_providers.scripted]\nname = "scripted"\nbase_url = "{model.url}/v1"\nenv_key = "FAKE_KEY"\n'
            'wire_api = "responses"\nrequest_max_retries = 1\nstream_max_retries = 1\n'
        )
        return {"CODEX_HOME": str(folder), "FAKE_KEY": FAKE}

    return env


@pytest.fixture
def opencode_env() -> Callable[[Model], dict[str, str]]:
    """`opencode_env(model)`: the variables that make opencode ask this model."""

    def env(model: Model) -> dict[str, str]:
        options = {"baseURL": f"{model.url}/v1", "apiKey": FAKE}
        limit = {"context": 200_000, "output": 32_000}
        provider = {"npm": "@ai-sdk/openai-compatible", "name": "Scripted", "options": options}
        provider["models"] = {"scripted-model": {"name": "Scripted", "limit": limit}}
        config = {"autoupdate": False, "share": "disabled", "provider": {"scripted": provider}}
        named = {"model": "scripted/scripted-model", "small_model": "scripted/scripted-model"}
        off = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
        return {
            "OPENCODE_CONFIG_CONTENT": json.dumps({**config, **named}),
            "npm_config_fetch_retries": "0",  # it looks for packages that it does not need
            **{f"OPENCODE_DISABLE_{name}": "1" for name in off},
        }

    return env


@pytest.fixture
def gemini_env(agent_home: Path) -> Callable[[Model], dict[str, str]]:
    """`gemini_env(model)`: the variables that make Gemini CLI ask this model; writes its settings."""

    def env(model: Model) -> dict[str, str]:
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
        }
        _write(agent_home / ".gemini" / "settings.json", settings)
        return {"GEMINI_API_KEY": FAKE, "GOOGLE_GEMINI_BASE_URL": model.url, "GEMINI_CLI_NO_RELAUNCH": "true"}

    return env


@pytest.fixture
def qwen_env(agent_home: Path) -> Callable[[Model], dict[str, str]]:
    """`qwen_env(model)`: the variables that make Qwen Code ask this model; writes its settings."""

    def env(model: Model) -> dict[str, str]:
        settings = {
            "security": {"auth": {"selectedType": "openai"}},
            "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
            "$version": 4,  # else it writes this in itself
        }
        _write(agent_home / ".qwen" / "settings.json", settings)
        return {"OPENAI_API_KEY": FAKE, "OPENAI_BASE_URL": f"{model.url}/v1", "OPENAI_MODEL": "scripted-model"}

    return env


@pytest.fixture
def copilot_env() -> Callable[[Model], dict[str, str]]:
    """`copilot_env(model)`: the variables that make Copilot CLI ask this model, without GitHub."""

    def env(model: Model) -> dict[str, str]:
        return {
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_BASE_URL": f"{model.url}/v1",
            "COPILOT_PROVIDER_API_KEY": FAKE,
            "COPILOT_MODEL": "gpt-5.4",
            "COPILOT_AUTO_UPDATE": "false",
        }

    return env


def _write(path: Path, settings: dict[str, Any]) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_text(json.dumps(settings))
