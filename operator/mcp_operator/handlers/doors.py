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
# One that has reached others, and reaches this one's pod, knows better: the cluster has yet to take it up.
PATIENCE_SECONDS: Final = 5.0
SLOW_SECONDS: Final = 2.0

Address = tuple[str, int]


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
        self._reaches_services = False

    def is_open(self, key: Key, uid: str, service: Address, pod: Address) -> bool:
        """Whether the Service was found to lead to this pod; begins to try where that is not known yet.

        Both addresses are of the port for clients: host and port.
        """
        door = self._doors.get(key)
        if door is not None and door.uid == uid:
            return door.is_open
        self.shut(key)
        door = self._doors[key] = _Door(uid)
        door.task = tasks.start(
            f"the try of the Service of {key[0]}/{key[1]}",
            self._try(key, door, service, pod),
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

    async def _try(self, key: Key, door: _Door, service: Address, pod: Address) -> None:
        loop = asyncio.get_running_loop()
        end, pause, patience = loop.time() + PATIENCE_SECONDS, FIRST_SECONDS, FIRST_CONNECT_SECONDS
        slowest = LAST_SECONDS
        while not await _leads_somewhere(service, patience):
            if loop.time() >= end:
                if not (self._reaches_services and await _leads_somewhere(pod, LAST_CONNECT_SECONDS)):
                    logger.warning("%s/%s: the Service cannot be reached from here", *key)
                    break
                if slowest != SLOW_SECONDS:
                    logger.warning("%s/%s: the Service does not lead to its pod, which works", *key)
                    slowest = SLOW_SECONDS
            await asyncio.sleep(pause)
            pause = min(pause * 2, slowest)
            patience = min(patience * 1.5, LAST_CONNECT_SECONDS)
        else:
            self._reaches_services = True
        self._open(key, door)

    def _open(self, key: Key, door: _Door) -> None:
        """Found to be open, or not to be found out: a try that fails must not hold up the status either."""
        door.is_open = True
        self._wake(key)


async def _leads_somewhere(address: Address, seconds: float) -> bool:
    try:
        await tcp.touch(*address, seconds)
    except UnreachableError:
        return False
    return True
