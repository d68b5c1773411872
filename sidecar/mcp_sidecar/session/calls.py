"""Calls in flight and the bounded queues through which clients are told things."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mcp_sidecar.core import frames
from mcp_sidecar.core.lines import Line

if TYPE_CHECKING:
    from mcp_sidecar.session.clients import Client
    from mcp_sidecar.session.guard import Visit

Parts = Sequence[bytes | memoryview]

MAX_EVENTS = 1024
MAX_BYTES = 4 * 1024 * 1024
# Answers above this size are handed on in parts instead of being copied into one.
JOIN_BYTES = 65536
_NO_ROOM = "The server answered, but too many large answers wait for their clients: this one was dropped"


class RefusedError(Exception):
    """A request that gets an error from the relay instead of an answer from the server.

    `status` is the HTTP status of a reply that carries it; `retry_after` the seconds after which to come
    again, 0 where nothing is known of that.
    """

    def __init__(
        self, code: int, message: str, data: Any = None, status: int = 200, retry_after: int = 0
    ) -> None:
        super().__init__(message)
        self.code = code
        self.data = data
        self.status = status
        self.retry_after = retry_after

    def body(self, raw_id: bytes) -> bytes:
        """The error answer to the request with this id."""
        return frames.error(raw_id, self.code, str(self), self.data)


class Outbox:
    """Events waiting for one client's stream; too many or too large, and the stream is given up."""

    __slots__ = ("_bytes", "_items", "_waiter", "closed", "on_overflow", "overflown")

    def __init__(self) -> None:
        self._items: deque[Parts] = deque()
        self._bytes = 0
        self._waiter: asyncio.Future[None] | None = None
        self.closed = False
        self.overflown = False
        self.on_overflow: Callable[[], None] = lambda: None

    def __len__(self) -> int:
        return len(self._items)

    def put(self, parts: Parts) -> bool:
        """Queue one event; False when the stream is closed or was given up just now."""
        if self.closed:
            return False
        size = sum(map(len, parts))
        # An empty queue takes anything: one large event alone is no sign of a slow client.
        if self._items and (len(self._items) >= MAX_EVENTS or self._bytes + size > MAX_BYTES):
            self.overflown = True
            self._items.clear()
            self.close()
            self.on_overflow()
            return False
        self._items.append(parts)
        self._bytes += size
        self._wake()
        return True

    def close(self) -> None:
        """No more events; what is queued is still delivered."""
        self.closed = True
        self._wake()

    def pop(self) -> Parts | None:
        """The next event, or None."""
        if not self._items:
            return None
        parts = self._items.popleft()
        self._bytes -= sum(map(len, parts))
        return parts

    async def wait(self, seconds: float) -> bool:
        """Wait until there is an event or the end; False after `seconds` of silence."""
        if self._items or self.closed:
            return True
        loop = asyncio.get_running_loop()
        waiter = self._waiter = loop.create_future()
        timer = loop.call_later(seconds, self._wake)
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiter = None
        return bool(self._items) or self.closed

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Call:
    """One request of a client, from its arrival to its answer."""

    __slots__ = (
        "answer", "client", "id", "method", "on_result", "outbox", "outcome", "raw_id", "room", "sse",
        "started", "subject", "token", "visit", "watcher",
    )  # fmt: skip

    def __init__(self, client: "Client", frame: frames.Frame, started: float, *, sse: bool) -> None:
        self.client = client
        self.id = frame.id
        self.raw_id = frame.raw_id
        self.method = frame.method
        name = frame.params.get("name") or frame.params.get("uri")
        self.subject = name if isinstance(name, str) else ""
        """Name of the tool, prompt or resource."""
        self.token: bytes | None = None
        """The client's progress token as it was written."""
        self.started = started
        self.answer: Parts | None = None
        self.outcome = ""
        self.sse = sse
        """Whether the reply may be an event stream."""
        self.outbox: Outbox | None = None
        self.room: Callable[[int], bool] | None = None
        """Asked before a large answer is kept for the client; False when too many are waiting for theirs."""
        self.on_result: Callable[[bool], None] | None = None
        """Called with True when the server answered with a result, with False at any other end."""
        self.watcher: Callable[[], None] | None = None
        """Called once: when there is an answer, or before that an event to send."""
        self.visit: Visit | None = None
        """What limits and the audit log know of it; None where there are none."""

    def answered(self, line: Line, start: int, end: int, failed: bool) -> None:
        """The server's answer: `line` with the upstream id at [start:end]."""
        if len(line) > JOIN_BYTES:
            if self.room is not None and not self.room(len(line)):
                self.refuse(RefusedError(frames.SERVER_ERROR, _NO_ROOM, {"reason": "busy"}), "busy")
                return
            view = memoryview(line)
            self.finish((view[:start], self.raw_id, view[end:]), "error" if failed else "ok")
        else:
            self.finish((b"".join((line[:start], self.raw_id, line[end:])),), "error" if failed else "ok")

    def finish(self, answer: Parts, outcome: str) -> None:
        """End the call; only the first end counts. Whoever waits for it is woken whatever follows from it."""
        if self.answer is not None:
            return
        self.answer = answer
        self.outcome = outcome
        if self.visit is not None:
            self.visit.leave()
        self.wake()
        if self.outbox is not None:
            self.outbox.close()
        if self.on_result is not None:
            self.on_result(outcome == "ok")

    def refuse(self, refusal: RefusedError, outcome: str) -> None:
        """End the call with an error of the relay's own."""
        self.finish((refusal.body(self.raw_id),), outcome)

    def tell(self, parts: Parts) -> bool:
        """Send an event on the call's own stream; False when that is no longer possible."""
        if self.answer is not None or not self.sse:
            return False
        if self.outbox is None:
            self.outbox = Outbox()
        delivered = self.outbox.put(parts)
        self.wake()
        return delivered

    def deserted(self) -> None:
        """Its client went away: nothing is sent to it any more, so that others get what concerns them all."""
        self.sse = False

    def watch(self, watcher: Callable[[], None]) -> None:
        """Have `watcher` called, at once if there is something to see already."""
        self.watcher = watcher
        if self.answer is not None or self.outbox is not None:
            self.wake()

    def wake(self) -> None:
        """Let whoever waits for the call look at it."""
        watcher, self.watcher = self.watcher, None
        if watcher is not None:
            watcher()
