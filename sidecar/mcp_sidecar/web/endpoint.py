"""The endpoint `/mcp`: Streamable HTTP for clients with sessions."""

import hmac
from collections.abc import Callable

from mcp_relay_api import paths
from mcp_sidecar.core import access, frames, revisions
from mcp_sidecar.core.machine import State
from mcp_sidecar.session.calls import Call, RefusedError
from mcp_sidecar.session.clients import Client
from mcp_sidecar.session.relay import Relay
from mcp_sidecar.web import replies, streams
from mcp_sidecar.web.replies import Headers, Receive, Scope, Send

_ALLOW = [(b"allow", b"GET, POST, DELETE")]
_CHALLENGE = [(b"www-authenticate", b'Bearer realm="mcp"')]
_UNAUTHORIZED = b'{"error":"Unauthorized"}'
_CACHE = 512
_JSON_TYPE = b"application/json"
_NOT_FOUND = "Not found: the MCP endpoint is at /mcp"


class Endpoint:
    """ASGI application of the port for clients."""

    def __init__(self, relay: Relay) -> None:
        settings = relay.settings
        self._relay = relay
        self._token = settings.token
        self._expected = b"Bearer " + (settings.token or b"")
        self._subject = "anonymous" if settings.token is None else "bearer"
        self._limit = settings.max_message_bytes
        self._hosts = access.HostRules(settings.allowed_hosts)
        # The same few header values come with every request; what was decided about them is kept.
        self._host_cache: dict[tuple[bytes | None, bytes | None], str | None] = {}
        self._accept_cache: dict[bytes | None, frozenset[str]] = {}
        self._revisions = {revision.encode() for revision in revisions.LEGACY}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        headers: Headers = dict(scope["headers"])
        if self._token is not None and not self._authorized(headers.get(b"authorization")):
            await self._refused(send, 401, "unauthorized")
            return
        key = (headers.get(b"host"), headers.get(b"origin"))
        foreign = self._host_cache[key] if key in self._host_cache else self._check_host(key)
        if foreign is not None:
            await self._refused(send, 403, "host_or_origin", f"Forbidden: {foreign}")
        elif scope["path"] != paths.MCP_PATH:
            await self._refused(send, 404, "path", _NOT_FOUND)
        else:
            await self._route(scope, headers, receive, send)

    async def _route(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        method = scope["method"]
        version = headers.get(b"mcp-protocol-version")
        if method not in ("POST", "GET", "DELETE"):
            await self._refused(send, 405, "method", "Method not allowed", _ALLOW)
        elif version is not None and version not in self._revisions:
            known = ", ".join(revisions.LEGACY)
            shown = version[:64].decode("latin-1")
            await self._refused(
                send, 400, "version", f"Bad request: protocol version {shown!r} is none of {known}"
            )
        elif method == "POST":
            await self._post(scope, headers, receive, send)
        else:
            client = await self._client(headers, send, frames.NULL)
            if client is not None and method == "GET":
                await self._get(client, scope, headers, receive, send)
            elif client is not None:
                self._relay.end(client)
                await replies.plain(send, 200)

    def _authorized(self, header: bytes | None) -> bool:
        if header is not None and hmac.compare_digest(header, self._expected):
            return True
        return access.bearer_ok(header, self._token or b"")

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

    async def _refused(
        self,
        send: Send,
        status: int,
        reason: str,
        text: str = "",
        headers: list[tuple[bytes, bytes]] | None = None,
    ) -> None:
        self._relay.metrics.count("mcp_relay_requests_refused", reason)
        if status == 401:
            await replies.plain(send, 401, _UNAUTHORIZED, _CHALLENGE)
        else:
            await replies.refuse(send, status, text, headers=headers or ())

    async def _client(self, headers: Headers, send: Send, raw_id: bytes) -> Client | None:
        """The session the request belongs to; None: the reply was an error."""
        sid = headers.get(b"mcp-session-id")
        if sid is None:
            await self._refused(send, 400, "no_session", "Bad request: the header Mcp-Session-Id is missing")
            return None
        try:
            client = self._relay.find(sid.decode("latin-1"), self._subject)
        except RefusedError as refusal:
            await replies.plain(send, refusal.status, refusal.body(raw_id))
            return None
        if client is None:
            self._relay.metrics.count("mcp_relay_requests_refused", "session_not_found")
            await replies.plain(send, 404, self._relay.session_gone(raw_id))
        return client

    async def _post(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        kinds = self._accepts(headers.get(b"accept"))
        if not kinds:
            await self._refused(
                send, 406, "accept", "Not acceptable: accept application/json and text/event-stream"
            )
            return
        content_type = headers.get(b"content-type")
        if content_type != _JSON_TYPE and not access.is_json(content_type):
            await self._refused(send, 415, "content_type", "Unsupported media type: send application/json")
            return
        try:
            body = await replies.read_body(receive, headers, self._limit)
        except ConnectionResetError:
            return
        if body is None:
            text = f"Content too large: a message may have {self._limit} bytes"
            await self._refused(send, 413, "too_large", text)
            return
        try:
            frame = frames.parse(body)
        except frames.FrameError as error:
            self._relay.metrics.count("mcp_relay_requests_refused", "invalid")
            await replies.plain(send, 400, frames.error(error.raw_id, error.code, str(error)))
            return
        await self._frame(frame, kinds, scope, headers, send)

    async def _frame(
        self, frame: frames.Frame, kinds: frozenset[str], scope: Scope, headers: Headers, send: Send
    ) -> None:
        if frame.method == "initialize" and frame.kind is frames.Kind.REQUEST:
            await self._initialize(frame, send)
            return
        is_request = frame.kind is frames.Kind.REQUEST
        client = await self._client(headers, send, frame.raw_id if is_request else frames.NULL)
        if client is None:
            return
        if not is_request:
            self._relay.tell(client, frame)
            await replies.plain(send, 202)
            return
        try:
            call = await self._relay.call(client, frame, sse=access.SSE in kinds)
        except RefusedError as refusal:
            self._relay.metrics.count("mcp_relay_requests_refused", "answered_by_relay")
            await replies.plain(send, refusal.status, refusal.body(frame.raw_id))
            return
        await self._reply(call, kinds, scope, send)

    async def _reply(self, call: Call, kinds: frozenset[str], scope: Scope, send: Send) -> None:
        if call.answer is None:
            await call.waiter
        if call.outbox is None and access.JSON in kinds:
            self._relay.finished(call)
            await replies.answer(send, call.answer or ())
            return
        if not await streams.reply(call, send, _abort(scope)):
            self._relay.metrics.count("mcp_relay_streams_dropped", "call")
        self._relay.finished(call)

    async def _initialize(self, frame: frames.Frame, send: Send) -> None:
        try:
            sid, body = await self._relay.initialize(frame, self._subject)
        except RefusedError as refusal:
            await replies.plain(send, refusal.status, refusal.body(frame.raw_id))
            return
        await replies.plain(send, 200, body, [(b"mcp-session-id", sid.encode())])

    async def _get(
        self, client: Client, scope: Scope, headers: Headers, receive: Receive, send: Send
    ) -> None:
        if access.SSE not in self._accepts(headers.get(b"accept")):
            await self._refused(send, 406, "accept", "Not acceptable: accept text/event-stream")
            return
        if self._relay.upstream.state is State.TERMINATING:
            await self._refused(send, 503, "terminating", "The server is shutting down")
            return
        outbox = self._relay.open_stream(client)
        try:
            if not await streams.session(outbox, receive, send, _abort(scope)):
                self._relay.metrics.count("mcp_relay_streams_dropped", "session")
        finally:
            self._relay.close_stream(client, outbox)


def _abort(scope: Scope) -> Callable[[], None]:
    abort: Callable[[], None] = scope.get("extensions", {}).get(replies.ABORT, lambda: None)
    return abort
