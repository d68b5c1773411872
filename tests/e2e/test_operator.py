"""The operator comes and goes; what it runs stays. These tests stop it, so they run alone."""

import asyncio

import pytest

from clusterkit import kube as k
from clusterkit import manifests, node
from clusterkit.clients import ended
from clusterkit.release import OPERATOR, available, deployment, upgraded, without_operator
from clusterkit.servers import Server, Servers, condition, kill_process, ready_since_epoch, status

pytestmark = pytest.mark.serial


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

    installed = (await deployment(servers.kube))["metadata"]
    (old,) = await servers.kube.list(k.PODS, installed["namespace"], OPERATOR)
    await servers.kube.delete(k.PODS, installed["namespace"], old["metadata"]["name"])
    await servers.kube.gone(k.PODS, installed["namespace"], old["metadata"]["name"])
    await servers.kube.until(
        k.DEPLOYMENTS, installed["namespace"], installed["name"], lambda o: available(o, 1), what="operator"
    )

    assert await asyncio.gather(*calls) == ["slept"] * 3
    assert [await picture(server) for server in made] == before
    for server, client in zip(made, clients, strict=True):
        assert (await server.stats(client))["initializes"] == 1
    pod = await made[0].pod()
    pid = (await made[0].stats(clients[0]))["pid"]
    await asyncio.to_thread(kill_process, servers.namespace, pod["metadata"]["name"], pid)
    await made[0].until(ready_since_epoch(2), what="the new operator at work")


async def test_an_upgrade_that_changes_nothing_about_the_pods_keeps_them_and_their_open_calls(
    servers: Servers,
) -> None:
    made = [await servers.ready(f"upgraded-{n}") for n in range(3)]
    clients = [await server.client() for server in made]
    before = [await picture(server) for server in made]
    old = await servers.kube.list(k.PODS, (await deployment(servers.kube))["metadata"]["namespace"], OPERATOR)
    calls = [asyncio.ensure_future(client.call("sleep", seconds=25)) for client in clients]
    async with upgraded(servers.kube, podAnnotations__tested="now"):
        new = await servers.kube.list(k.PODS, old[0]["metadata"]["namespace"], OPERATOR)
        assert {pod["metadata"]["uid"] for pod in new}.isdisjoint(pod["metadata"]["uid"] for pod in old)
        assert await asyncio.gather(*calls) == ["slept"] * 3
        assert [await picture(server) for server in made] == before
        for server, client in zip(made, clients, strict=True):
            assert (await server.stats(client))["initializes"] == 1


async def test_an_upgrade_that_changes_the_pods_replaces_each_exactly_once_and_keeps_client_sessions(
    servers: Servers,
) -> None:
    made = [await servers.ready(f"renewed-{n}") for n in range(3)]
    clients = [await server.client() for server in made]
    async with upgraded(servers.kube, relay__resources__limits__memory="257Mi"):
        for server in made:
            item = await server.until(ready_since_epoch(2), within=60, what="Ready with the new pod")
            assert status(item, "recovery", "restarts") == 1
            pod = await server.pod()
            assert pod["spec"]["initContainers"][0]["resources"]["limits"]["memory"] == "257Mi"
        async with servers.kube.watch(k.PODS, servers.namespace, selector="mcp-session.dev/server") as pods:
            there = {pod["metadata"]["name"] for pod in await servers.kube.list(k.PODS, servers.namespace)}
            while (seen := await k.change_within(pods, 4)) is not None:
                assert seen.object is None or seen.object["metadata"]["name"] in there
        for server, client in zip(made, clients, strict=True):
            await server.endpoint()
            assert await client.call("echo", text="same session") == "same session"
            assert status(await server.get(), "session", "epoch") == 2


async def test_an_upgrade_that_changes_the_pods_keeps_a_server_that_could_not_start_again(
    servers: Servers,
) -> None:
    await servers.kube.apply(k.SECRETS, servers.namespace, manifests.secret("lost", foo="value"))
    env = [{"name": "FOO", "valueFrom": {"secretKeyRef": {"name": "lost", "key": "foo"}}}]
    server = await servers.ready("kept-for-lack", env=env)
    other = await servers.ready("renewed")
    await servers.kube.delete(k.SECRETS, servers.namespace, "lost")
    await server.until(
        lambda o: condition(o, "Accepted").get("reason") == "SecretNotFound", what="reason SecretNotFound"
    )
    async with upgraded(servers.kube, relay__resources__limits__memory="257Mi"):
        await other.until(ready_since_epoch(2), within=60, what="Ready with the new pod")
        item = await server.get()
        assert status(item, "session", "epoch") == 1
        assert status(item, "phase") == "Connected"
        await servers.kube.apply(k.SECRETS, servers.namespace, manifests.secret("lost", foo="value"))
        await server.until(ready_since_epoch(2), within=60, what="Ready with the new pod")


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
        await kube.until(k.NAMESPACES, "", fresh_namespace, lambda o: o is None, within=120, what="end of it")


async def test_a_server_at_rest_is_not_written_to(kube: k.Kube, fresh_namespace: str) -> None:
    servers = Servers(kube, fresh_namespace)
    await servers.ready("resting")
    failing = await servers.apply("failing", (*manifests.BROKEN, "exits"), recovery={"maxRetries": 0})
    await failing.failed()
    pod = (await failing.pod())["metadata"]["name"]
    await kube.until(k.PODS, fresh_namespace, pod, ended, what="end of the failed pod")
    # What the operator makes of that end may still be written.
    async with kube.watch(k.MCPSERVERS, fresh_namespace) as changes, asyncio.timeout(30):
        while await k.change_within(changes, 2) is not None:
            pass
    async with kube.watch(k.MCPSERVERS, fresh_namespace) as changes:
        for _ in servers.made:  # the watch opens with what stands there
            await anext(changes)
        assert await k.change_within(changes, 8) is None
    await servers.close()


async def test_uninstalling_the_chart_leaves_resources_and_servers(servers: Servers) -> None:
    server = await servers.ready("survivor")
    before = await picture(server)
    installed = (await deployment(servers.kube))["metadata"]
    release, namespace = installed["labels"]["app.kubernetes.io/instance"], installed["namespace"]
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
            installed["name"],
            lambda o: available(o, 1),
            within=60,
            what="operator",
        )
    await servers.apply("after-reinstall")
    await servers.handle("after-reinstall").ready()
    assert await picture(server) == before
