"""How a thing that answers calls is measured, whatever it is. On the standard library alone.

A `Call` is one tool call from request to answer; one client is one `Call` used in a closed loop.
The file also runs inside a pod (see loadgen.py).
"""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

Call = Callable[[], Awaitable[object]]


@runtime_checkable
class Repeating(Protocol):
    """A call that can be made again and again at less cost than by a loop around it."""

    async def repeat(self, deadline: float) -> int:
        """Calls until a time of `time.perf_counter`; how many."""


WARM_UP_CALLS = 20


async def latency(call: Call, calls: int) -> dict[str, float]:
    """Milliseconds of one client's calls: median and 99th percentile."""
    for _ in range(WARM_UP_CALLS):
        await call()
    samples = []
    for _ in range(calls):
        started = time.perf_counter()
        await call()
        samples.append((time.perf_counter() - started) * 1000)
    samples.sort()
    return {"median_ms": statistics.median(samples), "p99_ms": samples[int(len(samples) * 0.99)]}


async def throughput(clients: Sequence[Call], seconds: float) -> float:
    """Answered calls a second of all clients together."""
    done = 0
    deadline = time.perf_counter() + seconds

    async def loop(call: Call) -> None:
        nonlocal done
        if isinstance(call, Repeating):
            made = await call.repeat(deadline)
            done += made  # not in one: what others counted while this one waited would be lost
            return
        while time.perf_counter() < deadline:
            await call()
            done += 1

    started = time.perf_counter()
    await asyncio.gather(*(loop(call) for call in clients))
    return done / (time.perf_counter() - started)


async def duration(call: Call, times: int) -> float:
    """Seconds that a call takes, the median of some."""
    took = []
    for _ in range(times):
        started = time.perf_counter()
        await call()
        took.append(time.perf_counter() - started)
    return statistics.median(took)


@dataclass(frozen=True)
class Turns:
    """Figures of two that took turns, a pair for each round."""

    pairs: Sequence[tuple[float, float]]

    @property
    def medians(self) -> tuple[float, float]:
        """The medians of both."""
        one, other = zip(*self.pairs, strict=True)
        return statistics.median(one), statistics.median(other)

    @property
    def ratio(self) -> float:
        """The second to the first in a pair, the median of all: it holds while a machine's speed drifts."""
        return statistics.median(other / one for one, other in self.pairs)


async def in_turns(
    one: Callable[[], Awaitable[float]], other: Callable[[], Awaitable[float]], rounds: int
) -> Turns:
    """The figures of two over rounds, in each of which the other one is taken first."""
    pairs = []
    for number in range(rounds):
        if number % 2:
            first = await one()
            pairs.append((first, await other()))
        else:
            second = await other()
            pairs.append((await one(), second))
    return Turns(pairs)


async def longest_wait(call: Call, during: Call, times: int = 5) -> float:
    """The longest wait in ms of a client while `during` runs, the median of some runs."""
    waits = []
    for _ in range(times):
        longest = 0.0
        task = asyncio.ensure_future(during())
        while not task.done():
            sent = time.perf_counter()
            await call()
            longest = max(longest, time.perf_counter() - sent)
        await task
        waits.append(longest * 1000)
    return statistics.median(waits)


def medians(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    """The median of each figure over repetitions; a figure may be missing in some."""
    keys = dict.fromkeys(key for row in rows for key in row)
    return {key: statistics.median(row[key] for row in rows if key in row) for key in keys}


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


BARS = ("what", "bar", "measured", "")
"""The head of a table of bars."""


def bar(what: str, wanted: str, measured: str, *, reached: bool) -> list[str]:
    """A row of a table of bars."""
    return [what, wanted, measured, "reached" if reached else "missed"]


def show(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"
