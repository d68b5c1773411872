"""One running relay: sessions, two ports, and an end that is bounded and can be asked for twice."""

import asyncio
import logging
import signal
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

import uvloop

from mcp_sidecar import log, memory
from mcp_sidecar.core.document import Keys
from mcp_sidecar.core.machine import State
from mcp_sidecar.session.perclient import PerClient
from mcp_sidecar.session.relay import Relay
from mcp_sidecar.settings import PER_CLIENT, Settings
from mcp_sidecar.web.admin import Admin
from mcp_sidecar.web.endpoint import Endpoint
from mcp_sidecar.web.server import Server

if TYPE_CHECKING:
    from mcp_sidecar.web.keyring import Keyring

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
DRAIN_SECONDS = 6.0
CLOSE_SECONDS = 0.5


class Service:
    """A relay with its servers; `stop` may be called at any time, and again."""

    def __init__(
        self, settings: Settings, listener: socket.socket, admin_listener: socket.socket | None
    ) -> None:
        self.relay = PerClient(settings) if settings.session_mode == PER_CLIENT else Relay(settings)
        self._stopping = asyncio.Event()
        self.failed = False
        self.relay.on_failure = self._fail
        keyring = _keyring(self.relay) if settings.jwt is not None else None
        clients = Server(Endpoint(self.relay, keyring), listener, CLOSE_SECONDS)
        clients.site.traffic = self.relay.metrics.counters["mcp_relay_client_bytes"]
        self.relay.connections = lambda: len(clients.site.connections)
        self._servers = [clients]
        if admin_listener is not None:
            self._servers.append(Server(Admin(self.relay, keyring), admin_listener, CLOSE_SECONDS))

    def stop(self) -> None:
        """Ask for the end."""
        self._stopping.set()

    def _fail(self) -> None:
        self.failed = True
        self.stop()

    async def run(self, ready: Callable[[], None]) -> None:
        """Serve until stopped; `ready` is called once both ports are served."""
        loop = asyncio.get_running_loop()
        serving = [loop.create_task(server.run_until_stopped()) for server in self._servers]
        self.relay.start()
        for server in self._servers:
            await server.serving.wait()
        ready()
        memory.release_code_now_and_then(loop)
        await self._stopping.wait()
        log.event("stopping", calls=len(self.relay.shared.table))
        # Without a process there is nothing to wait for: its calls were answered when it ended.
        await self.relay.drain(DRAIN_SECONDS if self.relay.upstream.state is not State.EXITED else 0.0)
        self.relay.shared.board.close()
        for server in self._servers:
            server.stop()
        await asyncio.gather(*serving)
        await self.relay.close()
        log.event("stopped")


def _keyring(relay: Relay) -> "Keyring":
    """The keys of the clients' token issuer: those that were kept, else those of the settings."""
    from mcp_sidecar.web.keyring import Keyring, KeySetError  # its libraries cost memory

    keyring, board = Keyring(), relay.shared.board

    def show() -> None:
        board.update(keys=Keys(keyring.digest, keyring.unknown, keyring.usable, keyring.source))

    keyring.on_change = show
    show()
    document = relay.shared.store.keys() or relay.settings.jwks
    if document:
        try:
            keyring.take(document)
        except KeySetError as error:
            log.event("keys_unusable", logging.ERROR, error=str(error))
    return keyring


def run(
    settings: Settings,
    listener: socket.socket,
    admin_listener: socket.socket | None,
    ready: Callable[[], None] = lambda: None,
    companion: int | None = None,
) -> int:
    """Run a relay until SIGTERM or SIGINT; gives the exit code, 1 after a defect of its own.

    `companion` is the pidfd of a process without which there is nothing to serve: the relay ends with it.
    """
    memory.tune()

    async def main() -> int:
        service = Service(settings, listener, admin_listener)
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, service.stop)
        if companion is not None:
            loop.add_reader(companion, _companion_ended, companion, service)
        await service.run(ready)
        # The loop takes its handlers with it; a second signal must not end what is left of the way in a rush.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        return int(service.failed)

    return uvloop.run(main())


def _companion_ended(companion: int, service: Service) -> None:
    asyncio.get_running_loop().remove_reader(companion)  # it stays readable for ever
    log.event("launcher_ended", logging.WARNING)
    service.stop()
