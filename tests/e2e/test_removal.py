"""Deletion: in any order, twice, with the operator away, in a namespace that ends: nothing hangs or stays."""

import asyncio

import pytest

from clusterkit import kube as k
from clusterkit import manifests
from clusterkit.release import without_operator
from clusterkit.servers import SERVER_LABEL, Server, Servers, in_phase

CHILDREN = (k.PODS, k.SERVICES, k.SECRETS, k.NETWORKPOLICIES)
ORDERS: dict[str, tuple[k.Kind, ...]] = {
    "from the top": (k.MCPSERVERS, *CHILDREN),
    "from the bottom": (*CHILDREN, k.MCPSERVERS),
    "in between": (k.SECRETS, k.PODS, k.MCPSERVERS, k.NETWORKPOLICIES, k.SERVICES),
}


async def left(server: Server) -> list[tuple[str, str]]:
    """Plural and name of everything that still belongs to the resource, and of itself."""
    kinds = [(kind, await server.kube.list(kind, server.namespace, SERVER_LABEL)) for kind in CHILDREN]
    found = [(kind.plural, item["metadata"]["name"]) for kind, items in kinds for item in items]
    ours = [(plural, name) for plural, name in found if name.startswith(f"mcp-{server.name}")]
    itself = await server.kube.find(k.MCPSERVERS, server.namespace, server.name)
    return ours + ([(k.MCPSERVERS.plural, server.name)] if itself else [])


async def delete(server: Server, kind: k.Kind) -> None:
    """Ask for the deletion of the resource, or of all its children of a kind, as they are now."""
    if kind is k.MCPSERVERS:
        await server.delete()
        return
    for plural, name in await left(server):
        if plural == kind.plural:
            await server.kube.delete(kind, server.namespace, name)


async def nothing_left(server: Server) -> None:
    """Wait for the end of the resource, and then of all that it had."""
    await server.kube.gone(k.MCPSERVERS, server.namespace, server.name)
    kinds = {kind.plural: kind for kind in CHILDREN}
    async with asyncio.timeout(120):
        # Again, because the operator may just have been making something, which goes as an orphan.
        while found := await left(server):
            for plural, name in found:
                await server.kube.gone(kinds[plural], server.namespace, name)


async def deleted_twice(server: Server, order: tuple[k.Kind, ...]) -> None:
    for _ in range(2):
        for kind in order:
            await delete(server, kind)
    await nothing_left(server)


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
async def test_everything_can_be_deleted_in_any_order_and_twice(
    servers: Servers, order: tuple[k.Kind, ...]
) -> None:
    server = await servers.ready(f"ordered-{list(ORDERS.values()).index(order)}")
    await deleted_twice(server, order)
    async with servers.kube.watch(k.PODS, servers.namespace, selector=SERVER_LABEL) as pods:
        assert await k.change_within(pods, 2) is None
    assert await left(server) == []


async def test_a_name_can_be_used_again_at_once(servers: Servers) -> None:
    for _ in range(3):
        server = await servers.ready("again")
        await server.delete()
    await server.apply()
    await server.ready(within=60)


@pytest.mark.serial
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
async def test_everything_can_be_deleted_in_any_order_and_twice_while_no_operator_runs(
    servers: Servers, order: tuple[k.Kind, ...]
) -> None:
    server = await servers.ready(f"alone-{list(ORDERS.values()).index(order)}")
    async with without_operator(servers.kube):
        await deleted_twice(server, order)
    assert await left(server) == []


async def mixed(kube: k.Kube, namespace: str) -> list[Server]:
    """Servers in all the states that could hold a namespace up."""
    servers = Servers(kube, namespace)
    made = [
        await servers.ready("running"),
        await servers.apply("failing", (*manifests.BROKEN, "exits")),
        await servers.apply("pulling", image="localhost/absent:1"),
        await servers.apply("silent", (*manifests.BROKEN, "silent")),
        await servers.apply("suspended", suspend=True),
    ]
    await made[-1].until(in_phase("Suspended"), what="phase Suspended")
    return made


async def end(kube: k.Kube, namespace: str, made: list[Server]) -> None:
    """Delete the namespace, and what is in it twice more while it ends."""
    await kube.call("DELETE", f"/api/v1/namespaces/{namespace}")
    for _ in range(2):
        for server in made:
            await server.delete()
    await kube.until(k.NAMESPACES, "", namespace, lambda o: o is None, within=120, what="end of it")


async def test_a_namespace_with_servers_in_every_state_ends(kube: k.Kube, fresh_namespace: str) -> None:
    await end(kube, fresh_namespace, await mixed(kube, fresh_namespace))


@pytest.mark.serial
async def test_a_namespace_with_servers_in_every_state_ends_while_no_operator_runs(
    kube: k.Kube, fresh_namespace: str
) -> None:
    made = await mixed(kube, fresh_namespace)
    async with without_operator(kube):
        await end(kube, fresh_namespace, made)
