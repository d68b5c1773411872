"""The client that is measured with: it calls the tool `echo`, at as little cost as can be.

What the client costs is missing to whatever it measures, because both share the machine's cores. So the
head of its requests is made once, and a reply is not parsed but searched for the id and the text. The file
also runs inside a pod (see loadgen.py), on the standard library alone.
"""

import asyncio
import re
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
        self.number = 1_000_000  # beyond the ids that the client itself uses
        self.received = b""
        self.answer: asyncio.Future[bytes] | None = None

    async def connect(self) -> None:
        """Connect. Raises OSError."""
        endpoint = self.endpoint
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: self, endpoint.address, endpoint.port)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.received += data
        if self.answer is not None and not self.answer.done() and is_whole(self.received):
            self.answer.set_result(self.received)
            self.received = b""

    def connection_lost(self, error: Exception | None) -> None:
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(error or ConnectionError("the connection ended within a call"))

    async def __call__(self) -> None:
        """One call. Raises AssertionError: another answer came; ConnectionError: none did."""
        if self.transport.is_closing():  # some servers close what was not used for some seconds
            await self.connect()
        self.number += 1
        body = (
            b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"text":"%b"}}}'
            % (self.number, self.text)
        )
        self.answer = asyncio.get_running_loop().create_future()
        self.transport.write(b"%b%d\r\n\r\n%b" % (self.head, len(body), body))
        reply = await self.answer
        rid = b'"id":%d' % self.number
        if (rid + b"," not in reply and rid + b"}" not in reply) or self.text not in reply:
            raise AssertionError(f"this answers something else than {body!r}: {reply!r}")

    def close(self) -> None:
        self.transport.close()


def is_whole(reply: bytes) -> bool:
    """Whether an HTTP reply has come to its end, by its length or by the last of its chunks."""
    head, _, body = reply.partition(b"\r\n\r\n")
    found = _LENGTH.search(head)
    return len(body) >= int(found[1]) if found else body.endswith(_LAST_CHUNK)


async def echoes(clients: list[McpClient], text: str) -> list[Echo]:
    """A connection for each of some connected clients, in place of those they have. Raises OSError."""
    opened = [Echo(client, text) for client in clients]
    for client, echo in zip(clients, opened, strict=True):
        await client.http.close()
        await echo.connect()
    return opened
