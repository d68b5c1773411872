"""A server of a test's own, in a pod of the namespace and behind a Service, for as long as a block runs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from clusterkit import kube as k
from clusterkit import manifests, node
from clusterkit.leanmcp import Endpoint
from clusterkit.servers import reachable


def pod_is_ready(pod: k.Json | None) -> bool:
    """Whether clients may be sent to the pod."""
    conditions = pod["status"].get("conditions", []) if pod else []
    return any(found["type"] == "Ready" and found["status"] == "True" for found in conditions)


@asynccontextmanager
async def serving(
    kube: k.Kube,
    namespace: str,
    name: str,
    command: list[str],
    *,
    listens: int,
    port: int,
    secret_name: str = "",
) -> AsyncIterator[None]:
    """Run a command that listens on one port, reachable as `name:port`; the block begins when it is.

    A client that came earlier would be refused, and what it does about that is another test's matter.
    """
    probe = {"tcpSocket": {"port": listens}, "periodSeconds": 1}
    pod = manifests.pod(name, command, secret_name=secret_name, readinessProbe=probe)
    await kube.apply(k.PODS, namespace, pod)
    service = await kube.apply(k.SERVICES, namespace, manifests.service(name, port, listens))
    await kube.until(k.PODS, namespace, name, pod_is_ready, what="Ready")
    if not node.is_kind():  # whose Services this machine does not reach
        await reachable(Endpoint(service["spec"]["clusterIP"], port, name))
    yield
    await kube.delete(k.PODS, namespace, name, grace=0)
    await kube.gone(k.PODS, namespace, name)
