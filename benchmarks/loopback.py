"""Our relay on loopback, between the floor (stdio alone) and the ceiling (a constant HTTP reply).

    make launcher relay
    PYTHONPATH=.venv/relay:tests/cluster:tests/e2e/support \\
      .venv/bin/python benchmarks/loopback.py [--peers] [--json FILE]

The relay is compiled, as in its image; without the first folder it is that of the sources. One client program
measures every target in one run, interleaved over the repetitions, against one raw stdio server
(tests/e2e/servers/raw.py). Compare ratios: on a small shared machine single figures move by tens of percent.
"""

import argparse
import asyncio
import functools
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import measure
import pairs
import psutil
import targets
import uvloop
from bulk import BulkHttp, big_call
from echo import echoes
from pairs import BIG, TEXT, Row, connected, echoing

from clusterkit.leanmcp import McpClient, RpcError

BIG_CALLS = 5
METHOD_NOT_FOUND = -32601
HUGE = 32 << 20
LIMIT = 300  # seconds for one target
FLOOR, CEILING, OURS, JWT = "stdio", "constant", "relay", "relay, JWT"
SDK_FLOOR, SDK_OURS = "stdio, SDK server", "relay, SDK server"
NO_PEERS = (FLOOR, CEILING, OURS, JWT, SDK_FLOOR, SDK_OURS)
MEMORY = (
    ("1 client", "mib_1", 36),
    ("64 clients", "mib_64", 40),
    ("after a 32 MiB result", "mib_huge", 60),
    ("some seconds later", "mib_settled", 40),
)

COLUMNS = [
    ("start s", "start_s", 2),
    ("median ms", "median_ms", 2),
    ("p99 ms", "p99_ms", 2),
    ("calls/s 1", "c1", 0),
    ("calls/s 16", "c16", 0),
    ("calls/s 64", "c64", 0),
    ("MiB, 1 client", "mib_1", 1),
    ("MiB, 64 clients", "mib_64", 1),
    ("servers, 64 clients", "servers_64", 0),
    ("wrong of 1,000", "wrong", 0),
    ("8 MiB s", "big_s", 2),
    ("others wait ms", "big_others_ms", 0),
    ("relay alone ms", "own_ms", 0),
    ("MiB after 32 MiB", "mib_huge", 1),
]


async def measure_floor(options: argparse.Namespace) -> Row:
    started = time.perf_counter()
    pipe = targets.Pipe(targets.RAW_SERVER)
    await pipe.connect()
    row = {"start_s": time.perf_counter() - started}
    echo = functools.partial(pipe.call, "echo", text=TEXT)
    row |= await measure.latency(echo, options.calls)
    for count in (1, 16, 64):
        row[f"c{count}"] = await measure.throughput([echo] * count, options.seconds)
    row["big_others_ms"] = await measure.longest_wait(echo, functools.partial(pipe.skim, "big", bytes=BIG))
    await pipe.close()
    return row


async def big_result(bridge: targets.Bridge, client: McpClient, echo: measure.Call) -> Row:
    """The 8 MiB result alone, then beside calls of another client, to the server or answered by the relay.

    Alone it counts until the client has its text. Beside the others nobody parses it, because they share the
    thread of this client, which is not what they are meant to wait for.
    """
    bulk = BulkHttp(client, BIG)
    await bulk.connect()
    row = {"big_s": await measure.duration(bulk, BIG_CALLS)}
    bulk.close()
    big = functools.partial(skim_big, client)
    row["big_others_ms"] = await measure.longest_wait(echo, big)
    if bridge.name == OURS:
        row["own_ms"] = await measure.longest_wait(functools.partial(refused, client), big)
    return row


async def skim_big(client: McpClient) -> None:
    """Take the 8 MiB result as bytes."""
    reply = await client.raw("POST", big_call(1, BIG))
    if len(reply.body) < BIG:
        raise AssertionError(f"{len(reply.body)} bytes came: {reply.body[:200]!r}")


async def refused(client: McpClient) -> None:
    """A request that the relay answers itself: of what the server did not declare."""
    try:
        await client.request("prompts/list")
    except RpcError as error:
        if error.code == METHOD_NOT_FOUND:
            return
        raise
    raise AssertionError("prompts/list has a result")


