"""Clients that try to keep the others out: slow, huge, malformed and very many."""

import asyncio
import contextlib
import json
import resource
import time
from collections.abc import AsyncIterator

import pytest

from clusterkit.leanmcp import CONTENT, Endpoint, McpClient, Stream, shut
from clusterkit.servers import Server, container_status

MANY = 10_000
PATIENCE = 5.0
"""Seconds that a call of an innocent client may take at most."""


@pytest.fixture
async def innocent(victim: Server) -> AsyncIterator[McpClient]:
    """A client that was there before, and its relay, which is the same at the end."""
    before = container_status(await victim.pod(), "relay")
    client = await victim.client()
    yield client
    assert await client.call("echo", text="served") == "served"
    await client.close()
    after = container_status(await victim.pod(), "relay")
    assert (after["containerID"], after["restartCount"]) == (before["containerID"], before["restartCount"])


async def served(client: McpClient) -> None:
    """A call on a new connection is answered soon."""
    async with asyncio.timeout(PATIENCE):
        assert await client.call("echo", text="hello") == "hello"


async def connect(endpoint: Endpoint) -> Stream:
    return await asyncio.open_connection(endpoint.address, endpoint.port)


async def reply_to(endpoint: Endpoint, data: bytes) -> bytes:
    """The status line of the reply to raw bytes; nothing if the connection just ends."""
    reader, writer = await connect(endpoint)
    try:
        with contextlib.suppress(ConnectionError):
            for start in range(0, len(data), 1 << 16):
                writer.write(data[start : start + (1 << 16)])
                await writer.drain()
        async with asyncio.timeout(30):
            with contextlib.suppress(ConnectionError):
                return await reader.readline()
        return b""
    finally:
        await shut(writer)


async def is_ended(stream: Stream) -> bool:
    """Whether the other side ends the connection within the limits for slow requests.

    A byte that comes as it closes makes a reset of the end.
    """
    reader, _ = stream
    try:
        async with asyncio.timeout(45):
            with contextlib.suppress(ConnectionError):
                await reader.read()
    except TimeoutError:
        return False
    return True


async def test_slow_requests_are_ended_and_hold_nobody_up(victim: Server, innocent: McpClient) -> None:
    endpoint = innocent.http.endpoint
    head = f"POST /mcp HTTP/1.1\r\nhost: {endpoint.host}\r\n".encode()
    token = innocent.headers["authorization"]
    body = head + f"authorization: {token}\r\ncontent-length: 100000\r\n\r\n{{".encode()
    streams = []
    for start in [b"", b"P", head, body] * 50:
        stream = await connect(endpoint)
        stream[1].write(start)
        streams.append(stream)

    async def drip(stream: Stream) -> None:
        with contextlib.suppress(ConnectionError):
            while not stream[1].is_closing():
                stream[1].write(b"x")
                await asyncio.sleep(2)

    dripping = [asyncio.create_task(drip(stream)) for stream in streams[2:8]]
    await served(innocent)
    ended = await asyncio.gather(*(is_ended(stream) for stream in streams[:8]))
    for task in dripping:
        task.cancel()
    for _, writer in streams:
        await shut(writer)
    assert ended == [True] * 8


async def test_oversized_heads_and_bodies_are_refused_before_they_are_kept(
    victim: Server, innocent: McpClient
) -> None:
    endpoint, token = innocent.http.endpoint, innocent.headers["authorization"]
    start = f"POST /mcp HTTP/1.1\r\nhost: {endpoint.host}\r\n"
    allowed = f"{start}authorization: {token}\r\ncontent-type: application/json\r\n"
    wild = {
        "one long header": f"{start}x: {'y' * 4_000_000}\r\n\r\n",
        "many headers": start + "".join(f"x-{n}: y\r\n" for n in range(200_000)) + "\r\n",
        "a long path": f"GET /{'x' * 4_000_000} HTTP/1.1\r\n\r\n",
        "a body that is too long": f"{allowed}content-length: {1 << 40}\r\n\r\n",
        "two lengths": f"{allowed}content-length: 1\r\ncontent-length: 2\r\n\r\nxx",
        "length and chunks": f"{allowed}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        "a negative length": f"{allowed}content-length: -1\r\n\r\n",
        "an endless chunk": f"{allowed}transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n",
        "no HTTP": "\x16\x03\x01" + "x" * 1000 + "\r\n\r\n",
    }
    for name, request in wild.items():
        line = await reply_to(endpoint, request.encode("latin-1"))
        assert line == b"" or line.split()[1][:1] == b"4", (name, line)
        await served(innocent)


async def test_deep_and_broken_json_costs_one_error(victim: Server, innocent: McpClient) -> None:
    for body in (b"[" * 1_000_000, b'{"a":' * 200_000, b"\xff" * 1000, b"{}", b"null", b"1e999999", b"[]"):
        reply = await innocent.raw("POST", body)
        assert 400 <= reply.status < 500, (body[:20], reply.status)
        await served(innocent)
    long = json.dumps({"jsonrpc": "2.0", "id": "x" * 1_000_000, "method": "y" * 1_000_000}).encode()
    assert (await innocent.raw("POST", long)).status < 500


async def test_ten_thousand_connections_do_not_end_the_relay_nor_shut_others_out(
    victim: Server, innocent: McpClient
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, MANY + 1000)), hard))
    endpoint = innocent.http.endpoint
    held: list[Stream] = []
    slowest = 0.0
    try:
        while len(held) < MANY:
            held += await asyncio.gather(*(connect(endpoint) for _ in range(250)))
            started = time.monotonic()
            if len(held) % 1000 == 0:
                await served(innocent)
            slowest = max(slowest, time.monotonic() - started)
        await served(innocent)
    finally:
        for _, writer in held:
            writer.transport.abort()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert slowest < PATIENCE
    await served(innocent)


async def test_more_sessions_than_the_limit_push_out_the_idle_ones(
    victim: Server, innocent: McpClient
) -> None:
    client = await victim.client(connect=False)
    client.http.keep_alive = True
    opening = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"},
        },
    }
    body = json.dumps(opening).encode()
    answered = [
        (await client.raw("POST", body, {**CONTENT, "authorization": client.headers["authorization"]})).status
        for _ in range(3000)
    ]
    assert set(answered) == {200}
    await client.http.close()
    await innocent.connect()
