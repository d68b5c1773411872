"""Waiting for an MCPServer, showing what it does meanwhile."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mcpsrv.cluster.kinds import SERVERS
from mcpsrv.cluster.kube import Kube
from mcpsrv.core import state
from mcpsrv.core.errors import NotFoundError
from mcpsrv.core.progress import Timeline
from mcpsrv.terminal import Terminal

Json = dict[str, Any]


@dataclass(frozen=True)
class Waited:
    """How waiting ended: the MCPServer as seen last, whether it is as wanted, and its phases until then."""

    server: Json
    done: bool
    timeline: Timeline
    seconds: float


async def until(
    kube: Kube, name: str, ends: Callable[[Json], bool | None], seconds: float, terminal: Terminal
) -> Waited:
    """Waits until `ends` says True (as wanted) or False (it will not be), at most so many seconds.

    Raises:
        NotFoundError: there is no such MCPServer, or it was deleted meanwhile.

    """
    began = time.monotonic()
    server: Json = {}
    timeline = Timeline()
    told: bool | None = None
    with terminal.waiting(f"{name}: waiting") as show:
        try:
            async with asyncio.timeout(seconds):
                async for change in kube.changes(SERVERS, [("fieldSelector", f"metadata.name={name}")]):
                    if change.gone:
                        raise NotFoundError(f"{name} was deleted meanwhile")
                    server = change.object
                    timeline = timeline.seen(server, time.monotonic() - began)
                    show(_news(name, timeline))
                    told = ends(server)
                    if told is not None:
                        break
        except TimeoutError:
            told = None
    took = time.monotonic() - began
    return Waited(server, bool(told), timeline.ended(took), took)


def ready(server: Json) -> bool | None:
    """Ends with Ready; gives up when no progress comes by itself."""
    if state.is_ready(server):
        return True
    return False if state.is_stalled(server) or state.is_refused(server) else None


def _news(name: str, timeline: Timeline) -> str:
    step = timeline.steps[-1]
    message = f": {step.message}" if step.message else ""
    return f"{name}: {step.phase}, {step.reason}{message}"[:300]
