"""HTTP+SSE, the transport of revision 2024-11-05, for clients that know no other: off unless asked for.

`GET /sse` opens a stream whose first event names the place for messages; each `POST` there is answered 202,
and what is to be said comes on the stream. The session ends with the stream.
"""

import asyncio
import contextlib
import secrets
from collections.abc import Iterator
from urllib.parse import parse_qs

from mcp_sidecar.core import frames, readings, tracing
from mcp_sidecar.core.httptext import Reply
from mcp_sidecar.session.calls import Call, Outbox, Parts, RefusedError
from mcp_sidecar.session.clients import Client
from mcp_sidecar.session.guard import Visit
from mcp_sidecar.session.relay import Relay
from mcp_sidecar.web import replies, streams
from mcp_sidecar.web.admission import Admission
from mcp_sidecar.web.exchange import Exchange

STREAM_PATH, MESSAGES_PATH = b"/sse", b"/messages"
_KEY_BYTES = 24
_ACCEPTED = Reply(202)


class _Channel(Outbox):
    """A call's events, which go on the one stream of the client."""

    __slots__ = ("_stream",)

    def __init__(self, stream: Outbox) -> None:
        super().__init__()
        self._stream = stream

    def put(self, parts: Parts) -> bool:
        """Send an event; one without content would only keep the stream open, which cares for itself."""
        return self._stream.put(parts) if parts else True


class _Stream:
    """One client's stream, and its session once it said `initialize`."""

    def __init__(self, subject: str) -> None:
        self.subject = subject
        self.outbox = Outbox()
        self.client: Client | None = None
        self.beginning: set[asyncio.Task[tuple[str, bytes]]] = set()
        """Tasks that open its session."""


class SseEndpoint:
    """Serves the two paths."""

    def __init__(self, relay: Relay, admission: Admission) -> None:
        self._relay = relay
        self._admission = admission
        self._streams: dict[str, _Stream] = {}

    def open(self, exchange: Exchange) -> None:
        """Open a stream."""
        exchange.spawn(self._serve(exchange))

    async def _serve(self, exchange: Exchange) -> None:
        key, stream = secrets.token_urlsafe(_KEY_BYTES), _Stream(exchange.head.subject)
        self._streams[key] = stream
        place = b"event: endpoint\ndata: %b?sessionId=%b\n\n" % (MESSAGES_PATH, key.encode())
        try:
            if not await streams.session(stream.outbox, exchange, place):
                self._relay.metrics.count("mcp_relay_streams_dropped", "session")
        finally:
            del self._streams[key]
            stream.outbox.close()
            for task in stream.beginning:
                task.cancel()
            if stream.client is not None:
                stream.client.home.end(stream.client)

    def message(self, exchange: Exchange) -> None:
        """Take a message."""
        query = parse_qs(exchange.head.query.decode("latin-1"))
        stream = self._streams.get(query.get("sessionId", [""])[0])
        if stream is None or stream.subject != exchange.head.subject:
            self._relay.metrics.count("mcp_relay_requests_refused", "session_not_found")
            gone = frames.error(frames.NULL, frames.SERVER_ERROR, "Session not found. Open a new stream.")
            exchange.reply(Reply(404, gone))
            return
        try:
            frame = readings.parse(exchange.body)
        except frames.FrameError as error:
            self._relay.metrics.count("mcp_relay_requests_refused", "invalid")
            exchange.reply(Reply(400, frames.error(error.raw_id, error.code, str(error))))
            return
        if frame.kind is frames.REQUEST:
            self._request(exchange, stream, frame)
            return
        exchange.reply(_ACCEPTED)
        if stream.client is not None:
            stream.client.home.tell(stream.client, frame)

    def _request(self, exchange: Exchange, stream: _Stream, frame: frames.Frame) -> None:
        try:
            self._admission.enter(exchange, frame, stream.subject, stream.client.key if stream.client else "")
        except RefusedError as refusal:
            replies.refuse(exchange, refusal, frame.raw_id)
            return
        if tracing.PARENT in exchange.head.headers:
            frame = self._relay.traced(frame, exchange.head.headers)
        visit, exchange.visit = exchange.visit, None
        exchange.reply(_ACCEPTED)
        if stream.client is not None and stream.client.home.open:
            with _ended_by_errors(visit):
                self._call(stream, stream.client, frame, visit)
        else:
            exchange.spawn(self._later(stream, frame, visit))

    async def _later(self, stream: _Stream, frame: frames.Frame, visit: Visit | None) -> None:
        """Serve `initialize`, or what came before the server could be used."""
        with _ended_by_errors(visit):
            await self._served(stream, frame, visit)

    async def _served(self, stream: _Stream, frame: frames.Frame, visit: Visit | None) -> None:
        try:
            if frame.method == "initialize":
                sid, body = await self._opened(stream, frame)
                self._begin(stream, sid)
                stream.outbox.put((body,))
                if visit is not None:
                    visit.ended("ok", len(body))
                return
            await (self._relay if stream.client is None else stream.client.home).opened()
        except RefusedError as refusal:
            _refuse(stream, frame, refusal, visit)
            return
        if stream.client is None:
            early = RefusedError(frames.INVALID_REQUEST, "Invalid request: send initialize first")
            _refuse(stream, frame, early, visit)
        else:
            self._call(stream, stream.client, frame, visit)

    async def _opened(self, stream: _Stream, frame: frames.Frame) -> tuple[str, bytes]:
        """Open a session, unless the stream ends before that: nobody would have a use for it."""
        opening = asyncio.create_task(self._relay.initialize(frame, stream.subject))
        stream.beginning.add(opening)
        try:
            return await opening
        finally:
            stream.beginning.discard(opening)

    def _begin(self, stream: _Stream, sid: str) -> None:
        client = self._relay.find(sid, stream.subject)
        if client is None:
            return
        if stream.outbox.closed:  # the client went while it waited
            client.home.end(client)
            return
        if stream.client is not None:
            stream.client.home.end(stream.client)
        client.stream = stream.outbox
        stream.client = client

    def _call(self, stream: _Stream, client: Client, frame: frames.Frame, visit: Visit | None) -> None:
        try:
            call = client.home.call(client, frame, sse=True)
        except RefusedError as refusal:
            _refuse(stream, frame, refusal, visit)
            return
        if visit is not None:
            visit.follow(call)
        call.outbox = _Channel(stream.outbox)
        self._watch(stream, call)

    def _watch(self, stream: _Stream, call: Call) -> None:
        """Send the answer when it is there; what comes before it is sent at once."""
        if call.answer is None:
            call.watcher = lambda: self._watch(stream, call)
        else:
            stream.outbox.put(call.answer)
            self._relay.finished(call)


@contextlib.contextmanager
def _ended_by_errors(visit: Visit | None) -> Iterator[None]:
    """Once its exchange was answered nobody else knows of the visit: whatever goes wrong ends it."""
    try:
        yield
    except BaseException as error:
        if visit is not None:
            visit.ended("cancelled" if isinstance(error, asyncio.CancelledError) else "failed")
        raise


def _refuse(stream: _Stream, frame: frames.Frame, refusal: RefusedError, visit: Visit | None) -> None:
    stream.outbox.put((refusal.body(frame.raw_id),))
    if visit is not None:
        visit.ended("refused", code=refusal.code)
