"""How each fault of one server is made. The functions return the monotonic second when it is over."""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable

from chaoskit import load
from chaoskit.calls import Outcome
from chaoskit.kinds import HUNG
from chaoskit.truth import Span
from chaoskit.world import Json, Target, World, child_of, pid_of, secret_of
from clusterkit import kube as k
from clusterkit import node
from clusterkit.leanmcp import HttpError, RpcError
from clusterkit.servers import condition
from clusterkit.sockets import shut_down
from devcluster import layout

Injector = Callable[[World, Target], Awaitable[float]]
CUT_SECONDS = 5.0
AFTER_CUT_SECONDS = 7.0
MEMORY_SECONDS = 30.0
CUT_TABLE = "mcp_chaos"


class FaultError(Exception):
    """The fault could not be made."""


async def pod_of(world: World, target: Target) -> Json:
    """The newest pod. Raises FaultError if there is none."""
    pod = await world.newest_pod(target)
    if pod is None:
        raise FaultError(f"{target.name} has no pod")
    return pod


async def container_pid(world: World, target: Target, container: str) -> int:
    """The node's pid of a container's first process. Raises FaultError if it does not run."""
    pid = await asyncio.to_thread(pid_of, await pod_of(world, target), container)
    if not pid:
        raise FaultError(f"{target.name}: container {container} does not run")
    return pid


async def kill_process(world: World, target: Target) -> float:
    """SIGKILL to the server process alone."""
    pid = child_of(await container_pid(world, target, "server"))
    if not pid:
        raise FaultError(f"{target.name}: no server process")
    os.kill(pid, signal.SIGKILL)
    return time.monotonic()


async def kill_launcher(world: World, target: Target) -> float:
    """SIGKILL to the first process of the server's container, and so to the container."""
    os.kill(await container_pid(world, target, "server"), signal.SIGKILL)
    return time.monotonic()


async def kill_relay(world: World, target: Target) -> float:
    """SIGKILL to the relay."""
    os.kill(await container_pid(world, target, "relay"), signal.SIGKILL)
    return time.monotonic()


async def hang_relay(world: World, target: Target) -> float:
    """SIGSTOP to the relay: it holds its connections and does nothing."""
    os.kill(await container_pid(world, target, "relay"), signal.SIGSTOP)
    return time.monotonic()


async def exit_zero(world: World, target: Target) -> float:
    """The server ends by itself, content, in the middle of a call; that must be answered with an error."""
    client = load.client_of(target)
    await client.connect()
    started = time.monotonic()
    try:
        await client.call("die", code=0)
    except (RpcError, HttpError):
        return started
    except (OSError, EOFError) as error:
        raise FaultError(f"{target.name}: the deadly call got no answer: {error!r}") from error
    raise FaultError(f"{target.name}: the deadly call was answered, the server lives")


async def out_of_memory(world: World, target: Target) -> float:
    """The server takes twice its memory limit, beside its calls."""
    before = await container_pid(world, target, "server")
    client = load.client_of(target)
    await client.connect()
    await client.call("allocate", mib=400, seconds=1.0)
    end = time.monotonic() + MEMORY_SECONDS
    while child_of(before):
        if time.monotonic() > end:
            raise FaultError(f"{target.name}: the server lives on beyond its memory limit")
        await asyncio.sleep(0.05)
    return time.monotonic()


async def delete_pod(world: World, target: Target) -> float:
    """As `kubectl delete pod` does."""
    await world.kube.delete(k.PODS, world.namespace, (await pod_of(world, target))["metadata"]["name"])
    return time.monotonic()


async def evict_pod(world: World, target: Target) -> float:
    """By the Eviction API, as drains and autoscalers do."""
    name = (await pod_of(world, target))["metadata"]["name"]
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": world.namespace},
    }
    await world.kube.call("POST", f"{k.PODS.path(world.namespace, name)}/eviction", json=body)
    return time.monotonic()


