"""The bars that only a cluster can judge: start, delete, failure, memory and calls through the Service.

    KUBECONFIG=$(make -s kubeconfig) PYTHONPATH=tests/cluster:tests/e2e/support \\
        .venv/bin/python benchmarks/cluster.py [--json FILE]

Needs `make cluster`. Figures are medians; bare pods and servers are measured in turn, in one run.
"""

import argparse
import asyncio
import json
import secrets
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import inside
import measure
import targets

from clusterkit import kube as k
from clusterkit import manifests, node
from clusterkit.leanmcp import McpClient
from clusterkit.servers import Server, is_ready, kill_process, not_ready, ready_since_epoch, wall_clock

Figures = dict[str, float]
CHILDREN = (k.PODS, k.SERVICES, k.SECRETS)
STUBBORN = (*manifests.RAW, "--ignore-term", "--ignore-eof", "--child")


def progress(text: str) -> None:
    print(f"==> {text}", file=sys.stderr, flush=True)


async def handshake(_: k.Kube, __: str) -> Figures:
    """Start of the bare server process with its `initialize`, on this machine, without a cluster."""
    started = time.monotonic()
    pipe = targets.Pipe(targets.RAW_SERVER)
    await pipe.connect()
    took = time.monotonic() - started
    await pipe.close()
    return {"handshake_s": took}


async def bare_pod(kube: k.Kube, namespace: str) -> Figures:
    """A pod of one container without probes, with the token volume that a plain pod gets."""
    name = f"bare-{secrets.token_hex(3)}"
    body = manifests.pod(name, ["sleep", "3600"])
    # Any volume costs the kubelet's first look at its volumes, 0.3 s; a pod without one is no usual pod.
    del body["spec"]["automountServiceAccountToken"]
    started = time.monotonic()
    await kube.apply(k.PODS, namespace, body)
    seen = await kube.until(k.PODS, namespace, name, inside.pod_ready, what="Ready pod")
    await kube.delete(k.PODS, namespace, name, grace=0)
    return {"bare_pod_s": seen.at - started}


async def start(kube: k.Kube, namespace: str) -> Figures:
    """From apply to Ready, and to the first tool list through the Service."""
    server = Server(kube, namespace, f"start-{secrets.token_hex(3)}")
    started = time.monotonic()
    await server.apply()
    seen = await kube.until(k.MCPSERVERS, namespace, server.name, is_ready, what="Ready=True")
    client = await server.client()
    await client.tools()
    answered = time.monotonic()
    await client.close()
    await server.close()
    await server.delete()
    await kube.gone(k.MCPSERVERS, namespace, server.name)
    return {"ready_s": seen.at - started, "first_answer_s": answered - started}


async def delete(kube: k.Kube, namespace: str) -> Figures:
    """From delete to no object and no process left, of a server that ignores end of file and SIGTERM."""
    marker = f"marker-{secrets.token_hex(8)}"
    server = Server(kube, namespace, f"delete-{secrets.token_hex(3)}")
    await server.apply((*STUBBORN, "--mark", marker))
    await server.ready()
    left = [(kind, item["metadata"]["name"]) for kind in CHILDREN for item in await server.children(kind)]
    started = time.monotonic()
    await server.delete()
    gone = [await kube.gone(kind, namespace, name) for kind, name in left]
    took = max(seen.at for seen in gone) - started
    if found := node.processes(marker):
        raise RuntimeError(f"processes left behind: {found}")
    return {"delete_s": took}


async def until(
    kube: k.Kube, server: Server, act: Callable[[], Awaitable[float]], holds: Callable[[k.Json | None], bool]
) -> float:
    """Seconds from what `act` does (it returns the wall clock time) to the first status that holds."""
    async with kube.watch(k.MCPSERVERS, server.namespace, name=server.name) as changes, asyncio.timeout(30):
        at = await act()
        seen = await k.first(changes, holds)
    return wall_clock(seen) - at


async def killed_process(kube: k.Kube, namespace: str) -> Figures:
    """From SIGKILL of the server process to the status that tells it, and to Ready again."""
    server = Server(kube, namespace, f"killed-{secrets.token_hex(3)}")
    await server.apply()
    await server.ready()
    client = await server.client()
    pid = (await server.stats(client))["pid"]
    pod = (await server.pod())["metadata"]["name"]

    async def kill() -> float:
        return await asyncio.to_thread(kill_process, namespace, pod, pid)

    told = await until(kube, server, kill, not_ready)
    started = time.monotonic()
    seen = await kube.until(k.MCPSERVERS, namespace, server.name, ready_since_epoch(2), what="Ready again")
    await finish(server, client)
    return {"kill_told_s": told, "kill_ready_s": told + seen.at - started}


