"""After each fault: when things work again, what the status says, what a call in flight gets.

    KUBECONFIG=$(make -s kubeconfig) PYTHONPATH=tests/chaos:tests/cluster:tests/e2e/support \\
        .venv/bin/python benchmarks/recovery.py [--repetitions N] [--json FILE]

Needs `make cluster`, with the local node. "Works again": a client that knows nothing of the fault opens a
session, lists the tools and calls one; a new attempt starts every 0.1 s whether or not earlier ones hang, and
is given up after 8 s; told is the first success after the last failure. The status is read every 0.1 s. Times
count from the fault.
"""

import argparse
import asyncio
import contextlib
import json
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import measure

from chaoskit import injectors, world
from chaoskit.world import COMMANDS, Target, World
from clusterkit import kube as k
from clusterkit import manifests, node
from clusterkit.leanmcp import HttpError, McpClient, RpcError
from clusterkit.servers import Server, status

Json = dict[str, Any]
Fault = Callable[[World, Target], Awaitable[float]]
EVERY_SECONDS = 0.1
GIVE_UP_SECONDS = 8.0
LONGEST_SECONDS = 45.0
WATCHED_SECONDS = 60.0
SETTLE_SECONDS = 1.5
# A fault that never shows in the status is waited for so long.
UNSEEN_SECONDS = 8.0
IN_FLIGHT_SECONDS = 35.0
STUBBORN = ("--ignore-term", "--ignore-eof")
BROKEN = (*manifests.BROKEN, "exits", "--code", "1")
FAILURES = (OSError, EOFError, TimeoutError, RpcError, HttpError)


@dataclass
class Row:
    """One fault: seconds to service, the status as (seconds, words), the call in flight, the old session."""

    works: float | None = None
    told: list[tuple[float, str]] = field(default_factory=list)
    in_flight: str = ""
    session: str = ""


@dataclass(frozen=True)
class Attempt:
    """One attempt, in seconds from the fault."""

    begun: float
    ended: float
    served: bool


@dataclass(frozen=True)
class Case:
    """One row of the table."""

    name: str
    server: str
    fault: Fault
    options: tuple[str, ...] = ()


CASES = (
    Case("`kill -9` server, raw", "raw", injectors.kill_process),
    Case("`kill -9` server, SDK 1.30", "sdk1", injectors.kill_process),
    Case("`kill -9` server, SDK 2.x", "sdk2", injectors.kill_process),
    Case("delete pod, exits on SIGTERM", "raw", injectors.delete_pod),
    Case("delete pod, ignores SIGTERM", "raw", injectors.delete_pod, STUBBORN),
    Case("delete pod, SDK 1.30", "sdk1", injectors.delete_pod),
    Case("`kill -9` relay", "raw", injectors.kill_relay),
    Case("server over its memory limit", "raw", injectors.out_of_memory),
)


def words(item: Json | None) -> str:
    """What a status says, in short."""
    conditions = {entry["type"]: entry["status"] for entry in status(item, "conditions") or ()}
    error = status(item, "error", "reason")
    ready = "True" if conditions.get("Ready") == "True" else "False"
    return f"{status(item, 'phase')}/{ready}" + (f" {error}" if error else "")


async def watch_status(server: Server, since: float, row: Row) -> None:
    """Note every change of the words, for ever."""
    while True:
        said = words(await server.get())
        if not row.told or row.told[-1][1] != said:
            row.told.append((round(time.monotonic() - since, 1), said))
        await asyncio.sleep(EVERY_SECONDS)


async def attempt(target: Target) -> None:
    """What a new client does. Raises one of FAILURES."""
    client = McpClient(target.endpoint, target.token, limit=None)
    async with asyncio.timeout(GIVE_UP_SECONDS):
        await client.connect()
        await client.tools()
        await client.call("echo", text="works")


async def attempts(target: Target, since: float, over: Callable[[], bool]) -> list[Attempt]:
    """What becomes of the attempts that begin every 0.1 s, until all is over."""
    made: list[Attempt] = []

    async def one() -> None:
        begun = time.monotonic() - since
        try:
            await attempt(target)
        except FAILURES:
            made.append(Attempt(begun, time.monotonic() - since, served=False))
        else:
            made.append(Attempt(begun, time.monotonic() - since, served=True))

    async with asyncio.TaskGroup() as group:
        while not over() and time.monotonic() - since < LONGEST_SECONDS:
            group.create_task(one())
            await asyncio.sleep(EVERY_SECONDS)
    return made


def works_again(made: list[Attempt]) -> float | None:
    """When the first attempt was served of those that began after the last that was not; None: none was.

    A pod that is told to end serves on for a moment: that is not yet working again.
    """
    failed = max((one.begun for one in made if not one.served), default=None)
    if failed is None:
        return 0.0
    return min((one.ended for one in made if one.served and one.begun > failed), default=None)


