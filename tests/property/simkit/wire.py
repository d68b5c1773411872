"""A client's connection without a socket: requests in, replies out, each with the messages it brought."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from mcp_sidecar.web.connection import Connection, Site
from relaykit.wirepeer import Transport


@dataclass
class Reply:
    """A reply as far as it came; `messages` are JSON-RPC messages as they were written."""

    status: int
    headers: dict[bytes, bytes]
    messages: list[bytes] = field(default_factory=list)
    complete: bool = True


class _Transport(Transport):
    """Closes as a network would: the connection hears of it later."""

    def __init__(self, on_end: Callable[[], object]) -> None:
        super().__init__()
        self._on_end = on_end

    def write_eof(self) -> None:
        super().write_eof()
        self._on_end()

    def close(self) -> None:
        super().close()
        self._on_end()

    def abort(self) -> None:
        super().abort()
        self._on_end()


class Wire:
    """One connection. `sent` counts the requests; a `gone` client reads nothing more."""

    def __init__(self, site: Site, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.sent = 0
        self.gone = False
        self._done: list[Reply] = []
        self._consumed = 0
        self.transport = _Transport(lambda: loop.call_soon(self.leave))
        self.connection = Connection(site, loop)
        self.connection.connection_made(self.transport)

    def send(self, method: bytes, headers: dict[bytes, bytes], body: bytes = b"") -> None:
        """Send one request."""
        fields = {b"host": b"localhost", b"content-length": b"%d" % len(body), **headers}
        lines = b"".join(b"%b: %b\r\n" % item for item in fields.items())
        self.sent += 1
        self.connection.data_received(b"%b /mcp HTTP/1.1\r\n%b\r\n%b" % (method, lines, body))

    def leave(self) -> None:
        """Vanish."""
        if not self.gone:
            self.gone = True
            self.connection.connection_lost(None)

    @property
    def idle(self) -> bool:
        """Whether every request has its whole reply."""
        return not self.gone and self.answered(self.sent - 1)

    def answered(self, index: int) -> bool:
        """Whether the request with this index has its whole reply."""
        self.replies()
        return index < len(self._done)

    def replies(self) -> list[Reply]:
        """All replies so far; the last one may be incomplete."""
        data = self.transport.written
        while self._consumed < len(data):
            reply, size = _read(data[self._consumed :])
            if reply is None:
                break
            if not reply.complete:
                return [*self._done, reply]
            self._done.append(reply)
            self._consumed += size
        return self._done


def _read(data: bytes) -> tuple[Reply | None, int]:
    head, end, rest = data.partition(b"\r\n\r\n")
    if not end:
        return None, 0
    first, *lines = head.split(b"\r\n")
    headers = dict(line.split(b": ", 1) for line in lines)
    reply = Reply(int(first.split()[1]), headers)
    if b"transfer-encoding" in headers:
        body, size, reply.complete = _chunks(rest)
        # Only whole events count; what stands after the last empty line is the beginning of one.
        events = body.split(b"\n\n")[:-1]
        reply.messages = [event.split(b"data: ", 1)[1] for event in events if b"data: " in event]
    elif b"content-length" not in headers and reply.status != 100:
        size, reply.complete = len(rest), False  # an old client's stream, which ends with the connection
    else:
        size = int(headers.get(b"content-length", b"0"))
        reply.complete = len(rest) >= size
        reply.messages = [rest[:size]] if size and reply.complete else []
    return reply, len(head) + len(end) + size


def _chunks(data: bytes) -> tuple[bytes, int, bool]:
    """The body so far, the bytes it took, and whether it is complete."""
    parts: list[bytes] = []
    position = 0
    while True:
        line = data.find(b"\r\n", position)
        if line < 0:
            return b"".join(parts), position, False
        size = int(data[position:line], 16)
        end = line + 2 + size + 2
        if len(data) < end:
            return b"".join(parts), position, False
        parts.append(data[line + 2 : end - 2])
        position = end
        if not size:
            return b"".join(parts), position, True
