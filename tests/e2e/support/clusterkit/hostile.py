"""What runs inside a hostile server, and in a pod beside it."""

import asyncio
import json
import secrets
from collections.abc import Mapping
from typing import Any

from clusterkit import kube as k
from clusterkit import manifests, node
from clusterkit.servers import Server

Json = dict[str, Any]
Targets = Mapping[str, tuple[str, int]]

# Tries all targets at once; prints what came of each: "open", or the name of the error.
KNOCK = """
import concurrent.futures, json, socket, sys
def knock(target):
    address, port = target
    try:
        with socket.create_connection((address, port), timeout=2):
            return "open"
    except OSError as error:
        return type(error).__name__
targets = json.loads(sys.argv[1])
with concurrent.futures.ThreadPoolExecutor(32) as pool:
    print(json.dumps(dict(zip(targets, pool.map(knock, targets.values())))))
"""
RESOLVE = """
import socket, sys
try:
    print(socket.getaddrinfo(sys.argv[1], 80)[0][4][0])
except OSError as error:
    print(type(error).__name__)
"""


class Inside:
    """A hostile server: it runs what it is told."""

    def __init__(self, server: Server) -> None:
        self.server = server

    async def run(self, code: str, *arguments: str, seconds: float = 20) -> str:
        client = await self.server.client()
        try:
            return await client.call("run", code=code, arguments=list(arguments), seconds=seconds)
        finally:
            await client.close()

    async def knock(self, targets: Targets) -> dict[str, str]:
        found: dict[str, str] = json.loads(await self.run(KNOCK, json.dumps(targets)))
        return found

    async def resolve(self, name: str) -> str:
        return (await self.run(RESOLVE, name)).strip()


class Neighbour:
    """A pod that belongs to someone else."""

    def __init__(self, kube: k.Kube, namespace: str) -> None:
        self.kube = kube
        self.namespace = namespace
        self.name = f"neighbour-{secrets.token_hex(3)}"

    async def start(self, **container: Any) -> Json:
        """The pod, once it runs."""
        body = manifests.pod(self.name, ["sleep", "600"], **container)
        await self.kube.apply(k.PODS, self.namespace, body)
        seen = await self.kube.until(k.PODS, self.namespace, self.name, is_running, what="running pod")
        assert seen.object
        return seen.object

    async def run(self, code: str, *arguments: str) -> str:
        done = await asyncio.to_thread(
            node.kubectl, "-n", self.namespace, "exec", self.name, "--", "python3", "-c", code, *arguments
        )
        return done.stdout

    async def knock(self, targets: Targets) -> dict[str, str]:
        found: dict[str, str] = json.loads(await self.run(KNOCK, json.dumps(targets)))
        return found

    async def stop(self) -> None:
        await self.kube.delete(k.PODS, self.namespace, self.name, grace=0)


def is_running(pod: Json | None) -> bool:
    return pod is not None and pod["status"].get("phase") == "Running"
