"""The connection to the launcher, made again whenever it breaks. No frame is lost or comes twice by that.

An asyncio Protocol with its own framing: StreamReader would cut at 64 KiB and copy everything twice. The
listener is called from the event loop's read callback and must never block.
"""

import asyncio
import contextlib
import errno
import logging
import os
import socket
from collections.abc import Mapping
from typing import Any, Protocol, cast

from mcp_sidecar import log
from mcp_sidecar.core import backoff, control, jsontext, lines
from mcp_sidecar.core.sent import Sent

CONTROL = b"\0"
FINISH_SECONDS = 1.0
LARGE_SECONDS = 30.0
"""A large frame is kept so long at least in case that the connection breaks; then only while it waits."""
# Of the relay itself, or of a launcher that is busy: they say nothing about whether it is there.
_OWN_FAULTS = frozenset({errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOBUFS, errno.ENOMEM, errno.EINTR})
_REST_BYTES = 65536


class Listener(Protocol):
    """What the link reports."""

    def control(self, message: dict[str, Any]) -> None:
        """The launcher says something about the process."""

    def line(self, line: lines.Line) -> None:
        """The server wrote a line (given without its end)."""

    def oversized(self, line: lines.Oversized) -> None:
        """The server wrote a line above the limit; it was dropped."""

    def unreadable(self, error: Exception) -> None:
        """A line met a defect of the relay; it was dropped."""

    def lost(self) -> None:
        """The connection broke."""

    def unreachable(self) -> None:
        """Nothing answers at the socket any more: the launcher has ended."""


class _Wire(asyncio.Protocol):
    """One connection. The link hears of its begin before the first line is read, which may want an answer."""

    def __init__(self, link: "Link", listener: Listener, limit: int) -> None:
        self.link = link
        self.listener = listener
        self.splitter = lines.LineSplitter(limit)
        self.loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[None] = self.loop.create_future()
        self.patience: asyncio.TimerHandle | None = None
        self.frames: list[bytes] = []
        self.sent = Sent()
        self.taken_before: int | None = None
        """Lines that the launcher had taken before this connection."""
        self.transport: asyncio.Transport | None = None
        self.rest: socket.socket | None = None
        """The same socket once more: what it holds when a write fails, the transport would not read."""
        self.congested = False
        self.letting_go: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        connection = transport.get_extra_info("socket")
        if connection is not None:  # what is no socket loses nothing
            self.rest = _again(connection)
        self.link.opened(self)

    def data_received(self, data: bytes) -> None:
        for line in self.splitter.feed(data):
            try:
                if isinstance(line, lines.Oversized):
                    self.listener.oversized(line)
                elif line[:1] == CONTROL:
                    self._control(line)
                else:
                    self.listener.line(line)
            except Exception as error:  # noqa: BLE001 - would end the connection, and come again with the next
                self.listener.unreadable(error)

    def _control(self, line: lines.Line) -> None:
        try:
            message = jsontext.loads(bytes(line[1:]))
        except jsontext.JsonError as error:
            log.event("launcher_message_unreadable", logging.WARNING, error=str(error))
            return
        # A connection that was given up can carry no answer to a greeting: the next one has its own.
        if isinstance(message, dict) and (message.get("event") != "hello" or self.link.met(self, message)):
            self.listener.control(message)

    def send(self, frame: bytes) -> None:
        """Queue a frame; all frames of one turn of the event loop go out in one system call."""
        if not self.frames:
            self.loop.call_soon(self._flush)
        self.frames.append(frame)

    def _flush(self) -> None:
        frames, self.frames = self.frames, []
        if self.transport is None or self.transport.is_closing():
            # What waited in the transport is gone, and how much that was: nothing of it may be forgotten now.
            self.sent.add(frames, None)
            return
        if not frames:
            return
        self.transport.write(b"\n".join((*frames, b"")))
        self.sent.add(frames, self.transport.get_write_buffer_size())
        if self.sent.large and self.letting_go is None:
            self._let_go_of(0)

    def _let_go_of(self, count: int) -> None:
        """Do without so many frames, if none of them waits any more; later without those sent until now."""
        self.letting_go = None
        if self.transport is None or self.transport.is_closing():
            return
        if not self.transport.get_write_buffer_size():
            self.sent.let_go(count)
        if self.sent.large:
            self.letting_go = self.loop.call_later(LARGE_SECONDS, self._let_go_of, self.sent.count)

    def finish(self) -> None:
        """Say that no more frames come; read on until the launcher closes: no line on its way is lost."""
        if self.transport is not None and self.patience is None:
            self._flush()
            self.transport.write_eof()
            self.patience = self.loop.call_later(FINISH_SECONDS, self.transport.abort)

    def close(self) -> None:
        """Close the connection after what was queued."""
        if self.transport is not None:
            self._flush()
            self.transport.close()

    def pause_writing(self) -> None:
        self.congested = True

    def resume_writing(self) -> None:
        self.congested = False

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        for timer in (self.patience, self.letting_go):
            if timer is not None:
                timer.cancel()
        self._read_rest()
        self.link.ended(self, error)
        if not self.closed.done():
            self.closed.set_result(None)

    def _read_rest(self) -> None:
        """Hand on what the launcher wrote before the connection ended: it will not come again."""
        if self.rest is None:
            return
        with self.rest as rest, contextlib.suppress(OSError):  # the connection is gone, and what it held
            rest.shutdown(socket.SHUT_RDWR)  # nothing comes after what is there
            while data := rest.recv(_REST_BYTES, socket.MSG_DONTWAIT):
                self.data_received(data)


