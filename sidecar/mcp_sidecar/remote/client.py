"""HTTP/1.1 towards one origin, on the parser that the relay has anyway; connections are kept for a moment.

It tells apart what a caller must know: a request that was not sent, and one whose outcome nobody knows.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import cast

import httptools

from mcp_sidecar.core.target import Origin

CONNECT_SECONDS = 10.0
# Servers close what is idle for 5 s (uvicorn, Node.js): shorter, so that no request meets such an end.
IDLE_SECONDS = 3.0
MAX_IDLE = 64
MAX_HEAD_BYTES = 65_536
_BUFFERED_BYTES = 1024 * 1024
_NO_BODY = frozenset({204, 304})


class NotSentError(Exception):
    """There is no connection: the server has not heard of the request."""


class BrokenError(Exception):
    """The connection broke, or carries nonsense: the server may have heard of the request."""


class TooLargeError(Exception):
    """The body is larger than wanted."""


class Response:
    """An answer whose head has come; `chunks` gives its body once."""

    def __init__(self, connection: "_Connection") -> None:
        self._connection = connection
        self.status = 0
        self.headers: dict[str, str] = {}
        """By name in lower case; of several of one name the first counts."""
        self.complete = False
        self.error: BrokenError | None = None
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self.head: asyncio.Future[None] = self._loop.create_future()

    @property
    def bounded(self) -> bool:
        """Whether the head says where the body ends; else the end of the connection does."""
        coding = self.headers.get("transfer-encoding", "")
        return self.status in _NO_BODY or "content-length" in self.headers or "chunked" in coding.lower()

    @property
    def kind(self) -> str:
        """The media type."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def coding(self) -> str:
        """How the body is encoded, which the relay never asks for; empty for not at all."""
        coding = self.headers.get("content-encoding", "").strip().lower()
        return "" if coding == "identity" else coding

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes.

        Raises:
            BrokenError: it ended too early.

        """
        while True:
            while self._chunks:
                chunk = self._chunks.popleft()
                self._size -= len(chunk)
                self._connection.drained(self._size)
                yield chunk
            if self.complete:
                return
            if self.error is not None:
                raise self.error
            self._waiter = self._loop.create_future()
            await self._waiter

    async def body(self, limit: int) -> bytearray:
        """The whole body.

        Raises:
            BrokenError: it ended too early.
            TooLargeError: it has more than `limit` bytes.

        """
        found = bytearray()
        async for chunk in self.chunks():
            found += chunk
            if len(found) > limit:
                raise TooLargeError(f"a body of more than {limit} bytes")
        return found

    def close(self) -> None:
        """Drop the connection, unless the body has come whole; may be called twice."""
        if not self.complete:
            self._connection.abort()

    # What the connection reports.

    def fed(self, chunk: bytes) -> int:
        """Take a part of the body; gives how much waits."""
        self._chunks.append(chunk)
        self._size += len(chunk)
        self._wake()
        return self._size

    def ended(self, error: BrokenError | None) -> None:
        """The body has come whole, or will not."""
        if self.complete or self.error is not None:
            return
        self.complete, self.error = error is None, error
        if not self.head.done():
            self.head.set_exception(error or BrokenError("the connection was closed without an answer"))
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class _Connection(asyncio.Protocol):
    """One connection; one request at a time."""

    def __init__(self, client: "Client") -> None:
        self._client = client
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._response: Response | None = None
        self._draft: Response | None = None
        self._head_bytes = 0
        self.heard = False
        """Whether anything came back for the request."""
        self._unread = 0
        """Bytes since the last that belonged to a head that is complete, or to a body."""
        self._paused = False
        self.expiry: asyncio.TimerHandle | None = None

    @property
    def usable(self) -> bool:
        """Whether another request may be sent."""
        return self._transport is not None and not self._transport.is_closing() and self._response is None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def send(self, data: bytes) -> Response:
        """Send a whole request."""
        if self._transport is None or self._transport.is_closing():
            raise NotSentError("the connection was closed")
        self._parser = httptools.HttpResponseParser(self)
        self._head_bytes = self._unread = 0
        self.heard = False
        self._response = self._draft = Response(self)
        self._transport.write(data)
        return self._response

    def data_received(self, data: bytes) -> None:
        if self._response is None:  # nobody asked
            self.abort()
            return
        self.heard = True
        self._unread += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            why = "its head is too large" if self._head_bytes > MAX_HEAD_BYTES else error
            self._break(f"its answer is no HTTP/1.1: {why}")
            return
        except httptools.HttpParserUpgrade:
            self._break("it goes over to another protocol, which was not asked for")
            return
        if (
            self._unread > MAX_HEAD_BYTES and self._response is not None
        ):  # a header without end is reported never
            self._break("its answer is no HTTP/1.1: its head is too large")

    # What the parser reports.

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_bytes += len(name) + len(value)
        if self._draft is None or self._head_bytes > MAX_HEAD_BYTES:
            raise httptools.HttpParserCallbackError("its head is too large")
        self._draft.headers.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        response = self._draft
        if response is None:
            return
        if status < 200:  # the real one follows
            response.headers.clear()
            return
        response.status = status
        self._unread = 0
        if not response.head.done():
            response.head.set_result(None)

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        if self._response is None:
            return
        if self._response.fed(body) > _BUFFERED_BYTES and self._transport is not None and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        response = self._response
        if response is None or response.status < 200:
            return
        keep = response.bounded and self._parser.should_keep_alive()
        response.ended(None)
        self._response = self._draft = None
        if keep and not self._paused:
            self._client.give_back(self)
        elif self._transport is not None:
            self._transport.close()

    def drained(self, waiting: int) -> None:
        """Some of the body was taken."""
        if self._paused and waiting <= _BUFFERED_BYTES // 2 and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()

    def eof_received(self) -> bool:
        response = self._response
        if response is not None and response.status >= 200 and not response.bounded:
            response.ended(None)
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._client.lost(self)
        if self._response is not None:
            self._response.ended(BrokenError(_why(error)))
            self._response = None

    def _break(self, text: str) -> None:
        if self._response is not None:
            self._response.ended(BrokenError(text))
        self.abort()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()


class Client:
    """Requests to one origin; `tls` for https."""

    def __init__(self, origin: Origin, tls: ssl.SSLContext | None) -> None:
        self.origin = origin
        self._tls = tls
        self._idle: list[_Connection] = []
        self._all: set[_Connection] = set()
        self._loop = asyncio.get_running_loop()

    async def request(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        repeatable: bool = True,
    ) -> Response:
        """Send one request; returns with the head of its answer.

        One that is `repeatable` is sent again if a kept connection turns out to have been closed.

        Raises:
            NotSentError: the server has not heard of it.
            BrokenError: it may have.

        """
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self.origin.authority}", "Accept-Encoding: identity"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        data = "\r\n".join((*lines, "", "")).encode("latin-1") + (body or b"")
        kept = self._kept()
        if kept is not None:
            try:
                return await _sent(kept, data)
            except BrokenError:
                if kept.heard or not repeatable:
                    raise
        return await _sent(await self._connect(), data)

    def _kept(self) -> _Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.expiry is not None:
                connection.expiry.cancel()
            if connection.usable:
                return connection
        return None

    async def _connect(self) -> _Connection:
        origin, tls = self.origin, self._tls if self.origin.scheme == "https" else None
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                _, connection = await self._loop.create_connection(
                    lambda: _Connection(self),
                    origin.host,
                    origin.port,
                    ssl=tls,
                    server_hostname=origin.host if tls else None,
                )
        except TimeoutError as error:
            raise NotSentError(f"no connection within {CONNECT_SECONDS:g} seconds") from error
        except OSError as error:  # also of TLS, and names that are not known
            raise NotSentError(_why(error)) from error
        except ValueError as error:  # of IDNA, and of TLS
            raise NotSentError(f"{origin.host!r} is no host's name: correct spec.remote.url") from error
        self._all.add(connection)
        return connection

    def give_back(self, connection: _Connection) -> None:
        """A connection may be used again."""
        if len(self._idle) >= MAX_IDLE:
            connection.abort()
            return
        connection.expiry = self._loop.call_later(IDLE_SECONDS, self._expired, connection)
        self._idle.append(connection)

    def _expired(self, connection: _Connection) -> None:
        if connection in self._idle:
            self._idle.remove(connection)
            connection.abort()

    def lost(self, connection: _Connection) -> None:
        """A connection ended."""
        self._all.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
            if connection.expiry is not None:
                connection.expiry.cancel()

    def close(self) -> None:
        """Drop all connections."""
        for connection in list(self._all):
            if connection.expiry is not None:
                connection.expiry.cancel()
            connection.abort()


async def _sent(connection: _Connection, data: bytes) -> Response:
    response = connection.send(data)
    try:
        await response.head
    except BaseException:
        response.close()  # not the connection, which may have its next request already
        raise
    return response


def context(ca_file: str) -> ssl.SSLContext:
    """What makes a server's certificate valid: the system's CAs, and those in the file.

    Raises:
        OSError: the file cannot be read, or holds no certificate.

    """
    made = ssl.create_default_context()
    if ca_file:
        made.load_verify_locations(ca_file)
    return made


def _why(error: BaseException | None) -> str:
    if error is None:
        return "the connection was closed"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
