"""Two targets that take turns: for ratios that a busy moment would decide in a longer run."""

import asyncio
import functools
import statistics
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import measure
import targets
from bulk import BulkHttp, BulkPipe
from echo import echoes

from clusterkit.leanmcp import McpClient

TEXT = "x" * 64
BIG = 8 << 20
ROUNDS = 40
SECONDS = 0.5
LARGE_ROUNDS = 15
STARTS, FIRST_ROUNDS = 5, 4
"""A peer is compared in the first seconds of so many processes, as long as the table of all measures each."""
WARM_ROUNDS = 60
CLIENTS = (16, 64)
Row = dict[str, float]
Make = Callable[[], targets.Bridge]


async def connected(bridge: targets.Bridge, count: int) -> list[McpClient]:
    """So many clients, each with a session of its own."""
    clients = [bridge.client() for _ in range(count)]
    await asyncio.gather(*(client.connect() for client in clients))
    return clients


@asynccontextmanager
async def echoing(bridge: targets.Bridge, count: int) -> AsyncIterator[list[measure.Call]]:
    """A call for each of so many clients of a bridge that is ready."""
    clients = await connected(bridge, count)
    calls = await echoes(clients, TEXT)
    await measure.throughput(calls, 0.3)  # warm up
    yield list(calls)
    for call in calls:
        call.close()
    await asyncio.gather(*(client.close() for client in clients))


async def sdk_server() -> tuple[Row, Row]:
    """Calls/s of a server on the official SDK, alone and behind the relay: what a usual server loses."""
    pipe = targets.Pipe(targets.SDK_SERVER)
    await pipe.connect()
    echo = functools.partial(pipe.call, "echo", text=TEXT)
    alone: Row = {}
    behind: Row = {}
    try:
        async with ready(functools.partial(targets.relay, targets.SDK_SERVER)) as [bridge]:
            for count in CLIENTS:
                async with echoing(bridge, count) as calls:
                    found = await _turns([echo] * count, calls, ROUNDS)
                alone[f"c{count}"], behind[f"c{count}"] = found.medians
                behind[f"share_{count}"] = found.ratio
    finally:
        await pipe.close()
    return alone, behind


async def issued_tokens() -> Row:
    """Calls/s with a token of an issuer, as a share of those with a bearer token."""
    return await _ratios("jwt", targets.relay, targets.relay_jwt, (1, *CLIENTS))


async def compiled() -> Row:
    """How many times the calls/s of its sources the compiled relay gives."""
    return await _ratios("compiled", targets.relay_from_sources, targets.relay, CLIENTS)


async def against(peer: Make, counts: Sequence[int]) -> Row:
    """How many times the calls/s of a peer the relay gives.

    In the first seconds of both, and once both have worked for a while: that makes a peer faster whose
    language is compiled as it runs.
    """
    ratios: dict[int, list[float]] = {count: [] for count in counts}
    for _ in range(STARTS):
        async with ready(peer, targets.relay) as (other, relay):
            for count in counts:
                ratios[count].append(await _ratio(other, relay, count, FIRST_ROUNDS))
    row = {f"times_{count}": statistics.median(found) for count, found in ratios.items()}
    async with ready(peer, targets.relay) as (other, relay):
        await _ratio(other, relay, max(counts), WARM_ROUNDS)
        return row | {f"warm_{count}": await _ratio(other, relay, count, ROUNDS) for count in counts}


async def large_result() -> tuple[float, float]:
    """Seconds of a large result, straight from the server's pipe and through the relay."""
    pipe, bridge = BulkPipe(targets.RAW_SERVER, BIG), targets.relay()
    await pipe.connect()
    try:
        await bridge.ready()
        [client] = await connected(bridge, 1)
        through = BulkHttp(client, BIG)
        await through.connect()
        one, other = (
            functools.partial(measure.duration, pipe, 3),
            functools.partial(measure.duration, through, 3),
        )
        found = await measure.in_turns(one, other, LARGE_ROUNDS)
        through.close()
        await client.close()
        return found.medians
    finally:
        bridge.stop()
        pipe.close()


@asynccontextmanager
async def ready(*make: Make) -> AsyncIterator[list[targets.Bridge]]:
    """Bridges that run, until the end of the block."""
    bridges: list[targets.Bridge] = []
    try:
        for one in make:
            bridges.append(one())
            await bridges[-1].ready()
        yield bridges
    finally:
        for bridge in bridges:
            bridge.stop()


async def _ratios(name: str, one: Make, other: Make, counts: Sequence[int]) -> Row:
    """Calls/s of the other one, to those of the first, at each number of clients."""
    async with ready(one, other) as (first, second):
        return {f"{name}_{count}": await _ratio(first, second, count, ROUNDS) for count in counts}


async def _ratio(one: targets.Bridge, other: targets.Bridge, count: int, rounds: int) -> float:
    """Calls/s of the other one at so many clients, to those of the first."""
    async with echoing(one, count) as first, echoing(other, count) as second:
        return (await _turns(first, second, rounds)).ratio


async def _turns(one: list[measure.Call], other: list[measure.Call], rounds: int) -> measure.Turns:
    first = functools.partial(measure.throughput, one, SECONDS)
    second = functools.partial(measure.throughput, other, SECONDS)
    return await measure.in_turns(first, second, rounds)
