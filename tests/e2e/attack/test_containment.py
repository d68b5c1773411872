"""What a hostile server can read and touch from inside its own pod, and whom it hurts when it runs wild.

Where it is possible a control shows that the same attack works without the wall.
"""

import asyncio
import base64
import contextlib
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from clusterkit import attacks, manifests, node
from clusterkit import kube as k
from clusterkit.hostile import Inside, Neighbour
from clusterkit.leanmcp import RpcError
from clusterkit.servers import Server, Servers, container_status, status

MIB = 1 << 20
# The kubelet measures a volume every one to two minutes, and looks for what is full every ten seconds.
DISK_SECONDS = 135


@pytest.fixture
async def hostile(kube: k.Kube, namespace: str) -> AsyncIterator[Inside]:
    """One server for all tests of this module; the end of the namespace ends it."""
    server = Server(kube, namespace, "hostile")
    await server.apply()
    await server.ready()
    yield Inside(server)
    await server.close()


async def in_relay(server: Server, code: str, *arguments: str) -> str:
    """Run code in the relay's container, as the control of what the server must not be able to do."""
    pod = (await server.pod())["metadata"]["name"]
    words = ("-n", server.namespace, "exec", pod, "-c", "relay", "--", "python3", "-c", code, *arguments)
    return (await asyncio.to_thread(node.kubectl, *words)).stdout


async def start_admitted(pod: Neighbour, within: float = 10, **container: Any) -> None:
    """Start a pod that the label of its namespace allows: admission hears of a new label a little later."""
    deadline = time.monotonic() + within
    while True:
        try:
            await pod.start(**container)
        except k.ApiError as error:
            if "PodSecurity" not in error.message or time.monotonic() > deadline:
                raise
        else:
            return
        await asyncio.sleep(0.1)


async def relay_of(server: Server) -> tuple[str, int]:
    """The relay's container, and how often it was restarted."""
    found = container_status(await server.pod(), "relay")
    return found["containerID"], found["restartCount"]


async def test_no_key_of_the_relay_can_be_read(hostile: Inside) -> None:
    secret = await hostile.server.only_child(k.SECRETS)
    for name in ("token", "admin-token", "signing-key"):
        value = base64.b64decode(secret["data"][name]).decode()
        seen = json.loads(await hostile.run(attacks.SEARCH, value[::-1]))
        assert seen["found"] == [], name
        assert seen["read"] > 10
        control = json.loads(await in_relay(hostile.server, attacks.SEARCH, value[::-1]))
        assert [path for path in control["found"] if path.startswith("/secrets/")], name


async def test_the_relays_process_cannot_be_seen_so_its_memory_cannot_be_read(hostile: Inside) -> None:
    seen = json.loads(await hostile.run(attacks.PROCESSES))
    assert "1" in seen
    assert [words for words in seen.values() if "mcp_sidecar" in words] == []
    assert "mcp_sidecar" in json.loads(await in_relay(hostile.server, attacks.PROCESSES))["1"]


async def test_nothing_of_the_relay_can_be_signalled(hostile: Inside) -> None:
    reached = json.loads(await hostile.run(attacks.SIGNALS))
    assert reached[0] == "/bridge/launcher"
    assert {words.rpartition("/")[2] for words in reached} == {"launcher", "python3"}


async def test_no_privilege_can_be_had(hostile: Inside, kube: k.Kube, fresh_namespace: str) -> None:
    seen = json.loads(await hostile.run(attacks.PRIVILEGES))
    assert set(seen.values()) == {"PermissionError"}, seen
    label = {"pod-security.kubernetes.io/enforce": "privileged"}
    await kube.merge(k.NAMESPACES, "", fresh_namespace, {"metadata": {"labels": label}})
    root = Neighbour(kube, fresh_namespace)
    security = {"runAsUser": 0, "capabilities": {"add": ["SYS_ADMIN", "NET_RAW", "SYS_CHROOT", "MKNOD"]}}
    await start_admitted(root, securityContext=security)
    control = json.loads(await root.run(attacks.PRIVILEGES))
    await root.stop()
    done = {name for name, result in control.items() if result == "done"}
    assert done >= {"sniff", "forge packets", "become root", "become the relay"}, control


async def test_the_relay_asks_its_own_address_for_tokens_too_and_keeps_its_ports(hostile: Inside) -> None:
    seen = json.loads(await hostile.run(attacks.LOOPBACK))
    assert seen["asked"] == [401] * 4
    assert set(seen["bound"]) == {"OSError"}
    assert seen["control"] == "listens"


async def test_forged_messages_of_launcher_and_server_change_nothing(hostile: Inside) -> None:
    before, pod = await relay_of(hostile.server), (await hostile.server.pod())["metadata"]["uid"]
    client = await hostile.server.client()
    slow = asyncio.create_task(client.call("sleep", seconds=1))
    assert (await hostile.run(attacks.FORGE)).strip() == "forged"
    assert await slow == "slept"
    await client.close()
    assert await relay_of(hostile.server) == before
    assert (await hostile.server.pod())["metadata"]["uid"] == pod
    assert status(await hostile.server.get(), "phase") == "Connected"


