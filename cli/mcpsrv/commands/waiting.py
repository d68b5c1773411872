"""Waiting for an MCPServer, showing what it does meanwhile."""

import asyncio
import time
from collections.abc import Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any, Final

from mcpsrv.cluster.kinds import SERVERS
from mcpsrv.cluster.kube import Kube
from mcpsrv.core import state
from mcpsrv.core.errors import AccessError, NotFoundError
from mcpsrv.core.progress import Timeline
from mcpsrv.terminal import Terminal

Json = dict[str, Any]

# What looks final must stay so for as long: the operator may see a Secret later than who needs it.
_DOUBT_SECONDS: Final = 3.0


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
    """Waits until `ends` says True, or False for a few seconds, at most so many seconds.

    Raises:
        NotFoundError: there is no such MCPServer, or it was deleted meanwhile.

    """
    began = time.monotonic()
    loop = asyncio.get_running_loop()
    last = loop.time() + seconds
    server: Json = {}
    timeline = Timeline()
    told: bool | None = None
    with terminal.waiting(f"{name}: waiting") as show, suppress(TimeoutError):
        async with asyncio.timeout_at(last) as limit, aclosing(kube.changes(SERVERS, name=name)) as changes:
            async for change in changes:
                if change.gone:
                    raise NotFoundError(f"the MCPServer {name} does not exist any more")
                server, before = change.object, told
                timeline = timeline.seen(server, time.monotonic() - began)
                show(_news(name, timeline))
                told = ends(server)
                if told:
                    break
                if told is None or before is None:
                    limit.reschedule(last if told is None else min(last, loop.time() + _DOUBT_SECONDS))
    if not server:
        raise AccessError(f"the cluster told nothing of {name} within {seconds:.0f} s")
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
    return f"{name}: {state.stage(step.phase, step.reason)}{message}"[:300]
