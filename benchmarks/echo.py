"""The client that is measured with: it calls the tool `echo`, at as little cost as can be.

What the client costs is missing to whatever it measures, because both share the machine's cores. So the
head of its requests is made once, a reply is not parsed but searched for the id and the text, and of calls
that follow each other the next goes out as soon as the answer is there, with no task between. The file also
runs inside a pod (see loadgen.py), on the standard library alone.
"""

import asyncio
import re
import time
from typing import cast

from clusterkit.leanmcp import McpClient

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_LAST_CHUNK = b"\r\n0\r\n\r\n"


class Echo(asyncio.Protocol):
    """A connection within the session of a connected client, for one call at a time: a `Call` itself."""

    def __init__(self, client: McpClient, text: str) -> None:
        self.endpoint = endpoint = client.http.endpoint
        fields = "".join(f"{name}: {value}\r\n" for name, value in client.headers.items())
        start = f"POST {endpoint.path} HTTP/1.1\r\nhost: {endpoint.host}\r\n{fields}content-length: "
        self.head = start.encode()
        self.text = text.encode()
        self.number = 1_000_000  # of the last call, beyond the ids that the client itself uses
        self.deadline = 0.0
        self.body = self.received = b""
        self.known_head, self.known_size = b"", -1
        self.done: asyncio.Future[None] | None = None

    async def connect(self) -> None:
        """Connect. Raises OSError."""
        endpoint = self.endpoint
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: self, endpoint.address, endpoint.port)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.received += data
        if self.done is None or self.done.done() or not self._whole():
            return
        reply, self.received = self.received, b""
        rid = b'"id":%d' % self.number
        if (rid + b"," not in reply and rid + b"}" not in reply) or self.text not in reply:
            wrong = f"this answers something else than {self.body!r}: {reply!r}"
            self.done.set_exception(AssertionError(wrong))
        elif time.perf_counter() < self.deadline and not self.transport.is_closing():
            self._send()
        else:
            self.done.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        if self.done is not None and not self.done.done():
            self.done.set_exception(error or ConnectionError("the connection ended within a call"))

    async def __call__(self) -> None:
        """One call. Raises AssertionError: another answer came; ConnectionError: none did."""
        await self._calls_until(0)

    async def repeat(self, deadline: float) -> int:
        """Calls until a time of `time.perf_counter`; how many. Raises as for one."""
        before = self.number
        while time.perf_counter() < deadline:
            await self._calls_until(deadline)
        return self.number - before

    async def _calls_until(self, deadline: float) -> None:
        if self.transport.is_closing():  # some servers close what was not used for some seconds
            await self.connect()
        self.deadline = deadline
        self.done = asyncio.get_running_loop().create_future()
        self._send()
        await self.done

    def _send(self) -> None:
        self.number += 1
        self.body = body = (
            b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"text":"%b"}}}'
            % (self.number, self.text)
        )
        self.transport.write(b"%b%d\r\n\r\n%b" % (self.head, len(body), body))

    def _whole(self) -> bool:
        """Whether all of the reply is there, by its length or its last chunk."""
        if len(self.received) == self.known_size and self.received.startswith(self.known_head):
            return True
        head, end, body = self.received.partition(b"\r\n\r\n")
        found = _LENGTH.search(head)
        if found is None:
            return body.endswith(_LAST_CHUNK)
        if len(body) < int(found[1]):
            return False
        self.known_head, self.known_size = head + end, len(head) + len(end) + int(found[1])
        return True

    def close(self) -> None:
        self.transport.close()


async def echoes(clients: list[McpClient], text: str) -> list[Echo]:
    """A connection for each of some connected clients, in place of those they have. Raises OSError."""
    opened = [Echo(client, text) for client in clients]
    for client, echo in zip(clients, opened, strict=True):
        await client.http.close()
        await echo.connect()
    return opened
