"""One request and the way to answer it, as the applications behind the two ports see it."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from mcp_sidecar.core import httptext
from mcp_sidecar.core.httptext import Field, Head, Reply
from mcp_sidecar.core.room import Room
from mcp_sidecar.session.guard import Visit

Data = bytes | memoryview


class Application(Protocol):
    """What a port does. Nothing here may block."""

    body_limit: int
    """Bytes that the body of a request may have."""

    def refusal(self, head: Head) -> Reply | None:
        """Why a request is refused before its body is read; None: it is served.

        Depends on nothing but the head, as long as `changed` does not say so: of a head that passed, the next
        one with the same text passes, too.
        """

    def changed(self) -> bool:
        """Whether `refusal` may decide otherwise since this was asked last. Asked every second."""

    def serve(self, exchange: "Exchange") -> None:
        """Answer a request now or later: by one `reply` or `answer`, or by `open`, `send` and `end`."""

    def problem(self, status: int, reason: str, text: str) -> Reply:
        """The reply to what is no proper request; `reason` is counted, `text` is for the client."""


class Wire(Protocol):
    """What an exchange needs of its connection."""

    bodies: Room
    """Room for the bodies of requests that are being read or wait."""
    replies: Room
    """Room for large replies that clients have not taken yet."""

    @property
    def peer(self) -> str:
        """The client's address without the port; empty when it is gone."""

    def write(self, data: Data) -> None:
        """Send bytes; nothing happens when the client is gone."""

    def finished(self) -> None:
        """The reply is complete."""

    def abort(self) -> None:
        """Cut the connection."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a task that belongs to this connection's server."""

    async def drained(self) -> None:
        """Wait until the client has taken most of what was written, or is gone."""


class Exchange:
    """One request, from its head to the end of its reply. Replies of one connection go out in order."""

    __slots__ = (
        "_body_size", "_chunked", "_deferred", "_held", "_reply_size", "_wire", "body", "gone", "head",
        "keep_alive", "on_gone", "refusal", "visit",
    )  # fmt: skip

    def __init__(self, wire: Wire, head: Head, *, keep_alive: bool) -> None:
        self._wire = wire
        self._held = b""
        self._chunked = False
        self._body_size = self._reply_size = 0
        self._deferred = False
        self.head = head
        self.body = b""
        self.refusal: Reply | None = None
        """Set: this is the reply, and the application is not asked."""
        self.keep_alive = keep_alive
        """Whether the connection may serve another request."""
        self.gone = False
        """The client is gone: whatever is written is lost."""
        self.on_gone: Callable[[], None] | None = None
        """Called once when the client goes before the reply is complete."""
        self.visit: Visit | None = None
        """What limits and the audit log need of the request, from its admission until its call begins."""

    @property
    def peer(self) -> str:
        """The client's address without the port; empty when it is gone."""
        return self._wire.peer

    def abort(self) -> None:
        """Cut the connection."""
        self._wire.abort()

    # What it takes of the memory for all.

    def take_body(self, size: int) -> bool:
        """Have room for so many bytes (more) of the body; False when there is none."""
        if not self._wire.bodies.take(size):
            return False
        self._body_size += size
        return True

    def keep_body(self) -> bool:
        """Have room for a body that came in one piece, now that it has to wait; False when there is none."""
        return self._body_size > 0 or not self.body or self.take_body(len(self.body))

    def drop_body(self) -> None:
        """The body is not needed any more."""
        if self._deferred:
            return
        self.body = b""
        if self._body_size:
            self._wire.bodies.give(self._body_size)
            self._body_size = 0

    def take_reply(self, size: int) -> bool:
        """Have room for a large reply until the client has it or is gone; False when there is none."""
        if self.gone:
            return True
        if not self._wire.replies.take(size):
            return False
        self._reply_size += size
        return True

    def failed(self) -> None:
        """It met a defect: it is not open any more, whatever was to become of it."""
        if self.visit is not None:
            self.visit.ended("failed")
            self.visit = None

    def drop_reply(self) -> None:
        """The reply is with the client, or lost."""
        if self._reply_size:
            self._wire.replies.give(self._reply_size)
            self._reply_size = 0

    def defer(self, work: Coroutine[Any, Any, None]) -> None:
        """Go on in a task that still needs the body, or what was made of it."""
        self._deferred = True
        self._wire.spawn(self._with_body(work))

    async def _with_body(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        finally:
            self._deferred = False
            self.drop_body()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Answer in a task; it ends with the server at the latest."""
        self._wire.spawn(work)

    async def drained(self) -> None:
        """Wait until the client has taken most of what was written, or is gone."""
        await self._wire.drained()

    def reply(self, reply: Reply) -> None:
        """Send a whole reply."""
        bodiless = self.head.method == b"HEAD"
        echo = self.head.echo
        self._wire.write(httptext.whole(reply, close=not self.keep_alive, bodiless=bodiless, echo=echo))
        self._wire.finished()

    def answer(self, body: bytes) -> None:
        """Send 200 with JSON, in one write."""
        if self.keep_alive and not self.head.echo:
            self._wire.write(httptext.json_reply(body))
            self._wire.finished()
        else:
            self.reply(Reply(200, body))

    def open(self, fields: Sequence[Field], length: int | None = None) -> None:
        """Begin a reply of several parts; its head goes out with the first of them.

        Without a length it comes in chunks, or for a client that knows none it ends with the connection.
        """
        framing = [(b"content-length", b"%d" % length)] if length is not None else []
        self._chunked = length is None and not self.head.http10
        if self._chunked:
            framing = [(b"transfer-encoding", b"chunked")]
        self._held = httptext.reply_head(200, [*fields, *framing, *self.head.echo], close=not self.keep_alive)

    def send(self, data: Data) -> None:
        """Send a part."""
        part = httptext.chunk(data) if self._chunked else data
        if self._held:
            part, self._held = b"".join((self._held, part)), b""
        self._wire.write(part)

    def end(self) -> None:
        """Complete a reply of several parts."""
        last = self._held + (httptext.LAST_CHUNK if self._chunked else b"")
        self._held = b""
        if last:
            self._wire.write(last)
        self._wire.finished()
