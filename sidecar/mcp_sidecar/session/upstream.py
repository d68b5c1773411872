"""The life of the one session with the server process: linked, initialised or adopted, lost, ended."""

import asyncio
import dataclasses
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from mcp_relay_api import paths
from mcp_sidecar import log
from mcp_sidecar.core import control, document, frames, handshake, methods
from mcp_sidecar.core.document import Problem, Process
from mcp_sidecar.core.lines import Line, Oversized
from mcp_sidecar.core.machine import IllegalInputError, Input, Machine, State
from mcp_sidecar.core.outage import Outage
from mcp_sidecar.session.calls import RefusedError
from mcp_sidecar.session.inbound import Inbound
from mcp_sidecar.session.listing import Listing
from mcp_sidecar.session.outbound import Outbound
from mcp_sidecar.session.shared import Shared
from mcp_sidecar.stdio.link import Link

HOLD_SECONDS = 0.25
MAX_UNSAID = 1000
_UNUSABLE = (State.EXITED, State.REFUSED, State.TERMINATING)


class Upstream:
    """Listens to the link and moves the state machine; everything it learns goes to the board."""

    def __init__(self, shared: Shared, inbound: Inbound, outbound: Outbound) -> None:
        settings = shared.settings
        self._shared = shared
        self._inbound = inbound
        self._outbound = outbound
        self._machine = Machine()
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[asyncio.Future[None], None] = {}  # in the order they came
        self._deadline: asyncio.TimerHandle | None = None
        self._outage = Outage()
        self._unsaid: deque[bytes] = deque(maxlen=MAX_UNSAID)
        self._mute = ""
        """Incarnation of the process that closed its output: it can never answer again."""
        self.link = Link(settings.socket_path, self, settings.max_message_bytes + frames.TRUSTED_BYTES)
        self.listing = Listing(shared, self._tools_read)
        self.on_terminating: Callable[[float], None] = lambda _seconds: None
        inbound.on_tools_changed = self._tools_changed
        inbound.on_noise = self._noise
        shared.send, shared.say = self._send, self._say

    @property
    def state(self) -> State:
        """The state now."""
        return self._machine.state

    @property
    def uptime(self) -> float:
        """Seconds since the server process started; 0 without one."""
        process = self._shared.board.facts.process
        return max(0.0, time.time() - process.start_time) if process else 0.0

    @property
    def _muted(self) -> bool:
        process = self._shared.board.facts.process
        return bool(self._mute) and process is not None and process.incarnation == self._mute

    def _send(self, frame: bytes) -> bool:
        if self._mute and self._muted:
            return False
        if self._unsaid:
            self._catch_up()
        self._shared.metrics.count("mcp_relay_upstream_bytes", "in", len(frame))
        return self.link.write(frame)

    def _say(self, frame: bytes) -> None:
        if not self._send(frame):
            self._unsaid.append(frame)

    def _catch_up(self) -> None:
        while self._unsaid and self.link.write(self._unsaid[0]):
            self._unsaid.popleft()

    # What the link reports.

    def line(self, line: Line) -> None:
        """A line of the server."""
        self._shared.metrics.count("mcp_relay_upstream_bytes", "out", len(line))
        self._inbound.line(line)

    def oversized(self, line: Oversized) -> None:
        """A line above the relay's limit."""
        self._inbound.oversized(line)

    def control(self, message: dict[str, Any]) -> None:
        """A message of the launcher; unknown ones are ignored."""
        handler = {
            "hello": self._hello,
            "exit": self._exit,
            "stdout-closed": self._stdout_closed,
            "terminating": self._terminating,
            "oversized": self._oversized_line,
        }.get(str(message.get("event")))
        if handler is None:
            return
        try:
            handler(message)
        except (control.ControlError, IllegalInputError) as error:
            log.event("launcher_message_unreadable", logging.WARNING, error=str(error))

    def lost(self) -> None:
        """The connection to the launcher broke."""
        text = "The connection to the server's launcher broke; connecting again"
        self._lose(Problem("Transport", "ConnectionLost", text))

    def unreachable(self) -> None:
        """Nothing answers at the launcher's socket: the process is gone, or out of reach for good."""
        self._fail_calls("the connection to it was lost")

    # What the launcher says.

    def _hello(self, message: dict[str, Any]) -> None:
        process = control.process(message, time.time())
        store = self._shared.store
        closed = message.get("stdoutClosed") is True or self._mute == process.incarnation
        log.event("launcher_connected", incarnation=process.incarnation, pid=process.pid)
        if self.state is State.TERMINATING:
            self._shared.board.update(process=process)
            if process.incarnation == store.incarnation:
                self._catch_up()
        elif closed:
            self._meet_mute(process)
        elif process.incarnation != store.incarnation:
            self._begin(process)
        elif self.state in (State.EXITED, State.REFUSED):
            return  # the same process, of which nothing more is to be expected
        elif store.answer is not None:
            self._shared.board.update(process=process)
            self._ready(store.answer, store.since, adopted=True)
        else:
            self._resume(process)

    def _meet_mute(self, process: Process) -> None:
        """A process that closed its output: neither adopted nor asked for anything."""
        known = self._shared.board.facts.process
        if known is None or known.incarnation != process.incarnation:
            self._move(Input.STARTED, process=process, exit=None, error=None, session=None, tools=None)
        self._stdout_closed({})

    def _resume(self, process: Process) -> None:
        """An earlier life of this relay sent `initialize`; its answer is still to come, or was a refusal."""
        self._move(Input.RESUMED, process=process, error=None)
        store = self._shared.store
        if store.refused is not None:
            self._move(Input.REFUSED, error=Problem(**store.refused))
            return
        self._shared.table.add_own(store.request_id, self._initialized)
        self._watch_start(process)

    def _begin(self, process: Process) -> None:
        self._fail_calls("it was started anew")
        self._move(Input.STARTED, process=process, exit=None, error=None, session=None, tools=None)
        number = self._shared.table.number()
        self._shared.store.begin(process.incarnation, number)
        self._shared.table.add_own(number, self._initialized)
        params = handshake.params(self._shared.settings.client_capabilities)
        self._send(frames.request(number, "initialize", params))
        self._watch_start(process)

    def _watch_start(self, process: Process) -> None:
        self._unwatch_start()
        left = process.start_time + self._shared.settings.startup_timeout - time.time()
        self._deadline = self._loop.call_later(max(0.0, left), self._start_overdue)

    def _unwatch_start(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _noise(self) -> None:
        # Not the line itself: unlike stderr nobody masked secrets in it.
        if self.state is State.CONNECTING and self._shared.board.facts.error is None:
            text = "The server writes to stdout what is no JSON-RPC, see the log of the relay"
            self._shared.board.update(error=Problem("Initialize", "NoJsonRpc", text))

    def _start_overdue(self) -> None:
        self._deadline = None
        seconds = self._shared.settings.startup_timeout
        known = self._shared.board.facts.error
        text = f"The server has not answered initialize within {seconds:g} seconds of its start"
        text += f". {known.message}" if known else ""
        log.event("startup_timeout", logging.WARNING, seconds=seconds)
        self._shared.board.update(error=Problem("Initialize", "StartupTimeout", text))

    def _initialized(self, message: dict[str, Any] | None) -> None:
        if message is None:
            return  # the process ended; that is reported elsewhere
        problem = handshake.judge(message)
        if problem is not None:
            self._unwatch_start()
            self._shared.store.refuse(dataclasses.asdict(problem))
            self._move(Input.REFUSED, error=problem, session=None)
            return
        answer: dict[str, Any] = message["result"]
        self._shared.store.finish(answer, time.time())
        self._ready(answer, self._shared.store.since, adopted=False)
        self._outage.over()
        self._outbound.replay_interests()
        self._tell_lists_changed()

    def _ready(self, answer: dict[str, Any], since: float, *, adopted: bool) -> None:
        shared = self._shared
        self._unwatch_start()
        shared.revision = answer["protocolVersion"]
        shared.capabilities = handshake.capabilities(answer)
        known = shared.board.facts.session
        session = known if adopted and known else document.session(answer, since, adopted=adopted)
        self._send(frames.notification("notifications/initialized"))
        shared.board.hold()
        self._loop.call_later(HOLD_SECONDS, shared.board.release)
        self._move(Input.READY, error=None, session=session)
        if "tools" in shared.capabilities:
            self.listing.refresh()
        else:
            self._tools_read(document.tools(()), None)

    def _tell_lists_changed(self) -> None:
        for method in methods.list_changed(self._shared.capabilities):
            for client in self._shared.clients:
                client.list_changed(method, frames.notification(method))

    def _tools_changed(self) -> None:
        if self.state is State.CONNECTED:
            self.listing.refresh()

    def _tools_read(self, tools: document.Tools | None, problem: str | None) -> None:
        board = self._shared.board
        if tools is not None:
            board.update(tools=tools, error=None)
        elif board.facts.tools is None and self.state is State.CONNECTED:
            board.update(error=Problem("ListTools", "ListToolsFailed", problem or ""))
        board.release()

    def _exit(self, message: dict[str, Any]) -> None:
        ended = control.ended(message, time.time())
        board = self._shared.board
        self._unwatch_start()
        self.listing.stop()
        initialised = self._shared.store.answer is not None
        log.event("server_exited", exitCode=ended.exit_code, signal=ended.signal, reason=ended.reason)
        problem = document.process_problem(ended, initialised)
        self._move(Input.EXITED, exit=ended, error=problem, session=None, tools=None)
        board.release()
        self._fail_calls(f"it {document.how_ended(ended)}")

    def _stdout_closed(self, _message: dict[str, Any]) -> None:
        board = self._shared.board
        if self.state is State.EXITED:
            return
        if board.facts.process is not None:
            self._mute = board.facts.process.incarnation
        self._unwatch_start()
        self.listing.stop()
        text = "The server process closed its stdout but goes on: it can never answer again"
        self._lose(Problem("Process", paths.REASON_STDOUT_CLOSED, text))
        self._fail_calls("it closed its output")
        board.release()

    def _lose(self, problem: Problem) -> None:
        # What is known to be worse than a lost connection stays as it is.
        error = self._shared.board.facts.error
        worse = self.state in _UNUSABLE or (error is not None and error.reason == paths.REASON_STDOUT_CLOSED)
        self._move(Input.LOST, **({} if worse else {"error": problem}))

    def _terminating(self, message: dict[str, Any]) -> None:
        self.on_terminating(control.drain_seconds(message))

    def _oversized_line(self, message: dict[str, Any]) -> None:
        self._inbound.oversized(control.oversized(message))

    # The state, and who waits for it.

    def terminate(self) -> None:
        """From now on: no new calls."""
        self._unwatch_start()
        self._move(Input.TERMINATING)

    def _move(self, happened: Input, **facts: Any) -> None:
        before = self.state
        changed = self._machine.feed(happened)
        if changed:
            facts |= {"state": self.state, "since": self._since(happened, time.time())}
            error: Problem | None = facts.get("error")
            reason, text = (error.reason, error.message) if error else (None, None)
            log.event("state", before=before.value, after=self.state.value, reason=reason, message=text)
        self._shared.board.update(**facts)
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)

    def _since(self, happened: Input, now: float) -> float:
        if happened in (Input.LOST, Input.RESUMED):
            return self._outage.lost(now)
        if happened is Input.READY:
            self._outage.back(now)
        else:
            self._outage.over()
        return now

    def _fail_calls(self, why: str) -> None:
        """Answer all open calls: what became of them nobody knows."""
        name = self._shared.settings.server_name
        self._shared.asked.clear()
        self._unsaid.clear()
        for call in self._shared.table.clear():
            text = f"MCP server '{name}' did not answer: {why}. Whether the call had an effect is unknown"
            data = {"reason": "server_gone", "outcome": "unknown"}
            call.refuse(RefusedError(frames.SERVER_ERROR, text, data), "server_gone")

    def abandon_calls(self) -> None:
        """The time to finish is over: the calls still open get an error."""
        self._fail_calls("it is shutting down")

    def close(self) -> None:
        """Stop timers and tasks."""
        self._unwatch_start()
        self.listing.stop()

    async def ready(self, seconds: float) -> None:
        """Wait until the session is up, at most `seconds`.

        Raises:
            RefusedError: it is not, or cannot be.

        """
        end = self._loop.time() + seconds
        while self.state is not State.CONNECTED:
            self._refuse_unusable()
            left = end - self._loop.time()
            if left <= 0:
                text = f"is not ready: still {self.state.value} after {seconds:g} seconds"
                raise self._unavailable(text)
            await self._changed(left)
        if self.link.congested:
            raise self._unavailable("does not read its input; too much is waiting for it")

    def _refuse_unusable(self) -> None:
        facts = self._shared.board.facts
        if self.state is State.TERMINATING:
            raise self._unavailable("is shutting down", status=503)
        if self.state is State.EXITED and facts.exit is not None:
            raise self._unavailable(f"is not running: it {document.how_ended(facts.exit)}")
        if self.state is State.REFUSED or self._muted:
            raise self._unavailable(
                f"cannot be used: {facts.error.message if facts.error else self.state.value}"
            )

    def _unavailable(self, text: str, status: int = 200) -> RefusedError:
        name = self._shared.settings.server_name
        data = {"reason": "server_unavailable", "state": self.state.value}
        return RefusedError(frames.SERVER_ERROR, f"MCP server '{name}' {text}", data, status)

    async def _changed(self, seconds: float) -> None:
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiting[waiter] = None
        try:
            await asyncio.wait([waiter], timeout=seconds)
        finally:
            self._waiting.pop(waiter, None)
