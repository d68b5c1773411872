"""The port for the operator and the kubelet: health, readiness, metrics, status, reconnect, issuers' keys."""

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from mcp_relay_api import paths
from mcp_sidecar.core import access
from mcp_sidecar.core.httptext import Head, Reply
from mcp_sidecar.core.machine import State
from mcp_sidecar.session.relay import Relay
from mcp_sidecar.web.exchange import Exchange

if TYPE_CHECKING:
    from mcp_sidecar.web.keyring import Keyring

MAX_WAIT_SECONDS = 300.0
MIN_BEAT_SECONDS = 0.1
_GET, _POST = b"GET", b"POST"
_STATUS = paths.STATUS_PATH.encode()
_RECONNECT = paths.RECONNECT_PATH.encode()
_KEYS = paths.KEYS_PATH.encode()
_GUARDED = frozenset({_STATUS, _RECONNECT, _KEYS})
_JSON = [(b"content-type", b"application/json")]
_CHALLENGE = [(b"www-authenticate", b'Bearer realm="admin"')]


class Admin:
    """Application of the admin port."""

    body_limit = 4096

    def __init__(self, relay: Relay, keyring: "Keyring | None" = None) -> None:
        """`keyring` takes the issuer's keys where clients have tokens of one."""
        self._relay = relay
        self._keyring = keyring
        self._routes = {
            paths.HEALTH_PATH.encode(): (_GET, self._health),
            paths.READY_PATH.encode(): (_GET, self._ready),
            paths.METRICS_PATH.encode(): (_GET, self._metrics),
            _STATUS: (_GET, self._status),
            _RECONNECT: (_POST, self._reconnect),
        }
        if keyring is not None:
            self.body_limit = paths.MAX_KEY_SET_BYTES
            self._routes[_KEYS] = (_POST, self._take_keys)

    def refusal(self, head: Head) -> Reply | None:
        """Why a request may not pass; None when it may."""
        if head.path in _GUARDED and not self._authorized(head):
            return Reply(401, b'{"error":"Unauthorized"}', _CHALLENGE)
        route = self._routes.get(head.path)
        if route is None:
            return Reply(404, b'{"error":"Not found"}')
        if route[0] != (_GET if head.method == b"HEAD" else head.method):
            return Reply(405, b'{"error":"Method not allowed"}', [(b"allow", route[0])])
        return None

    def changed(self) -> bool:
        """Nothing ever is."""
        return False

    def problem(self, status: int, reason: str, text: str) -> Reply:
        """The reply to what is no proper request."""
        return Reply(status, b'{"error":"%b"}' % text.replace("\\", "").replace('"', "'").encode())

    def serve(self, exchange: Exchange) -> None:
        """Serve one request."""
        self._routes[exchange.head.path][1](exchange)

    def _authorized(self, head: Head) -> bool:
        return access.bearer_ok(head.headers.get(b"authorization"), self._relay.settings.admin_token)

    def _health(self, exchange: Exchange) -> None:
        exchange.reply(Reply(200, b'{"status":"ok"}'))

    def _ready(self, exchange: Exchange) -> None:
        state = self._relay.upstream.state
        body = b'{"state":"%b"}' % state.value.encode()
        exchange.reply(Reply(200 if state is State.CONNECTED else 503, body))

    def _metrics(self, exchange: Exchange) -> None:
        self._relay.observe()
        text, kind = self._relay.metrics.render()
        exchange.reply(Reply(200, text, [(b"content-type", kind)]))

    def _status(self, exchange: Exchange) -> None:
        query = parse_qs(exchange.head.query.decode("latin-1"))
        try:
            after = int(query["after"][0]) if "after" in query else None
            wait = min(MAX_WAIT_SECONDS, max(0.0, float(query.get("wait", ["0"])[0])))
            beat = max(MIN_BEAT_SECONDS, float(query["beat"][0])) if "beat" in query else wait
        except ValueError:
            exchange.reply(
                Reply(400, b'{"error":"after is an integer, wait and beat are numbers of seconds"}')
            )
            return
        instance = query.get("instance", [None])[0]
        exchange.spawn(self._changed(exchange, after, instance, wait, beat))

    async def _changed(
        self, exchange: Exchange, after: int | None, instance: str | None, wait: float, beat: float
    ) -> None:
        """Reply when something changed or `wait` is over.

        Every `beat` seconds until then an empty line, with which JSON may begin, says that the relay lives.
        """
        board, clock = self._relay.shared.board, asyncio.get_running_loop().time
        end = clock() + wait
        begun = False
        while not await board.wait(after, instance, min(beat, end - clock())) and clock() < end:
            if exchange.gone:
                return
            if not begun:
                exchange.open(_JSON)
                begun = True
            exchange.send(b"\n")
        if not begun:
            exchange.reply(Reply(200, board.document()))
            return
        exchange.send(board.document())
        exchange.end()

    def _reconnect(self, exchange: Exchange) -> None:
        self._relay.upstream.link.reconnect()
        exchange.reply(Reply(202, b'{"status":"reconnecting"}'))

    def _take_keys(self, exchange: Exchange) -> None:
        """Use another key set, and keep it for a relay that is started again."""
        if self._keyring is None:
            return
        document = exchange.body
        try:
            self._keyring.take(document)
        except ValueError as error:
            exchange.reply(self.problem(400, "keys", str(error)))
            return
        self._relay.shared.store.save_keys(document)
        exchange.reply(Reply(200, b'{"status":"taken"}'))
