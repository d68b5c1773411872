"""The life of the one session with the server process: linked, initialised or adopted, lost, ended."""

import asyncio
import dataclasses
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from mcp_relay_api import paths
from mcp_sidecar import log
from mcp_sidecar.core import control, document, frames, handshake, methods, opening, texts
from mcp_sidecar.core.document import Problem, Process
from mcp_sidecar.core.lines import Line, Oversized
from mcp_sidecar.core.machine import IllegalInputError, Input, Machine, State
from mcp_sidecar.core.outage import Outage
from mcp_sidecar.session.backlog import Backlog
from mcp_sidecar.session.calls import RefusedError
from mcp_sidecar.session.channel import Channel
from mcp_sidecar.session.gate import Gate
from mcp_sidecar.session.inbound import Inbound
from mcp_sidecar.session.listing import Listing
from mcp_sidecar.session.masker import Masker, log_noise
from mcp_sidecar.session.outbound import Outbound
from mcp_sidecar.session.progress import Progress
from mcp_sidecar.session.shared import Shared
from mcp_sidecar.stdio.link import Link

HOLD_SECONDS = 0.25
_UNUSABLE = (State.EXITED, State.REFUSED, State.TERMINATING)
_AWAITING = (State.CONNECTING, State.DROPPED)
_CLOSED = {
    paths.REASON_STDOUT_CLOSED: ("stdout", "it can never answer again"),
    paths.REASON_STDIN_CLOSED: ("stdin", "it can never be asked again"),
}


