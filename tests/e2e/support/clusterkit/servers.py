"""One MCPServer under test: apply it, wait for what its status says, and talk to it."""

import asyncio
import base64
import json
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from clusterkit import kube as k
from clusterkit import manifests, node
from clusterkit.leanmcp import Endpoint, McpClient

Json = dict[str, Any]
REQUEST_SECONDS = 0.5
SERVER_LABEL = "mcp-session.dev/server"


def condition(item: Json | None, kind: str) -> Json:
    """One condition of an object's status; empty when it has none of that type."""
    found = ((item or {}).get("status") or {}).get("conditions") or []
    return next((entry for entry in found if entry["type"] == kind), {})


def is_ready(item: Json | None) -> bool:
    """Ready is True, and about the spec as it stands now."""
    ready = condition(item, "Ready")
    return (
        ready.get("status") == "True"
        and item is not None
        and ready.get("observedGeneration", 0) == item["metadata"].get("generation", 0)
    )


def not_ready(item: Json | None) -> bool:
    return condition(item, "Ready").get("status") == "False"


def status(item: Json | None, *path: str) -> Any:
    """A value below `status`, or None where the path ends early."""
    value: Any = (item or {}).get("status")
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def in_phase(*phases: str) -> Callable[[Json | None], bool]:
    def holds(item: Json | None) -> bool:
        return bool(status(item, "phase") in phases)

    return holds


def ready_since_epoch(epoch: int) -> Callable[[Json | None], bool]:
    """Ready with the pod of this number, or a later one."""

    def holds(item: Json | None) -> bool:
        return is_ready(item) and int(status(item, "session", "epoch")) >= epoch

    return holds


def has_error(reason: str) -> Callable[[Json | None], bool]:
    def holds(item: Json | None) -> bool:
        return bool(status(item, "error", "reason") == reason)

    return holds


