"""One connection of a client: its requests are answered in order, with a bound on everything.

A request that is complete goes to the application in the same turn of the event loop, and an answer is one
write: no task and no queue between the socket and the sessions. What a client may take its time for is looked
at now and then by `check`, instead of by a timer for every request.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, cast

from mcp_sidecar import log
from mcp_sidecar.web.exchange import Application, Data, Exchange
from mcp_sidecar.web.intake import Intake, Phase

KEEP_ALIVE_SECONDS = 75.0
LINGER_SECONDS = 3.0
"""Time to take in the last reply: bytes of the client that nobody reads would destroy it on its way."""
MAX_CONNECTIONS = 4096


@dataclass(slots=True, eq=False)
class Site:
    """What the connections of one port share."""

    application: Application
    connections: set["Connection"] = field(default_factory=set)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    closing: bool = False
    emptied: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the last connection of a closing port is gone."""
    traffic: Counter[str] = field(default_factory=Counter)
    """Bytes that came in and went out."""


class Connection(asyncio.Protocol):
    """One client's connection."""

    __slots__ = (
        "_congested", "_current", "_drain", "_intake", "_last_used", "_linger", "_loop", "_site",
        "_transport", "_waiting",
    )  # fmt: skip

    def __init__(self, site: Site, loop: asyncio.AbstractEventLoop) -> None:
        self._site = site
        self._loop = loop
        self._intake = Intake(self, site.application, loop)
        self._transport: asyncio.Transport | None = None
        self._current: Exchange | None = None  # its reply is to be written
        self._waiting: deque[Exchange] = deque()
        self._last_used = loop.time()
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
        self._site.traffic["in"] += len(data)
        self._intake.feed(data)

    def eof_received(self) -> None:
        """The client will send no more; to this side it is gone."""

    def connection_lost(self, _error: Exception | None) -> None:
        """The connection ended."""
        self._transport = None
        self._intake.deaf = True
        self._site.connections.discard(self)
        if self._site.closing and not self._site.connections:
            self._site.emptied.set()
        self._waiting.clear()
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

    # One reply after the other.

    @property
    def idle(self) -> bool:
        """Whether no earlier request waits for its reply."""
        return self._current is None and not self._waiting

    def enter(self, exchange: Exchange) -> None:
        """Take a request that is complete, or one that is refused."""
        if self._current is None and not self._waiting and not self._congested:
            self._begin(exchange)
            return
        self._waiting.append(exchange)
        if self._transport is not None and not self._intake.deaf:
            self._transport.pause_reading()

    def _next(self) -> None:
        if self._waiting and self._current is None and not self._congested:
            self._begin(self._waiting.popleft())
        transport = self._transport
        if transport is not None and not self._waiting and not transport.is_reading():
            self._intake.wait_anew()
            transport.resume_reading()

    def _begin(self, exchange: Exchange) -> None:
        self._current = exchange
        if exchange.refusal is not None:
            exchange.reply(exchange.refusal)
            return
        try:
            self._site.application.serve(exchange)
        except Exception as error:  # noqa: BLE001 - a defect met by one request must not end the others
            self.defect(error)

    def defect(self, error: BaseException | None) -> None:
        """A request met a defect of the relay: what its reply would have been nobody knows."""
        log.failure("request_failed", error)
        self.abort()

    def finished(self) -> None:
        """The reply to the current request is complete."""
        exchange, self._current = self._current, None
        self._last_used = self._loop.time()
        if exchange is None or not exchange.keep_alive:
            self._hang_up()
        elif self._waiting:
            self._loop.call_soon(self._next)

    def _hang_up(self) -> None:
        """End the connection after what was written."""
        transport = self._transport
        self._intake.deaf = True
        self._waiting.clear()
        if transport is None:
            return
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
            self._site.traffic["out"] += len(data)
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
            self.defect(task.exception())

    # What the server asks for.

    def check(self, now: float) -> None:
        """End what takes too long; a client whose requests wait is not read from, so it is not to blame."""
        if self._transport is None or self._waiting:
            return
        if self._intake.overdue(now):
            self._intake.refuse(408, "slow", "Request timeout: the request came too slowly")
            return
        unused = self._intake.phase is Phase.NONE and self._current is None
        if unused and now - self._last_used > KEEP_ALIVE_SECONDS:
            self._transport.close()

    def end(self) -> None:
        """Take no more requests; close once the current one is answered."""
        self._intake.deaf = True
        self._waiting.clear()
        if self._current is not None:
            self._current.keep_alive = False
        elif self._transport is not None:
            self._transport.close()
