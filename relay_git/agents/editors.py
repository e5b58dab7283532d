"""Where the editors that are built like VS Code keep the data of their extensions.

Promise: folders are named from the environment that is given; whether they exist is for the caller to see.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from relay_git.agents import jsonl, shelf
from relay_git.agents.homes import home

EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
_SERVERS = (".vscode-server", ".vscode-server-insiders", ".cursor-server")
_MAX_NOTE = 65_536


def user_folders(env: Mapping[str, str], editors: tuple[str, ...] = EDITORS) -> tuple[Path, ...]:
    """The `User` folder of each editor: on this machine, and of those that reach it from another one."""
    if sys.platform == "darwin":
        base = home(env) / "Library" / "Application Support"
    elif sys.platform == "win32":
        base = Path(env.get("APPDATA") or home(env) / "AppData" / "Roaming")
    else:
        chosen = Path(env.get("XDG_CONFIG_HOME", ""))
        base = chosen if chosen.is_absolute() else home(env) / ".config"
    here = [base / editor / "User" for editor in editors]
    return (*here, *(home(env) / server / "data" / "User" for server in _SERVERS))


def workspace(storage: Path) -> str:
    """The folder that a `workspaceStorage/<hash>` is for, by its `workspace.json`; empty where that does not tell."""
    note = storage / "workspace.json"
    if not shelf.is_regular(note):
        return ""
    try:
        with note.open("rb") as file:
            told = jsonl.parse(file.read(_MAX_NOTE)) or {}
    except OSError:
        return ""
    return local_path(told.get("folder"))


def local_path(uri: object) -> str:
    """The path in a `file://` address; empty for any other."""
    try:
        parts = urlsplit(jsonl.text(uri))
    except ValueError:
        return ""
    return unquote(parts.path) if parts.scheme == "file" else ""
