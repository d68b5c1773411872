"""One run: servers, clients and sampler around a sequence of faults, and a verdict at the end."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import httpx

from chaoskit import facts, injectors, load, report, truth, upheavals, world
from chaoskit.calls import judge
from chaoskit.kinds import HUNG, Kind, Scope
from chaoskit.report import Findings, Recovery
from chaoskit.sampler import Sampler
from chaoskit.schedule import Fault, Round
from chaoskit.truth import Span
from chaoskit.world import Target, World
from clusterkit import kube as k
from clusterkit.servers import SERVER_LABEL, container_status

# A disturbance that changes nothing gets this long to show that it does.
SETTLE_SECONDS = 1.5
# Beyond its bound a recovery is waited for, so that the report can tell how long it took.
OVERTIME = 60.0
LEFT_OVER_SECONDS = 40.0
# For a session to become stable, beside what else goes on.
RETRY_SECONDS = 60.0
# What keeps a fault from being made as it was meant.
NOT_MADE = (injectors.FaultError, k.WaitError, k.ApiError, httpx.HTTPError, AssertionError, OSError)
INJECTORS = {**injectors.SERVER_FAULTS, **upheavals.CLUSTER_FAULTS}


@dataclass
class Campaign:
    """The moving parts of a run; `say` prints progress."""

    world: World
    ledger: load.Ledger
    sampler: Sampler
    found: Findings
    say: Callable[[str], None]

    async def run(self, rounds: tuple[Round, ...]) -> None:
        """Make all faults, one round after the other."""
        for faults in rounds:
            await asyncio.gather(*(self._fault(fault) for fault in faults))

    async def _fault(self, fault: Fault) -> None:
        await asyncio.sleep(fault.pause)
        meant = self.world.targets[fault.server]
        if fault.kind.scope is Scope.SERVER:
            hit = {meant.name: fault.kind}
        else:
            others = facts.for_bystander(fault.kind)
            hit = {name: fault.kind if name == meant.name else others for name in self.world.targets}
        before = await self._before(hit)
        began = time.monotonic()
        try:
            over = await INJECTORS[fault.kind.name](self.world, meant)
        except NOT_MADE as error:
            over = time.monotonic()
            what = f"fault {fault.number}, {fault.kind.name}, {fault.server}"
            self.found.complaints.append(f"{what}: {error!r}")
        self.found.faults += 1
        await asyncio.gather(
            *(self._recovery(fault, kind, before[name], began, over, name) for name, kind in hit.items())
        )

    async def _before(self, hit: Mapping[str, Kind]) -> dict[str, facts.Facts]:
        """What is known before a fault; one that costs a retry waits until a stable session gave one back."""
        end = time.monotonic() + RETRY_SECONDS
        while True:
            before = {name: await self.world.facts(self.world.targets[name]) for name in hit}
            if all(facts.has_retry(kind, before[name]) for name, kind in hit.items()):
                return before
            if time.monotonic() > end:
                names = ", ".join(hit)
                self.found.complaints.append(f"{names}: no retry was given back within {RETRY_SECONDS:g} s")
                return before
            await asyncio.sleep(0.2)

    async def _recovery(
        self, fault: Fault, kind: Kind, before: facts.Facts, began: float, over: float, name: str
    ) -> None:
        """Wait for what has to follow for one server, and hold it against the promise."""
        target = self.world.targets[name]
        bound = facts.bound(kind, before, target.start_seconds)
        if not kind.new_pod:
            await asyncio.sleep(max(0.0, over + SETTLE_SECONDS - time.monotonic()))
        seconds = await self._until_ready(kind, before, target, over, bound)
        complaints: list[str] = []
        if seconds is not None:
            complaints = facts.complaints(kind, before, await self.world.facts(target))
            complaints += filter(None, [await injectors.call_passes(self.ledger, target)])
        row = Recovery(fault.number, fault.kind.name, name, began, over, seconds, bound, tuple(complaints))
        self.found.recoveries.append(row)
        took = f"not within {bound + OVERTIME:.0f} s" if seconds is None else f"{seconds:.1f} s"
        said = "; ".join(complaints)
        self.say(f"fault {fault.number}: {fault.kind.name}, {name}: {kind.effect}, Ready after {took} {said}")

    async def _until_ready(
        self, kind: Kind, before: facts.Facts, target: Target, over: float, bound: float
    ) -> float | None:
        """Seconds from the end of the disturbance to Ready and a probe that passes; None: not in time."""
        end = over + bound + OVERTIME
        while time.monotonic() < end:
            with contextlib.suppress(k.ApiError, httpx.HTTPError):
                now = await self.world.facts(target)
                if facts.followed(kind, before, now):
                    at = time.monotonic()
                    if await self.sampler.until(lambda: self.sampler.passes(target.name, over), end - at):
                        return max(0.0, time.monotonic() - over - (0 if kind.new_pod else SETTLE_SECONDS))
            await asyncio.sleep(0.1)
        return None


async def leftovers(made: World) -> list[str]:
    """What stands there at the end beside one running pod for each server."""
    end = time.monotonic() + LEFT_OVER_SECONDS
    while True:
        pods = await made.kube.list(k.PODS, made.namespace, SERVER_LABEL)
        if len(pods) == len(made.targets) or time.monotonic() > end:
            break
        await asyncio.sleep(0.5)
    names = sorted(pod["metadata"]["name"] for pod in pods)
    return [] if len(names) == len(made.targets) else [f"pods left at the end: {', '.join(names)}"]


async def memory(made: World, when: str) -> dict[str, float]:
    """MiB of the operator, and at the end of each relay."""
    (pod,) = await world.operator_pods(made.kube)
    name = pod["status"]["containerStatuses"][0]["name"]
    figures = {f"operator_{when}": world.resident_mib(await asyncio.to_thread(world.pid_of, pod, name))}
    for target in made.targets.values():
        own = await injectors.pod_of(made, target)
        if container_status(own, "relay"):
            pid = await injectors.container_pid(made, target, "relay")
            figures[f"relay_{target.name}_{when}"] = world.resident_mib(pid)
    return figures


def hung(recoveries: Iterable[Recovery]) -> list[Span]:
    """When a relay was stopped on purpose: until its successor answered."""
    return [
        Span(
            row.began,
            row.over + SETTLE_SECONDS + (row.bound if row.seconds is None else row.seconds),
            row.server,
        )
        for row in recoveries
        if row.kind == HUNG
    ]


async def conclude(campaign: Campaign, started: float) -> Findings:
    """Judge calls and samples, once nothing is under way any more."""
    found, made, sampler = campaign.found, campaign.world, campaign.sampler
    journal = [
        token
        for target in made.targets.values()
        if target.journal.exists()
        for token in target.journal.read_text().splitlines()
    ]
    found.judgement = judge(campaign.ledger.calls, journal, hung(found.recoveries))
    found.sessions_lost = campaign.ledger.sessions_lost
    excused = [*made.blind, *made.dark]
    told = [
        lie
        for name, samples in sampler.samples.items()
        for lie in truth.lies(name, samples, excused, sampler.stalls)
    ]
    found.stalled = sum(stall.end - stall.start for stall in sampler.stalls)
    found.lies = report.attribute(told, found.recoveries)
    for name, samples in sampler.samples.items():
        found.excused[name] = truth.excused_seconds(name, samples, excused)
    found.complaints += [f"more than one corpse: {text}" for text in sorted(set(sampler.corpses))]
    found.seconds = time.monotonic() - started
    return found


async def run(
    made: World, rounds: tuple[Round, ...], seed: int, clients: int, say: Callable[[str], None]
) -> Findings:
    """The whole run, with servers that are Ready."""
    started = time.monotonic()
    ledger = load.Ledger()
    sampler = Sampler(made, ledger)
    quickest = min(target.start_seconds for target in made.targets.values())
    found = Findings(seed, slowness=report.slowness(quickest))
    campaign = Campaign(made, ledger, sampler, found, say)
    campaign.found.memory = await memory(made, "start")
    callers = load.start(ledger, iter(made.targets.values()), clients, seed)
    sampling = asyncio.create_task(sampler.run())
    try:
        await asyncio.sleep(SETTLE_SECONDS)
        await campaign.run(rounds)
    finally:
        ledger.closed = True
        sampling.cancel()
        ended = await asyncio.gather(*callers, sampling, return_exceptions=True)
    await sampler.finish()
    errors = [*sampler.errors, *(error for error in ended if isinstance(error, Exception))]
    campaign.found.complaints += [f"a part of the suite failed: {error!r}" for error in errors]
    campaign.found.complaints += await leftovers(made)
    campaign.found.memory |= await memory(made, "end")
    return await conclude(campaign, started)
