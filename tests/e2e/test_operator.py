"""The operator comes and goes; what it runs stays. These tests stop it, so they run alone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from clusterkit import kube as k
from clusterkit import manifests, node
from clusterkit.clients import ended
from clusterkit.servers import Server, Servers, kill_process, ready_since_epoch, status

pytestmark = pytest.mark.serial

OPERATOR = "app.kubernetes.io/name=mcpserver-operator,app.kubernetes.io/component=operator"


async def operator(kube: k.Kube) -> k.Json:
    """The operator's Deployment, whatever its namespace."""
    (deployment,) = await kube.list(k.DEPLOYMENTS, "", OPERATOR)
    return deployment


async def scale(kube: k.Kube, replicas: int) -> None:
    """Set the number of operator pods and wait until it is so."""
    deployment = (await operator(kube))["metadata"]
    namespace, name = deployment["namespace"], deployment["name"]
    await kube.merge(k.DEPLOYMENTS, namespace, name, {"spec": {"replicas": replicas}})
    for pod in await kube.list(k.PODS, namespace, OPERATOR) if not replicas else []:
        await kube.gone(k.PODS, namespace, pod["metadata"]["name"], within=60)
    await kube.until(
        k.DEPLOYMENTS, namespace, name, lambda o: available(o, replicas), within=60, what="scale"
    )


def available(deployment: k.Json | None, replicas: int) -> bool:
    found = deployment or {"metadata": {"generation": 0}, "status": {}}
    seen = found["status"].get("observedGeneration", -1) >= found["metadata"]["generation"]
    return bool(seen and found["status"].get("availableReplicas", 0) == replicas)


@asynccontextmanager
async def without_operator(kube: k.Kube) -> AsyncIterator[None]:
    await scale(kube, 0)
    try:
        yield
    finally:
        await scale(kube, 1)


def lasting(item: k.Json) -> k.Json:
    """The status without the number of clients, which moves by itself."""
    found: k.Json = {**item["status"], "session": {**item["status"]["session"]}}
    found["session"].pop("clients", None)
    return found


async def picture(server: Server) -> tuple[k.Json, str, list[k.Json]]:
    """What must not change while the operator is away: status, pod, containers with their start times."""
    pod = await server.pod()
    containers = [*pod["status"]["initContainerStatuses"], *pod["status"]["containerStatuses"]]
    return lasting(await server.get()), pod["metadata"]["uid"], [entry["state"] for entry in containers]


async def test_a_restart_of_the_operator_touches_no_server_and_no_open_call(servers: Servers) -> None:
    made = [await servers.ready(f"kept-{n}") for n in range(3)]
    clients = [await server.client() for server in made]
    before = [await picture(server) for server in made]
    calls = [asyncio.ensure_future(client.call("sleep", seconds=8)) for client in clients]

    deployment = (await operator(servers.kube))["metadata"]
    (old,) = await servers.kube.list(k.PODS, deployment["namespace"], OPERATOR)
    await servers.kube.delete(k.PODS, deployment["namespace"], old["metadata"]["name"])
    await servers.kube.gone(k.PODS, deployment["namespace"], old["metadata"]["name"])
    await servers.kube.until(
        k.DEPLOYMENTS, deployment["namespace"], deployment["name"], lambda o: available(o, 1), what="operator"
    )

    assert await asyncio.gather(*calls) == ["slept"] * 3
    assert [await picture(server) for server in made] == before
    for server, client in zip(made, clients, strict=True):
        assert (await server.stats(client))["initializes"] == 1
    pod = await made[0].pod()
    pid = (await made[0].stats(clients[0]))["pid"]
    await asyncio.to_thread(kill_process, servers.namespace, pod["metadata"]["name"], pid)
    await made[0].until(ready_since_epoch(2), what="the new operator at work")


async def test_what_happens_while_the_operator_is_away_is_seen_when_it_is_back(servers: Servers) -> None:
    server = await servers.ready("meanwhile")
    client = await server.client()
    pid, pod = (await server.stats(client))["pid"], await server.pod()
    async with without_operator(servers.kube):
        await asyncio.to_thread(kill_process, servers.namespace, pod["metadata"]["name"], pid)
        await servers.apply("created-meanwhile")
    item = await server.until(ready_since_epoch(2), what="Ready again")
    assert status(item, "recovery", "restarts") == 1
    await servers.handle("created-meanwhile").ready()


async def test_deletion_needs_no_operator(servers: Servers) -> None:
    server = await servers.ready("deleted-meanwhile")
    left = [
        (kind, child["metadata"]["name"])
        for kind in (k.PODS, k.SERVICES, k.SECRETS)
        for child in await server.children(kind)
    ]
    async with without_operator(servers.kube):
        await server.delete()
        for kind, name in left:
            await servers.kube.gone(kind, servers.namespace, name)


async def test_a_namespace_is_deleted_without_an_operator(kube: k.Kube, fresh_namespace: str) -> None:
    await Servers(kube, fresh_namespace).ready("doomed")
    async with without_operator(kube):
        await kube.call("DELETE", f"/api/v1/namespaces/{fresh_namespace}")
        await kube.until(k.NAMESPACES, "", fresh_namespace, lambda o: o is None, within=60, what="end of it")


async def test_a_server_at_rest_is_not_written_to(kube: k.Kube, fresh_namespace: str) -> None:
    servers = Servers(kube, fresh_namespace)
    await servers.ready("resting")
    failing = await servers.apply("failing", (*manifests.BROKEN, "exits"), recovery={"maxRetries": 0})
    await failing.failed()
    pod = (await failing.pod())["metadata"]["name"]
    await kube.until(k.PODS, fresh_namespace, pod, ended, what="end of the failed pod")
    async with kube.watch(k.MCPSERVERS, fresh_namespace) as changes:
        for _ in servers.made:  # the watch opens with what stands there
            await anext(changes)
        assert await k.change_within(changes, 8) is None
    await servers.close()


async def test_uninstalling_the_chart_leaves_resources_and_servers(servers: Servers) -> None:
    server = await servers.ready("survivor")
    before = await picture(server)
    deployment = (await operator(servers.kube))["metadata"]
    release, namespace = deployment["labels"]["app.kubernetes.io/instance"], deployment["namespace"]
    (deployed,) = await servers.kube.list(k.SECRETS, namespace, f"owner=helm,name={release},status=deployed")
    revision = deployed["metadata"]["labels"]["version"]
    await asyncio.to_thread(node.helm, "uninstall", release, "-n", namespace, "--keep-history", "--wait")
    try:
        assert await servers.kube.list(k.DEPLOYMENTS, "", OPERATOR) == []
        assert await picture(server) == before
        client = await server.client()
        assert await client.call("echo", text="still served") == "still served"
    finally:
        await asyncio.to_thread(node.helm, "rollback", release, revision, "-n", namespace)
        await servers.kube.until(
            k.DEPLOYMENTS,
            namespace,
            deployment["name"],
            lambda o: available(o, 1),
            within=60,
            what="operator",
        )
    await servers.apply("after-reinstall")
    await servers.handle("after-reinstall").ready()
    assert await picture(server) == before