def settled(row: Row, since: float) -> bool:
    """Whether the status has been Ready again for a while after it was not; or never was otherwise."""
    at, said = row.told[-1] if row.told else (0.0, "")
    waited = SETTLE_SECONDS if len(row.told) > 1 else UNSEEN_SECONDS
    return said.startswith("Connected/True") and time.monotonic() - since - at > waited


async def outcome(call: Awaitable[str], since: float) -> str:
    """What a call in flight gets, and when."""
    try:
        said = f"answered {await call!r}"
    except RpcError as error:
        said = f"{error.code}"
    except (HttpError, OSError, EOFError, TimeoutError) as error:
        said = type(error).__name__
    return f"{said} at {time.monotonic() - since:.1f} s"


async def measure_case(made: World, case: Case) -> Row:
    """Make one fault on a server of its own."""
    target = await world.apply(made, case.server, options=case.options)
    await world.await_ready(target)
    row = Row()
    old, flying = (McpClient(target.endpoint, target.token) for _ in range(2))
    await old.connect()
    await flying.connect()
    arguments = {"token": f"flying-{case.server}", "seconds": IN_FLIGHT_SECONDS}
    call = asyncio.create_task(flying.call("record", **arguments))
    await asyncio.sleep(0.3)
    since = time.monotonic()
    watching = asyncio.create_task(watch_status(target.server, since, row))
    flight = asyncio.create_task(outcome(call, since))
    await case.fault(made, target)
    row.works = works_again(await attempts(target, since, lambda: settled(row, since)))
    row.session = await session_of(old)
    row.in_flight = await flight
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    await world.drop(made, target)
    return row


async def session_of(client: McpClient) -> str:
    """What a session from before the fault is worth."""
    try:
        await client.call("echo", text="again")
    except HttpError as error:
        return str(error.reply.status)
    except RpcError as error:
        return str(error.code)
    except (OSError, EOFError, TimeoutError) as error:
        return type(error).__name__
    return "continues"


async def watched(made: World, name: str, **spec: Any) -> Row:
    """Apply a server that cannot work and look at its status for a minute."""
    server = Server(made.kube, made.namespace, name)
    since = time.monotonic()
    row = Row()
    await server.apply(**spec)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(watch_status(server, since, row), WATCHED_SECONDS)
    await server.delete()
    await made.kube.gone(k.MCPSERVERS, made.namespace, name)
    return row


async def run(options: argparse.Namespace) -> dict[str, list[Row]]:
    namespace = await asyncio.to_thread(node.make_namespace, "recovery")
    rows: dict[str, list[Row]] = {}
    async with k.Kube(k.kubeconfig_path()) as kube:
        made = await world.make(kube, namespace, [], 0)
        try:
            for case in CASES:
                for repetition in range(options.repetitions):
                    print(f"==> {case.name}, run {repetition + 1}", file=sys.stderr, flush=True)
                    rows.setdefault(case.name, []).append(await measure_case(made, case))
            print("==> servers that cannot start, for a minute", file=sys.stderr, flush=True)
            exits = watched(made, "exits", command=BROKEN)
            missing = watched(made, "missing", image="localhost/no/such:image")
            first, second = await asyncio.gather(exits, missing)
            rows["exits at once with code 1, watched for 60 s"] = [first]
            rows["image that cannot be pulled, watched for 60 s"] = [second]
        finally:
            await world.remove(made)
            await asyncio.to_thread(node.kubectl, "delete", "namespace", namespace, "--wait=false")
    return rows


def line(name: str, runs: list[Row]) -> list[str]:
    """One row of the table. The status is the last run's."""
    times = ", ".join("never" if row.works is None else f"{row.works:.1f}" for row in runs)
    last = runs[-1]
    told = ", ".join(f"{said} at {seconds:.1f}" for seconds, said in last.told)
    flights = "; ".join(dict.fromkeys(row.in_flight for row in runs if row.in_flight))
    return [
        f"{name} ({len(runs)})",
        times if last.in_flight else "-",
        told,
        flights or "-",
        ", ".join(dict.fromkeys(row.session for row in runs)) or "-",
    ]


HEADERS = ["fault (n)", "works again, s", "status, s", "call in flight", "old session"]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--repetitions", type=int, default=3)
    options.add_argument("--json", type=Path)
    arguments = options.parse_args()
    rows = asyncio.run(run(arguments))
    if arguments.json:
        document = {name: [vars(row) for row in runs] for name, runs in rows.items()}
        arguments.json.write_text(json.dumps({"servers": list(COMMANDS), "rows": document}, indent=1))
    print(measure.table(HEADERS, [line(name, runs) for name, runs in rows.items()]))


if __name__ == "__main__":
    main()