async def many(bridge: targets.Bridge, count: int, seconds: float) -> Row:
    async with echoing(bridge, count) as calls:
        row = {f"c{count}": await measure.throughput(calls, seconds)}
        used = bridge.memory()
    return row | {f"mib_{count}": used["bridge_mib"], f"servers_{count}": used["servers"]}


async def wrong_answers(bridge: targets.Bridge) -> int:
    """How many of 1,000 answers were not the caller's own; 50 clients use the same ids at once."""
    clients = await connected(bridge, 50)

    async def ask(client: McpClient, name: str) -> int:
        return sum(
            [await client.call("echo", rid=i, text=f"{name}/{i}") != f"{name}/{i}" for i in range(1, 21)]
        )

    wrong = await asyncio.gather(*(ask(client, str(n)) for n, client in enumerate(clients)))
    await asyncio.gather(*(client.close() for client in clients))
    return sum(wrong)


async def measure_bridge(bridge: targets.Bridge, options: argparse.Namespace) -> Row:
    try:
        row = {"start_s": await bridge.ready()}
        one, other = await connected(bridge, 2)
        [echo] = await echoes([one], TEXT)
        row |= await measure.latency(echo, options.calls)
        for count in (1, 16, 64):
            row |= await many(bridge, count, options.seconds)
        if bridge.name != CEILING:
            row["wrong"] = await wrong_answers(bridge)
            row |= await big_result(bridge, other, echo)
        if bridge.name == OURS:
            row |= await after_huge(bridge, other, options.settle)
        echo.close()
        await asyncio.gather(one.close(), other.close())
        return row
    finally:
        bridge.stop()


async def after_huge(bridge: targets.Bridge, client: McpClient, settle: float) -> Row:
    """Memory right after a 32 MiB result, and once it had `settle` seconds."""
    await client.call("big", bytes=HUGE)
    used = bridge.memory()
    row = {"mib_huge": used["bridge_mib"], "launcher_mib": used.get("launcher_mib", 0)}
    await asyncio.sleep(settle)
    return row | {"mib_settled": bridge.memory()["bridge_mib"]}


def chosen(options: argparse.Namespace) -> dict[str, Callable[[], targets.Bridge]]:
    bridges: dict[str, Callable[[], targets.Bridge]] = {CEILING: targets.constant, OURS: targets.relay}
    bridges[JWT] = targets.relay_jwt
    if options.peers:
        peers = targets.Peers()
        peers.install()
        bridges |= {
            "mcp-proxy": peers.mcp_proxy,
            "supergateway": peers.supergateway,
            "fastmcp": peers.fastmcp,
        }
    return bridges


async def run(options: argparse.Namespace) -> dict[str, Row]:
    bridges = chosen(options)
    rows: dict[str, list[Row]] = {name: [] for name in [FLOOR, *bridges]}
    for repetition in range(options.repetitions):
        rows[FLOOR].append(await measure_floor(options))
        for name, make in bridges.items():
            print(f"==> run {repetition + 1} of {options.repetitions}: {name}", file=sys.stderr, flush=True)
            async with asyncio.timeout(LIMIT):
                rows[name].append(await measure_bridge(make(), options))
    found = {name: measure.medians(repeated) for name, repeated in rows.items()}
    print("==> side by side", file=sys.stderr, flush=True)
    found[SDK_FLOOR], found[SDK_OURS] = await pairs.sdk_server()
    found[FLOOR]["big_s"], found[OURS]["big_s"] = await pairs.large_result()
    found[JWT] |= await pairs.issued_tokens()
    found[OURS] |= await pairs.compiled() if targets.is_compiled() else {}
    for name, counts in best_peers(found).items():
        print(f"==> the relay beside {name}", file=sys.stderr, flush=True)
        found[name] |= await pairs.against(bridges[name], counts)
    return found


