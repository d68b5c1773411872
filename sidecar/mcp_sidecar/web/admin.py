"""The port for the operator and the kubelet: health, readiness, metrics, status, reconnect."""

from urllib.parse import parse_qs

from mcp_relay_api import paths
from mcp_sidecar.core import access
from mcp_sidecar.core.machine import State
from mcp_sidecar.session.relay import Relay
from mcp_sidecar.web import replies
from mcp_sidecar.web.replies import Receive, Scope, Send

MAX_WAIT_SECONDS = 300.0
_TEXT = [(b"content-type", b"text/plain; charset=utf-8")]


class Admin:
    """ASGI application of the admin port."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._routes = {
            ("GET", paths.HEALTH_PATH): self._health,
            ("GET", paths.READY_PATH): self._ready,
            ("GET", paths.METRICS_PATH): self._metrics,
            ("GET", paths.STATUS_PATH): self._status,
            ("POST", paths.RECONNECT_PATH): self._reconnect,
        }
        self._guarded = {paths.STATUS_PATH, paths.RECONNECT_PATH}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        path, method = scope["path"], scope["method"]
        if path in self._guarded and not self._authorized(scope):
            challenge = [(b"www-authenticate", b'Bearer realm="admin"')]
            await replies.plain(send, 401, b'{"error":"Unauthorized"}', challenge)
            return
        handler = self._routes.get(("GET" if method == "HEAD" else method, path))
        if handler is not None:
            await handler(scope, send)
        elif any(path == known for _, known in self._routes):
            await replies.plain(send, 405, b'{"error":"Method not allowed"}')
        else:
            await replies.plain(send, 404, b'{"error":"Not found"}')

    def _authorized(self, scope: Scope) -> bool:
        header = dict(scope["headers"]).get(b"authorization")
        return access.bearer_ok(header, self._relay.settings.admin_token)

    async def _health(self, _scope: Scope, send: Send) -> None:
        await replies.plain(send, 200, b'{"status":"ok"}')

    async def _ready(self, _scope: Scope, send: Send) -> None:
        state = self._relay.upstream.state
        body = b'{"state":"%b"}' % state.value.encode()
        await replies.plain(send, 200 if state is State.CONNECTED else 503, body)

    async def _metrics(self, _scope: Scope, send: Send) -> None:
        self._relay.observe()
        text, kind = self._relay.metrics.render()
        headers = [(b"content-type", kind), (b"content-length", b"%d" % len(text))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": text})

    async def _status(self, scope: Scope, send: Send) -> None:
        query = parse_qs(scope["query_string"].decode("latin-1"))
        try:
            after = int(query["after"][0]) if "after" in query else None
            wait = min(MAX_WAIT_SECONDS, max(0.0, float(query.get("wait", ["0"])[0])))
        except ValueError:
            await replies.plain(send, 400, b'{"error":"after is an integer, wait a number of seconds"}')
            return
        instance = query.get("instance", [None])[0]
        await self._relay.shared.board.wait(after, instance, wait)
        await replies.plain(send, 200, self._relay.shared.board.document())

    async def _reconnect(self, _scope: Scope, send: Send) -> None:
        self._relay.upstream.link.reconnect()
        await replies.plain(send, 202, b'{"status":"reconnecting"}')
