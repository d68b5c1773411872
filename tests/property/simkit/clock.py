"""An event loop whose time is made up."""

import asyncio
import contextlib
import selectors
from collections.abc import Callable, Iterator
from typing import Any, Protocol
from unittest import mock

from mcp_sidecar.session import clients, upstream

EPOCH = 1_764_470_000.0
MOMENT = 1e-6
"""Seconds after which everything has happened that needs no time."""


class _Selector(selectors.SelectSelector):
    """Instead of waiting, moves the clock."""

    now = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "everybody waits for somebody else"
        self.now += max(0.0, timeout)
        return []


class Acceptor(Protocol):
    """What answers at the launcher's socket."""

    def accept(self, factory: Callable[[], asyncio.Protocol]) -> tuple[asyncio.Transport, asyncio.Protocol]:
        """Connect, or raise OSError."""


class Loop(asyncio.SelectorEventLoop):
    """Connects Unix sockets to `acceptor`; `failures` are the exceptions that nobody took."""

    def __init__(self) -> None:
        self._clock = _Selector()
        super().__init__(self._clock)
        self.acceptor: Acceptor | None = None
        self.failures: list[dict[str, Any]] = []
        self.set_exception_handler(lambda _loop, context: self.failures.append(context))

    def time(self) -> float:
        return self._clock.now

    async def create_unix_connection(  # type: ignore[override]  # of its many arguments the relay uses two
        self, protocol_factory: Callable[[], asyncio.Protocol], path: str
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        assert self.acceptor is not None, path
        return self.acceptor.accept(protocol_factory)


class _Time:
    """Stands in for the module `time`."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop

    def time(self) -> float:
        return EPOCH + self._loop.time()

    def time_ns(self) -> int:
        return int(self.time() * 1e9)


@contextlib.contextmanager
def made_up_time() -> Iterator[Loop]:
    """A loop, and the relay's wall clock set by it."""
    loop = Loop()
    with mock.patch.object(upstream, "time", _Time(loop)), mock.patch.object(clients, "time", _Time(loop)):
        yield loop


async def moment() -> None:
    """Let everything happen that needs no time."""
    await asyncio.sleep(MOMENT)
