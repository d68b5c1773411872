"""Finds out when a Service leads to its pod.

A pod that is ready is taken up by the endpoints of its Service, and these by every node's proxy, up to a
second later. Only then may the status say Ready: the first call after that must work.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mcp_operator.adapters import tcp
from mcp_operator.adapters.errors import UnreachableError
from mcp_operator.core.naming import Key
from mcp_operator.handlers import tasks

logger = logging.getLogger(__name__)

FIRST_SECONDS: Final = 0.02
LAST_SECONDS: Final = 0.2
# A connection request that comes before the node's rules is lost, and TCP repeats it only after a second:
# better hang up early and ask again. Later tries are patient, for a slow network.
FIRST_CONNECT_SECONDS: Final = 0.03
LAST_CONNECT_SECONDS: Final = 1.0
# An operator that cannot reach Services (outside the cluster, behind a policy) must not hold up the status.
PATIENCE_SECONDS: Final = 5.0


@dataclass
class _Door:
    uid: str
    is_open: bool = False
    task: asyncio.Task[None] | None = None


class Doors:
    """The Services that are being tried, by owner."""

    def __init__(self, wake: Callable[[Key], None]) -> None:
        self._wake = wake
        self._doors: dict[Key, _Door] = {}

    def is_open(self, key: Key, uid: str, host: str, port: int) -> bool:
        """Whether the Service was found to lead to this pod; begins to try where that is not known yet."""
        door = self._doors.get(key)
        if door is not None and door.uid == uid:
            return door.is_open
        self.shut(key)
        door = self._doors[key] = _Door(uid)
        door.task = tasks.start(
            f"the try of the Service of {key[0]}/{key[1]}",
            self._try(key, door, host, port),
            lambda: self._open(key, door),
        )
        return False

    def shut(self, key: Key) -> None:
        """Forget what was found: the pod is not ready, or not the same."""
        door = self._doors.pop(key, None)
        if door is not None and door.task is not None:
            door.task.cancel()

    async def close(self) -> None:
        """End all tries. Idempotent."""
        running = [door.task for door in self._doors.values() if door.task is not None]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        self._doors.clear()

    async def _try(self, key: Key, door: _Door, host: str, port: int) -> None:
        loop = asyncio.get_running_loop()
        end, pause, patience = loop.time() + PATIENCE_SECONDS, FIRST_SECONDS, FIRST_CONNECT_SECONDS
        while loop.time() < end:
            try:
                await tcp.touch(host, port, patience)
            except UnreachableError:
                await asyncio.sleep(pause)
                pause = min(pause * 2, LAST_SECONDS)
                patience = min(patience * 1.5, LAST_CONNECT_SECONDS)
            else:
                break
        else:
            logger.warning("%s/%s: the Service cannot be reached from here, its pod can", *key)
        self._open(key, door)

    def _open(self, key: Key, door: _Door) -> None:
        """Found to be open, or not to be found out: a try that fails must not hold up the status either."""
        door.is_open = True
        self._wake(key)
