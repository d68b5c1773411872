"""A server or a relay that dies comes back, and the resource tells the truth meanwhile."""

import asyncio
import time

import pytest

from clusterkit import kube as k
from clusterkit import manifests, node
from clusterkit.leanmcp import RpcError
from clusterkit.servers import (
    Servers,
    condition,
    container_status,
    has_error,
    kill_process,
    not_ready,
    ready_since_epoch,
    status,
    wall_clock,
)

QUICK = {"backoffSeconds": [1], "maxRetries": 1, "retryAfterErrorSeconds": 0}


@pytest.mark.serial
async def test_a_killed_server_process_is_told_within_a_second_and_replaced_after_two(
    servers: Servers,
) -> None:
    server = await servers.ready("killed")
    client = await server.client()
    pid = (await server.stats(client))["pid"]
    pod = await server.pod()
    label = pod["metadata"]["labels"]["mcp-session.dev/server"]
    watch_cr = servers.kube.watch(k.MCPSERVERS, servers.namespace, name="killed")
    watch_pods = servers.kube.watch(k.PODS, servers.namespace, selector=f"mcp-session.dev/server={label}")
    async with watch_cr as changes, watch_pods as pods, asyncio.timeout(40):
        # Side by side: what comes is seen when it comes, however long the command takes to return.
        killed, told, new = await asyncio.gather(
            asyncio.to_thread(kill_process, servers.namespace, pod["metadata"]["name"], pid),
            k.first(changes, not_ready),
            k.first(pods, lambda o: o is not None and o["metadata"]["uid"] != pod["metadata"]["uid"]),
        )
    assert wall_clock(told) - killed < 1.0
    assert status(told.object, "address") is None
    assert status(told.object, "phase") == "Recreating"
    error = status(told.object, "error")
    assert (error["phase"], error["signal"], error["exitCode"]) == ("Process", "SIGKILL", 137)
    assert 1.8 < wall_clock(new) - killed < 4.0
    item = await server.ready()
    assert status(item, "session", "epoch") == 2
    assert status(item, "recovery", "restarts") == 1
    await server.endpoint()
    assert await client.call("echo", text="same session, new pod") == "same session, new pod"


async def test_open_calls_of_a_dying_process_are_answered_at_once_and_not_replayed(servers: Servers) -> None:
    server = await servers.ready("dying", recovery={"backoffSeconds": [6]})
    clients = [await server.client() for _ in range(3)]
    waiting = [asyncio.ensure_future(client.call("sleep", seconds=60)) for client in clients[:2]]
    await clients[2].call("echo", text="the others are on their way")
    started = time.monotonic()
    with pytest.raises(RpcError, match="effect is unknown"):
        await clients[2].call("die", signal="SIGKILL")
    for call in waiting:
        with pytest.raises(RpcError):
            await call
    assert time.monotonic() - started < 5  # before the next process is begun
    await server.until(ready_since_epoch(2), what="Ready again")
    await server.endpoint()
    assert (await server.stats(clients[2]))["initializes"] == 1


async def test_a_killed_relay_leaves_process_and_sessions_alone(servers: Servers) -> None:
    server = await servers.ready("relay-killed")
    client = await server.client()
    before, pod, since = (
        await server.stats(client),
        await server.pod(),
        status(await server.get(), "session", "since"),
    )

    node.kill_container(container_status(pod, "relay")["containerID"])
    await servers.kube.until(
        k.PODS,
        servers.namespace,
        pod["metadata"]["name"],
        lambda o: container_status(o or {"status": {}}, "relay").get("restartCount") == 1,
        what="restart of the relay",
    )
    await server.until(lambda o: status(o, "recovery", "reconnects") != 0, what="a counted reconnect")
    item = await server.ready()
    assert status(item, "session", "podUID") == pod["metadata"]["uid"]
    assert status(item, "session", "epoch") == 1
    assert status(item, "recovery", "restarts") == 0
    assert status(item, "recovery", "consecutiveFailures") == 0
    assert status(item, "session", "since") == since
    again = await server.pod()
    assert container_status(again, "server")["state"] == container_status(pod, "server")["state"]
    await server.endpoint()
    assert await server.stats(client) == before
    assert before["initializes"] == 1
    assert client.session