class Upstream:
    """Listens to the link and moves the state machine; everything it learns goes to the board."""

    met = "launcher_connected"
    """Event of the log for a process that was introduced."""

    def __init__(self, shared: Shared, inbound: Inbound, outbound: Outbound) -> None:
        settings = shared.settings
        self.shared = shared
        self._inbound = inbound
        self._outbound = outbound
        self._machine = Machine()
        self._loop = asyncio.get_running_loop()
        self._deadline: asyncio.TimerHandle | None = None
        self._outage = Outage()
        self._met_defect = False
        self._mute = ""
        """Incarnation of the process that closed its input or output: it can never answer again."""
        self._mute_reason = ""
        self.link = self._connect(settings.max_message_bytes + frames.TRUSTED_BYTES)
        self.backlog = Backlog(self._write)
        self.masker = Masker(self.link.control)
        self.progress = Progress(self.link.control, lambda line: shared.board.update(progress=line))
        self.listing = Listing(shared, self.masker, self._tools_read)
        self.gate = Gate(self)
        self.on_terminating: Callable[[float], None] = lambda _seconds: None
        self.on_modern: Callable[[], None] = lambda: None
        """A server without sessions can be used."""
        inbound.on_tools_changed = self._tools_changed
        inbound.on_noise = self._noise
        shared.send, shared.say = self._send, self._say
        self._bytes = shared.metrics.counters["mcp_relay_upstream_bytes"]

    def _connect(self, limit: int) -> Channel:
        return Link(self.shared.settings.socket_path, self, limit)

    @property
    def state(self) -> State:
        """The state now."""
        return self._machine.state

    @property
    def uptime(self) -> float:
        """Seconds since the server process started; 0 without one."""
        process = self.shared.board.facts.process
        return max(0.0, time.time() - process.start_time) if process else 0.0

    @property
    def muted(self) -> bool:
        """Whether the process closed its input or output."""
        process = self.shared.board.facts.process
        return bool(self._mute) and process is not None and process.incarnation == self._mute

    def _send(self, frame: bytes) -> bool:
        if self.backlog.waiting:
            self.backlog.flush()
        return self._write(frame)

    def _write(self, frame: bytes) -> bool:
        if (self._mute and self.muted) or not self.link.write(frame):
            return False
        self._bytes["in"] += len(frame)
        return True

    def _say(self, frame: bytes) -> None:
        if not self._send(frame) and not self.backlog.add(frame):
            self.shared.metrics.count("mcp_relay_messages_dropped", "server_not_reading")

    # What the link reports.

    def line(self, line: Line) -> None:
        """A line of the server."""
        self._bytes["out"] += len(line)
        self._inbound.line(line)

    def oversized(self, line: Oversized) -> None:
        """A line above the relay's limit."""
        self._inbound.oversized(line)

    def control(self, message: dict[str, Any]) -> None:
        """A message of the launcher; unknown ones are ignored."""
        handlers: dict[str, Callable[[dict[str, Any]], None]] = {
            "hello": self._hello,
            "exit": self._exit,
            "stdout-closed": lambda _message: self._pipe_closed(paths.REASON_STDOUT_CLOSED),
            "stdin-closed": lambda _message: self._pipe_closed(paths.REASON_STDIN_CLOSED),
            "masked": self.masker.answered,
            "progress": self.progress.answered,
            "terminating": lambda message: self.on_terminating(control.drain_seconds(message)),
            "oversized": lambda message: self._inbound.oversized(control.oversized(message)),
        }
        handler = handlers.get(str(message.get("event")))
        if handler is None:
            return
        try:
            handler(message)
        except (control.ControlError, IllegalInputError) as error:
            log.event("launcher_message_unreadable", logging.WARNING, error=str(error))

    def unreadable(self, error: Exception) -> None:
        """A line met a defect of the relay: it alone is lost, and the first time is told in full."""
        self.shared.metrics.count("mcp_relay_stdout_lines_dropped", "unreadable")
        if not self._met_defect:
            self._met_defect = True
            log.failure("line_unreadable", error)

    def lost(self) -> None:
        """The connection to the launcher broke."""
        self.masker.lost()
        self.listing.lost()
        self.shared.metrics.count("mcp_relay_upstream_events", "connection_lost")
        text = "The connection to the server's launcher broke; connecting again"
        self._lose(Problem("Transport", "ConnectionLost", text))

    def unreachable(self) -> None:
        """Nothing answers at the launcher's socket: the process is gone, or out of reach for good."""
        self._fail_calls("the connection to it was lost")
        self.gate.launcher(gone=True)

    # What the launcher says.

    def _hello(self, message: dict[str, Any]) -> None:
        process, store = control.process(message, time.time()), self.shared.store
        self.gate.launcher(gone=False)
        muted = self._mute_reason if self._mute == process.incarnation else ""
        closed = control.closed_pipe(message) or muted
        log.event(self.met, incarnation=process.incarnation, pid=process.pid)
        if self.state is State.TERMINATING:
            self.shared.board.update(process=process)
            if process.incarnation == store.incarnation:
                self.backlog.flush()
        elif closed:
            self._meet_mute(process, closed)
        elif process.incarnation != store.incarnation:
            self._begin(process)
        elif self.state in (State.EXITED, State.REFUSED):
            return  # the same process, of which nothing more is to be expected
        elif store.answer is not None:
            self.shared.board.update(process=process)
            self._ready(store.answer, store.since, adopted=True)
        else:
            self._resume(process)

    def _meet_mute(self, process: Process, reason: str) -> None:
        """A process that closed its input or output: neither adopted nor asked for anything."""
        known = self.shared.board.facts.process
        if known is None or known.incarnation != process.incarnation:
            self._move(Input.STARTED, process=process, exit=None, error=None, session=None, tools=None)
        self._pipe_closed(reason)

    def _resume(self, process: Process) -> None:
        """An earlier life of this relay sent `initialize`; its answer is still to come, or was a refusal."""
        self._move(Input.RESUMED, process=process, error=None)
        store = self.shared.store
        if store.refused is not None:
            self._move(Input.REFUSED, error=Problem(**store.refused))
            return
        self.shared.table.add_own(store.request_id, self._initialized)
        self._watch_start(process)

    def _begin(self, process: Process) -> None:
        self._renew()
        self._move(Input.STARTED, process=process, exit=None, error=None, session=None, tools=None)
        number = self.shared.table.number()
        method = opening.first(self.shared.settings.protocol)
        self.shared.store.begin(process.incarnation, number, method)
        self._ask(number, method)
        self._watch_start(process)

    def _renew(self) -> None:
        """Another process has taken the server's place."""
        self._fail_calls("it was started anew")

    def _ask(self, number: int, method: str) -> None:
        self.shared.table.add_own(number, self._initialized)
        params = opening.params(method, self.shared.settings.client_capabilities)
        self._send(frames.request(number, method, params))

    def _watch_start(self, process: Process) -> None:
        self._unwatch_start()
        left = process.start_time + self.shared.settings.startup_timeout - time.time()
        self._deadline = self._loop.call_later(max(0.0, left), self._start_overdue)
        self.progress.begin()

    def _unwatch_start(self) -> None:
        self.progress.end()
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _noise(self, line: str) -> None:
        self.masker.ask([line], log_noise)
        # Not the line itself: what a server says before the handshake may be anything.
        if self.state is State.CONNECTING and self.shared.board.facts.error is None:
            text = "The server writes to stdout what is no JSON-RPC, see the log of the relay"
            self.shared.board.update(error=Problem("Initialize", "NoJsonRpc", text))

    def _start_overdue(self) -> None:
        self._deadline = None
        seconds, known = self.shared.settings.startup_timeout, self.shared.board.facts.error
        asked = self.shared.store.asked
        text = f"The server has not answered {asked} within {seconds:g} seconds of its start"
        text += f". {known.message}" if known else ""
        log.event("startup_timeout", logging.WARNING, seconds=seconds)
        self.shared.board.update(error=Problem("Initialize", "StartupTimeout", text))

    def _initialized(self, message: dict[str, Any] | None) -> None:
        if message is None:
            return  # the process ended; that is reported elsewhere
        store, settings = self.shared.store, self.shared.settings
        read = opening.read(settings.protocol, store.asked, message, settings.server_name)
        if isinstance(read, str):
            log.event("asking_again", refused=store.asked, method=read)
            store.ask(self.shared.table.number(), read)
            self._ask(store.request_id, read)
            return
        if isinstance(read, Problem):
            self._unwatch_start()
            problem, incarnation = read, store.incarnation
            self.masker.ask([problem.message], lambda found: self._refused(incarnation, problem, found))
            return
        store.finish(read.answer, time.time())
        self.shared.clients.process_changed()
        self._ready(read.answer, store.since, adopted=False)
        self._outage.over()
        self._outbound.replay_interests()
        self._tell_lists_changed()

    def _refused(self, incarnation: str, problem: Problem, masked: list[str] | None) -> None:
        """The server answered `initialize` with nothing usable, in words that may be shown."""
        if self.shared.store.incarnation != incarnation or self.state not in _AWAITING:
            return  # it ended, or another one was started, while its words were searched
        text = masked[0] if masked else f"The server's answer to initialize cannot be used {texts.WITHHELD}"
        problem = dataclasses.replace(problem, message=text)
        self.shared.store.refuse(dataclasses.asdict(problem))
        self._move(Input.REFUSED, error=problem, session=None)

    def _ready(self, answer: dict[str, Any], since: float, *, adopted: bool) -> None:
        shared = self.shared
        self._unwatch_start()
        shared.revision = answer["protocolVersion"]
        shared.capabilities = handshake.capabilities(answer)
        known = shared.board.facts.session if adopted else None
        session = document.session(answer, since, adopted=bool(known["adopted"]) if known else adopted)
        shared.modern = opening.is_modern(shared.revision)
        if shared.modern:
            self.on_modern()
        else:
            self._send(frames.notification("notifications/initialized"))
        if adopted:
            self.backlog.flush()
        shared.board.hold()
        self._loop.call_later(HOLD_SECONDS, shared.board.release)
        self._move(Input.READY, error=None, session=known or document.nameless(session))
        if "tools" in shared.capabilities:
            self.listing.refresh()
        else:
            shared.board.update(tools=document.tools(()))
        self.masker.ask(texts.taken(session), lambda found: self._described(session, found))

    def _described(self, session: Mapping[str, Any], masked: list[str] | None) -> None:
        """What the server says of itself, without its secrets."""
        if self.state is not State.CONNECTED:
            return
        if masked is not None:
            self.shared.board.update(session=texts.put_back(session, masked))
        if "tools" not in self.shared.capabilities:
            self.shared.board.release()

    def _tell_lists_changed(self) -> None:
        for method in methods.list_changed(self.shared.capabilities):
            for client in self.shared.clients:
                client.list_changed(method, frames.notification(method))

    def _tools_changed(self) -> None:
        if self.state is State.CONNECTED:
            self.listing.refresh()

    def _tools_read(self, tools: document.Tools | None, problem: Problem | None) -> None:
        board = self.shared.board
        if tools is not None:
            board.update(tools=tools, error=problem)
        elif board.facts.tools is None and self.state is State.CONNECTED:
            board.update(error=problem)
        board.release()

    def _exit(self, message: dict[str, Any]) -> None:
        ended = control.ended(message, time.time())
        board = self.shared.board
        self._unwatch_start()
        self.listing.stop()
        initialised = self.shared.store.answer is not None
        self.shared.metrics.count("mcp_relay_upstream_events", "exit")
        log.event("server_exited", exitCode=ended.exit_code, signal=ended.signal, reason=ended.reason)
        problem = document.process_problem(ended, initialised)
        self._move(Input.EXITED, exit=ended, error=problem, session=None, tools=None)
        board.release()
        self._fail_calls(f"it {document.how_ended(ended)}")

    def _pipe_closed(self, reason: str) -> None:
        board = self.shared.board
        if self.state is State.EXITED:
            return
        if board.facts.process is not None:
            self._mute, self._mute_reason = board.facts.process.incarnation, reason
        self._unwatch_start()
        self.listing.stop()
        pipe, end = _CLOSED[reason]
        self._lose(Problem("Process", reason, f"The server process closed its {pipe} but goes on: {end}"))
        self._fail_calls(f"it closed its {pipe}")
        board.release()

    def _lose(self, problem: Problem) -> None:
        # What is known to be worse than a lost connection stays as it is.
        error = self.shared.board.facts.error
        worse = self.state in _UNUSABLE or (error is not None and error.reason in _CLOSED)
        self._move(Input.LOST, **({} if worse else {"error": problem}))

    # The state, and who waits for it.

    def terminate(self) -> None:
        """From now on: no new calls."""
        self._unwatch_start()
        self._move(Input.TERMINATING)

    def _move(self, happened: Input, **facts: Any) -> None:
        before = self.state
        changed = self._machine.feed(happened)
        if changed:
            facts |= {"state": self.state, "since": self._since(happened, time.time()), "progress": ""}
            error: Problem | None = facts.get("error")
            reason, text = (error.reason, error.message) if error else (None, None)
            log.event("state", before=before.value, after=self.state.value, reason=reason, message=text)
        self.shared.board.update(**facts)
        self.gate.changed()

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
        name = self.shared.settings.server_name
        self.shared.asked.clear()
        self.backlog.clear()
        for call in self.shared.table.clear():
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
