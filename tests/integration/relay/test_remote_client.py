"""The HTTP client towards remote servers: one connection serves one request after the other."""

import asyncio
import contextlib

import pytest

from mcp_sidecar.core.target import parse
from mcp_sidecar.remote import client as http

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


async def test_a_request_that_is_given_up_as_its_answer_comes_breaks_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ended = asyncio.Event()
        connections.append(ended)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(ANSWER)
                await writer.drain()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        ended.set()

    async def ask_next() -> bytes:
        await answered.wait()
        return bytes(await (await client.request("GET", "/", {}, repeatable=False)).body(100))

    def head_came(connection: http._Connection) -> None:
        answered.set()  # before whoever waits for the head learns of it
        come(connection)
        first.cancel()

    come = http._Connection.on_headers_complete
    connections: list[asyncio.Event] = []
    answered = asyncio.Event()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    client = http.Client(parse(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")[0], None)
    following = asyncio.ensure_future(ask_next())
    await asyncio.sleep(0)
    monkeypatch.setattr(http._Connection, "on_headers_complete", head_came)
    first = asyncio.ensure_future(client.request("GET", "/", {}))
    try:
        with pytest.raises(asyncio.CancelledError):
            await first
        assert await following == b"ok"
        assert len(connections) == 1
    finally:
        client.close()
        await asyncio.gather(*(ended.wait() for ended in connections))
        server.close()
