"""The operator with many MCPServers: at rest, and after its restart.

    make scale [SERVERS=1000]

Needs the local node. The operator of the cluster rests meanwhile; one of the same code
runs here, beside the real API server, scheduler and controllers. Pods and relays are played (crowd.py).
"""

import argparse
import asyncio
import contextlib
import json
import os
import re
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import crowd
import httpx
import measure

from clusterkit import kube as k
from clusterkit import manifests, node, release

HEALTH_PORT, METRICS_PORT = 18080, 18081
AT_ONCE = 16
START_SECONDS = 900.0
SETTLE_SECONDS = 90.0  # beyond the audit, every 60 s
REST_SECONDS = 120.0
KINDS = (k.MCPSERVERS, k.PODS, k.SERVICES, k.SECRETS, k.NETWORKPOLICIES)
TICKS = os.sysconf("SC_CLK_TCK")

Versions = dict[tuple[str, str], tuple[str, str]]


def progress(text: str) -> None:
    print(f"==> {time.strftime('%X')} {text}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Operator:
    """An operator process and its metrics."""

    process: asyncio.subprocess.Process
    http: httpx.AsyncClient

    async def metrics(self) -> dict[str, float]:
        """Each sample by its name with labels; {} while nothing answers."""
        try:
            text = (await self.http.get(f"http://127.0.0.1:{METRICS_PORT}/metrics")).text
        except httpx.TransportError:
            return {}
        found = re.findall(r"^(\w+(?:\{[^}]*\})?) (\S+)$", text, re.MULTILINE)
        return {name: float(value) for name, value in found}

    def cpu_seconds(self) -> float:
        """User and system time so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory_mib(self, field: str) -> float:
        """VmRSS or VmHWM."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(text.partition(f"{field}:")[2].split()[0]) / 1024


@contextlib.asynccontextmanager
async def operator(namespace: str) -> AsyncIterator[Operator]:
    """One that serves this namespace, ended by SIGTERM."""
    environment = os.environ | {
        "MCP_OPERATOR_NAMESPACES": namespace,
        "MCP_OPERATOR_HEALTH_PORT": str(HEALTH_PORT),
        "MCP_OPERATOR_METRICS_PORT": str(METRICS_PORT),
        "MCP_OPERATOR_LOG_LEVEL": "WARNING",
    }
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "mcp_operator", env=environment)
    try:
        async with httpx.AsyncClient(timeout=5) as http:
            yield Operator(process, http)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def until(holds: Callable[[], Awaitable[bool]], within: float) -> float:
    """Seconds until it holds, asked ten times a second. Raises TimeoutError."""
    started = time.monotonic()
    async with asyncio.timeout(within):
        while not await holds():  # noqa: ASYNC110 - another process can only be asked
            await asyncio.sleep(0.1)
    return time.monotonic() - started


async def ready(found: Operator, servers: int) -> bool:
    return (await found.metrics()).get('mcp_operator_servers{phase="Connected"}') == servers


async def looked(found: Operator, servers: int) -> bool:
    """Whether each server was reconciled with its relay's report at hand."""
    return (await found.metrics()).get("mcp_operator_reconcile_seconds_count", 0) >= 2 * servers


async def versions(kube: k.Kube, namespace: str) -> Versions:
    """UID and resource version of each object of ours."""
    found: Versions = {}
    for kind in KINDS:
        for item in await kube.list(kind, namespace):
            metadata = item["metadata"]
            found[kind.plural, metadata["name"]] = metadata["uid"], metadata["resourceVersion"]
    return found


async def apply(kube: k.Kube, namespace: str, servers: int) -> None:
    permits = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        async with permits:
            made = manifests.mcpserver(f"server-{number:04}", **crowd.PLACE)
            await kube.apply(k.MCPSERVERS, namespace, made)

    await asyncio.gather(*(one(number) for number in range(servers)))


async def rest(found: Operator, kube: k.Kube, namespace: str) -> dict[str, float]:
    """What it costs while nothing happens, and what it writes nevertheless."""
    await asyncio.sleep(SETTLE_SECONDS)
    before, cpu = await versions(kube, namespace), found.cpu_seconds()
    writes = (await found.metrics())["mcp_operator_status_writes_total"]
    await asyncio.sleep(REST_SECONDS)
    used = found.cpu_seconds() - cpu
    after = await versions(kube, namespace)
    written = (await found.metrics())["mcp_operator_status_writes_total"] - writes
    changed = [key for key, value in after.items() if before.get(key) != value]
    for kind, name in changed[:5]:
        progress(f"written at rest: {kind} {name}, among {len(changed)} objects")
    return {
        "core_percent": 100 * used / REST_SECONDS,
        "memory_mib": found.memory_mib("VmRSS"),
        "writes": written + len(changed),
    }


async def restarted(kube: k.Kube, namespace: str, servers: int) -> dict[str, float]:
    """A new process among servers that run."""
    before = await versions(kube, namespace)
    async with operator(namespace) as found:
        seen = await until(lambda: looked(found, servers), START_SECONDS)
        await until(lambda: ready(found, servers), START_SECONDS)
        peak = found.memory_mib("VmHWM")
    after = await versions(kube, namespace)
    pods = sum(before.get(key) != value for key, value in after.items() if key[0] == "pods")
    gone = len(before.keys() - after.keys())
    return {"restart_s": seen, "peak_mib": peak, "pods_touched": pods + gone}


async def run(servers: int) -> dict[str, float]:
    """All figures."""
    namespace = node.make_namespace("scale")
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(crowd.routed())
        kube = await stack.enter_async_context(k.Kube(k.kubeconfig_path()))
        await stack.enter_async_context(release.without_operator(kube))
        await stack.enter_async_context(crowd.registered(kube))
        await stack.enter_async_context(crowd.Relays().served())
        kubelet = asyncio.create_task(crowd.Kubelet(kube, namespace).run())
        stack.callback(kubelet.cancel)
        try:
            async with operator(namespace) as found:
                progress(f"{servers} servers are made")
                await apply(kube, namespace, servers)
                progress("all are applied")
                figures = {"all_ready_s": await until(lambda: ready(found, servers), START_SECONDS)}
                progress("all are Ready; at rest")
                figures |= await rest(found, kube, namespace)
            progress("the operator is started again")
            return figures | await restarted(kube, namespace, servers)
        finally:
            progress("all is removed")
            node.kubectl("delete", "namespace", namespace, "--wait=false")
            await kube.gone(k.NAMESPACES, "", namespace, within=START_SECONDS)


def report(figures: dict[str, float], servers: int) -> str:
    """The bars."""
    rows = [
        ("share of a core at rest", "≤ 5 %", f"{figures['core_percent']:.1f} %"),
        ("memory at rest", "≤ 300 MiB", f"{figures['memory_mib']:.0f} MiB"),
        (f"objects written in {REST_SECONDS:.0f} s of rest", "0", f"{figures['writes']:.0f}"),
        ("all seen after a restart", "≤ 30 s", f"{figures['restart_s']:.1f} s"),
        ("pods touched by the restart", "0", f"{figures['pods_touched']:.0f}"),
        ("memory, peak after the restart", "≤ 300 MiB", f"{figures['peak_mib']:.0f} MiB"),
        ("from the last apply to all Ready", "-", f"{figures['all_ready_s']:.0f} s"),
    ]
    return measure.table([f"{servers} servers", "wanted", "measured"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--servers", type=int, default=1000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    figures = asyncio.run(run(options.servers))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2))
    print(report(figures, options.servers))


if __name__ == "__main__":
    main()
