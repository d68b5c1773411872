"""One request and the way to answer it, as the applications behind the two ports see it."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from mcp_sidecar.core import httptext
from mcp_sidecar.core.httptext import Field, Head, Reply

Data = bytes | memoryview


class Application(Protocol):
    """What a port does. Nothing here may block."""

    body_limit: int
    """Bytes that the body of a request may have."""

    def refusal(self, head: Head) -> Reply | None:
        """Why a request is refused before its body is read; None: it is served.

        Depends on nothing but the head: of a head that passed, the next one with the same text passes, too.
        """

    def serve(self, exchange: "Exchange") -> None:
        """Answer a request now or later: by one `reply` or `answer`, or by `open`, `send` and `end`."""

    def problem(self, status: int, reason: str, text: str) -> Reply:
        """The reply to what is no proper request; `reason` is counted, `text` is for the client."""


class Wire(Protocol):
    """What an exchange needs of its connection."""

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
        "_chunked", "_held", "_wire", "body", "gone", "head", "keep_alive", "on_gone", "refusal",
    )  # fmt: skip

    def __init__(self, wire: Wire, head: Head, *, keep_alive: bool) -> None:
        self._wire = wire
        self._held = b""
        self._chunked = False
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

    def abort(self) -> None:
        """Cut the connection."""
        self._wire.abort()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Answer in a task; it ends with the server at the latest."""
        self._wire.spawn(work)

    async def drained(self) -> None:
        """Wait until the client has taken most of what was written, or is gone."""
        await self._wire.drained()

    def reply(self, reply: Reply) -> None:
        """Send a whole reply."""
        bodiless = self.head.method == b"HEAD"
        self._wire.write(httptext.whole(reply, close=not self.keep_alive, bodiless=bodiless))
        self._wire.finished()

    def answer(self, body: bytes) -> None:
        """Send 200 with JSON, in one write."""
        if self.keep_alive:
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
        self._held = httptext.reply_head(200, [*fields, *framing], close=not self.keep_alive)

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
