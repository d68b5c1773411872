"""Waiting for a session that can be used, with a bound and with the reason when there is none."""

import asyncio
from typing import Protocol

from mcp_sidecar.core import document, frames
from mcp_sidecar.core.machine import State
from mcp_sidecar.session.calls import RefusedError
from mcp_sidecar.session.channel import Channel
from mcp_sidecar.session.shared import Shared


class Session(Protocol):
    """What the gate sees of the session with the server."""

    shared: Shared

    @property
    def link(self) -> Channel:
        """The way to the server."""

    @property
    def state(self) -> State:
        """The state now."""

    @property
    def muted(self) -> bool:
        """Whether the process closed its input or output."""


class Gate:
    """Lets calls through once the session is up."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._gone = False
        self._waiting: dict[asyncio.Future[None], None] = {}  # in the order they came
        self._loop = asyncio.get_running_loop()

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def changed(self) -> None:
        """The state of the session changed: everybody who waits looks again."""
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)

    def launcher(self, *, gone: bool) -> None:
        """Tell whether the launcher has ended; it may have done so before it introduced any process."""
        self._gone = gone
        self.changed()

    async def ready(self, seconds: float) -> None:
        """Wait until the session is up, at most `seconds`.

        Raises:
            RefusedError: it is not, or cannot be.

        """
        end = self._loop.time() + seconds
        while self._session.state is not State.CONNECTED:
            self._refuse_unusable()
            left = end - self._loop.time()
            if left <= 0:
                text = f"is not ready: still {self._session.state.value} after {seconds:g} seconds"
                raise self._unavailable(text)
            await self._changed(left)
        if self._session.link.congested:
            raise self._unavailable("does not read its input; too much is waiting for it")

    def _refuse_unusable(self) -> None:
        state, facts = self._session.state, self._session.shared.board.facts
        if state is State.TERMINATING:
            raise self._unavailable("is shutting down", status=503)
        if state is State.EXITED and facts.exit is not None:
            raise self._unavailable(f"is not running: it {document.how_ended(facts.exit)}")
        if self._gone:
            raise self._unavailable("is not running: its launcher has ended")
        if state is State.REFUSED or self._session.muted:
            raise self._unavailable(f"cannot be used: {facts.error.message if facts.error else state.value}")

    def _unavailable(self, text: str, status: int = 200) -> RefusedError:
        name = self._session.shared.settings.server_name
        data = {"reason": "server_unavailable", "state": self._session.state.value}
        return RefusedError(frames.SERVER_ERROR, f"MCP server '{name}' {text}", data, status)

    async def _changed(self, seconds: float) -> None:
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiting[waiter] = None
        try:
            await asyncio.wait([waiter], timeout=seconds)
        finally:
            self._waiting.pop(waiter, None)
