"""The proxy between an agent and its service: real sockets on loopback, and what may and may not come out of it."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import psutil
import pytest

from relay_git.session import SessionId
from relay_git.supervisor import process
from relay_git.supervisor.process import Mark
from relay_git.supervisor.proxy import Answer, Proxy

pytest.importorskip("aiohttp", reason="relay.proxy needs the extra 'proxy'")

SECRET = "sk-test-not-a-key-1234567890"
BODY = bytes(range(256)) * 300
PACKED = gzip.compress(BODY)
LIMITS = {"anthropic-ratelimit-unified-5h-utilization": "0.93", "X-RateLimit-Remaining-Tokens": "5", "Retry-After": "7"}


@dataclass
class Service:
    """What it got, and when it may go on."""

    port: int = 0
    got: list[tuple[str, str, list[tuple[str, str]], bytes]] = field(default_factory=list)
    go_on: threading.Event = field(default_factory=threading.Event)


class Handler(BaseHTTPRequestHandler):
    """Answers by its path, in the forms that services use."""

    protocol_version = "HTTP/1.1"
    service: Service

    def handle_one(self) -> None:
        body = self._body()
        self.service.got.append((self.command, self.path, self.headers.items(), body))
        self.send_response(429 if "limited" in self.path else 200)
        for name, value in LIMITS.items() if "limit" in self.path else ():
            self.send_header(name, value)
        if "whole" in self.path:
            self.send_header("Content-Encoding", "gzip")
            self.send_header("Set-Cookie", "a=1")
            self.send_header("Set-Cookie", "b=2")
        if "stream" not in self.path and "cut" not in self.path:
            self._send_whole(PACKED if "whole" in self.path else body)
            return
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self._chunk(b"data: one\n\n")
        if "cut" in self.path:
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        assert self.service.go_on.wait(20)
        self._chunk(b"data: two\n\n")
        self._chunk(b"")

    do_GET = do_POST = do_HEAD = handle_one

    def _send_whole(self, data: bytes) -> None:
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    made = Service()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"service": made}))
    server.daemon_threads = True
    made.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield made
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def proxy(service: Service) -> Iterator[Proxy]:
    made = Proxy(f"http://127.0.0.1:{service.port}/base/", os.environ)
    yield made
    made.close()


@pytest.fixture
def ask(proxy: Proxy, service: Service):
    """`ask(path, …)`: a request through the proxy; the response is not read yet."""
    service.got.clear()
    service.go_on.clear()
    list(proxy.heard())
    where = urlsplit(proxy.address)
    line = http.client.HTTPConnection(where.netloc, timeout=20)

    def send(path: str, method: str = "GET", body: object = None, **headers: str) -> http.client.HTTPResponse:
        chunked = not isinstance(body, bytes | None)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        line.request(method, where.path + path, body, named, encode_chunked=chunked)
        return line.getresponse()

    yield send
    line.close()


def told(proxy: Proxy, many: int) -> list[Answer]:
    """What was told of limits, once so many have come: the pipe is not the line that the answer came by."""
    heard = list(proxy.heard())
    end = time.monotonic() + 20
    while len(heard) < many and time.monotonic() < end:
        time.sleep(0.01)
        heard += proxy.heard()
    return heard


def test_an_answer_comes_through_byte_for_byte_packed_as_it_was(ask):
    answer = ask("/whole")
    assert answer.read() == PACKED
    assert answer.headers["Content-Encoding"] == "gzip"
    assert answer.headers.get_all("Set-Cookie") == ["a=1", "b=2"]


@pytest.mark.parametrize("body", [BODY, PACKED], ids=["plain", "packed"])
def test_a_request_comes_through_with_its_credentials_and_its_path_as_it_is(ask, service, body):
    packed = {"Content_Encoding": "gzip"} if body is PACKED else {}
    answer = ask("/v1/a%2Fb//c?x=%20&y=+", "POST", body, Authorization=f"Bearer {SECRET}", **packed)
    assert answer.read() == body
    ((method, path, headers, got),) = service.got
    assert (method, path, got) == ("POST", "/base/v1/a%2Fb//c?x=%20&y=+", body)
    named = {name.lower(): value for name, value in headers}
    assert named["authorization"] == f"Bearer {SECRET}"
    assert named["host"] == f"127.0.0.1:{service.port}"
    assert named.get("content-encoding") == packed.get("Content_Encoding")
    assert "user-agent" not in named


def test_a_request_that_comes_in_pieces_goes_on_in_pieces(ask, service):
    assert ask("/v1", "POST", iter([b"abc", b"def"]), Transfer_Encoding="chunked").read() == b"abcdef"
    assert service.got[0][3] == b"abcdef"


def test_a_stream_is_passed_on_as_it_comes(ask, service):
    answer = ask("/stream")
    assert answer.read(11) == b"data: one\n\n"
    service.go_on.set()
    assert answer.read() == b"data: two\n\n"


def test_a_stream_that_is_cut_there_is_cut_here(ask):
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        ask("/cut").read()


def test_an_answer_without_a_body_has_none(ask):
    answer = ask("/whole", "HEAD")
    assert (answer.status, answer.headers["Content-Length"], answer.read()) == (200, str(len(PACKED)), b"")


def test_only_the_headers_about_limits_are_told(ask, proxy):
    ask("/limit", "POST", SECRET.encode(), Authorization=SECRET, X_Api_Key=SECRET).read()
    assert told(proxy, 1) == [Answer(200, {name.lower(): value for name, value in LIMITS.items()})]


def test_a_refusal_is_told_and_comes_through(ask, proxy):
    assert ask("/limited").status == 429
    assert [answer.status for answer in told(proxy, 1)] == [429]


def test_an_answer_that_says_nothing_of_limits_is_not_told(ask, proxy):
    ask("/v1").read()
    ask("/limit").read()
    assert len(told(proxy, 1)) == 1


@pytest.mark.parametrize("path", ["/", "/v1/messages", "/%00", "/é", "//"])
def test_nobody_gets_through_who_does_not_know_the_word(proxy, service, path):
    service.got.clear()
    with socket.create_connection(("127.0.0.1", urlsplit(proxy.address).port), timeout=20) as line:
        line.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: line.recv(4096), b""))
    assert answer.split()[1] in (b"404", b"400")
    assert service.got == []


def test_it_listens_on_loopback_alone_and_its_word_is_in_no_command_line(proxy):
    child = psutil.Process(proxy.pid)
    assert {c.laddr.ip for c in child.net_connections() if c.status == psutil.CONN_LISTEN} == {"127.0.0.1"}
    assert urlsplit(proxy.address).path.strip("/") not in " ".join(child.cmdline())


def test_a_service_that_is_not_there_is_an_error_that_agents_try_again():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    made = Proxy(f"http://127.0.0.1:{port}", os.environ)
    try:
        where = urlsplit(made.address)
        with contextlib.closing(http.client.HTTPConnection(where.netloc, timeout=20)) as line:
            line.request("GET", where.path + "/v1")
            assert line.getresponse().status == 502
    finally:
        made.close()
    assert not psutil.pid_exists(made.pid)


def test_it_is_no_part_of_a_leg_that_is_ended(proxy, tmp_path):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as leg:
        found = process.tree(Mark(SessionId("s"), tmp_path), leg.pid)
        leg.kill()
    assert leg.pid in {p.pid for p in found}
    assert proxy.pid not in {p.pid for p in found}


def test_it_dies_with_the_supervisor_however_that_dies(service):
    code = (
        "import os, sys; from relay_git.supervisor.proxy import Proxy\n"
        f"made = Proxy('http://127.0.0.1:{service.port}', os.environ)\n"
        "print(made.pid, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as supervisor:
        assert supervisor.stdout is not None
        child = psutil.Process(int(supervisor.stdout.readline()))
        supervisor.send_signal(signal.SIGKILL)
    child.wait(timeout=20)
