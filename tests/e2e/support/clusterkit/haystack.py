"""Everything a cluster shows of a namespace, to be searched for what must not stand there."""

import base64
from typing import Any

from clusterkit import kube as k
from clusterkit import node

Json = dict[str, Any]
OPERATOR_NAMESPACE = "mcp-system"


def forms(value: str) -> set[str]:
    """A value, its lines, and what of it stays the same in base64 wherever it stands in a longer text."""
    plain = {value, *(line for line in value.splitlines() if len(line) >= 4)}
    return plain | {_encoded(text.encode(), offset) for text in plain for offset in range(3)}


def _encoded(text: bytes, offset: int) -> str:
    whole = base64.b64encode(bytes(offset) + text).decode().rstrip("=")
    return whole[offset + (offset > 0) : -1]


async def objects(kube: k.Kube, namespace: str) -> dict[str, str]:
    """The text of each object of each kind that can be listed; Secrets by their names alone."""
    groups = (await kube.call("GET", "/apis"))["groups"]
    texts = {}
    for path in ("api/v1", *(f"apis/{group['preferredVersion']['groupVersion']}" for group in groups)):
        for resource in (await kube.call("GET", f"/{path}"))["resources"]:
            if not resource["namespaced"] or "list" not in resource["verbs"]:
                continue
            listed = await kube.http.get(f"/{path}/namespaces/{namespace}/{resource['name']}")
            for item in listed.json()["items"]:
                name = f"{resource['name']}/{item['metadata']['name']}"
                texts[name] = str(item["metadata"] if resource["name"] == "secrets" else item)
    return texts


async def logs(kube: k.Kube, namespace: str, container: str) -> dict[str, str]:
    """The logs of one container in all pods, of the one before it too."""
    texts = {}
    for pod in await kube.list(k.PODS, namespace):
        name = pod["metadata"]["name"]
        for previous in (False, True):
            texts[f"log of {name}, {previous=}"] = await kube.log(
                namespace, name, container, previous=previous
            )
    return texts


async def metrics(kube: k.Kube, namespace: str) -> dict[str, str]:
    """What all pods of the namespace serve as metrics."""
    texts = {}
    for pod in await kube.list(k.PODS, namespace):
        path = f"{k.PODS.path(namespace, pod['metadata']['name'] + ':8081')}/proxy/metrics"
        texts[f"metrics of {pod['metadata']['name']}"] = (await kube.http.get(path)).text
    return texts


def users_of(value: str) -> set[int]:
    """User ids of the processes on the node whose environment has the value."""
    # 1: nothing found; 2: a process ended while grep looked
    found = node.run(
        "sh", "-c", "grep -alsF -f - /proc/[0-9]*/environ", text_in=value, fine=(0, 1, 2)
    ).split()
    told = [node.run("stat", "-c", "%u", path.rpartition("/")[0], fine=(0, 1)).strip() for path in found]
    return {int(uid) for uid in told if uid}