async def killed_relay(kube: k.Kube, namespace: str) -> Figures:
    """From SIGKILL of the relay to the next answer on the same client session."""
    server = Server(kube, namespace, f"relay-{secrets.token_hex(3)}")
    await server.apply()
    await server.ready()
    client = await server.client()
    before = await server.stats(client)
    node.kill_container(inside.container_id(await server.pod(), "relay"))
    started = time.monotonic()
    while True:
        try:
            after = await server.stats(client)
            break
        except (OSError, EOFError):
            await asyncio.sleep(0.02)
    took = time.monotonic() - started
    if after != before:
        raise RuntimeError(f"not the same process and session: {before} {after}")
    await finish(server, client)
    return {"relay_kill_answer_s": took}


async def finish(server: Server, client: McpClient) -> None:
    await client.http.close()
    await server.close()
    await server.delete()


async def calls(kube: k.Kube, namespace: str, options: argparse.Namespace) -> dict[str, Figures]:
    """Latency, calls/s and the relay's memory, beside a constant reply behind a Service."""
    await inside.prepare(kube, namespace)
    server = Server(kube, namespace, "calls")
    await server.apply(resources=inside.ROOM)
    await server.ready()
    rows: dict[str, list[Figures]] = {"constant": [], "relay": []}
    for repetition in range(options.repetitions):
        progress(f"calls through the Service, run {repetition + 1} of {options.repetitions}")
        rows["constant"].append(await inside.constant(kube, namespace, options))
        figures = await inside.through_service(server, options)
        rows["relay"].append({**figures, "mib": await relay_memory(server)})
    await server.close()
    return {name: measure.medians(found) for name, found in rows.items()}


async def relay_memory(server: Server) -> float:
    """Resident memory of the relay's process in MiB."""
    pod = (await server.pod())["metadata"]["name"]
    done = await asyncio.to_thread(
        node.kubectl, "-n", server.namespace, "exec", pod, "-c", "relay", "--", "cat", "/proc/1/status"
    )
    line = next(line for line in done.stdout.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


STARTS = (("apply to Ready", "ready_s"), ("apply to the first answer through the Service", "first_answer_s"))
# What, figure, bar, and the bar in seconds.
TIMES = (
    ("delete, server ignores SIGTERM, to everything gone", "delete_s", "≤ 6 s", 6.0),
    ("killed process: seen in status", "kill_told_s", "≤ 1 s", 1.0),
    ("killed relay: next answer, same session", "relay_kill_answer_s", "≤ 2 s after its restart", 2.0),
)
LATENCIES = (("median", "median_ms", 0.7), ("p99", "p99_ms", 2.0))
STEPS = (handshake, bare_pod, start, killed_process, killed_relay, delete)


async def run(options: argparse.Namespace, namespace: str) -> dict[str, Figures]:
    async with k.Kube(k.kubeconfig_path()) as kube:
        times: list[Figures] = []
        for repetition in range(options.repetitions):
            row: Figures = {}
            for step in STEPS:
                progress(f"{step.__name__.replace('_', ' ')}, run {repetition + 1} of {options.repetitions}")
                row |= await step(kube, namespace)
            times.append(row)
        return {"times": measure.medians(times), **await calls(kube, namespace, options)}


def bars(rows: dict[str, Figures]) -> list[list[str]]:
    """The quality bars that this run can judge, and what they are compared with."""
    times, relay, constant = rows["times"], rows["relay"], rows["constant"]
    again, pod_start = times["kill_ready_s"], times["ready_s"]
    mib = relay["mib"]
    return [
        *(started(what, times, key) for what, key in STARTS),
        *(
            measure.bar(what, wanted, f"{times[key]:.2f} s", reached=times[key] <= most)
            for what, key, wanted, most in TIMES
        ),
        measure.bar(
            "killed process: Ready again",
            "2 s + one pod start",
            f"{again:.2f} s",
            reached=again <= 2 + pod_start,
        ),
        *(
            measure.bar(
                f"{what} of one client", f"≤ {most} ms", f"{relay[key]:.2f} ms", reached=relay[key] <= most
            )
            for what, key, most in LATENCIES
        ),
        *(
            [f"calls/s, {n} client{'s' * (n > 1)} (constant reply)", "", versus(relay, constant, n), ""]
            for n in (1, 16, 64)
        ),
        measure.bar("relay memory after 64 clients", "≤ 40 MiB", f"{mib:.1f} MiB", reached=mib <= 40),
    ]


def started(what: str, times: Figures, key: str) -> list[str]:
    """The bar of a start: what comes on top of a bare pod and the handshake."""
    bare = times["bare_pod_s"] + times["handshake_s"]
    more = times[key] - bare
    return measure.bar(
        what, "bare pod + handshake + 0.5 s", f"{bare:.2f} s + {more:.2f} s", reached=more <= 0.5
    )


def versus(relay: Figures, constant: Figures, clients: int) -> str:
    key = f"c{clients}"
    return f"{relay[key]:,.0f} ({constant[key]:,.0f})"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--calls", type=int, default=500, help="calls of the latency measurement")
    parser.add_argument("--seconds", type=float, default=3, help="of each throughput measurement")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    namespace = node.make_namespace("bench")
    try:
        rows = asyncio.run(run(options, namespace))
    finally:
        node.kubectl("delete", "namespace", namespace, "--wait=false")
    print(measure.table(measure.BARS, bars(rows)))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
