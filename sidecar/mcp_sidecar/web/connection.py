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
from mcp_sidecar.core.room import Room
from mcp_sidecar.web.exchange import Application, Data, Exchange
from mcp_sidecar.web.intake import Intake, Phase

KEEP_ALIVE_SECONDS = 75.0
LINGER_SECONDS = 3.0
"""Time to take in the last reply: bytes of the client that nobody reads would destroy it on its way."""
FIRST_SECONDS = 10.0
"""Time for the first request of a connection."""
MAX_CONNECTIONS = 4096
MAX_NEWCOMERS = 512
"""Connections that have not sent the whole head of a good request: it takes no token to make one."""
MAX_WAITING = 100
"""Requests of one connection that wait for the reply to an earlier one."""
_BODIES, _REPLIES = 2, 3  # of the greatest size
_ROOM_BYTES = 1024 * 1024  # at least


@dataclass(slots=True, eq=False)
class Site:
    """What the connections of one port share."""

    application: Application
    connections: set["Connection"] = field(default_factory=set)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    newcomers: dict["Connection", None] = field(default_factory=dict)
    """The oldest first."""
    bodies: Room = field(init=False)
    replies: Room = field(init=False)
    closing: bool = False
    emptied: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the last connection of a closing port is gone."""
    traffic: Counter[str] = field(default_factory=Counter)
    """Bytes that came in and went out."""

    def __post_init__(self) -> None:
        """Make room for messages as large as the application takes."""
        limit = self.application.body_limit
        self.bodies = Room(max(_BODIES * limit, _ROOM_BYTES))
        self.replies = Room(max(_REPLIES * limit, _ROOM_BYTES))

    def enter(self, connection: "Connection") -> None:
        """Take a connection; above the limits the one that is missed least has to go."""
        self.connections.add(connection)
        self.newcomers[connection] = None
        if len(self.connections) > MAX_CONNECTIONS or len(self.newcomers) > MAX_NEWCOMERS:
            self.application.problem(503, "connections", "")
            self._least_missed(connection).abort()

    def _least_missed(self, newest: "Connection") -> "Connection":
        oldest = next(iter(self.newcomers))
        if oldest is not newest:
            return oldest
        idle = [connection for connection in self.connections if connection.unused]
        return min(idle, key=lambda connection: connection.last_used, default=newest)

    def leave(self, connection: "Connection") -> None:
        """Forget a connection."""
        self.connections.discard(connection)
        self.newcomers.pop(connection, None)
        if self.closing and not self.connections:
            self.emptied.set()


class Connection(asyncio.Protocol):
    """One client's connection."""

    __slots__ = (
        "_congested", "_current", "_drain", "_intake", "_linger", "_loop", "_peer", "_site", "_transport",
        "_waiting", "bodies", "last_used", "replies",
    )  # fmt: skip

    def __init__(self, site: Site, loop: asyncio.AbstractEventLoop) -> None:
        self._site = site
        self.bodies = site.bodies
        self.replies = site.replies
        self._loop = loop
        self._intake = Intake(self, site.application, loop)
        self._transport: asyncio.Transport | None = None
        self._current: Exchange | None = None  # its reply is to be written
        self._waiting: deque[Exchange] = deque()
        self.last_used = loop.time()
        self._peer: str | None = None  # asked for by those who need it
        self._congested = False
        self._drain: asyncio.Future[None] | None = None
        self._linger: asyncio.TimerHandle | None = None

    # What the event loop reports.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client connected."""
        self._transport = cast("asyncio.Transport", transport)
        self._site.enter(self)

    def data_received(self, data: bytes) -> None:
        """Bytes of the client."""
        self._site.traffic["in"] += len(data)
        self._intake.feed(data)

    def eof_received(self) -> None:
        """The client will send no more; to this side it is gone."""

    def connection_lost(self, _error: Exception | None) -> None:
        """The connection ended."""
        self._transport = None
        self._intake.forget()
        self._site.leave(self)
        self._forget_waiting()
        if self._linger is not None:
            self._linger.cancel()
        self.resume_writing()
        exchange = self._current
        if exchange is not None:
            exchange.gone = True
            exchange.drop_body()
            exchange.drop_reply()
            on_gone, exchange.on_gone = exchange.on_gone, None
            if on_gone is not None:
                on_gone()

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
        if len(self._waiting) >= MAX_WAITING or not exchange.keep_body():
            self._site.application.problem(503, "pipelined", "")
            exchange.drop_body()
            self.abort()
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
        exchange.drop_body()

    def defect(self, error: BaseException | None) -> None:
        """A request met a defect of the relay: what its reply would have been nobody knows."""
        log.failure("request_failed", error)
        if self._current is not None:
            self._current.failed()
        self.abort()

    def finished(self) -> None:
        """The reply to the current request is complete."""
        exchange, self._current = self._current, None
        if exchange is not None:
            exchange.drop_reply()
            # It leads to the call and that back here: large answers would stay until cycles are collected.
            exchange.on_gone = None
        self.last_used = self._loop.time()
        if exchange is None or not exchange.keep_alive:
            self._hang_up()
        elif self._waiting:
            self._loop.call_soon(self._next)

    def _hang_up(self) -> None:
        """End the connection after what was written."""
        transport = self._transport
        self._intake.deaf = True
        self._forget_waiting()
        if transport is None:
            return
        if self._site.closing:
            transport.close()
            return
        self._linger = self._loop.call_later(LINGER_SECONDS, transport.abort)
        transport.write_eof()
        transport.resume_reading()

    def _forget_waiting(self) -> None:
        for exchange in self._waiting:
            exchange.drop_body()
        self._waiting.clear()

    # What the intake reports.

    def unfinished(self) -> None:
        """The head of a request came in part."""
        self._site.newcomers.setdefault(self)

    def passed(self) -> None:
        """The head of a request was found good."""
        self._site.newcomers.pop(self, None)

    # What an exchange asks for.

    @property
    def peer(self) -> str:
        """The client's address without the port; empty when it was gone before anybody asked."""
        if self._peer is None and self._transport is not None:
            name = self._transport.get_extra_info("peername")
            # An IPv4 client of a socket for both families comes as one of IPv6.
            self._peer = str(name[0]).removeprefix("::ffff:") if isinstance(name, tuple) else ""
        return self._peer or ""

    def write(self, data: Data) -> None:
        """Send bytes; nothing happens when the client is gone."""
        if self._transport is not None:
            self._site.traffic["out"] += len(data)
            self._transport.write(data)

    def abort(self) -> None:
        """Cut the connection."""
        transport, self._transport = self._transport, None
        self._site.newcomers.pop(self, None)
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

    @property
    def unused(self) -> bool:
        """Whether no request is on its way or waits for its reply."""
        return self._intake.phase is Phase.NONE and self.idle

    def check(self, now: float) -> None:
        """End what takes too long; a client whose requests wait is not read from, so it is not to blame."""
        if self._transport is None or self._waiting:
            return
        if self._intake.overdue(now):
            self._intake.refuse(408, "slow", "Request timeout: the request came too slowly")
            return
        patience = FIRST_SECONDS if self in self._site.newcomers else KEEP_ALIVE_SECONDS
        if self.unused and now - self.last_used > patience:
            self._transport.close()

    def doubt(self) -> None:
        """What was decided about earlier requests does not hold any more."""
        self._intake.doubt()

    def end(self) -> None:
        """Take no more requests; close once the current one is answered."""
        self._intake.deaf = True
        self._forget_waiting()
        if self._current is not None:
            self._current.keep_alive = False
        elif self._transport is not None:
            self._transport.close()
