"""One connection of a client: requests in, replies out, in order, with a bound on everything.

The parser calls back; a request that is complete goes to the application in the same turn, and an
answer is one write. There is no task and no queue between the socket and the sessions. What a client may
take its time for is looked at now and then by `check`, instead of by a timer for every request.
"""

import asyncio
from collections import deque
from collections.abc import Coroutine
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, cast

from httptools import (
    HttpParserCallbackError,
    HttpParserError,
    HttpParserInvalidMethodError,
    HttpParserUpgrade,
    HttpRequestParser,
)

from mcp_sidecar import log
from mcp_sidecar.core import httptext
from mcp_sidecar.core.httptext import Head, HeadError
from mcp_sidecar.web.exchange import Application, Data, Exchange

KEEP_ALIVE_SECONDS = 75.0
HEAD_SECONDS = 10.0
BODY_SECONDS = 30.0
"""Time without a byte of the body."""
REQUEST_SECONDS = 300.0
"""Time for a whole request, however steadily it trickles in."""
LINGER_SECONDS = 3.0
"""Time to take in a refusal: bytes of the client that nobody reads would destroy it on its way."""
MAX_CONNECTIONS = 4096

_NOBODY = Head(b"", b"", b"", {})


class Phase(Enum):
    """What of a request is on its way."""

    NONE = "none"
    HEAD = "head"
    BODY = "body"


