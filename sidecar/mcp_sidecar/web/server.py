"""uvicorn, reduced to what a relay needs: httptools, no access log, no signals, no ticking."""

import asyncio
import contextlib
import socket
from collections.abc import Generator
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from mcp_sidecar.web import replies

KEEP_ALIVE_SECONDS = 75
BACKLOG = 2048
# A client that takes nothing for this long is cut off by the kernel: its connection cannot stay for ever.
UNREAD_MILLISECONDS = 60_000
# Heads of responses, but not of the interim ones (100 Continue), which have to go out at once.
_FINAL_HEADS = (b"HTTP/1.1 2", b"HTTP/1.1 4", b"HTTP/1.1 5")


class _Transport:
    """A transport that sends the head of a reply together with what follows: one packet and one system call.

    Every reply of this relay writes its body right after its head, so nothing is held for long.
    """

    __slots__ = (
        "_held",
        "abort",
        "get_extra_info",
        "is_closing",
        "pause_reading",
        "resume_reading",
        "transport",
    )

    def __init__(self, transport: asyncio.Transport) -> None:
        self._held = b""
        self.transport = transport
        self.abort = transport.abort
        self.get_extra_info = transport.get_extra_info
        self.is_closing = transport.is_closing
        self.pause_reading = transport.pause_reading
        self.resume_reading = transport.resume_reading

    def write(self, data: bytes) -> None:
        """Write, or hold the head of a final response."""
        if self._held:
            held, self._held = self._held, b""
            self.transport.writelines((held, data) if data else (held,))
        elif isinstance(data, bytes) and data.startswith(_FINAL_HEADS):  # large bodies come as memoryview
            self._held = data
        else:
            self.transport.write(data)

    def close(self) -> None:
        """Close once everything is written."""
        if self._held:
            self.write(b"")
        self.transport.close()


class _Connection(HttpToolsProtocol):
    """A connection that the application can cut."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in the base class
        """A client connected."""
        super().connection_made(_Transport(transport))  # type: ignore[arg-type]  # it has all that uvicorn uses

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self.scope["extensions"] = {replies.ABORT: self.transport.abort}  # type: ignore[dict-item]  # extensions are free-form in ASGI


class Server(uvicorn.Server):
    """Serves one application on one socket until it is told to stop."""

    def __init__(self, application: Any, listener: socket.socket, grace_seconds: float) -> None:
        super().__init__(
            uvicorn.Config(
                application,
                http=_Connection,
                ws="none",
                loop="none",
                lifespan="off",
                interface="asgi3",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                date_header=False,
                backlog=BACKLOG,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
            )
        )
        self._listener = listener
        self._grace = grace_seconds
        self._quit = asyncio.Event()
        self.serving = asyncio.Event()
        """Set once connections are taken."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Signals are the service's business."""
        yield

    async def run_until_stopped(self) -> None:
        """Serve; returns when stopped and every connection is closed."""
        await self.serve(sockets=[self._listener])

    async def main_loop(self) -> None:
        """Wait; uvicorn's own loop wakes ten times a second for a date header."""
        self.serving.set()
        await self._quit.wait()

    def stop(self) -> None:
        """Stop serving."""
        self._quit.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections; let replies finish for a moment, then cut what is left."""
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        pending = list(self.server_state.tasks)
        if pending:
            await asyncio.wait(pending, timeout=self._grace)
        for task in list(self.server_state.tasks):
            task.cancel()
        for connection in list(self.server_state.connections):
            connection.transport.abort()


def listen(host: str, port: int) -> socket.socket:
    """A listening socket on an address; port 0 takes a free one.

    Raises:
        OSError: the address cannot be had.

    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREAD_MILLISECONDS)
        listener.bind((host, port))
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener
