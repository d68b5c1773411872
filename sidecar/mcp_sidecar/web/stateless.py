"""The endpoint `/mcp` for clients without sessions: every request stands for itself."""

from collections.abc import Callable

from mcp_sidecar.core import access, frames, readings, tracing
from mcp_sidecar.core.httptext import Reply
from mcp_sidecar.core.modern import envelope, errors, methods
from mcp_sidecar.core.modern.envelope import Envelope
from mcp_sidecar.core.modern.errors import RejectionError
from mcp_sidecar.session.calls import RefusedError
from mcp_sidecar.session.modern.calls import RETRY_AFTER_SECONDS, ModernCall, translated
from mcp_sidecar.session.relay import Relay
from mcp_sidecar.web import admission, replies, streams
from mcp_sidecar.web.admission import Admission
from mcp_sidecar.web.exchange import Exchange

_ACCEPTED = Reply(202)
_REVISIONS = frozenset(revision.encode() for revision in envelope.REVISIONS)


class StatelessEndpoint:
    """Serves POST requests whose version header names no revision with sessions."""

    def __init__(
        self,
        relay: Relay,
        gate: Admission,
        accepts: Callable[[bytes | None], frozenset[str]],
        foreign: Callable[[bytes], Reply],
    ) -> None:
        self._relay = relay
        self._admission = gate
        self._accepts = accepts
        self._foreign = foreign
        """The reply to a revision that is known to neither kind of client."""

    def post(self, exchange: Exchange) -> None:
        """Serve one message."""
        version = exchange.head.headers.get(b"mcp-protocol-version", b"")
        try:
            frame = readings.parse(exchange.body)
        except frames.FrameError as error:
            self._count("invalid")
            reply = frames.error(error.raw_id, error.code, str(error))
            exchange.reply(Reply(errors.status(error.code), reply))
            return
        if version not in _REVISIONS and not envelope.is_modern(frame.params):
            exchange.reply(self._foreign(version))
        elif frame.kind is frames.REQUEST:
            self._request(exchange, frame)
        elif frame.kind is frames.NOTIFICATION:
            self._notification(exchange, frame)
        else:
            self._count("invalid")
            text = "Invalid request: clients send requests and notifications only"
            exchange.reply(Reply(400, frames.error(frames.NULL, frames.INVALID_REQUEST, text)))

    def _notification(self, exchange: Exchange, frame: frames.Frame) -> None:
        try:
            self._relay.commons().stateless.notification(frame)
        except RefusedError as refusal:
            self._refuse(exchange, refusal, frames.NULL)
            return
        exchange.reply(_ACCEPTED)

    def _request(self, exchange: Exchange, frame: frames.Frame) -> None:
        kinds = self._accepts(exchange.head.headers.get(b"accept"))
        if frame.method == methods.LISTEN and access.SSE not in kinds:
            self._count("accept")
            text = "Not acceptable: accept text/event-stream"
            exchange.reply(Reply(406, frames.error(frame.raw_id, frames.INVALID_REQUEST, text)))
            return
        try:
            self._admission.enter(exchange, frame, exchange.head.subject)
            said = envelope.check(frame, exchange.head.headers)
        except RefusedError as refusal:
            self._refuse(exchange, refusal, frame.raw_id)
            return
        except RejectionError as rejection:
            self._reject(exchange, rejection, frame)
            return
        if tracing.PARENT in exchange.head.headers:
            frame = self._relay.traced(frame, exchange.head.headers)
        try:
            relay = self._relay.commons()
        except RefusedError as refusal:
            self._refuse(exchange, refusal, frame.raw_id)
            return
        if relay.open:
            self._call(exchange, relay, frame, said, kinds)
        else:
            exchange.defer(self._call_when_open(exchange, relay, frame, said, kinds))

    async def _call_when_open(
        self, exchange: Exchange, relay: Relay, frame: frames.Frame, said: Envelope, kinds: frozenset[str]
    ) -> None:
        try:
            with replies.cancelled_when_gone(exchange):
                await relay.opened()
        except RefusedError as refusal:
            self._refuse(exchange, refusal, frame.raw_id)
            return
        self._call(exchange, relay, frame, said, kinds)

    def _call(
        self, exchange: Exchange, relay: Relay, frame: frames.Frame, said: Envelope, kinds: frozenset[str]
    ) -> None:
        try:
            call = relay.stateless.request(
                frame, said, exchange.head.subject, exchange.head.headers, sse=access.SSE in kinds
            )
        except RefusedError as refusal:
            self._refuse(exchange, refusal, frame.raw_id)
            return
        except RejectionError as rejection:
            self._reject(exchange, rejection, frame)
            return
        admission.follow(exchange, call)
        # To close the connection is the way to cancel.
        exchange.on_gone = lambda: relay.stateless.gone(call)
        json = access.JSON in kinds
        call.room = exchange.take_reply
        call.watch(lambda: self._reply(exchange, call, json=json))

    def _reply(self, exchange: Exchange, call: ModernCall, *, json: bool) -> None:
        """The call has its answer, or an event to send before it."""
        if call.outbox is not None or call.answer is None or not json:
            exchange.spawn(self._stream(exchange, call))
            return
        exchange.on_gone = None
        self._relay.finished(call)
        if call.status == 200:
            replies.answer(exchange, call.answer)
        else:
            exchange.reply(Reply(call.status, b"".join(call.answer)))

    async def _stream(self, exchange: Exchange, call: ModernCall) -> None:
        if not await streams.reply(call, exchange):
            self._relay.metrics.count("mcp_relay_streams_dropped", "call")
        self._relay.finished(call)

    def _refuse(self, exchange: Exchange, refusal: RefusedError, raw_id: bytes) -> None:
        self._count("answered_by_relay")
        told = translated(refusal)
        if told.status == 503:
            told.retry_after = RETRY_AFTER_SECONDS
        replies.refuse(exchange, told, raw_id)

    def _reject(self, exchange: Exchange, rejection: RejectionError, frame: frames.Frame) -> None:
        self._count("answered_by_relay")
        admission.end(exchange, "refused", code=rejection.code)
        exchange.reply(Reply(errors.status(rejection.code), rejection.body(frame.raw_id)))

    def _count(self, reason: str) -> None:
        self._relay.metrics.count("mcp_relay_requests_refused", reason)
