"""Two more providers' wire formats in the shape of `wire`: OpenAI Chat Completions, and Gemini's generateContent."""

from __future__ import annotations

import json
import time
from typing import Any

from tests.real.wire import Asked, Call, Error, Tool, flat, name_of


def asked_chat(body: dict[str, Any]) -> Asked:
    asked = Asked()
    for tool in body.get("tools") or []:
        about = tool.get("function") or tool.get("custom") or {}
        asked.tools[about.get("name", "")] = Tool(about.get("parameters") or {}, tool.get("type") == "custom")
    for message in body.get("messages") or []:
        role, text = message.get("role", ""), flat(message.get("content"))
        calls = [call.get("function") or call.get("custom") or {} for call in message.get("tool_calls") or []]
        if role in ("system", "developer"):
            asked.system += text
        elif role == "tool":
            asked.add("tool", results=[{"text": text}])
        else:
            asked.add(role, text, [{"name": c.get("name"), "args": c.get("arguments", c.get("input"))} for c in calls])
    return asked


def reply_chat(text: str, calls: list[Call], model: str, usage: dict[str, int]) -> tuple[dict[str, Any], list[str]]:
    tools = []
    for call in calls:
        function = {"name": call["name"], "arguments": json.dumps(call.get("args", {}))}
        custom = {"name": call["name"], "input": call.get("input")}
        kind = {"type": "custom", "custom": custom} if "input" in call else {"type": "function", "function": function}
        tools.append({"id": name_of("call_"), **kind})
    reason = "tool_calls" if tools else "stop"
    total = usage["in"] + usage["out"]
    used = {"prompt_tokens": usage["in"], "completion_tokens": usage["out"], "total_tokens": total}
    head = {"id": name_of("chatcmpl-"), "created": int(time.time()), "model": model}
    message = {"role": "assistant", "content": text or None, **({"tool_calls": tools} if tools else {})}
    choice = {"index": 0, "message": message, "finish_reason": reason}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> str:
        piece = {"index": 0, "delta": delta, "finish_reason": finish}
        return _data({**head, "object": "chat.completion.chunk", "choices": [piece]})

    events = [chunk({"role": "assistant", "content": ""})]
    events += [chunk({"content": text})] if text else []
    events += [chunk({"tool_calls": [{"index": i, **tool}]}) for i, tool in enumerate(tools)]
    events.append(chunk({}, reason))
    events.append(_data({**head, "object": "chat.completion.chunk", "choices": [], "usage": used}))
    events.append("data: [DONE]\n\n")
    return {**head, "object": "chat.completion", "choices": [choice], "usage": used}, events


def asked_gemini(body: dict[str, Any]) -> Asked:
    asked = Asked(flat((body.get("systemInstruction") or {}).get("parts")))
    asked.schema = (body.get("generationConfig") or {}).get("responseJsonSchema")
    for tool in body.get("tools") or []:
        for one in tool.get("functionDeclarations") or []:
            asked.tools[one["name"]] = Tool(one.get("parametersJsonSchema") or one.get("parameters") or {})
    for content in body.get("contents") or []:
        parts = content.get("parts") or []
        results = [p["functionResponse"].get("response") for p in parts if "functionResponse" in p]
        asked.add(
            "tool" if results else "assistant" if content.get("role") == "model" else "user",
            flat([p for p in parts if "text" in p]),
            [p["functionCall"] for p in parts if "functionCall" in p],
            [{"text": json.dumps(result)} for result in results],
        )
    return asked


def reply_gemini(text: str, calls: list[Call], model: str, usage: dict[str, int]) -> tuple[dict[str, Any], list[str]]:
    used = {"promptTokenCount": usage["in"], "candidatesTokenCount": usage["out"]}
    used["totalTokenCount"] = usage["in"] + usage["out"]
    head = {"usageMetadata": used, "modelVersion": model, "responseId": name_of("r")}
    parts: list[dict[str, Any]] = [{"text": text}] if text else []
    parts += [{"functionCall": {"id": name_of("fc-"), "name": c["name"], "args": c.get("args", {})}} for c in calls]

    def answer(some: list[dict[str, Any]], last: bool) -> dict[str, Any]:
        end = {"finishReason": "STOP"} if last else {}
        return {"candidates": [{"index": 0, "content": {"role": "model", "parts": some}, **end}], **head}

    half = len(text) // 2  # so that a cut has a middle
    pieces = [*([{"text": text[:half]}, {"text": text[half:]}] if half else parts[:1]), *parts[1:]]
    return answer(parts, True), [_data(answer([p], i == len(pieces) - 1)) for i, p in enumerate(pieces)]


def _data(value: dict[str, Any]) -> str:
    return f"data: {json.dumps(value)}\n\n"


def _google(message: str, detail: dict[str, Any]) -> Error:
    kind = "type.googleapis.com/google.rpc."
    details = [{**detail, "@type": kind + detail["@type"]}]
    return 429, {}, {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": message, "details": details}}


MORE_ERRORS = {
    "openai-429-two-hours": lambda: (
        429,
        {"retry-after": "7200"},
        {"error": {"type": "requests", "message": "Rate limit reached for requests.", "code": "rate_limit_exceeded"}},
    ),
    "gemini-429": lambda: _google(
        "Resource has been exhausted. Please retry in 20s.", {"@type": "RetryInfo", "retryDelay": "20s"}
    ),
    "gemini-quota": lambda: _google(
        "You exceeded your current quota, please check your plan and billing details.",
        {
            "@type": "QuotaFailure",
            "violations": [
                {
                    "quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests",
                    "quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier",
                    "quotaValue": "250",
                }
            ],
        },
    ),
}
