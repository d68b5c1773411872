"""The official client library, run from a pod and from this machine."""

import asyncio
import json
import secrets
import sys
from pathlib import Path
from typing import Any

from clusterkit import kube as k
from clusterkit import manifests
from clusterkit.servers import Server

Json = dict[str, Any]
SCRIPT = Path(__file__).parents[2] / "servers" / "library_client.py"
CLIENT_PYTHON = "/opt/client/bin/python"


async def call_from_pod(server: Server, tool: str, **arguments: Any) -> Json:
    """What the client library sees in a pod of the same namespace: tool names and the result's texts."""
    await server.endpoint()  # the library does not try again what is refused
    secret = (await server.only_child(k.SECRETS))["metadata"]["name"]
    command = [
        CLIENT_PYTHON,
        "/servers/library_client.py",
        await server.url(),
        "--token-file",
        "/secret/token",
    ]
    command += ["--call", tool, "--arguments", json.dumps(arguments)]
    name = f"client-{secrets.token_hex(4)}"
    await server.kube.apply(k.PODS, server.namespace, manifests.pod(name, command, secret_name=secret))
    seen = await server.kube.until(k.PODS, server.namespace, name, ended, within=60, what="end of the client")
    said = await server.kube.log(server.namespace, name, "main")
    await server.kube.delete(k.PODS, server.namespace, name, grace=0)
    assert seen.object
    if seen.object["status"]["phase"] != "Succeeded":
        raise AssertionError(f"the client failed: {said}")
    answer: Json = json.loads(said.splitlines()[-1])
    return answer


def ended(pod: Json | None) -> bool:
    return pod is None or pod["status"].get("phase") in ("Succeeded", "Failed")


async def call_from_here(server: Server, tool: str, **arguments: Any) -> Json:
    """The same from this machine, by `kubectl port-forward`."""
    port = await server.forward(await server.only_child(k.SERVICES), 80)
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(SCRIPT), f"http://127.0.0.1:{port}/mcp", "--token-file", "/dev/stdin",
        "--call", tool, "--arguments", json.dumps(arguments),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    said, complaint = await process.communicate((await server.token()).encode())
    if process.returncode:
        raise AssertionError(f"the client failed: {complaint.decode()[-2000:]}")
    answer: Json = json.loads(said)
    return answer