async def test_a_killed_relay_is_told_in_status_while_it_is_away(servers: Servers) -> None:
    server = await servers.ready("relay-away")
    pod = await server.pod()
    async with servers.kube.watch(k.MCPSERVERS, servers.namespace, name="relay-away") as changes:
        node.kill_container(container_status(pod, "relay")["containerID"])
        async with asyncio.timeout(20):
            told = await k.first(changes, not_ready)
    assert status(told.object, "phase") == "Reconnecting"
    assert status(told.object, "address") is None
    await server.ready()


async def test_a_relay_that_hangs_is_told_within_seconds_and_restarted_without_the_server(
    servers: Servers,
) -> None:
    server = await servers.ready("relay-hangs")
    client = await server.client()
    before, pod = await server.stats(client), await server.pod()
    async with servers.kube.watch(k.MCPSERVERS, servers.namespace, name="relay-hangs") as changes:
        started = time.monotonic()
        node.kill_container(container_status(pod, "relay")["containerID"], "SIGSTOP")
        async with asyncio.timeout(20):
            told = await k.first(changes, not_ready)
    assert told.at - started < 5  # 0.7 s of silence, on a node that is busy; its own probe takes 15 s
    assert status(told.object, "phase") == "Reconnecting"
    item = await server.ready(within=60)
    assert status(item, "recovery", "restarts") == 0
    await server.endpoint()
    assert await server.stats(client) == before


async def test_a_killed_server_container_is_replaced(servers: Servers) -> None:
    server = await servers.ready("container-killed")
    pod = await server.pod()
    node.kill_container(container_status(pod, "server")["containerID"])
    item = await server.until(ready_since_epoch(2), what="Ready again")
    assert status(item, "recovery", "restarts") == 1
    await servers.kube.gone(k.PODS, servers.namespace, pod["metadata"]["name"])


async def test_a_pod_deleted_by_someone_is_replaced_without_a_retry(servers: Servers) -> None:
    server = await servers.ready("pod-deleted")
    pod = await server.pod()
    await servers.kube.delete(k.PODS, servers.namespace, pod["metadata"]["name"])
    item = await server.until(ready_since_epoch(2), what="Ready again")
    assert status(item, "recovery", "consecutiveFailures") == 0


async def test_a_running_call_of_a_deleted_pod_is_finished_and_the_next_one_reaches_the_new_pod(
    servers: Servers,
) -> None:
    server = await servers.ready("drained")
    client = await server.client()
    call = asyncio.ensure_future(client.call("sleep", seconds=3))
    await client.call("echo", text="the other is on its way")
    await servers.kube.delete(k.PODS, servers.namespace, (await server.pod())["metadata"]["name"])
    assert await call == "slept"
    await server.until(ready_since_epoch(2), what="Ready again")
    await server.endpoint()
    assert await client.call("echo", text="same session") == "same session"


async def test_an_eviction_lets_the_running_call_end_closes_idle_streams_and_is_told_at_once(
    servers: Servers,
) -> None:
    server = await servers.ready("drained-node")
    client, idle = await server.client(), await server.client()
    pod = (await server.pod())["metadata"]["name"]
    call = asyncio.ensure_future(client.call("sleep", seconds=5))
    await client.call("echo", text="the other is on its way")
    async with idle.listen() as messages:
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
        async with servers.kube.watch(k.MCPSERVERS, servers.namespace, name=server.name) as changes:
            path = f"{k.PODS.path(servers.namespace, pod)}/eviction"
            await servers.kube.call("POST", path, json=eviction)
            async with asyncio.timeout(4):
                told = await k.first(changes, not_ready)
        assert not call.done()
        assert status(told.object, "address") is None
        assert await call == "slept"
        async with asyncio.timeout(20):
            assert [message async for message in messages] == []
    await servers.kube.gone(k.PODS, servers.namespace, pod, within=20)
    await server.until(ready_since_epoch(2), what="Ready again")
    await server.endpoint()
    assert await client.call("echo", text="same session") == "same session"


