"""A process for each client session, on a real cluster."""

import asyncio
import json

import pytest

from clusterkit import kube as k
from clusterkit.leanmcp import RpcError
from clusterkit.servers import Server, Servers, is_ready, kill_process, status


async def ready(servers: Servers, name: str) -> Server:
    """A server of which two clients may have a process at once."""
    return await servers.ready(name, session={"mode": "PerClient", "maxProcesses": 2})


async def test_clients_have_processes_of_their_own_and_the_death_of_one_is_nobody_elses(
    servers: Servers,
) -> None:
    server = await ready(servers, "apart")
    one, two = await server.client(), await server.client()
    assert [await one.call("count"), await one.call("count"), await two.call("count")] == ["1", "2", "1"]
    first, other = (await server.stats(one))["pid"], (await server.stats(two))["pid"]
    await server.until(
        lambda item: status(item, "session", "processes") == 2, what="two processes in the status"
    )
    pod = await server.pod()
    await asyncio.to_thread(kill_process, servers.namespace, pod["metadata"]["name"], first)
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "count", "arguments": {}}}
    async with asyncio.timeout(30):
        while (reply := await one.post(call)).status != 404:  # noqa: ASYNC110 - another process ends
            await asyncio.sleep(0.1)  # calls meanwhile are answered with the end of the process
    assert json.loads(reply.body)["error"]["data"]["reason"] == "session_not_found"
    assert await two.call("count") == "2"
    assert (await server.stats(two))["pid"] == other
    again = await server.client()
    assert await again.call("count") == "1"
    item = await server.get()
    assert is_ready(item)
    assert (status(item, "recovery", "restarts"), status(item, "session", "epoch")) == (0, 1)
    assert (await server.pod())["metadata"]["uid"] == pod["metadata"]["uid"]


async def test_one_clients_hunger_ends_its_own_process_and_no_other(servers: Servers) -> None:
    limits = {"cpu": "1", "memory": "256Mi", "ephemeral-storage": "128Mi"}
    server = await servers.ready(
        "hunger",
        session={"mode": "PerClient", "maxProcesses": 2, "processMemoryLimit": "96Mi"},
        resources={"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": limits},
    )
    one, two = await server.client(), await server.client()
    first, other = await server.stats(one), await server.stats(two)
    before = await server.pod()
    working = asyncio.create_task(two.call("sleep", seconds=8))
    async with asyncio.timeout(8):
        with pytest.raises(RpcError, match=r"limit of 96Mi \(spec\.session\.processMemoryLimit\)"):
            await one.call("allocate", mib=600)  # more than the container's limit
    assert not working.done()
    await working
    assert await server.stats(two) == other
    assert (await server.stats(await server.client()))["pid"] != first["pid"]
    item, pod = await server.get(), await server.pod()
    assert is_ready(item)
    assert (status(item, "recovery", "restarts"), status(item, "session", "epoch")) == (0, 1)
    assert containers(pod) == containers(before)
    await server.until(
        lambda item: status(item, "session", "lastProcessFailure", "reason") == "OOMKilled",
        what="the failure in the status",
    )

    def told(event: k.Json | None) -> bool:
        return (
            event is not None
            and event["reason"] == "ClientProcessFailed"
            and "processMemoryLimit" in event["note"]
        )

    async with servers.kube.watch(k.EVENTS, servers.namespace) as changes, asyncio.timeout(30):
        await k.first(changes, told)


def containers(pod: k.Json) -> list[k.Json]:
    """Which containers run, since when, and how often they were restarted."""
    told = pod["status"]["containerStatuses"] + pod["status"]["initContainerStatuses"]
    return [{key: each[key] for key in ("containerID", "state", "restartCount")} for each in told]


async def test_overrides_reach_clients_and_the_status(servers: Servers) -> None:
    overrides = [
        {"name": "echo", "rename": "say", "title": "Say it", "description": "Says it again"},
        {"name": "absent", "title": "x"},
    ]
    server = await servers.ready("renamed", tools={"overrides": overrides, "allow": ["echo", "count"]})
    client = await server.client()
    assert set(await client.tools()) == {"say", "count"}
    assert await client.call("say", text="hello") == "hello"

    def told(item: k.Json | None) -> bool:
        shown = {tool["name"]: tool for tool in status(item, "tools") or ()}
        said = shown.get("say", {})
        return (said.get("title"), said.get("description")) == ("Say it", "Says it again")

    item = await server.until(told, what="the new name in the status")
    verified = next(each for each in item["status"]["conditions"] if each["type"] == "Verified")
    assert (verified["status"], verified["reason"]) == ("True", "ToolOverridesUnmatched")
    assert "'absent'" in verified["message"]