def _again(connection: Any) -> socket.socket | None:
    """The same socket once more; None where the relay has no descriptor left: it does without."""
    try:
        return socket.socket(fileno=os.dup(connection.fileno()))
    except OSError as error:
        log.event("launcher_connection_not_copied", logging.WARNING, error=error.strerror or str(error))
        return None


class Link:
    """Keeps one connection to the launcher's socket at `path`; lines up to `limit` bytes."""

    def __init__(self, path: str, listener: Listener, limit: int) -> None:
        self._path = path
        self._listener = listener
        self._limit = limit
        self._wire: _Wire | None = None
        self._met: _Wire | None = None
        """The last connection whose launcher introduced its process; nothing is sent on one before that."""
        self._incarnation: object = None

    @property
    def congested(self) -> bool:
        """The server does not read: much is waiting to be written."""
        return self._wire is not None and self._wire.congested

    def write(self, frame: bytes) -> bool:
        """Send one frame, given without its line end; False when nothing is connected, or too much waits."""
        wire = self._wire
        if wire is None or wire.transport is None or wire.congested or wire is not self._met:
            return False
        wire.send(frame)
        return True

    def control(self, message: dict[str, Any]) -> bool:
        """Send one control message, whatever else waits; False when there is no connection."""
        wire = self._wire
        if wire is None or wire.transport is None or wire is not self._met:
            return False
        wire.send(CONTROL + jsontext.dumps(message))
        return True

    def reconnect(self) -> None:
        """Drop the connection, if there is one; it is made again at once."""
        wire = self._wire
        if wire is not None:
            self.ended(wire, None)
            wire.finish()

    async def run(self) -> None:
        """Connect, and connect again, until cancelled."""
        steps, attempt, told = backoff.FIRST_CONTACT, 0, False
        while True:
            try:
                wire = await self._connect()
            except OSError as error:
                # The launcher names its socket when it listens: one that refuses has ended.
                own = error.errno in _OWN_FAULTS
                if own:
                    log.event("launcher_not_asked", logging.WARNING, error=error.strerror or str(error))
                ended = isinstance(error, ConnectionRefusedError) or (steps is backoff.AFTER_DROP and not own)
                if ended and not told:
                    log.event("launcher_unreachable", logging.WARNING, error=error.strerror or str(error))
                    self._listener.unreachable()
                    told = True
            else:
                try:
                    await wire.closed
                finally:
                    wire.close()
                steps, attempt, told = backoff.AFTER_DROP, 0, False
            await asyncio.sleep(backoff.delay(steps, attempt))
            attempt += 1

    async def _connect(self) -> _Wire:
        loop = asyncio.get_running_loop()
        transport, wire = await loop.create_unix_connection(
            lambda: _Wire(self, self._listener, self._limit), self._path
        )
        transport.set_write_buffer_limits(high=self._limit)
        return wire

    def opened(self, wire: _Wire) -> None:
        """A connection was made."""
        self._wire = wire

    def met(self, wire: _Wire, hello: Mapping[str, Any]) -> bool:
        """The launcher introduces its process: one known from before gets what did not reach it.

        False: the connection is not to be used any more.
        """
        if wire is not self._wire or wire.transport is None:
            return False
        before, known = self._met, self._incarnation
        self._met, self._incarnation = wire, hello.get("incarnation")
        if wire is not before:
            wire.taken_before = control.lines_taken(hello)
            if before is not None and self._incarnation == known:
                self._send_again(before, wire)
        return True

    def _send_again(self, before: _Wire, wire: _Wire) -> None:
        if before.taken_before is None or wire.taken_before is None:
            return
        frames = before.sent.after(wire.taken_before - before.taken_before)
        lost = [frame for frame in frames if frame[:1] != CONTROL]  # who asked the launcher asks again
        for frame in lost:
            wire.send(frame)
        if lost:
            log.event("frames_sent_again", frames=len(lost))

    def ended(self, wire: _Wire, error: Exception | None) -> None:
        """A connection is not to be used any more; said at once, so that no frame is given to it."""
        if self._wire is wire:
            self._wire = None
            log.event("launcher_connection_lost", logging.WARNING, error=str(error) if error else None)
            self._listener.lost()
