"""Two targets that take turns: for ratios near one, which a busy moment would decide in a longer run."""

import asyncio
import functools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import measure
import targets
from bulk import BulkHttp, BulkPipe
from echo import echoes

from clusterkit.leanmcp import McpClient

TEXT = "x" * 64
BIG = 8 << 20
ROUNDS = 15
SECONDS = 1.0
Row = dict[str, float]


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
    pipe, bridge = targets.Pipe(targets.SDK_SERVER), targets.relay(targets.SDK_SERVER)
    await pipe.connect()
    echo = functools.partial(pipe.call, "echo", text=TEXT)
    alone: Row = {}
    behind: Row = {}
    try:
        await bridge.ready()
        for count in (16, 64):
            async with echoing(bridge, count) as calls:
                found = await _turns([echo] * count, calls)
            alone[f"c{count}"], behind[f"c{count}"] = found
    finally:
        bridge.stop()
        await pipe.close()
    return alone, behind


async def issued_tokens() -> Row:
    """Calls/s with a token of an issuer, as a share of those with a bearer token."""
    bearer, jwt = targets.relay(), targets.relay_jwt()
    shares: Row = {}
    try:
        await bearer.ready()
        await jwt.ready()
        for count in (1, 16, 64):
            async with echoing(bearer, count) as one, echoing(jwt, count) as other:
                with_bearer, with_jwt = await _turns(one, other)
            shares[f"jwt_{count}"] = with_jwt / with_bearer
    finally:
        bearer.stop()
        jwt.stop()
    return shares


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
        found = await measure.in_turns(one, other, ROUNDS)
        through.close()
        await client.close()
        return found
    finally:
        bridge.stop()
        pipe.close()


async def _turns(one: list[measure.Call], other: list[measure.Call]) -> tuple[float, float]:
    first = functools.partial(measure.throughput, one, SECONDS)
    second = functools.partial(measure.throughput, other, SECONDS)
    return await measure.in_turns(first, second, ROUNDS)
