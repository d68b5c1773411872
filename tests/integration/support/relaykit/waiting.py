"""Waiting for a condition, with a bound."""

import asyncio
from collections.abc import Awaitable, Callable

STEP_SECONDS = 0.02


async def eventually(holds: Callable[[], Awaitable[bool]], seconds: float = 5) -> None:
    """Return once `holds` gives True; a TimeoutError after `seconds`."""
    async with asyncio.timeout(seconds):
        while not await holds():  # noqa: ASYNC110 - what is awaited happens in another process
            await asyncio.sleep(STEP_SECONDS)
