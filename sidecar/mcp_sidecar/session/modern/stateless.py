"""What clients without sessions ask for."""

import asyncio
from collections.abc import Mapping

from mcp_sidecar.core import frames
from mcp_sidecar.core import methods as known
from mcp_sidecar.core.modern import headers, methods
from mcp_sidecar.core.modern.envelope import Envelope
from mcp_sidecar.session.calls import RefusedError
from mcp_sidecar.session.modern.bridge import Bridge
from mcp_sidecar.session.modern.calls import Caller, ListenCall, ModernCall
from mcp_sidecar.session.modern.listeners import Listener, Listeners
from mcp_sidecar.session.outbound import Outbound
from mcp_sidecar.session.shared import Shared


class Stateless:
    """Starts and ends calls of clients without sessions; the server can be used when it is asked to."""

    def __init__(self, shared: Shared, outbound: Outbound) -> None:
        self._shared = shared
        self._outbound = outbound
        self._bridge = Bridge(shared, outbound)
        self._listeners = Listeners(shared, outbound)
        self._loop = asyncio.get_running_loop()

    def request(
        self,
        frame: frames.Frame,
        envelope: Envelope,
        subject: str,
        given: Mapping[bytes, bytes],
        *,
        sse: bool,
    ) -> ModernCall:
        """Start a call.

        Args:
            frame: a request whose envelope and standard headers are in order.
            envelope: what it says of its sender.
            subject: who was authenticated.
            given: HTTP headers, names in lower case.
            sse: the reply may be an event stream.

        Raises:
            RefusedError: the request gets an error at once.
            RejectionError: it breaks a rule of the revision.

        """
        if not methods.may_request(frame.method, self._shared.capabilities, self._shared.revision):
            text = f"Method not found: the server does not offer {frame.method!r}"
            raise RefusedError(frames.METHOD_NOT_FOUND, text, status=404)
        frame = self._shared.admitted(frame)
        if frame.method == "tools/call":
            params = self._shared.tool_params.get(str(frame.params.get("name")), ())
            headers.check(params, frame.params.get("arguments"), given)
        if not self._shared.modern:
            return self._translate(frame, envelope, subject, sse=sse)
        caller = Caller(subject, envelope.capabilities, envelope.log_level, self._loop.time())
        return self._pass(caller, frame, sse=sse)

    def _translate(self, frame: frames.Frame, envelope: Envelope, subject: str, *, sse: bool) -> ModernCall:
        """To a server with a handshake, or answered without it."""
        if frame.method == methods.LISTEN:
            return self._listeners.open(frame, subject)
        if frame.method != methods.DISCOVER:
            return self._bridge.request(frame, envelope, subject, sse=sse)
        now = self._loop.time()
        call = ModernCall(Caller(subject, (), None, now), frame, now, sse=sse)
        self._bridge.discover(call)
        return call

    def _pass(self, caller: Caller, frame: frames.Frame, *, sse: bool) -> ModernCall:
        """To a server without sessions: under another id, else as it is."""
        listens = frame.method == methods.LISTEN
        kind = ListenCall if listens else ModernCall
        call = kind(caller, frame, self._loop.time(), sse=sse)
        table = self._shared.table
        number = table.number()
        if not self._shared.send(self._outbound.rewritten(frame, frame.data, number, call)):
            raise RefusedError(frames.SERVER_ERROR, f"MCP server {self._name!r} is not connected", status=503)
        table.add(number, call)
        if listens:
            table.unlimit(number)
        return call

    def notification(self, frame: frames.Frame) -> None:
        """Take a notification: the revision knows none, a server's own kind may have some."""
        shared = self._shared
        if known.may_notify(frame.method, shared.capabilities):
            shared.send(frame.data)
        else:
            shared.metrics.count("mcp_relay_messages_dropped", "notification_not_offered")

    @property
    def _name(self) -> str:
        return self._shared.settings.server_name

    def gone(self, call: ModernCall) -> None:
        """The client closed the connection of a call that has no answer yet: that cancels it."""
        number = call.client.calls.get(call.id)
        if call.answer is not None:
            return  # it is answered, even if the server still works on it
        if isinstance(call.client, Listener):
            call.client.end()
        elif number is not None:
            refusal = RefusedError(frames.SERVER_ERROR, "The client closed the connection")
            self._outbound.give_up(number, refusal, "cancelled")

    def close(self) -> None:
        """Stop all timers."""
        self._bridge.close()

    def end_streams(self) -> None:
        """The relay shuts down: end all subscriptions in good order."""
        self._listeners.end()
        for number, call in self._shared.table.calls():
            if isinstance(call, ListenCall):
                self._shared.table.take(number)
                call.end()
