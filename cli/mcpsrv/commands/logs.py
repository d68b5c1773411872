"""`logs`: what the server wrote to stderr, or the relay's log."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from mcp_operator.core import naming
from mcp_operator.manifests import names
from mcpsrv.cluster.access import Where
from mcpsrv.cluster.kinds import PODS, SERVERS
from mcpsrv.cluster.kube import Kube, connected
from mcpsrv.core import plain, state
from mcpsrv.core.errors import CliError, ExitCode, NotFoundError, UsageError
from mcpsrv.terminal import Terminal

Json = dict[str, Any]


@dataclass(frozen=True)
class Which:
    """Which lines: of which container, of the run before, how many of the last (None: all), how long."""

    relay: bool = False
    previous: bool = False
    follow: bool = False
    tail: int | None = None

    @property
    def container(self) -> str:
        """Name of the container."""
        return naming.RELAY_CONTAINER if self.relay else naming.SERVER_CONTAINER

    def query(self, *, follow: bool) -> list[tuple[str, str]]:
        """The API server's parameters."""
        found = [("container", self.container), ("follow", str(follow).lower())]
        found += [("previous", "true")] if self.previous else []
        return found + ([("tailLines", str(self.tail))] if self.tail is not None else [])


async def run(terminal: Terminal, where: Where, name: str, which: Which) -> ExitCode:
    """Copies the log to stdout. With `follow` it goes on with the next pod when one is replaced."""
    async with connected(where) as kube:
        server = await kube.get(SERVERS, name)
        if server["spec"].get("remote"):
            which = replace(which, relay=True)  # the server writes its log elsewhere
        if which.previous and not which.relay:
            return _kept(terminal, server)
        if not which.follow:
            await _copy(kube.log(await pod_of(kube, server), which.query(follow=False)))
            return ExitCode.OK
        pod = ""
        while True:
            following, pod = pod, await _next(kube, name, pod)
            if following:
                terminal.note(f"--- {pod} takes over", style="dim")
            await _copy(kube.log(pod, which.query(follow=True)))


async def pod_of(kube: Kube, server: Json) -> str:
    """Name of the newest pod. Raises NotFoundError, with the reason, if there is none."""
    name = server["metadata"]["name"]
    pods = await pods_of(kube, name)
    if not pods:
        now = state.situation(server)
        raise NotFoundError(f"{name} has no pod ({now.stage}): {now.message}")
    return str(pods[-1]["metadata"]["name"])


async def pods_of(kube: Kube, name: str) -> list[Json]:
    """The pods of an MCPServer, oldest first."""
    selector = f"{naming.SERVER}={names.base(name)}"
    found = await kube.list(PODS, query=[("labelSelector", selector)])
    return sorted(found, key=lambda pod: int(pod["metadata"]["labels"].get(naming.EPOCH) or 0))


def _kept(terminal: Terminal, server: Json) -> ExitCode:
    """What is left of the run before: its pod is gone, the operator kept the last lines."""
    name = server["metadata"]["name"]
    error = state.status(server).get("error") or {}
    if not error.get("stderrTail"):
        raise NotFoundError(
            f"nothing is kept of an earlier run of {name}: its pod is gone and it did not fail"
        )
    terminal.note(f"the pod is gone; these are the last lines that it wrote before {error['time']}:")
    sys.stdout.write(plain.shown(str(error["stderrTail"]).rstrip("\n")) + "\n")
    return ExitCode.OK


async def _copy(lines: AsyncIterator[bytes]) -> None:
    try:
        async for line in lines:
            # A file gets what the server wrote, a terminal nothing that it would obey.
            sys.stdout.buffer.write(plain.log_line(line) if sys.stdout.isatty() else line)
            sys.stdout.buffer.flush()
    except UsageError as error:
        # So the node says that the container has not started.
        raise NotFoundError(f"there is no log yet: {error}") from error


async def _next(kube: Kube, name: str, before: str) -> str:
    """The pod after this one, once its container has started. Raises NotFoundError without the MCPServer."""
    query = [("labelSelector", f"{naming.SERVER}={names.base(name)}")]
    watching = asyncio.create_task(_gone(kube, name))
    seeking = asyncio.create_task(_started(kube, query, before))
    try:
        await asyncio.wait({watching, seeking}, return_when=asyncio.FIRST_COMPLETED)
        if seeking.done():
            return seeking.result()
        raise NotFoundError(f"{name} was deleted")
    finally:
        for task in (watching, seeking):
            task.cancel()
        await asyncio.gather(watching, seeking, return_exceptions=True)


async def _gone(kube: Kube, name: str) -> None:
    async with aclosing(kube.changes(SERVERS, name=name)) as changes:
        async for change in changes:
            if change.gone:
                return


async def _started(kube: Kube, query: list[tuple[str, str]], before: str) -> str:
    async with aclosing(kube.changes(PODS, query)) as changes:
        async for change in changes:
            pod = change.object
            if pod["metadata"]["name"] != before and not change.gone and _has_started(pod):
                return str(pod["metadata"]["name"])
    raise CliError("the watch of the pods ended")


def _has_started(pod: Json) -> bool:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return any("waiting" not in (one.get("state") or {}) for one in statuses)
