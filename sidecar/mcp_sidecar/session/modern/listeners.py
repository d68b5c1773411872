"""`subscriptions/listen` at a server with a handshake: fed by what it tells all its clients."""

import asyncio
from collections.abc import Callable

from mcp_sidecar.core import frames, jsontext
from mcp_sidecar.core.modern import subscriptions
from mcp_sidecar.core.modern.subscriptions import Filter
from mcp_sidecar.session.modern.calls import Caller, ModernCall
from mcp_sidecar.session.outbound import Outbound
from mcp_sidecar.session.shared import Shared


class Listener(Caller):
    """The sender of a listen request, told what it asked for and nothing else."""

    __slots__ = ("_methods", "call")

    def __init__(self, subject: str, frame: frames.Frame, now: float) -> None:
        super().__init__(subject, (), None, now)
        self._methods: frozenset[str] = frozenset()
        self.call = ModernCall(self, frame, now, sse=True)

    def begin(self, honoured: Filter) -> None:
        """Tell what will be told."""
        self._methods = honoured.methods()
        self.call.tell((subscriptions.acknowledged(self.call.raw_id, honoured),))

    def list_changed(self, method: str, notice: bytes) -> None:
        """A list of the server changed."""
        if method in self._methods:
            self.updated(notice)

    def updated(self, notice: bytes) -> bool:
        """Something of the server changed that this listener wants to hear of."""
        params = jsontext.loads(notice).get("params") or {}
        return self.call.tell((subscriptions.tagged(notice, params, self.call.raw_id),))

    def end(self) -> None:
        """End the subscription in good order."""
        self.call.finish((subscriptions.ended(self.call.raw_id),), "ok")


class Listeners:
    """All of them."""

    def __init__(self, shared: Shared, outbound: Outbound) -> None:
        self._shared = shared
        self._outbound = outbound
        self._loop = asyncio.get_running_loop()
        self._all: dict[str, Listener] = {}

    def open(self, frame: frames.Frame, subject: str) -> ModernCall:
        """Begin a subscription.

        Raises:
            RejectionError: the request has no usable filter.

        """
        wanted = subscriptions.possible(subscriptions.wanted(frame.params), self._shared.capabilities)
        listener = Listener(subject, frame, self._loop.time())
        uris = tuple(uri for uri in wanted.uris if self._subscribe(listener, uri))
        self._all[listener.key] = listener
        self._shared.clients.host(listener)
        listener.begin(Filter(wanted.fields, uris))
        listener.call.on_result = self._closed(listener)
        return listener.call

    def _closed(self, listener: Listener) -> Callable[[bool], None]:
        def closed(_ok: bool) -> None:
            if self._all.pop(listener.key, None) is not None:
                self._shared.clients.unhost(listener)
                self._outbound.forget(listener.key)

        return closed

    def _subscribe(self, listener: Listener, uri: str) -> bool:
        wishes = self._shared.interests
        if wishes.refusal(listener.key, uri) is not None:
            return False
        if uri not in wishes.subscribers:
            self._outbound.own("resources/subscribe", {"uri": uri})
        wishes.subscribe(listener.key, uri)
        return True

    def end(self) -> None:
        """End all in good order."""
        for listener in list(self._all.values()):
            listener.end()