def bars(rows: dict[str, Row]) -> list[list[str]]:
    """The quality bars that this run can judge."""
    floor, ours = rows[FLOOR], rows[OURS]
    median, p99, start = (ours[key] - floor[key] for key in ("median_ms", "p99_ms", "start_s"))
    waits = f"{ours['big_others_ms']:.0f} ms (stdio alone: {floor['big_others_ms']:.0f} ms)"
    share = ours["big_s"] / floor["big_s"]
    return [
        measure.bar("median added to stdio", "≤ 0.4 ms", f"{median:.2f} ms", reached=median <= 0.4),
        measure.bar("p99 added to stdio", "≤ 1.0 ms", f"{p99:.2f} ms", reached=p99 <= 1),
        *(memory(what, ours[key], most) for what, key, most in MEMORY),
        measure.bar("8 MiB result, to stdio's", "≤ 1.3", f"{share:.2f}", reached=share <= 1.3),
        measure.bar("others wait meanwhile", "≤ 50 ms", waits, reached=ours["big_others_ms"] <= 50),
        measure.bar(
            "the same for what the relay answers itself",
            "≤ 50 ms",
            f"{ours['own_ms']:.0f} ms",
            reached=ours["own_ms"] <= 50,
        ),
        measure.bar("start beyond the server's own", "≤ 0.4 s", f"{start:.2f} s", reached=start <= 0.4),
        *(sdk_share(rows, count) for count in pairs.CLIENTS),
        *(compiled(ours, count) for count in pairs.CLIENTS if f"compiled_{count}" in ours),
        *(issued(rows, count) for count in (1, *pairs.CLIENTS) if JWT in rows),
        *(
            line
            for name, counts in best_peers(rows).items()
            for n in counts
            for line in best_peer(rows[name], n)
        ),
    ]


def sdk_share(rows: dict[str, Row], count: int) -> list[str]:
    share = 100 * rows[SDK_OURS][f"share_{count}"]
    what = f"calls/s of an SDK server at {count} clients, of what it gives alone"
    return measure.bar(what, "≥ 95 %", f"{share:.0f} %", reached=share >= 95)


def issued(rows: dict[str, Row], count: int) -> list[str]:
    ratio = rows[JWT][f"jwt_{count}"]
    what = f"calls/s at {count} clients with JWT, to a bearer token's"
    return measure.bar(what, "≥ 0.9", f"{ratio:.2f}", reached=ratio >= 0.9)


def compiled(ours: Row, count: int) -> list[str]:
    times = ours[f"compiled_{count}"]
    return [f"calls/s at {count} clients, compiled to as it is in its sources", "", f"{times:.2f} times", ""]


def memory(what: str, mib: float, most: int) -> list[str]:
    return measure.bar(f"relay memory, {what}", f"≤ {most} MiB", f"{mib:.1f} MiB", reached=mib <= most)


def best_peers(rows: dict[str, Row]) -> dict[str, list[int]]:
    """The peers that none surpasses, and at how many clients each."""
    names = [name for name in rows if name not in NO_PEERS]
    best: dict[str, list[int]] = {}
    for count in pairs.CLIENTS if names else ():
        best.setdefault(max(names, key=lambda name: rows[name][f"c{count}"]), []).append(count)
    return best


def best_peer(row: Row, count: int) -> list[list[str]]:
    what = f"calls/s at {count} clients, to the best peer's"
    measured = {what: row[f"times_{count}"], f"{what} when it is warm": row[f"warm_{count}"]}
    return [
        measure.bar(told, "≥ 8 times", f"{times:.1f} times", reached=times >= 8)
        for told, times in measured.items()
    ]


def report(rows: dict[str, Row]) -> None:
    head = ["target", *(title for title, _, _ in COLUMNS)]
    body = [[name, *(measure.show(row.get(key), n) for _, key, n in COLUMNS)] for name, row in rows.items()]
    print(measure.table(head, body))
    print()
    print(measure.table(measure.BARS, bars(rows)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--peers", action="store_true", help="also measure other bridges (installs them once)"
    )
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--calls", type=int, default=2000, help="calls of the latency measurement")
    parser.add_argument("--seconds", type=float, default=2, help="of each throughput measurement")
    parser.add_argument("--settle", type=float, default=10, help="seconds before memory is read again")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    rows = uvloop.run(run(options))
    report(rows)
    if options.json:
        machine = {"cores": psutil.cpu_count(), "python": sys.version.split()[0]}
        options.json.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