class Server:
    """A handle; holds no state of the cluster beside the port-forwards it opened."""

    def __init__(self, kube: k.Kube, namespace: str, name: str) -> None:
        self.kube = kube
        self.namespace = namespace
        self.name = name
        self.forwards: list[asyncio.subprocess.Process] = []

    async def apply(self, command: tuple[str, ...] = manifests.RAW, **spec: Any) -> Json:
        manifest = manifests.mcpserver(self.name, command, **spec)
        return await self.kube.apply(k.MCPSERVERS, self.namespace, manifest)

    async def patch(self, **spec: Any) -> Json:
        return await self.kube.merge(k.MCPSERVERS, self.namespace, self.name, {"spec": spec})

    async def get(self) -> Json:
        return await self.kube.get(k.MCPSERVERS, self.namespace, self.name)

    async def delete(self) -> None:
        await self.kube.delete(k.MCPSERVERS, self.namespace, self.name)

    async def until(
        self,
        holds: Callable[[Json | None], bool],
        *,
        within: float = k.PATIENCE,
        what: str = "",
    ) -> Json:
        """The resource, as soon as the condition holds."""
        seen = await self.kube.until(k.MCPSERVERS, self.namespace, self.name, holds, within=within, what=what)
        return seen.object or {}

    async def ready(self, *, within: float = k.PATIENCE) -> Json:
        return await self.until(is_ready, within=within, what="Ready=True")

    async def failed(self, *, within: float = k.PATIENCE) -> Json:
        return await self.until(in_phase("Error"), within=within, what="phase Error")

    async def pod(self) -> Json:
        """The pod that status names."""
        name = status(await self.get(), "session", "podName")
        return await self.kube.get(k.PODS, self.namespace, name)

    async def children(self, kind: k.Kind) -> list[Json]:
        """Objects of one kind that the resource owns."""
        owner = (await self.get())["metadata"]["uid"]
        return [item for item in await self.kube.list(kind, self.namespace) if owned_by(item, owner)]

    async def only_child(self, kind: k.Kind) -> Json:
        (child,) = await self.children(kind)
        return child

    async def token(self) -> str:
        secret = await self.only_child(k.SECRETS)
        return base64.b64decode(secret["data"]["token"]).decode()

    async def url(self) -> str:
        return str(status(await self.get(), "address", "url"))

    async def endpoint(self) -> Endpoint:
        """How this machine reaches the Service, which by then accepts connections, to the newest pod."""
        item = await self.get()
        url = urlsplit(str(status(item, "address", "url")))
        service = await self.only_child(k.SERVICES)
        if (status(item, "session", "epoch") or 1) > 1:
            await self.predecessors_gone(service)
        if node.is_kind():
            return Endpoint("127.0.0.1", await self.forward(service, url.port or 80), url.netloc, url.path)
        endpoint = Endpoint(service["spec"]["clusterIP"], url.port or 80, url.netloc, url.path)
        await reachable(endpoint)
        return endpoint

    async def predecessors_gone(self, service: Json) -> None:
        """Wait for the end of the pods behind the Service that are being deleted.

        They accept connections to their end, and the node's proxy leads to them until it has heard of the
        next pod: to be connected proves nothing then.
        """
        selector = ",".join(f"{name}={value}" for name, value in service["spec"]["selector"].items())
        for pod in await self.kube.list(k.PODS, self.namespace, selector):
            if "deletionTimestamp" in pod["metadata"]:
                await self.kube.replaced(k.PODS, self.namespace, pod)

    async def event(self, reason: str) -> Json:
        """The first Event about the resource with this reason; it is written after the status is."""
        uid = (await self.get())["metadata"]["uid"]

        def told(event: Json | None) -> bool:
            return bool(event and event["regarding"].get("uid") == uid and event["reason"] == reason)

        async with self.kube.watch(k.EVENTS, self.namespace) as changes, asyncio.timeout(k.PATIENCE):
            return (await k.first(changes, told)).object or {}

    async def forward(self, service: Json, port: int) -> int:
        """The local port of a `kubectl port-forward` to the Service; ends with close()."""
        target = f"service/{service['metadata']['name']}"
        process = await asyncio.create_subprocess_exec(
            node.kubectl_path(), "-n", self.namespace, "port-forward", target, f":{port}",
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        self.forwards.append(process)
        assert process.stdout
        async with asyncio.timeout(20):
            said = (await process.stdout.readline()).decode()
        found = re.search(r"127\.0\.0\.1:(\d+)", said)
        if not found:
            raise AssertionError(f"port-forward said {said!r}")
        return int(found[1])

    async def client(self, *, connect: bool = True) -> McpClient:
        """A client with the resource's token, and with its own session unless `connect` is False."""
        client = McpClient(await self.endpoint(), await self.token())
        if connect:
            await client.connect()
        return client

    async def stats(self, client: McpClient) -> Json:
        found: Json = json.loads(await client.call("stats"))
        return found

    async def close(self) -> None:
        for process in self.forwards:
            if process.returncode is None:
                process.terminate()
            await process.wait()


@asynccontextmanager
async def standing(kube: k.Kube, namespace: str, name: str, **spec: Any) -> AsyncIterator[Server]:
    """A ready server for all tests of a module; the end of the namespace ends it."""
    server = Server(kube, namespace, name)
    await server.apply(**spec)
    await server.ready()
    yield server
    await server.close()


class Servers:
    """Makes handles and removes the resources at the end of the test."""

    def __init__(self, kube: k.Kube, namespace: str) -> None:
        self.kube = kube
        self.namespace = namespace
        self.made: list[Server] = []

    def handle(self, name: str) -> Server:
        """A handle on a resource that may not exist yet."""
        server = Server(self.kube, self.namespace, name)
        self.made.append(server)
        return server

    async def apply(self, name: str, command: tuple[str, ...] = manifests.RAW, **spec: Any) -> Server:
        server = self.handle(name)
        await server.apply(command, **spec)
        return server

    async def ready(self, name: str, command: tuple[str, ...] = manifests.RAW, **spec: Any) -> Server:
        server = await self.apply(name, command, **spec)
        await server.ready()
        return server

    async def close(self) -> None:
        for server in self.made:
            await server.close()
            await server.delete()


async def reachable(endpoint: Endpoint, within: float = 20) -> None:
    """Wait until the node's proxy lets connections to a Service through.

    It follows the Service's endpoints with a delay of up to a second that no API shows.
    """
    async with asyncio.timeout(within):
        while True:
            connecting = asyncio.open_connection(endpoint.address, endpoint.port)
            try:
                # A connection request that is lost would be repeated ever more slowly.
                _, writer = await asyncio.wait_for(connecting, REQUEST_SECONDS)
            except OSError:  # refused, lost, or on the way to a pod that is gone
                await asyncio.sleep(0.02)
                continue
            writer.close()
            await writer.wait_closed()
            return


def owned_by(item: Json, uid: str) -> bool:
    return any(owner["uid"] == uid for owner in item["metadata"].get("ownerReferences", []))


def container_status(pod: Json, name: str) -> Json:
    """The status of a container, whichever kind it is; empty while it has none."""
    found = pod["status"]
    entries = found.get("containerStatuses", []) + found.get("initContainerStatuses", [])
    return next((entry for entry in entries if entry["name"] == name), {})


def kill_process(namespace: str, pod: str, pid: int) -> float:
    """SIGKILL a process inside the server's container; wall clock seconds of the moment."""
    # What is not flushed is lost if the container ends before this process does.
    code = f"import os, time; print(time.time(), flush=True); os.kill({pid}, 9)"
    done = node.kubectl(
        "-n", namespace, "exec", pod, "-c", "server", "--", "python3", "-c", code, check=False
    )
    try:
        return float(done.stdout)
    except ValueError:
        raise AssertionError(f"no kill: {done.stderr}") from None


def wall_clock(seen: k.Seen) -> float:
    """When a watch delivered this, as wall clock seconds."""
    return time.time() - (time.monotonic() - seen.at)