async def fill_disk(world: World, target: Target) -> float:
    """Fill a volume beyond its limit: the kubelet fails the pod with the reason Evicted."""
    pod = await pod_of(world, target)
    volume = layout.of_user().kubelet / "pods" / pod["metadata"]["uid"] / "volumes"
    file = volume / "kubernetes.io~empty-dir" / "scratch" / "filled"
    await asyncio.to_thread(file.write_bytes, bytes(32 << 20))
    return time.monotonic()


async def cut_connection(world: World, target: Target) -> float:
    """Shut the connection between launcher and relay down, from the launcher's side."""
    pid = await container_pid(world, target, "server")
    try:
        shut_down(pid, "server.sock")
    except (LookupError, OSError) as error:
        raise FaultError(f"the connection of {target.name} cannot be cut: {error}") from error
    return time.monotonic()


async def cut_network(world: World, target: Target) -> float:
    """Drop every packet from and to the pod for some seconds.

    Over some time later: what was sent into the cut is sent again by TCP after a pause that grows to the
    cut's own length, and a pod that ends before that takes those answers with it.
    """
    address = (await pod_of(world, target))["status"]["podIP"]
    table = f"{CUT_TABLE}_{target.name}"
    start = time.monotonic()
    await asyncio.to_thread(node.run, "nft", "-f", "-", text_in=cut_rules(table, address))
    try:
        await asyncio.sleep(CUT_SECONDS)
    finally:
        await asyncio.to_thread(node.run, "nft", "delete", "table", "ip", table)
        world.dark.append(Span(start, time.monotonic() + AFTER_CUT_SECONDS, target.name))
    await asyncio.sleep(AFTER_CUT_SECONDS)
    return time.monotonic()


def cut_rules(table: str, address: str) -> str:
    """Rules for nft that cut an address off, before anything else sees its packets."""
    rule = f"ip saddr {address} drop; ip daddr {address} drop;"
    hooks = "".join(
        f"chain {hook} {{ type filter hook {hook} priority -300; {rule} }}\n"
        for hook in ("prerouting", "output", "postrouting")
    )
    return f"table ip {table} {{\n{hooks}}}\n"


async def remove_image(world: World, target: Target) -> float:
    """Remove the image's name, kill the server, and name the image again once the status tells of it."""
    keep = f"{target.image}-kept"
    await asyncio.to_thread(node.tag_image, target.image, keep)
    await asyncio.to_thread(node.remove_image, target.image)
    try:
        await kill_process(world, target)
        await target.server.until(
            lambda item: condition(item, "Ready").get("reason") == "ImagePullFailed",
            within=30,
            what="reason ImagePullFailed",
        )
    finally:
        await asyncio.to_thread(node.tag_image, keep, target.image)
        await asyncio.to_thread(node.remove_image, keep)
    return time.monotonic()


async def rotate_secret(world: World, target: Target) -> float:
    """Change the value of a Secret that the server's environment comes from."""
    target.secret_value = f"value-{time.monotonic_ns()}"
    change = {"stringData": {"value": target.secret_value}}
    await world.kube.merge(k.SECRETS, world.namespace, secret_of(target), change)
    return time.monotonic()


async def call_passes(ledger: load.Ledger, target: Target) -> str:
    """Whether the first call on a session of its own passes; empty, or what is wrong."""
    call = await load.one_call(ledger, target, load.client_of(target), f"{target.name}-first")
    return "" if call.outcome is Outcome.ANSWERED else f"a first call failed: {call.outcome} {call.detail}"


SERVER_FAULTS: dict[str, Injector] = {
    "server process killed": kill_process,
    "server exits with 0": exit_zero,
    "server out of memory": out_of_memory,
    "launcher killed": kill_launcher,
    "pod deleted": delete_pod,
    "pod evicted": evict_pod,
    "pod evicted for its disk": fill_disk,
    "relay killed": kill_relay,
    HUNG: hang_relay,
    "launcher connection cut": cut_connection,
    "network of the pod cut": cut_network,
    "image removed": remove_image,
    "secret rotated": rotate_secret,
}
