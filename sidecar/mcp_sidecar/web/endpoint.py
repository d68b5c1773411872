"""The endpoint `/mcp`: Streamable HTTP for clients with sessions; the others are passed on."""

import time
from typing import TYPE_CHECKING

from mcp_relay_api import paths
from mcp_sidecar.core import access, frames, readings, revisions, tracing
from mcp_sidecar.core.httptext import Head, Reply
from mcp_sidecar.core.machine import State
from mcp_sidecar.core.modern import envelope, errors
from mcp_sidecar.session.calls import Call, RefusedError
from mcp_sidecar.session.clients import Client
from mcp_sidecar.session.relay import Relay
from mcp_sidecar.web import admission, replies, streams
from mcp_sidecar.web.admission import Admission
from mcp_sidecar.web.entrance import BearerEntrance, Entrance, OpenEntrance
from mcp_sidecar.web.exchange import Exchange
from mcp_sidecar.web.sse import MESSAGES_PATH, STREAM_PATH, SseEndpoint
from mcp_sidecar.web.stateless import StatelessEndpoint
from mcp_sidecar.web.tokens import Tokens

if TYPE_CHECKING:
    from mcp_sidecar.web.keyring import Keyring

_FIELDS = {405: [(b"allow", b"GET, POST, DELETE")], 503: [(b"retry-after", b"1")]}
_STRANGERS = {401: "unauthorized", 403: "subject", 503: "no_keys"}
_CACHE = 512
_JSON_TYPE = b"application/json"
_PATH = paths.MCP_PATH.encode()
_NOT_FOUND = "Not found: the MCP endpoint is at /mcp"
_ACCEPTED = Reply(202)


