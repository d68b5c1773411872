"""Tasks that must not end by themselves, and what follows when one does."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

logger = logging.getLogger(__name__)


def start(name: str, work: Coroutine[Any, Any, None], died: Callable[[], None]) -> asyncio.Task[None]:
    """Run a coroutine as a task; if an error ends it, that is logged and `died` is called."""
    task = asyncio.get_running_loop().create_task(work, name=name)

    def ended(task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            logger.error("%s ended by an error", name, exc_info=error)
            died()

    task.add_done_callback(ended)
    return task


async def together(*works: Coroutine[Any, Any, Any]) -> None:
    """Run all of them; the first that ends, or fails, ends the others. Its error is raised."""
    tasks = [asyncio.get_running_loop().create_task(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()