async def test_each_transition_is_one_event(servers: Servers) -> None:
    server = await servers.apply("eventful", (*manifests.BROKEN, "exits"), recovery=QUICK)
    uid = (await server.failed())["metadata"]["uid"]
    await server.event("BackoffExhausted")
    events = await servers.kube.list(k.EVENTS, servers.namespace)  # by name, not by time
    told = [(event["type"], event["reason"]) for event in events if event["regarding"].get("uid") == uid]
    assert ("Normal", "Created") in told
    assert ("Warning", "BackoffExhausted") in told
    assert len(told) < 10


async def test_a_server_over_its_memory_limit_is_named_so(servers: Servers) -> None:
    server = await servers.ready("hungry", recovery=QUICK)
    client = await server.client()
    with pytest.raises(RpcError):
        await client.call("allocate", mib=400)
    item = await server.until(has_error("OOMKilled"), what="reason OOMKilled")
    assert "spec.resources.limits.memory" in status(item, "error", "message")
    await server.until(ready_since_epoch(2), what="Ready again")


async def test_a_server_that_exits_at_once_ends_in_error_after_two_four_and_eight_seconds(
    servers: Servers,
) -> None:
    started = time.monotonic()
    server = await servers.apply("hopeless", (*manifests.BROKEN, "exits", "--code", "7"))
    item = await server.failed(within=120)
    assert time.monotonic() - started > 14
    assert condition(item, "Stalled")["status"] == "True"
    assert condition(item, "Stalled")["reason"] == "BackoffExhausted"
    assert status(item, "session", "epoch") == 4
    recovery = status(item, "recovery")
    assert (recovery["consecutiveFailures"], recovery["maxRetries"]) == (4, 3)
    error = status(item, "error")
    assert (error["phase"], error["reason"], error["exitCode"]) == ("Process", "ProcessExited", 7)
    assert "the database is not reachable" in error["stderrTail"]
    assert len(await server.children(k.PODS)) <= 1


async def test_a_server_that_exits_with_zero_has_failed_too(servers: Servers) -> None:
    server = await servers.apply("quitter", (*manifests.BROKEN, "exits", "--code", "0"), recovery=QUICK)
    item = await server.failed()
    assert status(item, "error", "exitCode") == 0
    assert "exited with 0" in status(item, "error", "message")


async def test_an_edit_revives_a_server_that_was_given_up(servers: Servers) -> None:
    server = await servers.apply("revived", (*manifests.BROKEN, "exits"), recovery=QUICK)
    await server.failed()
    await server.patch(command=list(manifests.RAW))
    item = await server.ready()
    assert not condition(item, "Stalled")
    assert status(item, "recovery", "consecutiveFailures") == 0


async def test_the_restart_annotation_replaces_the_pod(servers: Servers) -> None:
    server = await servers.ready("restarted")
    annotations = {"annotations": {"mcp-session.dev/restartedAt": "now"}}
    await servers.kube.merge(k.MCPSERVERS, servers.namespace, "restarted", {"metadata": annotations})
    await server.until(ready_since_epoch(2), what="Ready again")


async def test_a_server_that_starts_too_slowly_is_replaced_and_named_so(servers: Servers) -> None:
    server = await servers.apply(
        "sluggish", (*manifests.RAW, "--delay", "60"), session={"startupTimeoutSeconds": 2}, recovery=QUICK
    )
    item = await server.failed()
    error = status(item, "error")
    assert (error["phase"], error["reason"]) == ("Initialize", "StartupTimeout")
    assert "spec.session.startupTimeoutSeconds" in error["message"]
