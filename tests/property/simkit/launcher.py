"""Launcher and server in one: what the relay is connected to, on command."""

import asyncio
import json
from collections import deque
from collections.abc import Callable
from typing import Any

from simkit.clock import EPOCH, Loop

Json = dict[str, Any]
Event = Callable[[], None]
CAPABILITIES: Json = {"tools": {"listChanged": True}, "logging": {}}


class Pipe(asyncio.Transport):
    """The launcher's end of one connection."""

    def __init__(self, launcher: "Launcher", protocol: asyncio.Protocol, loop: Loop) -> None:
        super().__init__()
        self._launcher = launcher
        self._loop = loop
        self._text = b""
        self.protocol = protocol
        self.lost = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self.lost:
            return
        *lines, self._text = (self._text + bytes(data)).split(b"\n")
        for line in lines:
            self._loop.call_soon(self._launcher.receive, line)

    def write_eof(self) -> None:
        self._loop.call_soon(self.lose)

    def close(self) -> None:
        self._loop.call_soon(self.lose)

    def abort(self) -> None:
        self._loop.call_soon(self.lose)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing is buffered here."""

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self.lost

    def lose(self) -> None:
        """The connection breaks."""
        if not self.lost:
            self.lost = True
            if self._launcher.pipe is self:
                self._launcher.pipe = None
                self._launcher.written = 0  # a line that was cut off is sent again from its start
            self.protocol.connection_lost(None)


class Launcher:
    """Holds the process's lines while nobody is connected, as the real one does.

    Lines wait in `queue`, each with what the model is told at the moment the relay gets it whole.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self.pipe: Pipe | None = None
        self.refusing = True
        self.incarnation = 0
        self.started = 0.0
        self.shy = False
        self.mute = False
        self.held = False
        self.asked_to_initialize: list[int] = []
        self.queue: deque[tuple[bytes, Event]] = deque()
        self.written = 0
        self.drained = 0
        self.handshakes: list[int] = []
        """Incarnations that were sent `initialize`."""
        self.on_refused: Event = lambda: None
        self.on_greeting: Event = lambda: None
        self.on_introduced: Event = lambda: None
        self.on_message: Callable[[Json, bytes], None] = lambda _message, _raw: None

    # The process.

    def start(self, *, shy: bool = False) -> None:
        """A new process; a shy one answers `initialize` only when told to."""
        self.incarnation += 1
        self.started = EPOCH + self._loop.time()
        self.refusing = self.mute = self.held = False
        self.shy = shy
        self.asked_to_initialize.clear()
        self.queue.clear()
        self.written = 0

    def end(self) -> None:
        """The process ends: its last lines, how it ended, and nothing more."""
        self.held = False
        self.pump()
        self.say({"event": "exit", "exitCode": 1, "signal": None, "reason": "Exited", "message": ""})
        self.vanish()

    def vanish(self) -> None:
        """The launcher is gone without a word."""
        self.refusing = True
        self.queue.clear()
        self.drop()

    def drop(self) -> None:
        """The connection breaks."""
        if self.pipe is not None:
            self.pipe.lose()

    def accept(self, factory: Callable[[], asyncio.Protocol]) -> tuple[asyncio.Transport, asyncio.Protocol]:
        if self.refusing:
            self.on_refused()
            raise ConnectionRefusedError
        assert self.pipe is None, "one relay at a time"
        protocol = factory()
        self.pipe = Pipe(self, protocol, self._loop)
        protocol.connection_made(self.pipe)
        self._loop.call_soon(self._greet, self.pipe)
        return self.pipe, protocol

    def _greet(self, pipe: Pipe) -> None:
        if pipe is self.pipe:
            hello = {
                "event": "hello", "version": 1, "incarnation": f"process-{self.incarnation}", "pid": 17,
                "startTime": self.started, "stdoutClosed": self.mute,
            }  # fmt: skip
            self.on_greeting()
            self.say(hello)
            self.pump()

    # What the relay hears.

    def say(self, control: Json) -> None:
        """A control line, after the rest of a line that is on its way."""
        if self.pipe is not None:
            if self.written:
                line, event = self.queue.popleft()
                rest, self.written = line[self.written :], 0
                event()
                self.pipe.protocol.data_received(rest)
            self.pipe.protocol.data_received(b"\0" + json.dumps(control).encode() + b"\n")

    def put(self, line: bytes, event: Event = lambda: None, cut: int = 0) -> bool:
        """The server writes a line; with `cut` the rest comes with whatever comes next. False: it cannot."""
        if self.mute or self.refusing:
            return False
        self.pump()
        self.queue.append((line + b"\n", event))
        if cut and self.pipe is not None and not self.held:
            self.written = min(cut, len(line))
            self.pipe.protocol.data_received(line[: self.written])
        else:
            self.pump()
        return True

    def pump(self) -> None:
        """Deliver what waits, in one piece."""
        if self.pipe is None or self.held or not self.queue:
            return
        lines = [line for line, _ in self.queue]
        events = [event for _, event in self.queue]
        data, self.written = b"".join(lines)[self.written :], 0
        self.queue.clear()
        for event in events:
            event()
        self.pipe.protocol.data_received(data)

    def release(self) -> None:
        """Deliver what was held back."""
        self.held = False
        self.pump()

    # What the server hears.

    def receive(self, line: bytes) -> None:
        if line.startswith(b"\0"):
            self._control(json.loads(line[1:]))
            return
        message = json.loads(line)
        method = message.get("method")
        if method == "initialize":
            self.handshakes.append(self.incarnation)
            self.asked_to_initialize.append(message["id"])
            if not self.shy:
                self._loop.call_soon(self.introduce)
        elif method == "tools/list":
            self._loop.call_soon(self.answer, message["id"], {"tools": []})
        else:
            self.on_message(message, line)

    def _control(self, message: Json) -> None:
        if message["event"] == "mask":
            self.say({"event": "masked", "id": message["id"], "texts": message["texts"]})
        self.drained += message["event"] == "drained"

    def introduce(self) -> None:
        """Answer `initialize`."""
        for number in self.asked_to_initialize:
            info = {"name": "simulated", "version": "1"}
            result = {"protocolVersion": "2025-11-25", "capabilities": CAPABILITIES, "serverInfo": info}
            self.answer(number, result, self.on_introduced)
        self.asked_to_initialize.clear()

    def answer(self, number: int, result: Json, event: Event = lambda: None) -> None:
        self.put(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode(), event)
