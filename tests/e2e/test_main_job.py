"""Apply an MCPServer, see it Ready, call its tools, delete it: the way most resources go."""

import asyncio
import secrets
from pathlib import Path

import pytest

from clusterkit import kube as k
from clusterkit import manifests, node
from clusterkit.clients import call_from_here, call_from_pod
from clusterkit.servers import Servers, condition, in_phase, not_ready, ready_since_epoch, status

CHILDREN = (k.PODS, k.SERVICES, k.SECRETS)


async def test_an_applied_server_becomes_ready_and_its_status_tells_session_and_tools(
    servers: Servers,
) -> None:
    server = await servers.apply("plain", (*manifests.RAW, "--tools", "2"))
    item = await server.ready()

    assert status(item, "phase") == "Connected"
    assert status(item, "observedGeneration") == item["metadata"]["generation"]
    for kind in ("Accepted", "Available", "Verified", "Ready"):
        assert condition(item, kind)["status"] == "True", kind
    assert not condition(item, "Reconciling")
    assert not condition(item, "Stalled")
    assert status(item, "session", "serverInfo") == {"name": "raw", "version": "1"}
    assert status(item, "session", "protocolVersion") == "2025-11-25"
    assert status(item, "session", "epoch") == 1
    names = [tool["name"] for tool in status(item, "tools")]
    assert names[0] == "echo"
    assert names[-1] == "extra-1"
    assert status(item, "toolCount") == len(names)
    assert status(item, "recovery", "restarts") == 0
    assert status(item, "error") is None
    pod = await server.pod()
    assert pod["metadata"]["uid"] == status(item, "session", "podUID")


async def test_a_client_reaches_the_tools_through_the_service(servers: Servers) -> None:
    server = await servers.ready("reachable")
    client = await server.client()
    assert "echo" in await client.tools()
    assert await client.call("echo", text="é€😀漢") == "é€😀漢"
    assert len(await client.call("big", bytes=1 << 20)) == 1 << 20
    await client.close()


async def test_the_official_client_calls_a_tool_from_a_pod(servers: Servers) -> None:
    server = await servers.ready("from-pod")
    answer = await call_from_pod(server, "echo", text="from a pod")
    assert answer["text"] == ["from a pod"]
    assert "echo" in answer["tools"]


async def test_the_official_client_calls_a_tool_from_outside_by_port_forward(servers: Servers) -> None:
    server = await servers.ready("from-outside")
    answer = await call_from_here(server, "echo", text="from outside")
    assert answer["text"] == ["from outside"]


async def test_many_clients_share_one_process_and_one_session(servers: Servers) -> None:
    server = await servers.ready("shared")
    clients = await asyncio.gather(*(server.client() for _ in range(10)))

    async def asks(n: int) -> list[str]:
        return [await clients[n].call("echo", rid=i, text=f"{n}/{i}") for i in range(5)]

    answers = await asyncio.gather(*(asks(n) for n in range(10)))
    assert answers == [[f"{n}/{i}" for i in range(5)] for n in range(10)]
    stats = await server.stats(clients[0])
    assert stats["initializes"] == 1
    await asyncio.gather(*(client.close() for client in clients))


async def test_kubectl_waits_for_ready_and_prints_the_columns(servers: Servers, namespace: str) -> None:
    server = await servers.apply("columns")
    await asyncio.to_thread(
        node.kubectl, "-n", namespace, "wait", "--for=condition=Ready", "mcpserver/columns", "--timeout=60s"
    )
    printed = await asyncio.to_thread(
        node.kubectl, "-n", namespace, "get", "mcpserver", "columns", "-o", "wide"
    )
    head, row = printed.stdout.splitlines()
    for column in ("READY", "PHASE", "TOOLS", "RESTARTS", "URL", "AGE", "IMAGE", "REASON", "MESSAGE"):
        assert column in head
    assert await server.url() in row
    assert "Connected" in row
    short = await asyncio.to_thread(
        node.kubectl, "-n", namespace, "get", "mcpsrv,mcp", "-o", "name", check=False
    )
    assert "mcpserver.mcp-session.dev/columns" in short.stdout


async def test_a_noisy_start_is_no_failure(servers: Servers) -> None:
    server = await servers.apply("noisy", (*manifests.RAW, "--banner", "--noise", "200000"))
    item = await server.ready()
    assert status(item, "recovery", "restarts") == 0


