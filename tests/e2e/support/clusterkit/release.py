"""The operator as it is installed: its Deployment, and the Helm release that it belongs to."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from clusterkit import kube as k
from clusterkit import node
from devcluster.layout import REPOSITORY

OPERATOR = "app.kubernetes.io/name=mcpserver-operator,app.kubernetes.io/component=operator"


async def deployment(kube: k.Kube) -> k.Json:
    """The operator's Deployment, whatever its namespace."""
    (found,) = await kube.list(k.DEPLOYMENTS, "", OPERATOR)
    return found


def available(found: k.Json | None, replicas: int) -> bool:
    known = found or {"metadata": {"generation": 0}, "status": {}}
    seen = known["status"].get("observedGeneration", -1) >= known["metadata"]["generation"]
    return bool(seen and known["status"].get("availableReplicas", 0) == replicas)


async def scale(kube: k.Kube, replicas: int) -> None:
    """Set the number of operator pods and wait until it is so."""
    meta = (await deployment(kube))["metadata"]
    namespace, name = meta["namespace"], meta["name"]
    await kube.merge(k.DEPLOYMENTS, namespace, name, {"spec": {"replicas": replicas}})
    for pod in await kube.list(k.PODS, namespace, OPERATOR) if not replicas else []:
        await kube.gone(k.PODS, namespace, pod["metadata"]["name"], within=60)
    await kube.until(
        k.DEPLOYMENTS, namespace, name, lambda o: available(o, replicas), within=60, what="scale"
    )


@asynccontextmanager
async def without_operator(kube: k.Kube) -> AsyncIterator[None]:
    await scale(kube, 0)
    try:
        yield
    finally:
        await scale(kube, 1)


async def revision(kube: k.Kube) -> str:
    """The revision of the release that is deployed."""
    release, namespace = await named(kube)
    (deployed,) = await kube.list(k.SECRETS, namespace, f"owner=helm,name={release},status=deployed")
    return str(deployed["metadata"]["labels"]["version"])


async def named(kube: k.Kube) -> tuple[str, str]:
    """Name and namespace of the release."""
    meta = (await deployment(kube))["metadata"]
    return meta["labels"]["app.kubernetes.io/instance"], meta["namespace"]


@asynccontextmanager
async def upgraded(kube: k.Kube, **values: str) -> AsyncIterator[None]:
    """The release upgraded to these values, whose names have `__` for a dot; rolled back at the end."""
    (release, namespace), before = await named(kube), await revision(kube)
    settings = [f"--set-string={name.replace('__', '.')}={value}" for name, value in values.items()]
    where = ("-n", namespace, "--wait", "--timeout", "90s")
    command = ("upgrade", release, str(REPOSITORY / "helm"), "--reset-then-reuse-values", *settings, *where)
    await asyncio.to_thread(node.helm, *command)
    try:
        yield
    finally:
        await asyncio.to_thread(node.helm, "rollback", release, before, *where)
