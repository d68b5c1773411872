"""Waiting for a condition, with a bound; and what is to be quick, measured."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable

STEP_SECONDS = 0.02
# More than one step takes unless the machine, or this process, stands still.
MAX_STEP_SECONDS = 0.1


async def eventually(holds: Callable[[], Awaitable[bool]], seconds: float = 5) -> None:
    """Return once `holds` gives True; a TimeoutError after `seconds`."""
    async with asyncio.timeout(seconds):
        while not await holds():  # noqa: ASYNC110 - what is awaited happens in another process
            await asyncio.sleep(STEP_SECONDS)


@contextlib.asynccontextmanager
async def stopwatch() -> AsyncIterator[Callable[[], float]]:
    """Gives the seconds since now; a moment in which the whole machine stood still counts little.

    So a bound holds of what is measured, not of the machine.
    """
    passed, last = 0.0, time.monotonic()

    def look() -> float:
        nonlocal passed, last
        now = time.monotonic()
        passed, last = passed + min(now - last, MAX_STEP_SECONDS), now
        return passed

    async def tick() -> None:
        while True:
            await asyncio.sleep(STEP_SECONDS)
            look()

    ticking = asyncio.create_task(tick())
    try:
        yield look
    finally:
        ticking.cancel()
        await asyncio.gather(ticking, return_exceptions=True)
