"""A port: connections are taken, looked after, and ended in order."""

import asyncio
import socket

from mcp_sidecar.web.connection import Connection, Site
from mcp_sidecar.web.exchange import Application

BACKLOG = 2048
CHECK_SECONDS = 1.0
# A client that takes nothing for this long is cut off by the kernel: its connection cannot stay for ever.
UNREAD_MILLISECONDS = 60_000


class Server:
    """Serves one application on one socket until it is told to stop."""

    def __init__(self, application: Application, listener: socket.socket, grace_seconds: float) -> None:
        self.site = Site(application)
        self._listener = listener
        self._grace = grace_seconds
        self._quit = asyncio.Event()
        self._checking: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self.serving = asyncio.Event()
        """Set once connections are taken."""

    async def run_until_stopped(self) -> None:
        """Serve; returns when stopped and every connection is closed."""
        server = await self._loop.create_server(self._connect, sock=self._listener, backlog=BACKLOG)
        self.serving.set()
        await self._quit.wait()
        server.close()
        await self._shut_down()

    def stop(self) -> None:
        """Stop serving."""
        self._quit.set()

    def _connect(self) -> Connection:
        if self._checking is None:
            self._checking = self._loop.call_later(CHECK_SECONDS, self._check)
        return Connection(self.site, self._loop)

    def _check(self) -> None:
        """Look at every connection; with none there is nothing to wake up for."""
        now = self._loop.time()
        changed = self.site.application.changed()
        for connection in list(self.site.connections):
            if changed:
                connection.doubt()
            connection.check(now)
        again = bool(self.site.connections)
        self._checking = self._loop.call_later(CHECK_SECONDS, self._check) if again else None

    async def _shut_down(self) -> None:
        """Let replies finish for a moment, then cut what is left."""
        site = self.site
        site.closing = True
        for connection in list(site.connections):
            connection.end()
        if site.connections:
            try:
                await asyncio.wait_for(site.emptied.wait(), self._grace)
            except TimeoutError:
                for connection in list(site.connections):
                    connection.abort()
        for task in list(site.tasks):
            task.cancel()
        await asyncio.gather(*site.tasks, return_exceptions=True)
        if self._checking is not None:
            self._checking.cancel()


def listen(host: str, port: int) -> socket.socket:
    """A listening socket on an address; "" means all, of both families; port 0 takes a free one.

    Raises:
        OSError: the address cannot be had.

    """
    both = not host and socket.has_dualstack_ipv6()
    listener = socket.socket(socket.AF_INET6 if both or ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        if both:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
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
