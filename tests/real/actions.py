"""Scripted actions ("do": "write", "shell", ...) as calls of whatever tools an agent offers."""

from __future__ import annotations

import json
from typing import Any

from tests.real.wire import Call, Tool

# Tool names to look for, in order, in any case.
TOOLS = {
    "write": ["write", "write_file", "create", "create_file", "apply_patch"],
    "edit": ["edit", "replace", "str_replace", "edit_file", "apply_patch"],
    "read": ["read", "read_file", "view"],
    "shell": ["bash", "exec_command", "shell_command", "run_shell_command", "shell"],
    "plan": ["todowrite", "update_plan", "todo_write", "write_todos", "taskcreate"],
    "task": ["task", "agent", "spawn_agent"],
}
# What a tool may call each argument.
FIELDS = {
    "path": ["file_path", "filepath", "path", "absolute_path", "file"],
    "content": ["content", "contents", "file_text", "text"],
    "old": ["old_string", "old_str", "old_text"],
    "new": ["new_string", "new_str", "new_text"],
    "command": ["command", "cmd"],
    "prompt": ["prompt", "message", "task"],
    "items": ["todos", "plan", "items"],
    "text": ["content", "step", "description", "title", "subject", "text"],
    "status": ["status", "state"],
}
PLAIN = {"boolean": False, "number": 1, "integer": 1, "array": [], "object": {}}


def fill(schema: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """Arguments for a tool with this JSON schema, out of {"path": ..., "command": ...}."""
    out: dict[str, Any] = {}
    props: dict[str, Any] = schema.get("properties") or {}
    for key, names in FIELDS.items():
        hit = next((p for n in names for p in props if p.lower() == n and p not in out), None)
        if key not in values or hit is None:
            continue
        value = values[key]
        if key == "items":
            value = [fill(props[hit].get("items") or {}, item) for item in value]
        elif key == "command" and props[hit].get("type") == "array":
            value = ["bash", "-lc", value]
        out[hit] = value
    for name in schema.get("required") or []:
        if name not in out:  # whatever else it insists on
            wants = props.get(name) or {}
            text = values.get("text") or "scripted step"
            out[name] = wants["enum"][0] if wants.get("enum") else PLAIN.get(str(wants.get("type")), text)
    return out


def patch(call: Call) -> str:
    """The apply_patch envelope of a write or an edit."""
    if call["do"] == "write":
        body = ["*** Add File: " + call["path"], *("+" + line for line in call["content"].splitlines())]
    else:
        body = ["*** Update File: " + call["path"], "@@"]
        body += ["-" + line for line in call["old"].splitlines()] + ["+" + line for line in call["new"].splitlines()]
    return "\n".join(["*** Begin Patch", *body, "*** End Patch"])


def code_mode(call: Call) -> Call:
    """Codex's code mode: one freeform tool `exec` runs JavaScript, in which the real tools are functions."""
    if call["do"] in ("write", "edit"):
        script = f"text(await tools.apply_patch({json.dumps(patch(call))}));"
    elif call["do"] == "plan":
        plan = [{"step": item["text"], "status": item["status"]} for item in call["items"]]
        script = f"text(await tools.update_plan({json.dumps({'plan': plan})}));"
    else:
        command = call["command"] if call["do"] == "shell" else f"cat '{call.get('path', '/dev/null')}'"
        script = f"const r = await tools.exec_command({json.dumps({'cmd': command})}); text(r.output ?? r);"
    return {"name": "exec", "input": script}


def by_shell(call: Call) -> Call:
    """A read, write or edit for an agent that has only a shell."""
    path = call["path"]
    if call["do"] == "read":
        command = f"cat '{path}'"
    elif call["do"] == "write":
        command = f"cat > '{path}' <<'EOT'\n{call['content'].rstrip()}\nEOT"
    else:
        change = f"p.write_text(p.read_text().replace({call['old']!r}, {call['new']!r}))"
        command = f"python3 - <<'EOT'\nfrom pathlib import Path\np = Path({path!r})\n{change}\nEOT"
    return {"do": "shell", "command": command}


def resolve(call: Call, tools: dict[str, Tool]) -> Call | None:
    """A script's tool entry as a call of a tool that the agent offers; None where it has no such tool."""
    if "do" not in call:
        offered = tools.get(call["name"])
        return {"namespace": offered.namespace if offered else None, "args": {}, **call}
    lower = {name.lower(): name for name in tools}
    name = next((lower[n] for n in TOOLS[call["do"]] if n in lower), None)
    if name is None:
        if "exec" in tools and tools["exec"].freeform:
            return code_mode(call)
        if call["do"] in ("read", "write", "edit") and any(n in lower for n in TOOLS["shell"]):
            return resolve(by_shell(call), tools)
        return None
    tool = tools[name]
    if name.lower() == "apply_patch":
        if tool.freeform:
            return {"name": name, "input": patch(call)}
        return {"name": name, "args": {next(iter(tool.schema.get("properties") or {"input": 0})): patch(call)}}
    values = {key: value for key, value in call.items() if key != "do"}
    if name.lower() == "taskcreate":
        values = {"text": call["items"][0]["text"]}
    if call["do"] == "task":
        values.setdefault("text", "scripted subtask")
    args = fill(tool.schema, values) | call.get("extra", {})
    if name.lower() == "taskcreate":
        args["subject"] = args["description"] = values["text"]
    return {"name": name, "args": args, "namespace": tool.namespace}
