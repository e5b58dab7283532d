"""Two model providers' wire formats, as one shape: what a request asks, and one scripted turn in each API's words.

The error bodies and quota headers are written from the providers' public documents and from the header names that the
CLIs read; the CLIs take them as they would the real ones.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Turn = dict[str, Any]
Call = dict[str, Any]
Error = tuple[int, dict[str, str], dict[str, Any]]


@dataclass
class Tool:
    """One tool that the agent offers to the model."""

    schema: dict[str, Any]
    freeform: bool = False
    namespace: str | None = None


@dataclass
class Asked:
    """One request, whatever its API."""

    system: str = ""
    tools: dict[str, Tool] = field(default_factory=dict)
    messages: list[dict[str, Any]] = field(default_factory=list)
    schema: dict[str, Any] | None = None  # of the JSON that the answer must be

    def add(self, role: str, text: str = "", calls: list[Any] | None = None, results: list[Any] | None = None) -> None:
        parts = {"role": role, "text": text, "tool_calls": calls, "tool_results": results}
        self.messages.append({k: v for k, v in parts.items() if v})

    @property
    def last_user_text(self) -> str:
        texts = (m["text"] for m in reversed(self.messages) if m["role"] == "user" and m.get("text"))
        return next(texts, "")


def flat(content: Any) -> str:
    """The text of a message's content."""
    if isinstance(content, str):
        return content
    blocks = [b if isinstance(b, str) else b.get("text") for b in content or []]
    return "\n".join(b for b in blocks if isinstance(b, str))


def asked_anthropic(body: dict[str, Any]) -> Asked:
    asked = Asked(flat(body.get("system")))
    for tool in body.get("tools") or []:
        asked.tools[tool["name"]] = Tool(tool.get("input_schema") or {})
    for message in body.get("messages") or []:
        content = message["content"]
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        asked.add(
            message["role"],
            flat([b for b in blocks if b.get("type") == "text"]),
            [{"name": b["name"], "args": b["input"]} for b in blocks if b.get("type") == "tool_use"],
            [
                {"text": flat(b.get("content")), "error": b.get("is_error", False)}
                for b in blocks
                if b.get("type") == "tool_result"
            ],
        )
    return asked


def asked_responses(body: dict[str, Any]) -> Asked:
    asked = Asked(body.get("instructions") or "")
    items = body.get("input") or []
    items = [{"role": "user", "content": items}] if isinstance(items, str) else items
    more = [t for i in items if i.get("type") == "additional_tools" for t in i.get("tools") or []]
    for tool in (body.get("tools") or []) + more:
        named = tool.get("name") if tool.get("name") != "functions" else None
        for one in tool.get("tools") or [] if tool.get("type") == "namespace" else [tool]:
            asked.tools[one.get("name") or one.get("type")] = Tool(
                one.get("parameters") or {}, one.get("type") == "custom", named if one is not tool else None
            )
    for item in items:
        kind = item.get("type", "message")
        if kind == "message":
            asked.add(item["role"], flat(item["content"]))
        elif kind in ("function_call", "custom_tool_call"):
            asked.add("assistant", calls=[{"name": item["name"], "args": item.get("arguments", item.get("input"))}])
        elif kind.endswith("_output"):
            asked.add("tool", results=[{"text": flat(item["output"])}])
    return asked


# ------------------------------------------------------------------ replies: the whole, and its stream of events
def name_of(prefix: str) -> str:
    return prefix + uuid.uuid4().hex[:24]


