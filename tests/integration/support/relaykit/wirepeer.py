"""A client of the HTTP layer without sockets: bytes in, bytes out."""

import asyncio
import itertools
import re
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from mcp_sidecar.core.httptext import Head, Reply
from mcp_sidecar.web.connection import Connection, Site
from mcp_sidecar.web.exchange import Exchange

LIMIT = 1000
Seen = tuple[bytes, bytes, bytes]


class Transport(asyncio.Transport):
    """Takes what is written; `closed` says how it ended."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.writes = 0
        self.reading = True
        self.closed: str = ""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.closed
        self.written += data
        self.writes += 1

    def is_reading(self) -> bool:
        return self.reading

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def write_eof(self) -> None:
        self.closed = "after the reply"

    def close(self) -> None:
        self.closed = self.closed or "closed"

    def abort(self) -> None:
        self.closed = "aborted"


class Application:
    """Answers `/later` when the test wants it, refuses `/no`, breaks at `/break`, and echoes the rest."""

    body_limit = LIMIT

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.problems: list[str] = []
        self.later: list[Exchange] = []
        self.defer: Callable[[], Coroutine[Any, Any, None]] | None = None
        """Set: every request goes on in a task that needs its body."""

    def refusal(self, head: Head) -> Reply | None:
        return Reply(403) if head.path == b"/no" else None

    def changed(self) -> bool:
        return False

    def problem(self, status: int, reason: str, text: str) -> Reply:
        self.problems.append(reason)
        return Reply(status, text.encode())

    def serve(self, exchange: Exchange) -> None:
        head = exchange.head
        self.seen.append((head.method, head.path, exchange.body))
        if self.defer is not None:
            exchange.defer(self.defer())
            return
        if head.path == b"/break":
            raise RuntimeError("a defect")
        if head.path == b"/later":
            self.later.append(exchange)
        else:
            exchange.answer(exchange.body or b"-")


class Peer:
    """A client of one connection."""

    def __init__(self) -> None:
        self.application = Application()
        self.site = Site(self.application)
        self.transport = Transport()
        self.connection = Connection(self.site, asyncio.get_running_loop())
        self.connection.connection_made(self.transport)

    async def send(self, data: bytes, cuts: Sequence[int] = ()) -> None:
        """Send in pieces, as far as the connection reads; then let everything happen."""
        bounds = [0, *sorted(cuts), len(data)]
        for start, end in itertools.pairwise(bounds):
            for _ in range(1000):
                if self.transport.reading:
                    break
                await asyncio.sleep(0)
            self.connection.data_received(data[start:end])
        await self.settle()

    async def settle(self) -> None:
        """Let everything happen that needs nothing from outside."""
        for _ in range(10_000):
            await asyncio.sleep(0)
            if not self.connection._waiting or self.connection._current is not None:
                break

    @property
    def statuses(self) -> list[int]:
        """The statuses of the replies, all of which must be whole."""
        found, rest = [], self.transport.written
        while rest:
            head, _, rest = rest.partition(b"\r\n\r\n")
            status = re.match(rb"HTTP/1.1 (\d+) ", head)
            assert status, head
            found.append(int(status[1]))
            size = re.search(rb"content-length: (\d+)", head)
            rest = rest[int(size[1]) :] if size else rest
        return found


def request(body: bytes = b"", path: bytes = b"/", method: bytes = b"POST", *lines: bytes) -> bytes:
    head = [method + b" " + path + b" HTTP/1.1", b"host: a", b"content-length: %d" % len(body), *lines]
    return b"\r\n".join([*head, b"", body])


def chunked(*parts: bytes, path: bytes = b"/") -> bytes:
    head = b"POST " + path + b" HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in parts) + b"0\r\n\r\n"
