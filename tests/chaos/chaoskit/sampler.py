"""Looks at every server ten times a second: what its status says, and whether a call passes."""

import asyncio
import contextlib
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import httpx

from chaoskit import load
from chaoskit.calls import Outcome
from chaoskit.facts import LIMIT_OF_CORPSES, of_status
from chaoskit.truth import INTERVAL, Sample, Span
from chaoskit.world import Target, World, epoch_of
from clusterkit import kube as k
from clusterkit.leanmcp import McpClient
from clusterkit.servers import SERVER_LABEL

Json = dict[str, Any]
ANSWER_SECONDS = 1.0
READ_SECONDS = 0.8
# By so much more than an interval a look may be late; beyond that the suite itself was not run.
STALL_SECONDS = 0.3
# A server that answers nothing gets no more probes than this at a time; further ones would wait as well.
MOST_OPEN = 15


def is_going(pods: list[Json]) -> bool:
    """Whether what answers is a pod on its way out: one is, and the newest is it or not ready yet."""
    newest = max(pods, key=epoch_of, default=None)
    if newest is None:
        return True
    conditions = {entry["type"]: entry["status"] for entry in newest["status"].get("conditions", ())}
    leaving = any("deletionTimestamp" in pod["metadata"] for pod in pods)
    return "deletionTimestamp" in newest["metadata"] or (leaving and conditions.get("Ready") != "True")


@dataclass
class Sampler:
    """Samples by server, in the order in which they were begun, and what they showed last."""

    world: World
    ledger: load.Ledger
    samples: dict[str, list[Sample]] = field(default_factory=lambda: defaultdict(list))
    status: dict[str, Json] = field(default_factory=dict)
    corpses: list[str] = field(default_factory=list)
    clients: dict[str, McpClient] = field(default_factory=dict)
    open: dict[str, set[asyncio.Task[Any]]] = field(default_factory=lambda: defaultdict(set))
    looks: set[asyncio.Task[None]] = field(default_factory=set)
    errors: list[BaseException] = field(default_factory=list)
    """Of the suite itself."""
    stalls: list[Span] = field(default_factory=list)
    """When the suite itself was not run, from the last look before."""

    async def run(self) -> None:
        """Sample for ever."""
        due = time.monotonic()
        while True:
            began = time.monotonic()
            look = asyncio.create_task(self._look(began))
            self.looks.add(look)
            look.add_done_callback(self._ended)
            due = max(due + INTERVAL, began)
            await asyncio.sleep(due - time.monotonic())
            if (now := time.monotonic()) > due + STALL_SECONDS:
                self.stalls.append(Span(began, now))

    async def finish(self) -> None:
        """Wait for the looks and probes that are under way."""
        while waiting := [*self.looks, *(task for tasks in self.open.values() for task in tasks)]:
            await asyncio.wait(waiting)

    def _ended(self, look: asyncio.Task[None]) -> None:
        self.looks.discard(look)
        if not look.cancelled() and (error := look.exception()) is not None:
            self.errors.append(error)

    async def _look(self, at: float) -> None:
        targets = list(self.world.targets.values())
        slots = {target.name: self._slot(target.name, at) for target in targets}
        reading = asyncio.create_task(self._read())
        probes = await asyncio.gather(*(self._probe(target) for target in targets))
        read = await reading
        for target, (works, note, answered) in zip(targets, probes, strict=True):
            found = Sample(at, None, works, note=note, answered=answered)
            if read is not None:
                found = self._compare(found, target, *read)
            self.samples[target.name][slots[target.name]] = found

    def _slot(self, name: str, at: float) -> int:
        """Keep the place of a look that has begun: a later one may end earlier."""
        self.samples[name].append(Sample(at, None, None))
        return len(self.samples[name]) - 1

    async def _read(self) -> tuple[dict[str, Json], list[Json]] | None:
        """All MCPServers and their pods; None when the API server does not tell in time."""
        kube, namespace = self.world.kube, self.world.namespace
        with contextlib.suppress(TimeoutError, k.ApiError, httpx.HTTPError):
            async with asyncio.timeout(READ_SECONDS):
                items, pods = await asyncio.gather(
                    kube.list(k.MCPSERVERS, namespace), kube.list(k.PODS, namespace, self.world.selector)
                )
            self.status = {item["metadata"]["name"]: item for item in items}
            return self.status, pods
        return None

    def _compare(self, sample: Sample, target: Target, items: dict[str, Json], pods: list[Json]) -> Sample:
        item = items.get(target.name, {})
        own = [pod for pod in pods if pod["metadata"]["labels"][SERVER_LABEL] == target.name]
        self._count_corpses(target.name, own)
        going = is_going(own)
        phase = (item.get("status") or {}).get("phase", "")
        note = f"{phase}; {sample.note}" if sample.note else phase
        return replace(sample, ready=of_status(item)["ready"], going=going, note=note)

    def _count_corpses(self, name: str, pods: list[Json]) -> None:
        dead = [
            pod["metadata"]["name"]
            for pod in pods
            if pod["status"].get("phase") in ("Failed", "Succeeded")
            and "deletionTimestamp" not in pod["metadata"]
        ]
        if len(dead) > LIMIT_OF_CORPSES:
            self.corpses.append(f"{name}: {', '.join(sorted(dead))}")

    async def _probe(self, target: Target) -> tuple[bool, str, float]:
        """Whether a call sent now is answered within a second, why not, and when it was."""
        waiting = self.open[target.name]
        if len(waiting) >= MOST_OPEN:
            return False, "earlier probes still wait", time.monotonic()
        client = self.clients.setdefault(target.name, load.client_of(target))
        task = asyncio.create_task(load.one_call(self.ledger, target, client, f"{target.name}-p"))
        waiting.add(task)
        task.add_done_callback(waiting.discard)
        await asyncio.wait({task}, timeout=ANSWER_SECONDS)
        if not task.done():
            return False, f"no answer within {ANSWER_SECONDS:g} s", time.monotonic()
        call = task.result()
        return call.outcome is Outcome.ANSWERED, call.detail, call.ended

    async def until(self, holds: Callable[[], bool], within: float) -> bool:
        """Whether a condition on what the sampler saw holds in time."""
        end = time.monotonic() + within
        while not holds():
            if time.monotonic() > end:
                return False
            await asyncio.sleep(INTERVAL / 2)
        return True

    def passes(self, name: str, since: float) -> bool:
        """Whether a probe that was sent after `since` has been answered in time."""
        return any(sample.works and sample.at > since for sample in self.samples[name][-10:])