def event(name: str, data: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n"


def reply_anthropic(
    text: str, calls: list[Call], model: str, usage: dict[str, int]
) -> tuple[dict[str, Any], list[str]]:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    blocks += [{"type": "tool_use", "id": name_of("toolu_"), "name": c["name"], "input": c["args"]} for c in calls]
    used = {
        "input_tokens": usage["in"],
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": usage["out"],
    }
    stop = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    head = {"id": name_of("msg_"), "type": "message", "role": "assistant", "model": model}
    start = {**head, "content": [], "stop_reason": None, "stop_sequence": None, "usage": {**used, "output_tokens": 1}}
    events = [event("message_start", {"message": start})]
    for i, block in enumerate(blocks):
        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events += [
            event("content_block_start", {"index": i, "content_block": empty}),
            event("content_block_delta", {"index": i, "delta": delta}),
            event("content_block_stop", {"index": i}),
        ]
    events.append(event("message_delta", {"delta": stop, "usage": {"output_tokens": usage["out"]}}))
    events.append(event("message_stop", {}))
    return {**head, **stop, "content": blocks, "usage": used}, events


def reply_responses(
    text: str, calls: list[Call], model: str, usage: dict[str, int]
) -> tuple[dict[str, Any], list[str]]:
    items: list[dict[str, Any]] = []
    if text:
        part = {"type": "output_text", "text": text, "annotations": []}
        items.append({"type": "message", "id": name_of("msg_"), "role": "assistant", "content": [part]})
    for call in calls:
        item = {"call_id": name_of("call_"), "name": call["name"]}
        if call.get("namespace"):
            item["namespace"] = call["namespace"]
        if "input" in call:
            items.append({"type": "custom_tool_call", "id": name_of("ctc_"), "input": call["input"], **item})
        else:
            arguments = json.dumps(call["args"])
            items.append({"type": "function_call", "id": name_of("fc_"), "arguments": arguments, **item})
    for item in items:
        item["status"] = "completed"
    whole = {
        "id": name_of("resp_"),
        "object": "response",
        "created_at": int(time.time()),
        "model": model,
        "status": "completed",
        "output": items,
        "error": None,
        "usage": {
            "input_tokens": usage["in"],
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": usage["out"],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage["in"] + usage["out"],
        },
    }
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    events = [event("response.created", {"response": begun})]
    for i, item in enumerate(items):
        started = {**item, "status": "in_progress", **({"content": []} if item["type"] == "message" else {})}
        events.append(event("response.output_item.added", {"output_index": i, "item": started}))
        if item["type"] == "message":
            at = {"item_id": item["id"], "output_index": i, "content_index": 0}
            events.append(event("response.content_part.added", {**at, "part": {**item["content"][0], "text": ""}}))
            events.append(event("response.output_text.delta", {**at, "delta": text}))
            events.append(event("response.output_text.done", {**at, "text": text}))
            events.append(event("response.content_part.done", {**at, "part": item["content"][0]}))
        events.append(event("response.output_item.done", {"output_index": i, "item": item}))
    events.append(event("response.completed", {"response": whole}))
    return whole, events


# ------------------------------------------------------------------ quota headers and errors
def rate_headers(preset: str) -> dict[str, str]:
    """Quota headers as the providers send them; `preset` is NAME or NAME:USED, the used fraction from 0 to 1."""
    name, _, fraction = preset.partition(":")
    used, now = float(fraction or 0.42), time.time()
    if name == "claude":  # a subscription's
        state = "allowed" if used < 0.8 else "allowed_warning" if used < 1 else "rejected"
        parts: dict[str, Any] = {
            "status": state,
            "reset": int(now + 7200),
            "representative-claim": "five_hour",
            "fallback-percentage": "0.5",
            "5h-status": state,
            "5h-utilization": used,
            "5h-reset": int(now + 7200),
            "7d-status": "allowed",
            "7d-utilization": round(used / 3, 3),
            "7d-reset": int(now + 300000),
            "overage-status": "rejected",
            "overage-disabled-reason": "org_level_disabled",
        }
        if state == "allowed_warning":
            parts["5h-surpassed-threshold"] = 0.8
        return {"anthropic-ratelimit-unified-" + k: str(v) for k, v in parts.items()}
    if name == "codex":  # a plan's
        parts = {
            "primary-used-percent": f"{used * 100:.1f}",
            "primary-window-minutes": 300,
            "primary-reset-at": int(now + 7200),
            "secondary-used-percent": f"{used * 30:.1f}",
            "secondary-window-minutes": 10080,
            "secondary-reset-at": int(now + 300000),
            "credits-has-credits": "false",
            "credits-unlimited": "false",
        }
        return {"x-codex-" + k: str(v) for k, v in parts.items()}
    raise ValueError(f"unknown quota headers: {preset}")


def _anthropic(status: int, kind: str, message: str, headers: dict[str, str] | None = None) -> Error:
    error = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_scripted"}
    return status, headers or {}, error


def _openai(status: int, headers: dict[str, str] | None = None, **error: Any) -> Error:
    return status, headers or {}, {"error": error}


ERRORS: dict[str, Callable[[], Error]] = {
    "claude-usage-limit": lambda: _anthropic(
        429,
        "rate_limit_error",
        "This request would exceed your account's rate limit. Please try again later.",
        {"retry-after": "7200", "x-should-retry": "false", **rate_headers("claude:1")},
    ),
    "anthropic-429": lambda: _anthropic(
        429,
        "rate_limit_error",
        "This request would exceed your organization's rate limit of 50 requests per minute.",
        {"retry-after": "30"},
    ),
    "anthropic-credit": lambda: _anthropic(
        400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."
    ),
    "anthropic-overloaded": lambda: _anthropic(529, "overloaded_error", "Overloaded"),
    "anthropic-500": lambda: _anthropic(500, "api_error", "Internal server error"),
    "codex-usage-limit": lambda: _openai(
        429,
        rate_headers("codex:1"),
        type="usage_limit_reached",
        message="The usage limit has been reached",
        plan_type="plus",
        resets_at=int(time.time() + 7200),
        resets_in_seconds=7200,
    ),
    "openai-429": lambda: _openai(
        429,
        {"retry-after": "20"},
        type="requests",
        message="Rate limit reached for requests. Please try again in 20s.",
        code="rate_limit_exceeded",
    ),
    "openai-quota": lambda: _openai(
        429,
        type="insufficient_quota",
        message="You exceeded your current quota, please check your plan and billing details.",
        code="insufficient_quota",
    ),
    "openai-500": lambda: _openai(500, type="server_error", message="The server had an error", code=None),
}
