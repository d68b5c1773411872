"""The client that is measured with: it calls the tool `echo`, at as little cost as can be.

What the client costs is missing to whatever it measures, because both share the machine's cores. So the
head of its requests is made once, and a reply is not parsed but searched for the id and the text. The file
also runs inside a pod (see loadgen.py), on the standard library alone.
"""

import asyncio
import functools
import re
from typing import cast

from clusterkit.leanmcp import McpClient

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_LAST_CHUNK = b"\r\n0\r\n\r\n"


class Echo(asyncio.Protocol):
    """A connection within the session of a connected client, for one call at a time: a `Call` itself."""

    def __init__(self, client: McpClient, text: str) -> None:
        endpoint = client.http.endpoint
        fields = "".join(f"{name}: {value}\r\n" for name, value in client.headers.items())
        start = f"POST {endpoint.path} HTTP/1.1\r\nhost: {endpoint.host}\r\n{fields}content-length: "
        self.head = start.encode()
        self.text = text.encode()
        self.number = 1_000_000  # beyond the ids that the client itself uses
        self.received = b""
        self.answer: asyncio.Future[bytes] | None = None

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
        if self.transport.is_closing():
            raise ConnectionError("the connection ended between two calls")
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
    loop = asyncio.get_running_loop()
    opened = []
    for client in clients:
        await client.http.close()
        endpoint = client.http.endpoint
        make = functools.partial(Echo, client, text)
        opened.append((await loop.create_connection(make, endpoint.address, endpoint.port))[1])
    return opened