@pytest.mark.long
async def test_a_start_of_ninety_seconds_is_waited_for_and_costs_no_retry(servers: Servers) -> None:
    server = await servers.apply("slow", (*manifests.RAW, "--delay", "90"))
    item = await server.until(in_phase("Connecting"), what="phase Connecting")
    assert status(item, "address") is None
    pod = await server.pod()
    item = await server.ready(within=120)
    assert status(item, "recovery", "restarts") == 0
    assert status(item, "recovery", "consecutiveFailures") in (None, 0)
    assert status(item, "session", "epoch") == 1
    assert (await server.pod())["metadata"]["uid"] == pod["metadata"]["uid"]
    client = await server.client()
    assert (await server.stats(client))["initializes"] == 1
    await client.close()


async def test_a_changed_tool_list_reaches_status_and_clients(servers: Servers) -> None:
    server = await servers.ready("changing")
    before = status(await server.get(), "toolCount")
    client = await server.client()
    async with client.listen() as messages:
        await client.call("change", burst=50)
        async with asyncio.timeout(30):
            assert (await anext(messages))["method"] == "notifications/tools/list_changed"
    await server.until(lambda item: bool(status(item, "toolCount") == before + 1), what="one tool more")
    await client.close()


async def test_a_changed_spec_replaces_the_pod_and_the_next_call_works(servers: Servers) -> None:
    server = await servers.ready("edited")
    await server.patch(command=[*manifests.RAW, "--tools", "1"])
    item = await server.ready()
    assert status(item, "session", "epoch") == 2
    client = await server.client()
    assert "extra-0" in await client.tools()
    await client.close()


async def test_a_suspended_server_has_no_pod_and_comes_back(servers: Servers) -> None:
    server = await servers.ready("sleeper")
    await server.patch(suspend=True)
    item = await server.until(in_phase("Suspended"), what="phase Suspended")
    assert not_ready(item)
    assert status(item, "address") is None
    pod = await server.children(k.PODS)
    for item in pod:
        await servers.kube.gone(k.PODS, servers.namespace, item["metadata"]["name"])
    await server.patch(suspend=False)
    await server.ready()


async def test_a_deleted_server_leaves_no_object_and_no_process(servers: Servers) -> None:
    marker = f"marker-{secrets.token_hex(8)}"
    stubborn = (*manifests.RAW, "--ignore-term", "--ignore-eof", "--child", "--mark", marker)
    server = await servers.ready("stubborn", stubborn)
    client = await server.client()
    await client.call("spawn", detached=True)
    assert len(node.processes(marker)) >= 3
    left = [(kind, item["metadata"]["name"]) for kind in CHILDREN for item in await server.children(kind)]
    assert len(left) == 3

    await server.delete()
    for kind, name in left:
        await servers.kube.gone(kind, servers.namespace, name, within=15)
    await servers.kube.gone(k.MCPSERVERS, servers.namespace, server.name)
    assert node.processes(marker) == []
    await server.delete()


async def test_deleting_the_namespace_does_not_hang(kube: k.Kube, fresh_namespace: str) -> None:
    servers = Servers(kube, fresh_namespace)
    await servers.ready("doomed")
    await servers.apply("never-ready", (*manifests.BROKEN, "silent"))
    await kube.call("DELETE", f"/api/v1/namespaces/{fresh_namespace}")
    await kube.until(k.NAMESPACES, "", fresh_namespace, lambda o: o is None, within=100, what="end of it")


async def test_deleted_children_are_made_again(servers: Servers) -> None:
    server = await servers.ready("orphaned")
    for kind in CHILDREN:
        (child,) = await server.children(kind)
        await servers.kube.delete(kind, servers.namespace, child["metadata"]["name"])
        await servers.kube.replaced(kind, servers.namespace, child)
        # The second pod follows the one deleted. Made after the Secret is, it would have the new one already.
        await server.until(lambda o: (status(o, "session", "epoch") or 0) >= 2, what="second pod")
    # The third has the new Secret.
    await server.until(ready_since_epoch(3), what="Ready again")
    client = await server.client()
    assert await client.call("echo", text="again") == "again"
    await client.close()


@pytest.mark.parametrize("document", ["time", "everything", "broken"])
async def test_the_examples_are_accepted_by_the_api_server(document: str, namespace: str) -> None:
    path = Path(__file__).parents[2] / "examples" / f"{document}.yaml"
    await asyncio.to_thread(
        node.kubectl, "-n", namespace, "apply", "--dry-run=server", "--validate=strict", "-f", str(path)
    )
