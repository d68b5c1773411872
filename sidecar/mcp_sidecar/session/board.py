"""The status as it stands, its revision, and everybody who waits for the next one."""

import asyncio
import dataclasses
import secrets
from collections.abc import Callable
from typing import Any

from mcp_sidecar.core import document

CLIENTS_SETTLE_SECONDS = 1.0


class Board:
    """Facts that grow a revision with every change; readers wait for a revision they do not know yet."""

    def __init__(
        self,
        handshakes: Callable[[], int],
        clients: Callable[[], int],
        processes: Callable[[], int | None],
    ) -> None:
        self.instance = secrets.token_hex(8)
        self.revision = 1
        self.facts = document.Facts()
        self._handshakes = handshakes
        self._clients = clients
        self._processes = processes
        self._changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._held = False
        self._pending = False
        self._clients_timer: asyncio.TimerHandle | None = None

    def update(self, **changes: Any) -> None:
        """Change some facts; a change that changes nothing makes no revision."""
        facts = dataclasses.replace(self.facts, **changes)
        if facts != self.facts:
            self.facts = facts
            self._bump()

    def note(self, **changes: Any) -> None:
        """Change some facts that need not be known at once: with the number of clients they are published."""
        self.facts = dataclasses.replace(self.facts, **changes)
        self.clients_changed()

    def hold(self) -> None:
        """Collect changes into one revision until `release`: the session and its tools appear together."""
        self._held = True

    def release(self) -> None:
        """Publish what was held."""
        self._held = False
        if self._pending:
            self._bump()

    def clients_changed(self) -> None:
        """The number of clients changed; published at most once a second."""
        if self._clients_timer is None:
            loop = asyncio.get_running_loop()
            self._clients_timer = loop.call_later(CLIENTS_SETTLE_SECONDS, self._clients_settled)

    def document(self) -> bytes:
        """The status document now."""
        return document.render(
            self.facts,
            self.instance,
            self.revision,
            self._handshakes(),
            self._clients(),
            self._processes(),
        )

    async def wait(self, after: int | None, instance: str | None, seconds: float) -> bool:
        """Return when there is something the reader does not know (True), or after `seconds`."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while after == self.revision and instance in (None, self.instance):
            left = end - loop.time()
            if left <= 0:
                return False
            await asyncio.wait([self._changed], timeout=left)
        return True

    def close(self) -> None:
        """Stop the timer and let every reader go."""
        if self._clients_timer is not None:
            self._clients_timer.cancel()
        self._held = False
        self._bump()

    def _clients_settled(self) -> None:
        self._clients_timer = None
        self._bump()

    def _bump(self) -> None:
        if self._held:
            self._pending = True
            return
        self._pending = False
        self.revision += 1
        self._changed.set_result(None)
        self._changed = asyncio.get_running_loop().create_future()