@dataclass(slots=True, eq=False)
class Site:
    """What the connections of one port share."""

    application: Application
    connections: set["Connection"] = field(default_factory=set)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    closing: bool = False
    emptied: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the last connection of a closing port is gone."""


class Connection(asyncio.Protocol):
    """One client's connection."""

    __slots__ = (
        "_began", "_body", "_body_size", "_congested", "_current", "_deaf", "_drain", "_fields", "_head_size",
        "_headers", "_incoming", "_linger", "_loop", "_moved", "_parser", "_phase", "_plain", "_site",
        "_transport", "_unfinished", "_url", "_waiting",
    )  # fmt: skip

    def __init__(self, site: Site, loop: asyncio.AbstractEventLoop) -> None:
        self._site = site
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._parser = HttpRequestParser(self)
        self._began = self._moved = loop.time()
        self._phase = Phase.NONE
        self._url = b""
        self._headers: httptext.Headers = {}
        self._fields = self._head_size = 0
        self._unfinished = -1  # bytes of an unfinished head, without the piece in which it began
        self._plain = True  # nothing asks for another protocol
        self._incoming: Exchange | None = None  # its body is being read
        self._body: list[bytes] = []
        self._body_size = 0
        self._current: Exchange | None = None  # its reply is to be written
        self._waiting: deque[Exchange] = deque()
        self._deaf = False  # whatever else comes is not read any more
        self._congested = False
        self._drain: asyncio.Future[None] | None = None
        self._linger: asyncio.TimerHandle | None = None

    # What the event loop reports.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client connected."""
        self._transport = cast("asyncio.Transport", transport)
        self._site.connections.add(self)
        if len(self._site.connections) > MAX_CONNECTIONS:
            self._site.application.problem(503, "connections", "")
            self.abort()

    def data_received(self, data: bytes) -> None:
        """Bytes of the client."""
        rest = data
        while rest and not self._deaf:
            rest = self._feed(rest)
        if self._phase is Phase.HEAD:
            # A header is reported when it is whole, so one without end has to be noticed here.
            self._unfinished = self._unfinished + len(data) if self._unfinished >= 0 else 0
            if self._unfinished > httptext.MAX_HEAD_BYTES:
                self._too_much_head()

    def eof_received(self) -> None:
        """The client will send no more; to this side it is gone."""

    def connection_lost(self, _error: Exception | None) -> None:
        """The connection ended."""
        self._transport = None
        self._deaf = True
        self._site.connections.discard(self)
        if self._site.closing and not self._site.connections:
            self._site.emptied.set()
        self._waiting.clear()
        self._incoming = None
        if self._linger is not None:
            self._linger.cancel()
        self.resume_writing()
        exchange = self._current
        if exchange is not None:
            exchange.gone = True
            if exchange.on_gone is not None:
                exchange.on_gone()

    def pause_writing(self) -> None:
        """The client does not take what is written."""
        self._congested = True

    def resume_writing(self) -> None:
        """It takes it again."""
        self._congested = False
        if self._drain is not None and not self._drain.done():
            self._drain.set_result(None)
        if self._waiting and self._current is None:
            self._loop.call_soon(self._next)

    # What the parser reports. It calls from within `feed_data` and must not be met with an exception.

    def _feed(self, data: bytes) -> bytes:
        """Parse; gives what is left after a request that asked for another protocol."""
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            return self._stay(data[upgrade.args[0] :])
        except HttpParserCallbackError as error:
            self._defect(error.__context__)
        except HttpParserInvalidMethodError:
            self._refuse(405, "method", "Method not allowed")
        except HttpParserError as error:
            self._refuse(400, "malformed", f"Bad request: {error}")
        return b""

    def _stay(self, rest: bytes) -> bytes:
        """Read a request that offers another protocol again, without the offer: it may be ignored.

        The parser stops after such a head, so its body would be taken for the next request.
        """
        method = self._parser.get_method()
        if self._deaf or method == b"CONNECT":
            self._refuse(405, "method", "Method not allowed")
            return b""
        lines = [b"%b: %b\r\n" % item for item in self._headers.items() if item[0] != b"upgrade"]
        version = self._parser.get_http_version().encode()
        self._parser = HttpRequestParser(self)
        return b"%b %b HTTP/%b\r\n%b\r\n%b" % (method, self._url, version, b"".join(lines), rest)

    def on_message_begin(self) -> None:
        """A request begins."""
        self._phase = Phase.HEAD
        self._began = self._moved = self._loop.time()
        self._url = b""
        self._headers = {}
        self._fields = self._head_size = 0
        self._unfinished = -1
        self._body = []
        self._body_size = 0

    def on_url(self, part: bytes) -> None:
        """A part of the target."""
        self._url += part
        self._head_size += len(part)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or after a body in chunks a trailer, which nobody wants."""
        self._fields += 1
        self._head_size += len(name) + len(value)
        if self._fields > httptext.MAX_HEADERS or self._head_size > httptext.MAX_HEAD_BYTES:
            self._too_much_head()
        elif self._phase is Phase.HEAD and not self._deaf:
            name = name.lower()
            if name not in self._headers:
                self._headers[name] = value
                return
            try:
                self._headers[name] = httptext.repeated(name, self._headers[name], value)
            except HeadError as error:
                self._refuse(error.status, "malformed", str(error))

    def on_headers_complete(self) -> None:
        """The head is there: whether the request is refused is decided before its body is read."""
        parser = self._parser
        self._plain = not parser.should_upgrade()
        if self._deaf or not self._plain:
            return
        try:
            head = httptext.head(parser.get_method(), self._url, parser.get_http_version(), self._headers)
        except HeadError as error:
            self._refuse(error.status, "malformed", str(error))
            return
        self._phase = Phase.BODY
        keep_alive = not head.http10 and parser.should_keep_alive()
        exchange = self._incoming = Exchange(self, head, keep_alive=keep_alive)
        exchange.refusal = self._site.application.refusal(head)
        length = head.length
        if exchange.refusal is not None:
            if head.awaits_continue or length is None or length > httptext.SKIPPED_BYTES:
                self._end_with(exchange)
        elif length is not None and length > self._site.application.body_limit:
            self._too_large()
        elif head.awaits_continue and length != 0 and self._current is None:
            self.write(httptext.CONTINUE)

    def on_body(self, part: bytes) -> None:
        """A part of the body."""
        if self._deaf:
            return
        self._moved = self._loop.time()
        self._body.append(part)
        self._body_size += len(part)
        if self._body_size > self._site.application.body_limit:
            self._too_large()

    def on_message_complete(self) -> None:
        """A request is complete."""
        exchange, self._incoming = self._incoming, None
        if self._deaf or exchange is None or not self._plain:
            return
        self._phase = Phase.NONE
        body = self._body
        exchange.body = body[0] if len(body) == 1 else b"".join(body)
        self._body = []
        if not exchange.keep_alive:
            self._deaf = True
        self._enter(exchange)

    # Requests that end the connection.

    def _too_much_head(self) -> None:
        self._refuse(431, "head_too_large", f"The head of a request may have {httptext.MAX_HEAD_BYTES} bytes")

    def _too_large(self) -> None:
        limit = self._site.application.body_limit
        self._refuse(413, "too_large", f"Content too large: a message may have {limit} bytes")

    def _refuse(self, status: int, reason: str, text: str) -> None:
        if self._deaf:
            return
        exchange = self._incoming or Exchange(self, _NOBODY, keep_alive=False)
        exchange.refusal = self._site.application.problem(status, reason, text)
        self._end_with(exchange)

    def _end_with(self, exchange: Exchange) -> None:
        """Refuse a request that is not read to its end."""
        self._incoming = None
        self._body = []
        self._phase = Phase.NONE
        self._deaf = True
        exchange.keep_alive = False
        self._enter(exchange)

    # One reply after the other.

    def _enter(self, exchange: Exchange) -> None:
        if self._current is None and not self._waiting and not self._congested:
            self._begin(exchange)
            return
        self._waiting.append(exchange)
        if self._transport is not None and not self._deaf:
            self._transport.pause_reading()

    def _next(self) -> None:
        if self._waiting and self._current is None and not self._congested:
            self._begin(self._waiting.popleft())
        if not self._waiting and self._transport is not None and not self._transport.is_reading():
            self._moved = self._began = self._loop.time()
            self._transport.resume_reading()

    def _begin(self, exchange: Exchange) -> None:
        self._current = exchange
        if exchange.refusal is not None:
            exchange.reply(exchange.refusal)
            return
        try:
            self._site.application.serve(exchange)
        except Exception as error:  # noqa: BLE001 - a defect in one request must not end the others
            self._defect(error)

    def _defect(self, error: BaseException | None) -> None:
        """A request met a defect of the relay: what its reply would have been nobody knows."""
        log.failure("request_failed", error)
        self.abort()

    def finished(self) -> None:
        """The reply to the current request is complete."""
        exchange, self._current = self._current, None
        self._moved = self._loop.time()
        if exchange is None or not exchange.keep_alive:
            self._hang_up()
        elif self._waiting:
            self._loop.call_soon(self._next)

    def _hang_up(self) -> None:
        """End the connection after what was written."""
        transport = self._transport
        if transport is None:
            return
        self._waiting.clear()
        if self._site.closing:
            transport.close()
            return
        self._linger = self._loop.call_later(LINGER_SECONDS, transport.abort)
        transport.write_eof()
        transport.resume_reading()

    # What an exchange asks for.

    def write(self, data: Data) -> None:
        """Send bytes; nothing happens when the client is gone."""
        if self._transport is not None:
            self._transport.write(data)

    def abort(self) -> None:
        """Cut the connection."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()

    async def drained(self) -> None:
        """Wait until the client has taken most of what was written, or is gone."""
        if self._congested and self._transport is not None:
            self._drain = self._loop.create_future()
            await self._drain

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a task that ends with the server at the latest."""
        task = self._loop.create_task(work)
        self._site.tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._site.tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._defect(task.exception())

    # What the server asks for.

    def check(self, now: float) -> None:
        """End what takes too long."""
        transport = self._transport
        if transport is None or self._deaf or self._waiting:
            return
        if self._phase is Phase.NONE:
            if self._current is None and now - self._moved > KEEP_ALIVE_SECONDS:
                transport.close()
        elif now - self._began > (HEAD_SECONDS if self._phase is Phase.HEAD else REQUEST_SECONDS) or (
            now - self._moved > BODY_SECONDS
        ):
            self._refuse(408, "slow", "Request timeout: the request came too slowly")

    def end(self) -> None:
        """Take no more requests; close once the current one is answered."""
        self._deaf = True
        self._waiting.clear()
        if self._current is not None:
            self._current.keep_alive = False
        elif self._transport is not None:
            self._transport.close()
