"""How the faults that hit every server are made: the operator's, the node's and the API server's.

The programs of the local node are stopped and started by the records that `make cluster` keeps.
"""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from chaoskit import injectors, world
from chaoskit.injectors import FaultError, Injector
from chaoskit.truth import Span
from chaoskit.world import Json, Target, World
from clusterkit import kube as k
from clusterkit import manifests, node
from clusterkit.leanmcp import Endpoint
from clusterkit.servers import SERVER_LABEL, in_phase, reachable
from devcluster import commands, configs, gotools, layout, network, processes
from devcluster.node import Node
from mcp_relay_api import paths

OPERATOR_SECONDS = 60.0
READY_SECONDS = 60.0
# During an outage the kubelet asks ever more seldom for its pods, in the end after up to a minute.
KUBELET_SECONDS = 120.0
BEACON = "beacon"


def supervisor() -> processes.Supervisor:
    """The records of the node's programs."""
    where = layout.of_user()
    return processes.Supervisor(where.pids, where.state / "logs")


async def kill_operator(made: World, _target: Target | None = None) -> float:
    """SIGKILL to the operator. One that was killed before is removed: the node would wait ever longer."""
    (pod,) = await world.operator_pods(made.kube)
    status = pod["status"]["containerStatuses"][0]
    start = time.monotonic()
    await asyncio.to_thread(node.kill_container, status["containerID"])
    if status["restartCount"]:
        meta = pod["metadata"]
        await made.kube.delete(k.PODS, meta["namespace"], meta["name"], grace=0)
    back = await world.operator_back(made.kube, status["containerID"], OPERATOR_SECONDS)
    made.blind.append(Span(start, back))
    return back


async def kill_operator_during_backoff(made: World, target: Target) -> float:
    """Kill a server, and the operator as soon as the status says when the next attempt is due."""
    # Watched from before: the phase lasts for the backoff only, however late it is looked for.
    async with made.kube.watch(k.MCPSERVERS, made.namespace, name=target.name) as changes:
        await injectors.kill_process(made, target)
        async with asyncio.timeout(10):
            await k.first(changes, in_phase("Recreating"))
    return await kill_operator(made)


async def drain(made: World, _target: Target) -> float:
    """Cordon and drain the node, then let it take pods again."""
    (operator,) = await world.operator_pods(made.kube)
    start = time.monotonic()
    options = ("--force", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=60s")
    try:
        await asyncio.to_thread(node.kubectl, "drain", configs.NODE_NAME, *options)
    finally:
        await asyncio.to_thread(node.kubectl, "uncordon", configs.NODE_NAME)
    container = operator["status"]["containerStatuses"][0]["containerID"]
    back = await world.operator_back(made.kube, container, OPERATOR_SECONDS)
    made.blind.append(Span(start, back))
    return back


async def restart_containerd(_made: World, _target: Target) -> float:
    """Stop containerd and start it again."""
    programs, where = supervisor(), layout.of_user()
    await asyncio.to_thread(programs.stop, "containerd")
    argv: list[str | Path] = ["containerd", "--config", where.etc / "containerd.toml"]
    await asyncio.to_thread(programs.start, "containerd", argv)
    await _answers(lambda: node.ctr("version"), "containerd")
    return time.monotonic()


async def _answers(ask: Callable[[], str], what: str) -> None:
    end = time.monotonic() + READY_SECONDS
    while time.monotonic() < end:
        with contextlib.suppress(AssertionError):
            await asyncio.to_thread(ask)
            return
        await asyncio.sleep(0.1)
    raise FaultError(f"{what} does not come back")


async def stop_api_server(made: World, target: Target) -> float:
    """SIGKILL to the API server; it comes back after the outage."""
    return await _without_api_server(made, target.name)


async def kill_server_without_api_server(made: World, target: Target) -> float:
    """The same, and a server dies in the middle of it."""
    pid = await injectors.container_pid(made, target, "server")
    return await _without_api_server(made, target.name, world.child_of(pid))


async def _without_api_server(made: World, but: str, pid: int = 0) -> float:
    programs, where = supervisor(), layout.of_user()
    argv = commands.apiserver(gotools.tool("kube-apiserver", where), where)
    start = time.monotonic()
    # Killed, not stopped: one that ends in order takes itself out of its Service first.
    await asyncio.to_thread(programs.kill, "kube-apiserver")
    try:
        await asyncio.sleep(made.outage / 2)
        if pid:
            os.kill(pid, signal.SIGKILL)
        await asyncio.sleep(made.outage / 2)
    finally:
        await asyncio.to_thread(programs.start, "kube-apiserver", argv)
    ready = Node(where).api_is_ready
    end = time.monotonic() + READY_SECONDS
    while not await asyncio.to_thread(ready):
        if time.monotonic() > end:
            raise FaultError(f"the API server does not come back: {programs.tail('kube-apiserver')}")
        await asyncio.sleep(0.1)
    try:
        await _followed(made, but)
    finally:
        made.blind.append(Span(start, time.monotonic()))
    return time.monotonic()


async def _followed(made: World, but: str) -> None:
    """Wait until the cluster follows its API server again: a new pod starts, a new Service leads to a pod.

    Controllers and scheduler of a real cluster end when they cannot renew their lease, and are started anew.
    Here they have no lease and would wait for minutes. `but`: the server whose pod may be gone.
    """
    programs, where = supervisor(), layout.of_user()
    for name, argv in (
        ("kube-controller-manager", commands.controller_manager),
        ("kube-scheduler", commands.scheduler),
    ):
        await asyncio.to_thread(programs.stop, name)
        await asyncio.to_thread(programs.start, name, argv(gotools.tool(name, where), where))
    await reachable(Endpoint(network.API_SERVICE_IP, 443, ""), READY_SECONDS)  # as pods see it
    pod = manifests.pod(BEACON, ["sleep", "60"])
    await made.kube.apply(k.PODS, made.namespace, pod)
    await made.kube.until(
        k.PODS, made.namespace, BEACON, _runs, within=KUBELET_SECONDS, what="start of a pod"
    )
    await made.kube.delete(k.PODS, made.namespace, BEACON, grace=0)
    server = next(name for name in made.targets if name != but)
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": BEACON},
        "spec": {"selector": {SERVER_LABEL: server}, "ports": [{"port": 80, "targetPort": paths.MCP_PORT}]},
    }
    found = await made.kube.apply(k.SERVICES, made.namespace, service)
    await reachable(Endpoint(found["spec"]["clusterIP"], 80, ""), READY_SECONDS)
    await made.kube.delete(k.SERVICES, made.namespace, BEACON)


def _runs(pod: Json | None) -> bool:
    return pod is not None and pod["status"].get("phase") == "Running"


CLUSTER_FAULTS: dict[str, Injector] = {
    "operator killed": kill_operator,
    "operator killed during backoff": kill_operator_during_backoff,
    "node drained": drain,
    "containerd restarted": restart_containerd,
    "API server stopped": stop_api_server,
    "server killed while the API server is stopped": kill_server_without_api_server,
}
