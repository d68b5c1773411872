"""One relay, put together: what the HTTP side asks of the sessions."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from mcp_sidecar import log
from mcp_sidecar.core import frames, jsontext, methods, tracing
from mcp_sidecar.core.document import Tools
from mcp_sidecar.core.machine import State
from mcp_sidecar.core.modern import methods as modern
from mcp_sidecar.core.sessionid import Signer
from mcp_sidecar.metrics import OTHER, Metrics
from mcp_sidecar.session.board import Board
from mcp_sidecar.session.calls import Call, Outbox, RefusedError
from mcp_sidecar.session.clients import Client, Clients
from mcp_sidecar.session.guard import Audit, Guard, to_stdout
from mcp_sidecar.session.inbound import Inbound
from mcp_sidecar.session.modern.feed import Feed
from mcp_sidecar.session.modern.notices import Notices
from mcp_sidecar.session.modern.sessions import Sessions
from mcp_sidecar.session.modern.stateless import Stateless
from mcp_sidecar.session.outbound import Outbound
from mcp_sidecar.session.shared import Shared
from mcp_sidecar.session.store import Store
from mcp_sidecar.session.table import CallTable
from mcp_sidecar.session.upstream import Upstream
from mcp_sidecar.settings import EXPIRE, Settings

_COUNTED = frozenset({*methods.REQUESTS, modern.DISCOVER, modern.LISTEN})
READY_SECONDS = 30.0
IDLE_CHECK_SECONDS = 15.0
DRAIN_MARGIN_SECONDS = 0.5
_NOT_FOUND = 404
_CONNECTED = State.CONNECTED  # see core/frames.py


class Relay:
    """Holds the one session with the server and the sessions of the clients."""

    def __init__(self, settings: Settings, metrics: Metrics | None = None) -> None:
        store = Store(settings.state_dir)
        self._signer = Signer(settings.signing_key, settings.server_uid)
        expire = settings.on_server_restart == EXPIRE
        clients = Clients(self._signer, store, settings.max_clients, settings.idle_timeout, expire=expire)
        board = Board(lambda: store.handshakes, self.sessions_open, self.processes)
        table = CallTable(store.starts, settings.call_timeout, settings.max_call)
        self.settings = settings
        self.metrics = metrics or Metrics()
        self.shared = Shared(settings, self.metrics, store, table, clients, board)
        self.shared.interests.load(store.interests)
        level = store.interests.get("level")
        self.shared.level = level if isinstance(level, str) else None
        self.outbound = Outbound(self.shared)
        inbound, feed = Inbound(self.shared), Feed(self.shared)
        inbound.before = Notices(self.shared, feed, inbound.deliver).take
        self.sessions = Sessions(self.shared, self.outbound, feed)
        self.stateless = Stateless(self.shared, self.outbound)
        self.upstream = self._upstream(inbound)
        self.upstream.on_modern = feed.open
        self.upstream.on_terminating = self._launcher_terminates
        clients.on_change = board.clients_changed
        clients.on_end = self.outbound.client_ended
        clients.on_restore = self._client_restored
        self.on_failure: Callable[[], None] = lambda: None
        self.connections: Callable[[], int] = lambda: 0
        """Counts the open HTTP connections of clients."""
        self.guard = self._guard()
        """Limits and audit log; None where there are none."""
        self._tools: Tools | None = None
        self._tool_names: frozenset[str] = frozenset()
        self._loop = asyncio.get_running_loop()
        self._drained: asyncio.Task[None] | None = None
        self._tasks: list[asyncio.Task[None]] = []

    def _upstream(self, inbound: Inbound) -> Upstream:
        if self.settings.remote is None:
            return Upstream(self.shared, inbound, self.outbound)
        # A client costs memory that others need not pay.
        from mcp_sidecar.session.remote import RemoteUpstream

        return RemoteUpstream(self.shared, inbound, self.outbound, self.settings.remote)

    def _guard(self) -> Guard | None:
        wanted = self.settings
        if not wanted.limits and not wanted.audit:
            return None
        audit = Audit(self.metrics, to_stdout) if wanted.audit else None
        return Guard(wanted.limits, audit, self.metrics, asyncio.get_running_loop().time)

    def start(self) -> None:
        """Begin to connect to the launcher."""
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self.upstream.link.run()), loop.create_task(self._expire_idle())]
        for task in self._tasks:
            task.add_done_callback(self._task_ended)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        """A task that must not end did: a relay without it would lie, so it gives up and is restarted."""
        if not task.cancelled():
            log.failure("task_failed", task.exception())
            self.on_failure()

    @property
    def connected(self) -> bool:
        """Whether calls can pass now."""
        return self.upstream.state is _CONNECTED

    async def initialize(self, frame: frames.Frame, subject: str) -> tuple[str, bytes]:
        """Answer a client's `initialize` from what the server said; gives the session id and the answer.

        Raises:
            RefusedError: the server cannot be used, or all sessions are in use.

        """
        await self.upstream.gate.ready(READY_SECONDS)
        return self.admit(frame, subject)

    def admit(self, frame: frames.Frame, subject: str, random: bytes | None = None) -> tuple[str, bytes]:
        """The same while the server can be used; `random` as for `Clients.open`."""
        client = self.shared.clients.open(frame.params, subject, random)
        client.home = self
        answer: dict[str, Any] = {**(self.shared.store.answer or {}), "protocolVersion": client.revision}
        return client.sid, frames.result(frame.raw_id, jsontext.dumps(answer))

    def find(self, sid: str, subject: str) -> Client | None:
        """The client's session, or None."""
        client = self.shared.clients.find(sid, subject)
        if client is not None:
            client.home = self
        return client

    def alive(self, client: Client) -> bool:
        """Whether a session that was found goes on; asking is use, as finding it is."""
        client.last_used = self._loop.time()
        return not client.ended

    def session_gone(self) -> RefusedError:
        """The refusal of a session that does not exist (any more)."""
        data = {
            "reason": "session_not_found",
            "action": "reinitialize_and_replay_once",
            "server_uptime_seconds": int(self.upstream.uptime),
        }
        log.event("session_not_found", serverUptimeSeconds=data["server_uptime_seconds"])
        text = "Session not found. Please reinitialize."
        return RefusedError(frames.SERVER_ERROR, text, data, _NOT_FOUND)

    @property
    def open(self) -> bool:
        """Whether a call can be started without waiting."""
        return self.upstream.state is _CONNECTED and not self.upstream.link.congested

    async def opened(self) -> None:
        """Wait until calls can be started.

        Raises:
            RefusedError: they cannot.

        """
        await self.upstream.gate.ready(READY_SECONDS)

    def call(self, client: Client, frame: frames.Frame, *, sse: bool) -> Call:
        """Start a client's request; `open` was true just now.

        Raises:
            RefusedError: the request gets an error at once.

        """
        if client.ended:  # while the call waited
            raise self.session_gone()
        frame = self.shared.admitted(frame)
        if self.shared.modern:
            return self.sessions.request(client, frame, sse=sse)
        return self.outbound.request(client, frame, sse=sse)

    def traced(self, frame: frames.Frame, headers: Mapping[bytes, bytes]) -> frames.Frame:
        """The request with the trace context of its HTTP headers, for the server."""
        data = tracing.carried(frame.data, frame.params, headers)
        return frame if data is frame.data else frames.parse(data)

    def tell(self, client: Client, frame: frames.Frame) -> None:
        """Take a client's notification or its answer to a request of the server."""
        if frame.kind is frames.RESPONSE:
            self.outbound.response(client, frame)
        else:
            self.outbound.notification(client, frame)

    def open_stream(self, client: Client) -> Outbox:
        """Open a client's GET stream."""
        return client.open_stream()

    def close_stream(self, client: Client, stream: Outbox) -> None:
        """The connection of a client's GET stream ended."""
        client.close_stream(stream, asyncio.get_running_loop().time())

    def finished(self, call: Call) -> None:
        """Count a call that was answered."""
        method = call.method if call.method in _COUNTED else OTHER
        tool = self._known(call.subject) if method == "tools/call" else ""
        self.metrics.call(method, tool, call.outcome, self._loop.time() - call.started)
        if call.visit is not None:
            call.visit.finished(call)

    def _known(self, tool: str) -> str:
        """The tool's name if the server has such a tool: clients may call whatever they like."""
        tools = self.shared.board.facts.tools
        if tools is not self._tools:
            self._tools = tools
            self._tool_names = frozenset(entry["name"] for entry in tools.shown) if tools else frozenset()
        return tool if tool in self._tool_names else OTHER

    def commons(self) -> "Relay":
        """The relay for clients without a session.

        Raises:
            RefusedError: no process can be had for them.

        """
        return self

    def parts(self) -> "list[Relay]":
        """All relays that serve clients."""
        return [self]

    def processes(self) -> int | None:
        """Number of processes that belong to clients; None: there are none of this kind."""
        return None

    def sessions_open(self) -> int:
        """Number of client sessions."""
        return sum(len(part.shared.clients) for part in self.parts())

    def observe(self) -> None:
        """Set the gauges to what is true now."""
        gauge, shared, parts = self.metrics.gauge, self.shared, self.parts()
        gauge("mcp_relay_clients", "Client sessions", {"": self.sessions_open()})
        flying = sum(len(part.shared.table) for part in parts)
        gauge("mcp_relay_calls_in_flight", "Requests the server has not answered", {"": flying})
        waiting = sum(len(part.upstream.gate) for part in parts)
        gauge("mcp_relay_calls_waiting", "Requests that wait for the server", {"": waiting})
        gauge("mcp_relay_processes", "Processes that belong to clients", {"": self.processes() or 0})
        clients = [client for part in parts for client in part.shared.clients]
        streams = [client.stream for client in clients if client.stream is not None]
        gauge("mcp_relay_streams", "Open streams of client sessions", {"": len(streams)})
        calls = [call for part in parts for _, call in part.shared.table.calls()]
        queued = sum(map(len, streams)) + sum(len(call.outbox or ()) for call in calls)
        gauge("mcp_relay_events_queued", "Events that wait for their clients", {"": queued})
        gauge(
            "mcp_relay_server_requests_open",
            "Requests of the server that wait for a client",
            {"": sum(len(part.shared.asked) for part in parts)},
        )
        gauge(
            "mcp_relay_upstream_backlog",
            "Messages that wait for the server",
            {"": sum(len(part.upstream.backlog) for part in parts)},
        )
        gauge("mcp_relay_http_connections", "Connections of clients", {"": self.connections()})
        gauge("mcp_relay_tasks", "Tasks of the event loop", {"": len(asyncio.all_tasks())})
        events = self.metrics.counters["mcp_relay_upstream_events"]
        events["handshake"], events["relay_start"] = shared.store.handshakes, shared.store.starts
        states = {state.value: float(state is self.upstream.state) for state in State}
        gauge("mcp_relay_upstream_state", "1 for the state of the session with the server", states)

    def end(self, client: Client) -> None:
        """End a session because the client asked for it."""
        self.shared.clients.end(client, "deleted")

    def _client_restored(self, client: Client) -> None:
        """A session from before this process: what the client knows of the server may be out of date."""
        if self.shared.clients.of_another_process(client):
            for method in methods.list_changed(self.shared.capabilities):
                client.list_changed(method, frames.notification(method))

    async def _expire_idle(self) -> None:
        loop, idle = asyncio.get_running_loop(), self.settings.idle_timeout
        started = loop.time()
        while True:
            await asyncio.sleep(min(IDLE_CHECK_SECONDS, idle / 4))
            self.shared.clients.expire()
            if loop.time() - started >= idle:
                self.outbound.forget_absent()

    def _launcher_terminates(self, seconds: float) -> None:
        if self._drained is None:
            self._drained = asyncio.get_running_loop().create_task(self._drain_for_launcher(seconds))

    async def _drain_for_launcher(self, seconds: float) -> None:
        await self.drain(max(0.0, seconds - DRAIN_MARGIN_SECONDS))
        self.upstream.link.control({"event": "drained"})

    async def drain(self, seconds: float) -> None:
        """No new calls; let the open ones finish for at most `seconds`, then answer them with an error.

        Harmless when repeated.
        """
        self.upstream.terminate()
        self.stateless.end_streams()
        if not await self.shared.table.idle(seconds):
            self.upstream.abandon_calls()
        for client in self.shared.clients:
            if client.stream is not None:
                client.stream.close()

    async def close(self) -> None:
        """Stop everything; nothing of this relay is left."""
        self.shared.table.close()
        self.stateless.close()
        self.upstream.close()
        self.shared.board.close()
        if self.guard is not None:
            self.guard.close()
        tasks = [*self._tasks, *([self._drained] if self._drained else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
