"""A scripted stand-in for the model providers of the agents, on 127.0.0.1 only.

    python -m tests.real.scripted_model --script S.json --log L.jsonl --port-file F [--port N]

A script is JSON:

    {"claude": PLAY, "codex": PLAY,       one play for each API (Anthropic Messages, OpenAI Responses,
     "chat": PLAY, "gemini": PLAY}        OpenAI Chat Completions, Gemini), or
    PLAY                                  one play for whoever asks

    PLAY  {"turns":  [TURN, ...],                               one for each main request, in order
           "after":  TURN,                                      when they ran out (default: the text "Done.")
           "routes": [{"when": REGEX, "once": true, "reply": TURN}],   tried first, on the last user text
           "rate": "claude:0.93" | "codex:0.97",                quota headers on every good reply (used fraction)
           "headers": {...}}
    TURN  any mix of
           "text": "..."                                        assistant text
           "tools": [{"do": "write", "path", "content"}, {"do": "edit", "path", "old", "new"}, {"do": "read", "path"},
                     {"do": "shell", "command"}, {"do": "plan", "items": [{"text", "status"}]},
                     {"do": "task", "prompt"}, {"name": "Tool", "args": {...}}]    mapped to the agent's own tools
           "delay": SECONDS   "until": PATH                     wait so long, or until a file is there (60 s at most)
           "preset": "claude-usage-limit" | "codex-usage-limit" | ... (wire.ERRORS)
           "error": STATUS, "body": {...}, "headers": {...}     another HTTP error
           "disconnect": true                                   cut the stream in its middle
           "sticky": true   "times": N                          never leave this turn; play it N times
           "usage": {"in": N, "out": N}                         token counts

`{{cwd}}` in a turn is the folder that the asking agent works in, `{{brief}}` the file that its prompt points to, both
read from its own request.
A request is *main* when it offers tools; others (titles, token counts, model lists) get a benign answer and use up no
turn. Each request is one line of the log: api, kind, turn, headers without secrets, credential (its SHA-256), system,
tools, messages, answered.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.real.actions import fill, resolve
from tests.real.wire import (
    ERRORS,
    Asked,
    Turn,
    asked_anthropic,
    asked_responses,
    rate_headers,
    reply_anthropic,
    reply_responses,
)
from tests.real.wire_more import MORE_ERRORS, asked_chat, asked_gemini, reply_chat, reply_gemini

SECRET = re.compile(r"authorization|.*api-key|cookie|.*token.*|.*secret.*", re.I)
CWD = re.compile(r"<cwd>(.+?)</cwd>|[Ww]orking (?:in the )?directory: (.+)|Workspace Directories:[^/]+(/.+)")
BRIEF = re.compile(r"task is in the file (\S+)")
APIS = {
    "claude": (asked_anthropic, reply_anthropic),
    "codex": (asked_responses, reply_responses),
    "chat": (asked_chat, reply_chat),
    "gemini": (asked_gemini, reply_gemini),
}
PATHS = {"/messages": "claude", "/responses": "codex", "/chat/completions": "chat"}


class Play:
    """One script being played to one API."""

    def __init__(self, script: dict[str, Any]) -> None:
        self.script, self.lock, self.at, self.played = script, threading.Lock(), 0, 0

    def take(self, last_user: str, main: bool) -> tuple[Turn, str]:
        """The turn for this request, and where it came from."""
        with self.lock:
            for route in self.script.get("routes", []):
                if not route.get("used") and re.search(route["when"], last_user, re.DOTALL):
                    route["used"] = route.get("once", False)
                    return route["reply"], "route"
            if not main:
                return {"text": "Scripted session"}, "side"
            turns = self.script.get("turns", [])
            if self.at >= len(turns):
                return self.script.get("after", {"text": "Done."}), "after"
            turn, label = turns[self.at], f"turn {self.at}"
            self.played += 1
            if not turn.get("sticky") and self.played >= turn.get("times", 1):
                self.at, self.played = self.at + 1, 0
            return turn, label


def working_folder(asked: Asked) -> str:
    """The folder that the agent says it works in, the newest word first."""
    texts = [m.get("text", "") for m in reversed(asked.messages)] + [asked.system]
    for text in texts:
        if found := CWD.search(text):
            return next(filter(None, found.groups())).strip()
    return "."


def brief_file(asked: Asked) -> str:
    """The file that the first prompt of a TUI points to."""
    found = (BRIEF.search(m.get("text", "")) for m in asked.messages)
    return next((f[1] for f in found if f), "")


def placed(turn: Turn, **names: str) -> Turn:
    """The turn with `{{cwd}}` and `{{brief}}` filled in."""
    text = json.dumps(turn)
    for name, value in names.items():
        text = text.replace(f"{{{{{name}}}}}", json.dumps(value)[1:-1])
    return json.loads(text)


def wait(turn: Turn) -> None:
    """Hold the answer back, as the script says."""
    time.sleep(turn.get("delay", 0))
    give_up = time.monotonic() + 60
    while "until" in turn and not Path(turn["until"]).exists() and time.monotonic() < give_up:
        time.sleep(0.02)


class Server(ThreadingHTTPServer):
    """The server; `plays` by API."""

    daemon_threads = True

    def __init__(self, script: dict[str, Any], log: Path, port: int) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        shared = None if script.keys() & APIS.keys() else Play(script)
        self.plays = {api: shared or Play(script.get(api, {})) for api in APIS}
        self.lock, self.log = threading.Lock(), log

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):  # agents drop connections; not worth a trace
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def record(self, **what: Any) -> None:
        headers = {k.lower(): v for k, v in self.headers.items() if not SECRET.fullmatch(k)}
        line = {"at": round(time.time(), 3), "method": self.command, "path": self.path, "headers": headers, **what}
        given = self.headers.get("x-api-key") or self.headers.get("authorization") or ""
        line["credential"] = hashlib.sha256(given.removeprefix("Bearer ").encode()).hexdigest()
        with self.server.lock, self.server.log.open("a") as log:
            log.write(json.dumps(line) + "\n")

    def answer(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        fixed = {"content-type": "application/json", "content-length": str(len(data)), "request-id": "req_scripted"}
        for name, value in {**fixed, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.record(kind="side", answered="{}")
        if urlsplit(self.path).path.rstrip("/").endswith("models"):
            self.answer(200, {"object": "list", "data": [], "models": [], "has_more": False})
        else:
            self.answer(200, {})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("content-encoding") == "gzip":
            raw = gzip.decompress(raw)
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            body = {}
        path = urlsplit(self.path).path
        api = next((api for end, api in PATHS.items() if path.endswith(end)), None)
        if path.endswith(("enerateContent", ":countTokens")):
            api, body = "gemini", {**body, "stream": "stream" in path, "model": path.split("/")[-1].split(":")[0]}
        if path.endswith(("count_tokens", ":countTokens")):
            self.record(kind="side", answered="count")
            self.answer(200, {"input_tokens": 100, "totalTokens": 100})
        elif api is None:
            self.record(kind="other", body=body, answered="{}")
            self.answer(200, {})
        else:
            self.play(api, body)

    def play(self, api: str, body: dict[str, Any]) -> None:
        read, write = APIS[api]
        play, asked = self.server.plays[api], read(body)
        main, cwd, texts = bool(asked.tools), working_folder(asked), []
        while True:  # a turn with nothing that this agent can do: on to the next, and its words with it
            turn, label = play.take(asked.last_user_text, main)
            turn = placed(turn, cwd=cwd, brief=brief_file(asked))
            calls = [c for c in (resolve(call, asked.tools) for call in turn.get("tools", [])) if c]
            texts.append(turn.get("text"))
            if calls or not turn.get("tools") or not label.startswith("turn"):
                break
        text = "\n".join(filter(None, texts))
        if label == "side" and asked.schema:
            text = json.dumps(fill(asked.schema, {}))
        said = {k: turn[k] for k in ("error", "preset", "disconnect") if k in turn}
        self.record(
            kind="main" if main else "side",
            api=api,
            model=body.get("model"),
            turn=label,
            cwd=cwd,
            system=asked.system,
            tools=sorted(asked.tools),
            messages=asked.messages,
            answered={"text": text, "calls": calls, **said},
        )
        wait(turn)
        if "preset" in turn or "error" in turn:
            default = (0, {}, {"error": {"message": "scripted error", "type": "error"}})
            errors = {**ERRORS, **MORE_ERRORS}
            status, headers, error = errors[turn["preset"]]() if "preset" in turn else default
            self.answer(turn.get("error", status), turn.get("body", error), {**headers, **turn.get("headers", {})})
            return
        headers = {}
        for source in (play.script, turn) if main else ():
            headers |= rate_headers(source["rate"]) if "rate" in source else {}
            headers |= source.get("headers", {})
        usage = {"in": 1200 + 100 * len(asked.messages), "out": 40, **turn.get("usage", {})}
        whole, events = write(text or ("" if calls else "Done."), calls, body.get("model", "scripted"), usage)
        if body.get("stream"):
            self.stream(events[: max(1, len(events) // 2)] if turn.get("disconnect") else events, headers)
        else:
            self.answer(200, whole, headers)

    def stream(self, events: list[str], headers: dict[str, str]) -> None:
        self.send_response(200)  # a stream ends with its connection
        for name, value in {"content-type": "text/event-stream", "connection": "close", **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = True
        for one in events:
            self.wfile.write(one.encode())
            self.wfile.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description="a scripted model on loopback, for tests of coding agents")
    parser.add_argument("--script", type=Path, required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--port-file", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    server = Server(json.loads(options.script.read_text()), options.log, options.port)
    ready = options.port_file.with_suffix(".new")
    ready.write_text(str(server.server_address[1]))
    ready.rename(options.port_file)
    server.serve_forever()


if __name__ == "__main__":
    main()
