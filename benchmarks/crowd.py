"""A node full of pods that need no machine: it says of each that it runs, and answers for its relay.

What the operator sees of a server that is at rest is a pod that the API server holds, and a relay that gives
signs of life. Both are played here for any number of servers; API server, scheduler, controllers and operator
are the real ones. Every address of RELAYS is this machine's own while `routed` lasts.
"""

import asyncio
import contextlib
import ipaddress
import json
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

from clusterkit import kube as k
from clusterkit import node
from clusterkit.manifests import Json

RELAYS = ipaddress.ip_network("10.213.0.0/16")
MCP_PORT, ADMIN_PORT = 8080, 8081
NODES = k.Kind("v1", "nodes")
LEASES = k.Kind("coordination.k8s.io/v1", "leases")
NAME = "crowd"
RENEW_SECONDS = 10
# A namespace that goes ends all its pods at once: no more requests than the client has connections.
AT_ONCE = 32
# The scheduler puts there what asks for it, and nothing else.
TAINT = {"key": NAME, "value": "true", "effect": "NoSchedule"}
PLACE: Json = {
    "nodeSelector": {NAME: "true"},
    "tolerations": [{"key": NAME, "operator": "Exists", "effect": "NoSchedule"}],
}
CAPACITY = {"cpu": "100k", "memory": "100Ti", "ephemeral-storage": "100Ti", "pods": "5000"}
TOOLS = [{"name": f"tool-{number}", "description": "does what it says"} for number in range(10)]


@contextlib.contextmanager
def routed() -> Iterator[None]:
    """The relays' addresses lead to this machine."""
    route = ("route", "add", "local", str(RELAYS), "dev", "lo")
    node.run("ip", *route)
    try:
        yield
    finally:
        node.run("ip", *("delete" if word == "add" else word for word in route))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


@contextlib.asynccontextmanager
async def registered(kube: k.Kube) -> AsyncIterator[None]:
    """The node is there, and renews its lease so that nobody takes its pods away."""
    made = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": NAME, "labels": {NAME: "true"}},
        "spec": {"taints": [TAINT]},
    }
    await kube.apply(NODES, "", made)
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "Played",
        "message": "",
        "lastHeartbeatTime": _now(),
    }
    status = {"capacity": CAPACITY, "allocatable": CAPACITY, "conditions": [ready]}
    await _status(kube, NODES, "", NAME, status)
    renewing = asyncio.create_task(_renew(kube))
    try:
        yield
    finally:
        renewing.cancel()
        await asyncio.gather(renewing, return_exceptions=True)
        await kube.delete(NODES, "", NAME)
        await kube.delete(LEASES, "kube-node-lease", NAME)


async def _renew(kube: k.Kube) -> None:
    while True:
        lease = {
            "apiVersion": LEASES.api_version,
            "kind": "Lease",
            "metadata": {"name": NAME},
            "spec": {"holderIdentity": NAME, "leaseDurationSeconds": 40, "renewTime": _now()},
        }
        await kube.apply(LEASES, "kube-node-lease", lease)
        await asyncio.sleep(RENEW_SECONDS)


async def _status(kube: k.Kube, kind: k.Kind, namespace: str, name: str, status: Json) -> None:
    await kube.call(
        "PATCH",
        f"{kind.path(namespace, name)}/status",
        headers={"content-type": "application/merge-patch+json"},
        content=json.dumps({"status": status}),
    )


class Kubelet:
    """Says of each pod of one namespace that it runs, once it is bound; ends those that shall end."""

    def __init__(self, kube: k.Kube, namespace: str) -> None:
        self._kube = kube
        self._namespace = namespace
        self._addresses = RELAYS.hosts()
        self._started: set[str] = set()
        self._ended: set[str] = set()
        self._busy: set[asyncio.Task[None]] = set()
        self._permits = asyncio.Semaphore(AT_ONCE)

    async def run(self) -> None:
        """For ever."""
        while True:
            async with self._kube.watch(k.PODS, self._namespace) as changes:
                async for seen in changes:
                    if seen.object is not None:
                        self._look(seen.object)

    def _look(self, pod: Json) -> None:
        uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
        if "deletionTimestamp" in pod["metadata"]:
            if uid not in self._ended:
                self._ended.add(uid)
                self._do(self._kube.delete(k.PODS, self._namespace, name, grace=0))
        elif pod["spec"].get("nodeName") == NAME and uid not in self._started:
            self._started.add(uid)
            self._do(_status(self._kube, k.PODS, self._namespace, name, self._running(pod)))

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(self._in_turn(work))
        self._busy.add(task)
        task.add_done_callback(self._busy.discard)

    async def _in_turn(self, work: Coroutine[Any, Any, None]) -> None:
        async with self._permits:
            await work

    def _running(self, pod: Json) -> Json:
        address, now = str(next(self._addresses)), _now()
        types = ("PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")
        spec = pod["spec"]
        return {
            "phase": "Running",
            "startTime": now,
            "podIP": address,
            "podIPs": [{"ip": address}],
            "conditions": [{"type": name, "status": "True", "lastTransitionTime": now} for name in types],
            "initContainerStatuses": [_container(found, now) for found in spec.get("initContainers", [])],
            "containerStatuses": [_container(found, now) for found in spec["containers"]],
        }


def _container(container: Json, now: str) -> Json:
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "restartCount": 0,
        "ready": True,
        "started": True,
        "state": {"running": {"startedAt": now}},
    }


def document(address: str) -> bytes:
    """What the relay of one server at rest reports."""
    since = time.time()
    found = {
        "instance": address,
        "revision": 1,
        "state": "Connected",
        "since": since,
        "process": {"incarnation": address, "pid": 7, "startTime": since},
        "session": {
            "protocolVersion": "2025-11-25",
            "serverInfo": {"name": "played", "version": "1.0"},
            "capabilities": {"tools": {"listChanged": True}},
            "since": since,
            "adopted": False,
        },
        "handshakes": 1,
        "clients": 0,
        "toolCount": len(TOOLS),
        "toolsDigest": "sha256:1",
        "tools": TOOLS,
    }
    return json.dumps(found).encode()


class Relays:
    """The admin ports of all relays: each answers at once, or gives signs of life as long as it should."""

    def __init__(self) -> None:
        self._documents: dict[str, bytes] = {}
        self.beats = 0

    @contextlib.asynccontextmanager
    async def served(self) -> AsyncIterator[None]:
        """All addresses answer while the block runs."""
        everywhere = "0.0.0.0"  # noqa: S104 - all of RELAYS
        admin = await asyncio.start_server(self._serve, everywhere, ADMIN_PORT, backlog=4096)
        # The operator looks whether the Service leads somewhere.
        door = await asyncio.start_server(
            lambda _, writer: writer.close(), everywhere, MCP_PORT, backlog=4096
        )
        try:
            yield
        finally:
            admin.close()
            door.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address = writer.get_extra_info("sockname")[0]
        told = self._documents.setdefault(address, document(address))
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                query = parse_qs(urlsplit(head.split(b" ", 2)[1].decode()).query)
                await self._answer(writer, query, told)
        writer.close()

    async def _answer(self, writer: asyncio.StreamWriter, query: dict[str, list[str]], told: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
        writer.write(head)
        if "beat" in query:
            clock = asyncio.get_running_loop().time
            end, beat = clock() + float(query["wait"][0]), float(query["beat"][0])
            while clock() < end:
                await asyncio.sleep(min(beat, end - clock()))
                writer.write(b"1\r\n\n\r\n")
                self.beats += 1
                await writer.drain()
        writer.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(told), told))
        await writer.drain()
