"""A large result, read at as little cost as can be: into one piece of memory that is used again and again.

A client that takes each reply into new memory spends more on it than a bridge does, and spends it after the
bridge has done its part: over HTTP that would count for the bridge, over a pipe most of it is hidden behind
the server's own work.
"""

import asyncio
import json
import re
import subprocess
from collections.abc import Sequence
from typing import IO, Any, cast

from clusterkit.leanmcp import REVISION, McpClient, Reply, read_body, read_head

Json = dict[str, Any]
HEAD_BYTES = 8192
_FIELD = re.compile(rb"\r\n(content-length|content-type): *([^\r]*)", re.IGNORECASE)
_BLANK, _LAST_CHUNK = b"\r\n\r\n", b"\r\n0\r\n\r\n"


class _Reader(asyncio.BufferedProtocol):
    """Collects one reply at a time, of at most `size` bytes with all that is around it."""

    def __init__(self, size: int) -> None:
        self.memory = bytearray(size)
        self.view = memoryview(self.memory)
        self.size = 0
        self.whole: asyncio.Future[None] | None = None

    def get_buffer(self, _hint: int) -> memoryview:
        return self.view[self.size :]

    def buffer_updated(self, count: int) -> None:
        self.size += count
        if self.whole is not None and not self.whole.done() and self.is_whole():
            self.whole.set_result(None)

    def is_whole(self) -> bool:
        """Over a pipe: whether the line has ended."""
        return self.memory[self.size - 1] == 0x0A

    async def message(self) -> Json:
        """The message of the whole reply."""
        return cast("Json", json.loads(str(self.view[: self.size], "utf-8")))

    def connection_lost(self, error: Exception | None) -> None:
        if self.whole is not None and not self.whole.done():
            self.whole.set_exception(error or ConnectionError("the connection ended within a reply"))

    def expect(self) -> "asyncio.Future[None]":
        """Forget the last reply; the result is there when the next one is whole."""
        self.size = 0
        self.whole = asyncio.get_running_loop().create_future()
        return self.whole


class _HttpReader(_Reader):
    def head(self) -> tuple[int, dict[bytes, bytes]]:
        """Where the body begins, 0 as long as it has not, and the fields that tell what it is."""
        end = self.memory.find(_BLANK, 0, min(self.size, HEAD_BYTES))
        if end < 0:
            return 0, {}
        fields = {name.lower(): value for name, value in _FIELD.findall(self.memory[:end])}
        return end + len(_BLANK), fields

    def is_whole(self) -> bool:
        start, fields = self.head()
        length = fields.get(b"content-length")
        if not start or length is None:
            return bool(start) and self.memory[self.size - len(_LAST_CHUNK) : self.size] == _LAST_CHUNK
        return self.size >= start + int(length)

    async def message(self) -> Json:
        start, fields = self.head()
        if b"content-length" in fields and fields.get(b"content-type", b"").startswith(b"application/json"):
            return cast("Json", json.loads(str(self.view[start : self.size], "utf-8")))
        reader = asyncio.StreamReader(limit=self.size)
        reader.feed_data(self.view[: self.size])
        reader.feed_eof()
        head = await read_head(reader)
        reply = Reply(head.status, head.headers, await read_body(reader, head))
        return next(message for message in reply.messages() if "result" in message)


def big_call(number: int, size: int) -> bytes:
    """The request for a result of so many bytes."""
    call = {"name": "big", "arguments": {"bytes": size}}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call}).encode()


def _check(message: Json, size: int) -> None:
    if len(message["result"]["content"][0]["text"]) != size:
        raise AssertionError(f"not {size} bytes came: {str(message)[:200]}")


class BulkPipe:
    """Asks a server of its own for a large result, straight over its pipes."""

    def __init__(self, argv: Sequence[str], size: int) -> None:
        self.size = size
        self.reader = _Reader(size + HEAD_BYTES)
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    async def connect(self) -> None:
        """Open the session with the server."""
        loop = asyncio.get_running_loop()
        self.transport, _ = await loop.connect_read_pipe(lambda: self.reader, self.process.stdout)
        params = {
            "protocolVersion": REVISION,
            "capabilities": {},
            "clientInfo": {"name": "b", "version": "1"},
        }
        opening = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        await self.ask(json.dumps(opening).encode())
        self.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')

    def send(self, line: bytes) -> None:
        stdin = cast("IO[bytes]", self.process.stdin)
        stdin.write(line + b"\n")
        stdin.flush()

    async def ask(self, line: bytes) -> Json:
        whole = self.reader.expect()
        self.send(line)
        await whole
        return await self.reader.message()

    async def __call__(self) -> None:
        """One call. Raises AssertionError: another answer came."""
        _check(await self.ask(big_call(1, self.size)), self.size)

    def close(self) -> None:
        cast("IO[bytes]", self.process.stdin).close()
        self.process.wait(10)
        self.transport.close()


class BulkHttp:
    """Asks for a large result within the session of a connected client, over a connection of its own."""

    def __init__(self, client: McpClient, size: int) -> None:
        endpoint = client.http.endpoint
        body = big_call(2_000_000, size)  # beyond the ids that the client itself uses
        fields = {"host": endpoint.host, **client.headers, "content-length": len(body)}
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        head = f"POST {endpoint.path} HTTP/1.1\r\n{lines}\r\n"
        self.endpoint = endpoint
        self.request = head.encode() + body
        self.size = size
        self.reader = _HttpReader(size + size // 8 + HEAD_BYTES)

    async def connect(self) -> None:
        """Connect. Raises OSError."""
        loop = asyncio.get_running_loop()
        address, port = self.endpoint.address, self.endpoint.port
        transport, _ = await loop.create_connection(lambda: self.reader, address, port)
        self.transport = transport

    async def __call__(self) -> None:
        """One call. Raises AssertionError: another answer came; ConnectionError: none did."""
        if self.transport.is_closing():  # some servers close what was not used for some seconds
            await self.connect()
        whole = self.reader.expect()
        self.transport.write(self.request)
        await whole
        _check(await self.reader.message(), self.size)

    def close(self) -> None:
        self.transport.close()
