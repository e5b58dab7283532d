"""What the proxy on loopback adds to a request and to a chunk of a stream, beside the same without it."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

import psutil

from bench.measure import Row, Table
from relay_git.supervisor.proxy import Proxy

CHUNKS, EVERY = 40, 0.01
STREAMS = 100
FILL = b"0123456789abcdef" * 50
HEAD = b"HTTP/1.1 200 OK\r\nanthropic-ratelimit-unified-5h-utilization: 0.42\r\n"


def measure(scratch: Path, *, small: bool) -> Table:
    """One after the other in turns, then all streams at once."""
    del scratch
    service = subprocess.Popen([sys.executable, "-m", "bench.proxy"], stdout=subprocess.PIPE, env=os.environ)
    assert service.stdout is not None
    direct = f"http://127.0.0.1:{int(service.stdout.readline())}"
    proxy = Proxy(direct, os.environ)
    try:
        return asyncio.run(_measure(direct, proxy, 50 if small else 1000, 10 if small else STREAMS))
    finally:
        proxy.close()
        service.terminate()
        service.wait()


async def _measure(direct: str, proxy: Proxy, requests: int, streams: int) -> Table:
    table = Table(
        "proxy: what it adds on loopback",
        f"{requests} requests on kept connections, in turns; streams of {CHUNKS} chunks, {EVERY * 1000:.0f} ms apart:\n"
        "how long a chunk takes from the service to the client.",
    )
    before = sum(psutil.Process(proxy.pid).cpu_times()[:2])
    alone, passed = await _requests([direct, proxy.address], requests)
    own = (sum(psutil.Process(proxy.pid).cpu_times()[:2]) - before) / (requests + 20) * 1000
    load = os.getloadavg()[0]
    table.notes.append(f"   the proxy's own processor time: {own:.1f} ms a request; load of the machine: {load:.1f}")
    for share, name in ((0.5, "p50"), (0.95, "p95")):
        a, b = _at(alone, share), _at(passed, share)
        aim = "adds < 2 ms" if share == 0.5 else ""
        table.rows.append(Row(f"a request, {name}", b, a, "direct", aim, b - a < 0.002 if aim else None))
    for many in (1, streams):
        one, other = await _streams(direct, many), await _streams(proxy.address, many)
        for share, name in ((0.5, "p50"), (0.95, "p95")):
            a, b = _at(one.delays, share), _at(other.delays, share)
            aim = "adds < 2 ms" if (many, share) == (1, 0.5) else ""
            what = f"a chunk, {many} stream{'s' if many > 1 else ''} at once, {name}"
            table.rows.append(Row(what, b, a, "direct", aim, b - a < 0.002 if aim else None))
        same = one.whole and other.whole
        table.notes.append(f"   {many} at once: every byte as it was sent: {'yes' if same else 'NO'}")
    return table


@dataclass
class Came:
    """What came of some streams: how late each chunk was, and whether all of it was what was sent."""

    delays: list[float]
    whole: bool


async def _requests(addresses: list[str], many: int) -> list[list[float]]:
    times: list[list[float]] = [[] for _ in addresses]
    lines = [await _connect(address) for address in addresses]
    for turn in range(many + 20):
        for number, (reader, writer, path) in enumerate(lines):
            began = time.perf_counter()
            writer.write(b"POST %b/small HTTP/1.1\r\nHost: x\r\nContent-Length: 800\r\n\r\n%b" % (path, FILL))
            await reader.readuntil(b"\r\n\r\n")
            assert await reader.readexactly(len(FILL)) == FILL
            if turn >= 20:  # what the first ones alone pay is not what is asked for
                times[number].append(time.perf_counter() - began)
    for _, writer, _ in lines:
        writer.close()
    return times


async def _streams(address: str, many: int) -> Came:
    found = await asyncio.gather(*(_stream(address) for _ in range(many)))
    return Came([delay for one in found for delay in one.delays], all(one.whole for one in found))


async def _stream(address: str) -> Came:
    reader, writer, path = await _connect(address)
    writer.write(b"GET %b/stream HTTP/1.1\r\nHost: x\r\n\r\n" % path)
    await reader.readuntil(b"\r\n\r\n")
    delays, digest, rest, whole = [], hashlib.sha256(), b"", False
    while size := int(await reader.readline(), 16):
        # A proxy may cut a stream into other chunks than the service did.
        *lines, rest = (rest + await reader.readexactly(size)).split(b"\n")
        await reader.readexactly(2)
        for line in lines:
            if line.startswith(b"at "):
                delays.append(time.clock_gettime(time.CLOCK_MONOTONIC) - float(line[3:]))
            elif line.startswith(b"sha256 "):
                whole = line[7:].decode() == digest.hexdigest()
            digest.update(line)
    writer.close()
    return Came(delays, whole and len(delays) == CHUNKS)


async def _connect(address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]:
    where = urlsplit(address)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    return reader, writer, where.path.encode()


def _at(values: list[float], share: float) -> float:
    return median(values) if share == 0.5 else sorted(values)[int(share * len(values))]


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            if b"/small" in head.partition(b"\r\n")[0]:
                await reader.readexactly(800)
                writer.write(HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(FILL), FILL))
                continue
            writer.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
            digest = hashlib.sha256()
            for _ in range(CHUNKS):
                lines = (
                    b"at %r" % time.clock_gettime(time.CLOCK_MONOTONIC),
                    b"data: " + os.urandom(100).hex().encode(),
                )
                for line in lines:
                    digest.update(line)
                _chunk(writer, b"".join(line + b"\n" for line in lines))
                await asyncio.sleep(EVERY)
            _chunk(writer, b"sha256 " + digest.hexdigest().encode() + b"\n")
            _chunk(writer, b"")
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def _chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(b"%x\r\n%b\r\n" % (len(data), data))


async def _service() -> None:
    server = await asyncio.start_server(_serve, "127.0.0.1", 0, limit=1 << 20)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_service())