class Endpoint:
    """Application of the port for clients."""

    def __init__(self, relay: Relay, keyring: "Keyring | None" = None) -> None:
        """`keyring` has the issuer's keys where clients have tokens of one."""
        settings = relay.settings
        self.body_limit = settings.max_message_bytes
        self._relay = relay
        self._entrance = self._made_entrance(keyring)
        self._admission = Admission(relay, shared=settings.jwt is None)
        self._hosts = access.HostRules(settings.allowed_hosts)
        # The same few header values come with every request; what was decided about them is kept.
        self._host_cache: dict[tuple[bytes | None, bytes | None], str | None] = {}
        self._accept_cache: dict[bytes | None, frozenset[str]] = {}
        self._modern = {revision.encode() for revision in envelope.REVISIONS}
        self._stateless = StatelessEndpoint(relay, self._admission, self._accepts, self._foreign)
        sse = SseEndpoint(relay, self._admission)
        self._others = {path: (b"GET", serve) for path, serve in self._entrance.public.items()}
        if settings.http_sse:
            self._others |= {STREAM_PATH: (b"GET", sse.open), MESSAGES_PATH: (b"POST", sse.message)}
        self._revisions = {revision.encode() for revision in revisions.LEGACY}

    def _made_entrance(self, keyring: "Keyring | None") -> Entrance:
        settings = self._relay.settings
        if settings.jwt is not None and keyring is not None:
            from mcp_sidecar.web.issued import IssuedEntrance  # its libraries cost memory

            return IssuedEntrance(settings.jwt, keyring, settings.server_name, self._misaddressed)
        if settings.token is not None:
            return BearerEntrance(Tokens(settings.token, settings.token_file, time.monotonic))
        return OpenEntrance()

    # Before the body is read.

    def refusal(self, head: Head) -> Reply | None:
        """Why a request may not pass; None when it may."""
        stranger = self._entrance.admit(head)
        if stranger is not None:
            self._relay.metrics.count("mcp_relay_requests_refused", _STRANGERS[stranger.status])
            return stranger
        foreign = self._host_problem(head)
        if foreign is not None:
            return self.problem(403, "host_or_origin", f"Forbidden: {foreign}")
        if head.path != _PATH:
            other = self._others.get(head.path)
            if other is None:
                return self.problem(404, "path", _NOT_FOUND)
            if head.method != other[0]:
                return self.problem(405, "method", "Method not allowed")
            return None
        return self._unfit(head)

    def changed(self) -> bool:
        """Whether tokens or keys came or went since this was asked last."""
        return self._entrance.changed()

    def _unfit(self, head: Head) -> Reply | None:
        method, headers = head.method, head.headers
        version = headers.get(b"mcp-protocol-version")
        if method not in (b"POST", b"GET", b"DELETE"):
            return self.problem(405, "method", "Method not allowed")
        if method == b"POST":
            return self._unfit_post(head)
        if version is not None and version not in self._revisions:
            if version in self._modern:
                return self.problem(405, "method", "Method not allowed: this revision has POST only")
            return self._foreign(version)
        return None

    def _foreign(self, version: bytes) -> Reply:
        known = ", ".join((*revisions.LEGACY, *envelope.REVISIONS))
        shown = version[:64].decode("latin-1")
        return self.problem(400, "version", f"Bad request: protocol version {shown!r} is none of {known}")

    def _unfit_post(self, head: Head) -> Reply | None:
        headers = head.headers
        if not self._accepts(headers.get(b"accept")):
            text = "Not acceptable: accept application/json and text/event-stream"
            return self.problem(406, "accept", text)
        content_type = headers.get(b"content-type")
        if content_type != _JSON_TYPE and not access.is_json(content_type):
            return self.problem(415, "content_type", "Unsupported media type: send application/json")
        return None

    def _host_problem(self, head: Head) -> str | None:
        key = (head.headers.get(b"host"), head.headers.get(b"origin"))
        return self._host_cache[key] if key in self._host_cache else self._check_host(key)

    def _misaddressed(self, head: Head) -> bool:
        return self._host_problem(head) is not None

    def _check_host(self, key: tuple[bytes | None, bytes | None]) -> str | None:
        if len(self._host_cache) >= _CACHE:
            self._host_cache.clear()
        verdict = self._host_cache[key] = self._hosts.refusal(*key)
        return verdict

    def _accepts(self, header: bytes | None) -> frozenset[str]:
        kinds = self._accept_cache.get(header)
        if kinds is None:
            if len(self._accept_cache) >= _CACHE:
                self._accept_cache.clear()
            kinds = self._accept_cache[header] = access.accepted(header)
        return kinds

    def problem(self, status: int, reason: str, text: str) -> Reply:
        """A refusal, counted; its body is a JSON-RPC error without id."""
        self._relay.metrics.count("mcp_relay_requests_refused", reason)
        body = frames.error(frames.NULL, frames.SERVER_ERROR, text)
        return Reply(status, body, _FIELDS.get(status, ()))

    # With the body.

    def serve(self, exchange: Exchange) -> None:
        """Serve a request that was not refused."""
        head = exchange.head
        method = head.method
        if head.expires and time.time() >= head.expires:  # let in long ago, by the same head
            self._relay.metrics.count("mcp_relay_requests_refused", _STRANGERS[401])
            exchange.reply(self._entrance.expired(head))
            return
        if head.path != _PATH:
            self._others[head.path][1](exchange)
            return
        if method == b"POST":
            self._post(exchange)
            return
        client = self._client(exchange, frames.NULL)
        if client is not None and method == b"GET":
            self._get(client, exchange)
        elif client is not None:
            client.home.end(client)
            exchange.reply(Reply(200))

    def _client(self, exchange: Exchange, raw_id: bytes) -> Client | None:
        """The session the request belongs to; None: the reply was an error."""
        head = exchange.head
        if isinstance(head.memo, Client) and self._relay.alive(head.memo):
            return head.memo
        sid = head.headers.get(b"mcp-session-id")
        if sid is None:
            if envelope.VERSION_KEY.encode() in exchange.body:
                self._relay.metrics.count("mcp_relay_requests_refused", "answered_by_relay")
                text = "Header mismatch: MCP-Protocol-Version is missing"
                exchange.reply(Reply(400, frames.error(raw_id, errors.HEADER_MISMATCH, text)))
                return None
            text = "Bad request: the header Mcp-Session-Id is missing"
            exchange.reply(self.problem(400, "no_session", text))
            return None
        try:
            client = self._relay.find(sid.decode("latin-1"), head.subject)
        except RefusedError as refusal:
            replies.refuse(exchange, refusal, raw_id)
            return None
        if client is None:
            self._relay.metrics.count("mcp_relay_requests_refused", "session_not_found")
            gone = self._relay.session_gone()
            exchange.reply(Reply(gone.status, gone.body(raw_id)))
        head.memo = client
        return client

    def _post(self, exchange: Exchange) -> None:
        version = exchange.head.headers.get(b"mcp-protocol-version")
        if version is not None and version not in self._revisions:
            self._stateless.post(exchange)
            return
        try:
            frame = readings.parse(exchange.body)
        except frames.FrameError as error:
            self._relay.metrics.count("mcp_relay_requests_refused", "invalid")
            exchange.reply(Reply(400, frames.error(error.raw_id, error.code, str(error))))
            return
        is_request = frame.kind is frames.REQUEST
        if is_request and frame.method == "initialize":
            if self._admit(exchange, frame, exchange.head.subject):
                exchange.defer(self._initialize(exchange, frame))
            return
        client = self._client(exchange, frame.raw_id if is_request else frames.NULL)
        if client is None:
            return
        if is_request:
            self._request(exchange, client, frame)
        else:
            client.home.tell(client, frame)
            exchange.reply(_ACCEPTED)

    def _request(self, exchange: Exchange, client: Client, frame: frames.Frame) -> None:
        if self._relay.guard is not None and not self._admit(exchange, frame, client.subject, client.key):
            return
        if tracing.PARENT in exchange.head.headers:
            frame = self._relay.traced(frame, exchange.head.headers)
        if client.home.open:
            self._call(exchange, client, frame)
        else:
            exchange.defer(self._call_when_open(exchange, client, frame))

    def _admit(self, exchange: Exchange, frame: frames.Frame, subject: str, session: str = "") -> bool:
        """Whether limits let the request pass; if not, the reply was an error."""
        try:
            self._admission.enter(exchange, frame, subject, session)
        except RefusedError as refusal:
            self._refuse(exchange, refusal, frame)
            return False
        return True

    async def _call_when_open(self, exchange: Exchange, client: Client, frame: frames.Frame) -> None:
        try:
            await client.home.opened()
        except RefusedError as refusal:
            self._refuse(exchange, refusal, frame)
            return
        self._call(exchange, client, frame)

    def _call(self, exchange: Exchange, client: Client, frame: frames.Frame) -> None:
        kinds = self._accepts(exchange.head.headers.get(b"accept"))
        try:
            call = client.home.call(client, frame, sse=access.SSE in kinds)
        except RefusedError as refusal:
            self._refuse(exchange, refusal, frame)
            return
        admission.follow(exchange, call)
        exchange.on_gone = call.deserted
        if exchange.gone:
            call.deserted()
        json = access.JSON in kinds
        call.room = exchange.take_reply
        call.watch(lambda: self._reply(exchange, call, json=json))

    def _refuse(self, exchange: Exchange, refusal: RefusedError, frame: frames.Frame) -> None:
        self._relay.metrics.count("mcp_relay_requests_refused", "answered_by_relay")
        replies.refuse(exchange, refusal, frame.raw_id)

    def _reply(self, exchange: Exchange, call: Call, *, json: bool) -> None:
        """The call has its answer, or an event to send before it."""
        if call.outbox is None and call.answer is not None and json:
            self._relay.finished(call)
            replies.answer(exchange, call.answer)
        else:
            exchange.spawn(self._stream(exchange, call))

    async def _stream(self, exchange: Exchange, call: Call) -> None:
        if not await streams.reply(call, exchange):
            self._relay.metrics.count("mcp_relay_streams_dropped", "call")
        self._relay.finished(call)

    async def _initialize(self, exchange: Exchange, frame: frames.Frame) -> None:
        """Open a session; a client that goes before it is open has no use for one, nor for a process."""
        try:
            with replies.cancelled_when_gone(exchange):
                sid, body = await self._relay.initialize(frame, exchange.head.subject)
        except RefusedError as refusal:
            replies.refuse(exchange, refusal, frame.raw_id)
            return
        admission.end(exchange, "ok", len(body))
        exchange.reply(Reply(200, body, [(b"mcp-session-id", sid.encode())]))

    def _get(self, client: Client, exchange: Exchange) -> None:
        if access.SSE not in self._accepts(exchange.head.headers.get(b"accept")):
            exchange.reply(self.problem(406, "accept", "Not acceptable: accept text/event-stream"))
        elif self._relay.upstream.state is State.TERMINATING:
            exchange.reply(self.problem(503, "terminating", "The server is shutting down"))
        else:
            exchange.spawn(self._session(client, exchange))

    async def _session(self, client: Client, exchange: Exchange) -> None:
        outbox = self._relay.open_stream(client)
        try:
            if not await streams.session(outbox, exchange):
                self._relay.metrics.count("mcp_relay_streams_dropped", "session")
        finally:
            self._relay.close_stream(client, outbox)