async def test_who_takes_the_pipe_from_the_relay_gains_nothing_and_the_relay_comes_back(
    servers: Servers,
) -> None:
    server = await servers.ready("thief")
    before = await relay_of(server)
    client = await server.client()
    with contextlib.suppress(RpcError, AssertionError):  # its own answer may be lost with the connection
        await client.call("run", code=attacks.STEAL_THE_PIPE)
    await server.ready()
    again = await server.client()
    assert await again.call("echo", text="served again") == "served again"
    await again.close()
    assert await relay_of(server) == before


async def test_a_fork_bomb_stops_at_the_nodes_limit_and_the_relay_goes_on(
    servers: Servers,
) -> None:
    roomy = {"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": "10m", "memory": "64Mi"}}
    bomber = Inside(await servers.ready("bomber", resources=roomy))
    other = await servers.ready("bystander")
    before = await relay_of(bomber.server)
    bomb = asyncio.create_task(bomber.run(attacks.FORK_BOMB, seconds=30))
    client = await other.client()
    while not bomb.done():
        assert await client.call("echo", text="undisturbed") == "undisturbed"
        await asyncio.wait([bomb], timeout=0.2)
    await client.close()
    seen = json.loads(await bomb)
    assert seen["error"] == "BlockingIOError"
    assert seen["children"] < 1000
    assert await relay_of(bomber.server) == before


async def test_the_shared_memory_volume_is_small_and_a_full_one_hurts_no_other(hostile: Inside) -> None:
    before = await relay_of(hostile.server)
    assert "No space" in await hostile.run(attacks.FILL, "/bridge/filler", str(64 * MIB))
    assert await hostile.run("import os; os.remove('/bridge/filler'); print('removed')") == "removed\n"
    assert await relay_of(hostile.server) == before


@pytest.mark.timeout(DISK_SECONDS + 120)
async def test_a_full_disk_ends_the_server_that_filled_it_and_no_other(
    hostile: Inside, servers: Servers
) -> None:
    server = await servers.ready("filler")
    client = await server.client()
    name = (await server.pod())["metadata"]["name"]
    with pytest.raises((AssertionError, RpcError)):
        await client.call(
            "run",
            code=attacks.FILL + "import time; time.sleep(60)",
            arguments=["/tmp/x", 220 * MIB],
            seconds=70,
        )
    seen = await server.kube.until(
        k.PODS,
        server.namespace,
        name,
        lambda pod: pod is None or pod["status"].get("reason") == "Evicted",
        within=DISK_SECONDS,
    )
    assert seen.object is None or "ephemeral" in seen.object["status"]["message"]
    assert status(await hostile.server.get(), "phase") == "Connected"


async def test_memory_without_end_ends_the_server_and_not_its_relay(servers: Servers) -> None:
    server = await servers.ready("hoarder", recovery={"maxRetries": 0})
    client = await server.client()
    container, _ = await relay_of(server)
    name = (await server.pod())["metadata"]["name"]
    gone = asyncio.create_task(
        server.kube.until(
            k.PODS,
            server.namespace,
            name,
            lambda pod: "terminated" in container_status(pod or {"status": {}}, "server").get("state", {}),
            what="end of the server",
        )
    )
    await asyncio.sleep(0)
    with pytest.raises(RpcError, match="effect is unknown"):
        await client.call("allocate", mib=512)
    pod = (await gone).object
    assert pod
    assert container_status(pod, "server")["state"]["terminated"]["reason"] == "OOMKilled"
    relay = container_status(pod, "relay")
    assert (relay["containerID"], relay["restartCount"]) == (container, 0)


async def test_a_runtime_class_that_is_missing_is_an_error_of_the_sandbox_at_once(servers: Servers) -> None:
    server = await servers.apply("no-gvisor", manifests.RAW, runtimeClassName="no-such-runtime")
    found = await server.failed(within=5)
    assert status(found, "error", "phase") == "Sandbox"
    assert "no-such-runtime" in status(found, "error", "message")
    assert await server.children(k.PODS) == []


async def test_a_namespace_that_enforces_restricted_takes_every_default(
    kube: k.Kube, fresh_namespace: str
) -> None:
    label = {"pod-security.kubernetes.io/enforce": "restricted"}
    await kube.merge(k.NAMESPACES, "", fresh_namespace, {"metadata": {"labels": label}})
    servers = Servers(kube, fresh_namespace)
    await servers.ready("strict", resources=None)
    root = await servers.apply("root", securityContext={"runAsUser": 0, "runAsNonRoot": False})
    found = await root.until(lambda item: "AdmissionRefused" in k.summary(item))
    assert "restricted" in status(found, "error", "message")
    await servers.close()
