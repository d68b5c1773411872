"""A keyed work queue: one task per busy key, wake-ups coalesce, failures back off, time can wake too."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from mcp_operator.adapters.errors import OutageError
from mcp_operator.core.naming import Key

BASE_SECONDS = 0.25
CAP_SECONDS = 60.0
# What failed because nobody answered is not to blame: it goes on soon after the outage.
OUTAGE_CAP_SECONDS = 1.0
# After a failure not even an event starts the next run sooner.
SPACING_SECONDS = 1.0


@dataclass
class _Slot:
    """What is known about one key."""

    task: asyncio.Task[None] | None = None
    started: float | None = None
    again: bool = False
    failures: int = 0
    not_before: float = 0.0
    timer: asyncio.TimerHandle | None = None
    due: float = 0.0


class WorkQueue:
    """Runs `work(key)` for every key that was woken, never twice at once for one key.

    `work` returns the number of seconds after which it wants to be called again, or None. If it raises, it is
    called again after a growing, capped delay. Must be used from one event loop.
    """

    def __init__(
        self,
        work: Callable[[Key], Awaitable[float | None]],
        concurrency: int,
        failed: Callable[[Key, Exception, float], None],
    ) -> None:
        self._work = work
        self._failed = failed
        self._slots: dict[Key, _Slot] = {}
        self._permits = asyncio.Semaphore(concurrency)
        self._closed = False

    def wake(self, key: Key) -> None:
        """Run for this key as soon as possible."""
        if self._closed:
            return
        slot = self._slots.setdefault(key, _Slot())
        if slot.task is not None:
            slot.again = True
            return
        wait = slot.not_before - asyncio.get_running_loop().time()
        if wait > 0:
            self._arm(key, slot, wait)
        else:
            self._start(key, slot)

    def oldest(self) -> float:
        """Seconds since the start of the run that takes longest; 0 when none is running."""
        now = asyncio.get_running_loop().time()
        return max(
            (now - slot.started for slot in self._slots.values() if slot.started is not None), default=0.0
        )

    async def close(self) -> None:
        """End all runs and timers. Idempotent."""
        self._closed = True
        tasks = []
        for slot in self._slots.values():
            self._disarm(slot)
            if slot.task is not None:
                slot.task.cancel()
                tasks.append(slot.task)
        await asyncio.gather(*tasks, return_exceptions=True)
        self._slots.clear()

    def _start(self, key: Key, slot: _Slot) -> None:
        self._disarm(slot)
        slot.again = False
        slot.task = asyncio.get_running_loop().create_task(self._run(key, slot), name=f"reconcile {key}")

    async def _run(self, key: Key, slot: _Slot) -> None:
        loop = asyncio.get_running_loop()
        delay: float | None = None
        try:
            async with self._permits:
                slot.started = loop.time()
                delay = await self._work(key)
                slot.failures, slot.not_before = 0, 0.0
        except Exception as error:  # noqa: BLE001 - whatever went wrong, this key is tried again and the rest go on
            delay = self._back_off(slot, error)
            self._failed(key, error, delay)
        finally:
            slot.started = None
            slot.task = None
        self._continue(key, slot, delay)

    def _continue(self, key: Key, slot: _Slot, delay: float | None) -> None:
        if self._closed:
            return
        if slot.again:
            slot.again = False
            self.wake(key)
        elif delay is not None:
            self._arm(key, slot, delay)
        else:
            self._slots.pop(key, None)

    def _back_off(self, slot: _Slot, error: Exception) -> float:
        cap = OUTAGE_CAP_SECONDS if isinstance(error, OutageError) else CAP_SECONDS
        delay = min(cap, BASE_SECONDS * 2.0 ** min(slot.failures, 30))
        slot.failures += 1
        slot.not_before = asyncio.get_running_loop().time() + min(delay, SPACING_SECONDS)
        return delay

    def _arm(self, key: Key, slot: _Slot, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + max(seconds, 0.0)
        if slot.timer is not None and slot.due <= due:
            return
        self._disarm(slot)
        slot.due = due
        slot.timer = loop.call_at(due, self._due, key)

    def _due(self, key: Key) -> None:
        slot = self._slots.get(key)
        if slot is not None:
            slot.timer = None
            slot.not_before = 0.0
            self.wake(key)

    @staticmethod
    def _disarm(slot: _Slot) -> None:
        if slot.timer is not None:
            slot.timer.cancel()
            slot.timer = None
