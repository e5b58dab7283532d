"""The program between an agent and its model's service: it passes everything on, and tells the rate limit headers.

Run as `python -I -m relay_git.supervisor.proxy_server`: stdin has the service's address as one line, stdout says first
where to send requests, then one JSON line for each answer that tells of a limit. It ends when stdin ends.

Promise: bodies, paths and credentials are passed on as they are, byte for byte and as they come, and neither kept nor
told; only headers that `_TELLING` names leave it another way. It listens on loopback alone, and answers nobody who does
not know the random word that its address begins with.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import os
import re
import secrets
import ssl
import sys
from collections.abc import Iterator, Mapping
from urllib.request import getproxies, proxy_bypass

from aiohttp import ClientError, ClientSession, ClientTimeout, DummyCookieJar, TCPConnector, hdrs, web
from multidict import CIMultiDict
from yarl import URL

_TELLING = re.compile(r"(?:(?:anthropic|x)-ratelimit-|x-codex-)[\w-]{1,80}|retry-after(?:-ms)?", re.ASCII)
_REFUSALS = (402, 429, 503, 529)
_HOP = frozenset(
    ("connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "expect", "host")
)
_UNASKED = (hdrs.ACCEPT, hdrs.ACCEPT_ENCODING, hdrs.USER_AGENT, hdrs.CONTENT_TYPE)
_LINE = 4096  # bytes that a pipe takes whole or not at all
_HEADERS = 64 << 10
_CONNECT = 30.0
_SPARE = 64 << 10


class Proxy:
    """One service behind one address on loopback."""

    def __init__(self, service: str, session: ClientSession) -> None:
        self._service, self._session = service.rstrip("/"), session
        self._word = secrets.token_urlsafe(24)
        host = URL(service).host or ""
        self._by = None if proxy_bypass(host) else getproxies().get(URL(service).scheme)

    async def run(self, until: asyncio.Event) -> None:
        """Serve until then."""
        server = web.Server(
            self._pass_on,
            access_log=None,
            auto_decompress=False,
            max_line_size=_HEADERS,
            max_field_size=_HEADERS,
        )
        runner = web.ServerRunner(server, handle_signals=False)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        _tell({"address": f"http://{host}:{port}/{self._word}"})
        await until.wait()
        await runner.cleanup()

    async def _pass_on(self, request: web.BaseRequest) -> web.StreamResponse:
        _, _, path = request.raw_path.partition("/")
        word, slash, rest = path.partition("/")
        if not hmac.compare_digest(word.encode(), self._word.encode()):
            return web.Response(status=404)
        there = URL(f"{self._service}{slash}{rest}", encoded=True)
        body = request.content.iter_any() if request.body_exists else None
        try:
            answer = await self._session.request(
                request.method,
                there,
                headers=_without_hops(request.headers),
                data=body,
                allow_redirects=False,
                skip_auto_headers=_UNASKED,
                proxy=self._by,
            )
        except (ClientError, OSError, TimeoutError) as error:
            return web.Response(status=502, text=f"the service does not answer: {type(error).__name__}")
        async with answer:
            _tell_limits(answer.status, answer.headers)
            here = web.StreamResponse(status=answer.status, reason=answer.reason, headers=_without_hops(answer.headers))
            await here.prepare(request)
            try:
                async for chunk in answer.content.iter_any():
                    await here.write(chunk)
            except (ClientError, OSError, TimeoutError):
                # What was cut off there is cut off here: the agent must not take it for a whole answer.
                if request.transport is not None:
                    request.transport.abort()
            else:
                await here.write_eof()
            return here


def _without_hops(headers: Mapping[str, str]) -> CIMultiDict[str]:
    """The headers that are meant for the other end, in their order and as often as they are there."""
    named = {word.strip().lower() for word in headers.get(hdrs.CONNECTION, "").split(",")}
    return CIMultiDict((n, v) for n, v in headers.items() if n.lower() not in _HOP and n.lower() not in named)


def _tell_limits(status: int, headers: Mapping[str, str]) -> None:
    found = {name.lower(): value[:200] for name, value in headers.items() if _TELLING.fullmatch(name.lower())}
    if found or status in _REFUSALS:
        _tell({"status": status, "headers": found})


def _tell(what: Mapping[str, object]) -> None:
    """Say it without ever waiting: an agent must not hang because nobody listens to its meter."""
    line = json.dumps(what).encode() + b"\n"
    if len(line) <= _LINE:
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            os.write(1, line)


def _trust() -> ssl.SSLContext:
    """The system's certificates, and those that the agents, which are node programs, are told of."""
    context = ssl.create_default_context()
    if more := os.environ.get("NODE_EXTRA_CA_CERTS"):
        with contextlib.suppress(OSError, ssl.SSLError):
            context.load_verify_locations(more)
    return context


@contextlib.contextmanager
def _until_stdin_ends(loop: asyncio.AbstractEventLoop) -> Iterator[asyncio.Event]:
    ended = asyncio.Event()

    def look() -> None:
        with contextlib.suppress(BlockingIOError):
            if not os.read(0, _SPARE):
                loop.remove_reader(0)
                ended.set()

    os.set_blocking(0, False)
    loop.add_reader(0, look)
    yield ended


async def _main(service: str) -> None:
    os.set_blocking(1, False)
    timeout = ClientTimeout(total=None, sock_connect=_CONNECT)
    async with ClientSession(
        connector=TCPConnector(limit=0, ssl=_trust()),
        timeout=timeout,
        cookie_jar=DummyCookieJar(),
        auto_decompress=False,
        max_line_size=_HEADERS,
        max_field_size=_HEADERS,
    ) as session:
        with _until_stdin_ends(asyncio.get_running_loop()) as ended:
            await Proxy(service, session).run(ended)


if __name__ == "__main__":
    asyncio.run(_main(sys.stdin.buffer.readline().decode().strip()))
