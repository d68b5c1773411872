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


class _Connection(HttpToolsProtocol):
    """A connection that the application can cut."""

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
